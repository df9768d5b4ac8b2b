// Distributions of samples, a panel for each network: the share of samples at or below a value, or a histogram.
import * as Plot from '@observablehq/plot'
import type { Context } from '../context'
import { nameMarks, part } from '../curves'
import { h, section } from '../dom'
import type { Drawing, Point } from '../figure'
import { choice } from '../legend'
import { distinct, type Model, type Series } from '../model'
import { decadeTicks, spread } from '../axes'
import { quantityName, share, size, value } from '../units'
import type { Distribution, Quantity, ResultRow } from '../view'

type Kind = 'ecdf' | 'histogram'

interface Held {
    distribution: Distribution
    row: ResultRow
    series: Series
}

/** What one entry of the menu stands for. */
interface Topic {
    name: string
    held: Held[]
}

/** The section; null when no distribution is there. */
export function distributions(context: Context): HTMLElement | null {
    const topics = topicsOf(context.model)
    const first = topics[0]
    if (!first) return null
    let topic = first
    let kind: Kind = 'ecdf'
    const place = h('div', { class: 'grid' })
    const missing = h('p', { class: 'axis-note' })
    const figures = context.model.networks.map((network) => {
        const figure = context.figure({
            label: `Distribution on ${network}.`, empty: 'Nothing selected here.',
            draw: (width) => draw(context, topic.held.filter((held) => held.series.network === network), kind, width),
        })
        const panel = h('div', { class: 'card panel' }, h('h3', {}, h('i', { class: 'swatch', '--colour': context.model.colour(network) }), network), figure.element)
        return { network, panel, figure }
    })
    const arrange = (): void => {
        const wanted = figures.filter(({ network }) => topic.held.some((held) => held.series.network === network && context.selection.shows(held.series)))
        place.replaceChildren(...wanted.map(({ panel }) => panel))
        const without = figures.filter(({ network }) => !topic.held.some((held) => held.series.network === network)).map(({ network }) => network)
        missing.textContent = without.length ? `Not here: ${without.join(', ')}. It has fewer than 16 samples of this there, or none.` : ''
        for (const { figure } of wanted) figure.draw()
    }
    context.selection.onChange(arrange)
    const menu = h('select', { 'aria-label': 'Which samples', onchange: (event) => {
        topic = topics[Number((event.target as HTMLSelectElement).value)] ?? first
        arrange()
    } }, topics.map((one, at) => h('option', { value: at }, one.name)))
    queueMicrotask(arrange)
    return section('distributions', 'Distributions', 'Every sample of all repetitions. Solid is warm, dashed is cold; a thinner line is another path. A long right end is what a mean would hide.',
        h('div', { class: 'controls' }, menu, choice('Kind', [['ecdf', 'cumulative'], ['histogram', 'histogram']], kind, (chosen) => {
            kind = chosen as Kind
            arrange()
        })), place, missing)
}

function topicsOf(model: Model): Topic[] {
    const rows = new Map(model.view.results.map((row) => [`${row.cell} ${row.quantity} ${row.phase} ${row.step}`, row]))
    const topics = new Map<string, Held[]>()
    for (const distribution of model.view.distributions) {
        const row = rows.get(`${distribution.cell} ${distribution.quantity} ${distribution.phase} ${distribution.step}`) ?? model.cell(distribution.cell)
        const series = row && model.of(row)
        if (!row || !series || !distribution.buckets.length) continue
        const name = [quantityName(distribution.quantity), distribution.step, row.mode, row.size_bytes === null ? '' : size(row.size_bytes)].filter(Boolean).join(', ')
        const list = topics.get(name) ?? []
        list.push({ distribution, row, series })
        topics.set(name, list)
    }
    // Latency first, and what most networks have.
    const rank = (held: Held[]): number => distinct(held.map((one) => one.series.network)).length + (held[0]?.distribution.quantity === 'latency_ns' ? 1000 : 0)
    return [...topics].map(([name, held]) => ({ name, held })).sort((a, b) => rank(b.held) - rank(a.held))
}

interface Step {
    x: number
    y: number
}

function steps(distribution: Distribution, kind: Kind): Step[] {
    const total = distribution.buckets.reduce((sum, [, counted]) => sum + counted, 0) || 1
    if (kind === 'ecdf') {
        let below = 0
        const list = distribution.buckets.map(([x, counted]) => ({ x, y: (below += counted) / total }))
        const first = list[0]
        return first ? [{ x: first.x, y: 0 }, ...list] : list
    }
    // Buckets differ in width: a share for each tenth of a decade.
    const bins = new Map<number, number>()
    const width = 0.02
    for (const [x, counted] of distribution.buckets) {
        const bin = Math.round(Math.log10(Math.max(x, 1e-9)) / width)
        bins.set(bin, (bins.get(bin) ?? 0) + counted / total)
    }
    const low = Math.min(...bins.keys()) - 1
    const high = Math.max(...bins.keys()) + 1
    return Array.from({ length: high - low + 1 }, (_, at) => ({ x: 10 ** ((low + at) * width), y: bins.get(low + at) ?? 0 }))
}

function draw({ model, selection }: Context, all: Held[], kind: Kind, width: number): Drawing | null {
    const shown = all.filter((held) => selection.shows(held.series) && selection.showsPhase(held.distribution.phase, held.distribution.quantity))
        .map((held) => ({ ...held, steps: steps(held.distribution, kind) }))
    if (!shown.length) return null
    const xs = spread(shown.flatMap((held) => held.steps.map((step) => step.x)), 1.06)
    const quantity = shown[0]?.distribution.quantity as Quantity
    const top = kind === 'ecdf' ? 1 : Math.max(...shown.flatMap((held) => held.steps.map((step) => step.y))) * 1.05
    const ticks = decadeTicks(xs[0], xs[1])
    const shownTicks = ticks.length > 5 ? decadeTicks(xs[0], xs[1]).filter((tick) => /^[15]/.test(tick.toExponential())) : ticks
    const plot = Plot.plot({
        width, height: 190, className: 'chart', marginLeft: 44, marginRight: 10, marginTop: 10, marginBottom: 26,
        x: { type: 'log', domain: xs, axis: null }, y: { domain: [0, top], axis: null },
        marks: [
            Plot.gridY(kind === 'ecdf' ? [0, 0.5, 0.9, 1] : [0, top / 2], { stroke: 'var(--line)', strokeOpacity: 1 }),
            Plot.axisX(shownTicks.length > 1 ? shownTicks : [xs[0] * 1.06, xs[1] / 1.06], { text: (tick: number) => value(quantity, Number(tick.toPrecision(3))), tickSize: 4, stroke: 'var(--faint)', fill: 'currentColor', label: null }),
            Plot.axisY(kind === 'ecdf' ? [0, 0.5, 0.9, 1] : [0, top / 2], { text: (tick: number) => share(Number(tick.toPrecision(2))), tickSize: 0, fill: 'currentColor', label: null }),
            ...shown.flatMap(({ series, steps: list, distribution }) => {
                const cold = distribution.phase === 'cold'
                const line = { x: 'x', y: 'y', stroke: series.colour, strokeWidth: series.weight, strokeDasharray: cold ? '5 4' : undefined, className: part(series, 'distribution') }
                return kind === 'ecdf'
                    ? [Plot.line(list, { ...line, curve: 'linear' })]
                    : [Plot.areaY(list, { x: 'x', y: 'y', fill: series.colour, fillOpacity: cold ? 0.06 : 0.16, curve: 'step' }), Plot.line(list, { ...line, strokeWidth: 1.3, curve: 'step' })]
            }),
        ],
    }) as SVGSVGElement & Plot.Plot
    nameMarks(plot, model.series)
    const x = plot.scale('x')?.apply ?? Number
    const y = plot.scale('y')?.apply ?? Number
    const points = shown.flatMap((held) => held.steps.map((step): Point => ({
        x: x(step.x), y: y(step.y), line: `${held.series.id} ${held.distribution.phase}`, colour: held.series.colour,
        tell: () => ({
            title: `${held.series.label} · ${held.distribution.phase ?? ''}`,
            rows: [[kind === 'ecdf' ? 'at or below' : 'about', value(quantity, step.x)], ['samples', share(step.y)]],
        }),
        data: { network: held.series.network, path: held.series.path, wait: held.series.wait, load: held.series.load, size_bytes: held.row.size_bytes, phase: held.distribution.phase, step: held.distribution.step, [quantity]: step.x, [kind === 'ecdf' ? 'share_at_or_below' : 'share']: step.y },
    })))
    return { node: plot, points }
}
