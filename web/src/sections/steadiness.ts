// Whether the run held still: medians of launches over the run, how late the emulation was, what disturbed the hosts.
//
// Model:   a point is a launch; its height is its median over the middle of its cell's launches, on a logarithmic axis: half and twice
//          as much are equally far. Launches are shuffled, so that a drift shows in all networks at once. Beneath stands, over the same
//          time, how busy the hosts were, what a hypervisor took, and how much of its deliveries the emulation made behind schedule.
import { colourKey } from '../bars'
import * as Plot from '@observablehq/plot'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { linearTicks } from '../axes'
import type { Context } from '../context'
import { h, none, section, shown, table, type Child } from '../dom'
import type { Drawing, Point } from '../figure'
import { choice } from '../legend'
import { said, type Model, type Series } from '../model'
import { fidelity } from './head'
import { count, duration, quantityName, share, significant, size, time, value } from '../units'
import type { LaunchMedians, Moment, Phase, Quantity, ResultRow } from '../view'

/** What stands left and right of both figures, so that they have one time. */
const LEFT = 56
const RIGHT = 12
/** Longer tables are a click away. */
const OPEN_MAX = 16

interface Launch {
    series: Series
    row: ResultRow
    /** Seconds since the run's begin. */
    x: number
    /** The binary logarithm of what it is of the cell's middle. */
    deviation: number
    median: number
    quantity: Quantity
    phase: Phase
    nth: number
}

/** The section; null when there is nothing to tell. */
export function steadiness(context: Context): HTMLElement | null {
    const { model } = context
    const drift = launchFigure(context)
    const busy = drift ? null : meanwhile(context)
    const late = lateness(model)
    const disturbed = interference(model)
    if (!drift && !busy && !late && !disturbed) return null
    return section('steadiness', 'Did the run hold still?', 'A difference between networks counts for little where the same cell differs as much from repetition to repetition.', drift, busy && h('div', { class: 'card' }, busy), late, disturbed)
}

function launches(model: Model): Launch[] {
    return model.view.launch_medians.flatMap((entry: LaunchMedians) => {
        const row = model.cell(entry.cell)
        const series = row && model.of(row)
        const sorted = [...entry.medians].sort((a, b) => a - b)
        const middle = sorted[Math.floor(sorted.length / 2)]
        if (!row || !series || !(middle && middle > 0) || sorted.length < 2 || entry.step !== null) return []
        return entry.medians.flatMap((median, nth) => median <= 0 ? [] : [{
            series, row, median, nth, quantity: entry.quantity, phase: entry.phase, deviation: Math.log2(median / middle), x: (entry.began_ms[nth] ?? 0) / 1000,
        }])
    })
}

const TOPICS: [Quantity, string][] = [['latency_ns', 'latency'], ['throughput_bps', 'throughput'], ['startup_ns', 'start-up']]

function launchFigure(context: Context): HTMLElement | null {
    const all = launches(context.model)
    const topics = TOPICS.filter(([quantity]) => all.some((launch) => launch.quantity === quantity))
    const first = topics[0]
    if (!first) return null
    let quantity = first[0]
    const place = h('div', { class: 'plot uplot-place', role: 'img', 'aria-label': 'Deviation of each repetition from the middle of its cell, over the run. The figures are in the table of all rows.' })
    let chart: uPlot | null = null
    const draw = (): void => {
        chart?.destroy()
        chart = null
        const wanted = all.filter((launch) => launch.quantity === quantity && context.selection.shows(launch.series) && context.selection.showsPhase(launch.phase, launch.quantity))
        if (place.clientWidth > 0) chart = drawLaunches(context, place, wanted)
    }
    context.onRedraw(draw)
    let width = 0
    new ResizeObserver(() => {
        if (place.clientWidth !== width) draw()
        width = place.clientWidth
    }).observe(place)
    return h('div', { class: 'card' },
        h('div', { class: 'card-head' }, h('div', {}, h('h3', {}, 'Repetitions over the run'), h('p', { class: 'axis-note' }, 'a repetition’s median over the middle of its cell, against the time of the repetition')),
            topics.length > 1 ? choice('Quantity', topics, quantity, (chosen) => {
                quantity = chosen as Quantity
                draw()
            }) : null),
        place, meanwhile(context))
}

/** What a binary logarithm is of the middle: `+3 %`, `×4`, `÷4`. */
function ratio(log: number): string {
    if (Math.abs(log) >= 1) return `${log > 0 ? '×' : '÷'}${significant(2 ** Math.abs(log), 2)}`
    const part = 2 ** log - 1
    return `${part > 0 ? '+' : part < 0 ? '−' : ''}${share(Math.abs(part))}`
}

/** Seconds until the last launch ended. */
const endOf = ({ view }: Model): number =>
    [...view.timeline.map((at) => at.ended_ms), ...view.launch_medians.flatMap((entry) => entry.began_ms)].reduce((end, ms) => Math.max(end, ms), 1) / 1000

const LINES: [keyof Pick<Moment, 'busy_share' | 'stolen_share' | 'late_share'>, string, string][] = [
    ['busy_share', 'busiest host: part of its CPUs in use', 'var(--step-connect)'],
    ['stolen_share', 'taken by a hypervisor', 'var(--warning)'],
    ['late_share', 'deliveries behind schedule', 'var(--advice)'],
]

/** How busy the hosts were over the run; null where no launch tells. */
function meanwhile(context: Context): HTMLElement | null {
    const { timeline } = context.model.view
    const lines = LINES.filter(([name]) => timeline.some((at) => at[name] !== null))
    if (!lines.length) return null
    const figure = context.figure({ label: 'How busy the hosts were over the run.', draw: (width) => drawMeanwhile(timeline, lines, endOf(context.model), width) })
    return h('div', { class: 'meanwhile' }, h('h3', {}, 'Meanwhile'), figure.element,
        colourKey(lines.map(([, name, colour]) => [name, colour])))
}

function drawMeanwhile(timeline: Moment[], lines: typeof LINES, end: number, width: number): Drawing {
    // A step from the begin of each launch to its end; nothing between launches.
    const steps = lines.map(([name, , colour]) => ({ name, colour, at: timeline.flatMap((one) => [{ x: one.began_ms / 1000, y: one[name] }, { x: one.ended_ms / 1000, y: one[name] }, { x: one.ended_ms / 1000, y: null }]) }))
    const ticks = linearTicks(end).filter((_, at) => width > 560 || at % 2 === 0)
    const plot = Plot.plot({
        width, height: 118, className: 'chart', marginLeft: LEFT, marginRight: RIGHT, marginTop: 8, marginBottom: 26,
        x: { domain: [0, end], axis: null }, y: { domain: [0, 1], axis: null },
        marks: [
            Plot.gridY([0, 0.5, 1], { stroke: 'var(--line)', strokeOpacity: 1 }),
            Plot.axisX(ticks, { text: (tick: number) => `${tick} s`, tickSize: 4, stroke: 'var(--faint)', fill: 'currentColor', label: null }),
            Plot.axisY([0, 0.5, 1], { text: share, tickSize: 0, fill: 'currentColor', label: null }),
            ...steps.flatMap(({ name, colour, at }) => [
                Plot.areaY(at, { x: 'x', y: 'y', fill: colour, fillOpacity: 0.12, className: `meanwhile-${name}` }),
                Plot.line(at, { x: 'x', y: 'y', stroke: colour, strokeWidth: 1.3, className: `meanwhile-${name}` }),
            ]),
        ],
    }) as SVGSVGElement & Plot.Plot
    const [x, y] = [plot.scale('x')?.apply ?? Number, plot.scale('y')?.apply ?? Number]
    const points = lines.flatMap(([name, , colour]) => timeline.flatMap((at): Point[] => (at[name] === null ? [] : [{
        x: x((at.began_ms + at.ended_ms) / 2000), y: y(at[name] ?? 0), line: name, colour, data: at,
        tell: () => ({ title: `${duration(at.began_ms * 1e6)} into the run`, rows: [['lasted', duration((at.ended_ms - at.began_ms) * 1e6)], ...lines.map(([one, words]): [string, Child] => [words, shown(at[one], share, 'no host can tell')])] }),
    }])))
    return { node: plot, points }
}

const css = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name.replace(/^var\(|\)$/g, '')).trim()

function drawLaunches(context: Context, place: HTMLElement, wanted: Launch[]): uPlot | null {
    place.replaceChildren()
    if (!wanted.length) {
        place.append(h('p', { class: 'nothing' }, 'Nothing selected here.'))
        return null
    }
    const sorted = [...wanted].sort((a, b) => a.x - b.x)
    const lines = [...new Set(sorted.map((launch) => launch.series))]
    const data: uPlot.AlignedData = [sorted.map((launch) => launch.x), ...lines.map((series) => sorted.map((launch) => (launch.series === series ? launch.deviation : null)))]
    const most = Math.max(0.03, ...sorted.map((launch) => Math.abs(launch.deviation))) * 1.1
    const end = endOf(context.model)
    const axis: uPlot.Axis = { stroke: css('--quiet'), grid: { stroke: css('--line'), width: 1 }, ticks: { show: false }, font: `11px ${css('--sans')}` }
    const nearest = (chart: uPlot): void => {
        const { left = -1, top = -1 } = chart.cursor
        let found: Launch | null = null
        let distance = 24
        for (const launch of left < 0 ? [] : sorted) {
            const away = Math.hypot(chart.valToPos(launch.x, 'x') - left, chart.valToPos(launch.deviation, 'y') - top)
            if (away < distance) [found, distance] = [launch, away]
        }
        if (!found) return context.tooltip.hide()
        const box = chart.over.getBoundingClientRect()
        const rows: [string, string][] = [
            ['size', found.row.size_bytes === null ? '–' : size(found.row.size_bytes)], [`median ${quantityName(found.quantity)}`, value(found.quantity, found.median)],
            ['from the middle', ratio(found.deviation)], ['repetition', `${found.nth + 1}, ${Math.round(found.x)} s into the run`],
        ]
        context.tooltip.show([h('p', { class: 'tip-title' }, h('i', { class: 'swatch', '--colour': found.series.colour }), `${found.series.label} · ${found.phase}`), h('dl', {}, rows.map(([name, text]) => [h('dt', {}, name), h('dd', {}, text)]))],
            box.left + chart.valToPos(found.x, 'x'), box.top + chart.valToPos(found.deviation, 'y'))
    }
    return new uPlot({
        width: place.clientWidth, height: 240, padding: [8, RIGHT, 0, 0], legend: { show: false },
        cursor: { drag: { x: false, y: false }, points: { show: false }, x: false, y: false },
        scales: { x: { time: false, range: [0, end] }, y: { range: [-most, most] } },
        axes: [
            { ...axis, size: 28, values: (_, ticks) => ticks.map((tick) => `${tick} s`) },
            { ...axis, size: LEFT, values: (_, ticks) => ticks.map(ratio) },
        ],
        series: [{}, ...lines.map((series): uPlot.Series => ({ stroke: css(series.colour), paths: () => null, points: { show: true, size: 6, width: 1.2, fill: `${css(series.colour)}66`, stroke: css(series.colour) } }))],
        hooks: { setCursor: [nearest] },
    }, data, place)
}

function lateness(model: Model): HTMLElement | null {
    const judged = model.series.map((series) => ({ series, verdict: model.fidelity(series) })).filter((one) => one.verdict !== null)
    if (!judged.length) return null
    const rows = judged.map(({ series, verdict }) => [
        [h('i', { class: 'swatch', '--colour': series.colour }), series.label], fidelity(verdict), count(verdict?.deliveries ?? 0),
        shown(verdict?.late_share, share, 'nothing was delivered'), time(verdict?.bound_ns ?? 0), shown(verdict?.lateness_p50_ns, time, 'not kept'),
        shown(verdict?.lateness_p99_ns, time, 'needs 1000 deliveries'), shown(verdict?.lateness_max_ns, time, 'not kept'), count(verdict?.attachment_losses ?? 0),
    ])
    const behind = judged.filter(({ verdict }) => verdict?.status === 'failed').length
    return h('details', { class: 'card flush', open: rows.length <= OPEN_MAX }, h('summary', {}, `How far the emulation was behind schedule: ${behind} of ${rows.length} lines`),
        table('How far the emulation was behind schedule', ['Series', 'Emulation', '#deliveries', '#behind schedule', '#by more than', '#half within', '#99 % within', '#most', '#lost in attachment'], rows))
}

function interference(model: Model): HTMLElement | null {
    if (!model.view.interference.length) return null
    const rows = model.view.interference.map((row) => [
        [h('i', { class: 'swatch', '--colour': model.of({ wait: null, ...row })?.colour ?? model.colour(row.network) }), [`${row.network} ${row.path}`, said({ wait: null, ...row })].filter(Boolean).join(', ')], row.probe, count(row.involuntary_switches),
        shown(row.steal_ns, time, '/proc/stat cannot be read here'), shown(row.retransmits, count, 'not a TCP path, or TCP_INFO does not report it'),
        row.cpu_busy_share === null ? none('/proc/stat cannot be read here') : h('span', { class: row.cpu_busy_share > 0.95 ? 'alarm' : '' }, share(row.cpu_busy_share)),
    ])
    return h('details', { class: 'card flush', open: rows.length <= OPEN_MAX }, h('summary', {}, `What disturbed the hosts: ${rows.length} lines`),
        table('What disturbed the hosts', ['Series', 'Probe', '#preempted', '#stolen by the hypervisor', '#retransmissions', '#CPUs busy'], rows))
}
