// Two runs side by side: what changed in each configuration with its interval, in what the runs differ, and what only one has.
//
// Model:   a change is the second run's median over the first's, on a logarithmic axis about no change. A bar behind it is how far equal runs
//          are apart there. Better and worse are of the quantity: less latency, more throughput.
// Checked: `a comparison shows each change with its interval`, `what only one run has is named`.
import * as Plot from '@observablehq/plot'
import { h, none, prose, section, shown, table, type Child } from '../dom'
import type { Drawing, Point } from '../figure'
import { count, moment, quantityName, share, significant, value } from '../units'
import type { Change, CompareRow, ComparedRuns, ListedRun } from '../view'
import { change, changeTicks } from './change'
import { Drawn, frame } from './frame'
import { compareLink, runName, served } from './served'

/** So many configurations are drawn until all are asked for. */
const SHOWN = 40
const NARROW = 640
const LETTER = 5.7

const RESULTS: Record<Change, [string, string]> = {
    worse: ['worse', 'var(--warning)'],
    better: ['better', 'var(--good)'],
    same: ['no significant change', 'var(--quiet)'],
    unsure: ['too few repetitions', 'var(--floor)'],
}
const ORDER: Change[] = ['worse', 'better', 'same', 'unsure']

interface Named {
    name: string
    row: CompareRow
    /** The second median over the first. */
    ratio: number
}

export function compared(page: HTMLElement, data: ComparedRuns): void {
    const { a, b, comparison } = data
    const drawn = new Drawn()
    const far = ({ ratio }: Named): number => Math.abs(Math.log(ratio))
    const all = comparison.rows.map((row, at): Named => ({ row, name: data.names[at] ?? '', ratio: row.ratio ?? (row.p50_a > 0 ? row.p50_b / row.p50_a : 1) }))
        .sort((one, other) => ORDER.indexOf(one.row.change) - ORDER.indexOf(other.row.change) || far(other) - far(one))
    const tally = ORDER.map((kind) => [kind, all.filter(({ row }) => row.change === kind).length] as const).filter(([, number]) => number > 0)
    frame(page, drawn, {
        title: `${called(a)} and ${called(b)}`, eyebrow: 'Two runs side by side', here: null,
        sentence: comparison.sentence,
        facts: [['A, the baseline', side(a)], ['B', side(b)], ['In both', `${count(all.length)} ${all.length === 1 ? 'configuration' : 'configurations'}`],
            ...tally.map(([kind, number]): [string, Child] => [RESULTS[kind][0], count(number)]), ...(served() ? [['The other way round', h('a', { href: compareLink(b.run, a.run) }, 'B against A')] as [string, Child]] : [])],
        body: [changes(drawn, data, all), differences(data), rows(all), only(data)],
        foot: `Compared by sonde: ${a.run} and ${b.run}.`,
    })
}

const called = (run: ListedRun): string => run.name ?? run.run
const side = (run: ListedRun): Child => [run.name ? `${run.name}: ` : '', runName(run.run), h('small', { class: 'began' }, moment(run.began_unix_ns))]

/** The figure; null where nothing was compared. */
function changes(drawn: Drawn, data: ComparedRuns, all: Named[]): HTMLElement | null {
    if (!all.length) return null
    let most = SHOWN
    const figure = drawn.figure({ label: 'Change of each configuration from A to B, with its 95 % interval.', draw: (width) => draw(all.slice(0, most), data, width) })
    const more = all.length > most ? h('button', { type: 'button', class: 'button more no-print', onclick: () => {
        most = all.length
        more?.remove()
        figure.draw()
    } }, `Show all ${count(all.length)}`) : null
    const present = ORDER.filter((kind) => all.some(({ row }) => row.change === kind))
    return section('changes', 'What changed', 'The median of B against that of A, with its 95 % interval over the repetitions; right of the line is more, left less.',
        h('div', { class: 'card' }, figure.element, more,
            h('ul', { class: 'line-key' }, present.map((kind) => h('li', {}, h('i', { class: `swatch change-${kind}`, '--colour': RESULTS[kind][1] }), RESULTS[kind][0])),
                h('li', {}, h('i', { class: 'swatch band' }), `below ${share(data.threshold)}, which is no change`),
                all.some(({ row }) => row.equal_runs_apart !== null) ? h('li', {}, h('i', { class: 'swatch equal' }), 'how far apart equal runs are') : null),
            h('p', { class: 'axis-note' }, prose(data.equal_runs))))
}

const shortened = (text: string, letters: number): string => (text.length > letters ? `${text.slice(0, Math.max(1, letters - 1))}…` : text)

function draw(all: Named[], data: ComparedRuns, width: number): Drawing {
    const narrow = width < NARROW
    const [left, right, top, step] = [narrow ? 6 : Math.min(400, Math.round(width * 0.42)), 70, 26, narrow ? 40 : 25]
    const band: [number, number] = [1 / (1 + data.threshold), 1 + data.threshold]
    const values = [...band, ...all.flatMap(({ row, ratio }) => [ratio, row.ratio_low ?? ratio, row.ratio_high ?? ratio, ...(row.equal_runs_apart === null ? [] : [1 / (1 + row.equal_runs_apart), 1 + row.equal_runs_apart])])].filter((ratio) => ratio > 0)
    const [least, largest] = [Math.min(...values), Math.max(...values)]
    const room = Math.max((largest / least) ** 0.06, 1.002)
    const [low, high] = [least / room, largest * room]
    const at = (index: number): number => index + (narrow ? 0.66 : 0.5)
    const items = all.map((one, index) => ({ ...one, y: at(index), colour: RESULTS[one.row.change][1], isChange: one.row.change === 'worse' || one.row.change === 'better' }))
    const letters = Math.floor((narrow ? width - 12 : left - 16) / LETTER)
    const ticks = changeTicks(low, high, width - left - right)
    const plot = Plot.plot({
        width, height: top + 10 + all.length * step, className: 'chart', marginLeft: left, marginRight: right, marginTop: top, marginBottom: 10,
        x: { type: 'log', domain: [low, high], axis: null }, y: { domain: [0, all.length], reverse: true, axis: null },
        marks: [
            Plot.rect([band], { x1: (one: [number, number]) => one[0], x2: (one: [number, number]) => one[1], y1: 0, y2: all.length, fill: 'var(--hover)' }),
            Plot.ruleX(ticks, { stroke: 'var(--line)' }),
            Plot.axisX(ticks, { anchor: 'top', text: (tick: number) => (tick === 1 ? '0' : change(tick)), tickSize: 0, fill: 'currentColor', label: null }),
            Plot.ruleY(items.filter(({ row }) => row.equal_runs_apart !== null), { y: 'y', x1: (one: Named) => 1 / (1 + (one.row.equal_runs_apart ?? 0)), x2: (one: Named) => 1 + (one.row.equal_runs_apart ?? 0), stroke: 'var(--faint)', strokeOpacity: 0.5, strokeWidth: 9, className: 'change-equal' }),
            Plot.ruleX([1], { stroke: 'var(--ink)', strokeWidth: 1.2 }),
            Plot.ruleY(items.filter(({ row }) => row.ratio_low !== null && row.ratio_high !== null), { y: 'y', x1: (one: Named) => one.row.ratio_low ?? 1, x2: (one: Named) => one.row.ratio_high ?? 1, stroke: 'colour', strokeWidth: 2, className: 'change-interval' }),
            Plot.dot(items, { x: 'ratio', y: 'y', r: 4, fill: (one: (typeof items)[number]) => (one.isChange ? one.colour : 'var(--surface)'), stroke: 'colour', strokeWidth: 1.8, className: 'change-point' }),
            Plot.text(items, { x: () => low, y: 'y', text: (one: Named) => shortened(one.name, letters), textAnchor: narrow ? 'start' : 'end', dx: narrow ? 0 : -10, dy: narrow ? -16 : 0, fill: 'var(--soft)', stroke: 'var(--surface)', strokeWidth: 3 }),
            Plot.text(items, { x: () => high, y: 'y', text: (one: Named) => change(one.ratio), textAnchor: 'start', dx: 8, fill: (one: (typeof items)[number]) => (one.isChange ? one.colour : 'var(--quiet)') }),
        ],
    }) as SVGSVGElement & Plot.Plot
    const [x, y] = [plot.scale('x')?.apply ?? Number, plot.scale('y')?.apply ?? Number]
    const points = items.map((one): Point => ({
        x: x(one.ratio), y: y(one.y), line: 'all', colour: one.colour, data: { configuration: one.name, ...one.row },
        tell: () => ({ title: one.name, rows: told(one), note: one.row.launches_wanted === null ? null : `A change that matters would need ${count(one.row.launches_wanted)} repetitions of each.` }),
    }))
    return { node: plot, points }
}

const interval = (row: CompareRow): Child => (row.ratio_low === null || row.ratio_high === null ? none('it needs six repetitions of each') : `${change(row.ratio_low)} to ${change(row.ratio_high)}`)

function told({ row, ratio }: Named): [string, Child][] {
    return [
        [`A, median ${quantityName(row.quantity)}`, value(row.quantity, row.p50_a)],
        ['B', value(row.quantity, row.p50_b)],
        ['change', change(ratio)],
        ['95 % interval', interval(row)],
        ['equal runs are apart by', shown(row.equal_runs_apart, share, 'the runs before are too few to tell')],
        ['repetitions of A and B', `${row.launches_a} and ${row.launches_b}`],
        ['result', RESULTS[row.change][0]],
    ]
}

function rows(all: Named[]): HTMLElement | null {
    if (!all.length) return null
    return section('rows', 'Rows', 'Medians of the repetitions, and what follows.', h('div', { class: 'card flush' }, h('div', { class: 'compare-rows' },
        table('Configurations of both runs', ['Configuration', 'Quantity', '#A', '#B', '#change', '#95 % interval', '#p', '#repetitions', 'Result'], all.map(({ name, row, ratio }) => [
            name, quantityName(row.quantity), value(row.quantity, row.p50_a), value(row.quantity, row.p50_b), change(ratio), interval(row), row.p < 0.0001 ? '<0.0001' : significant(row.p, 2), `${row.launches_a}, ${row.launches_b}`,
            h('span', { class: `result change-${row.change}` }, RESULTS[row.change][0]),
        ])))))
}

/** The factors in which what only one run has differs from the other's. */
function differences({ a, b, comparison, remedy }: ComparedRuns): HTMLElement | null {
    const all = comparison.differences
    if (!all.length) return null
    const may = all.every((one) => one.may_differ)
    const values = (of: string[]): Child => (of.length ? of.join(', ') : none('it is not set'))
    return section('differences', 'In what the runs differ', 'The factors of the configurations that only one run has, beside the nearest of the other.',
        h('div', { class: 'card flush' }, table('Factors', ['Factor', 'A', 'B'], all.map((one) => [h('code', {}, one.factor), values(one.a), values(one.b)]))),
        remedy ? h('p', { class: 'axis-note' }, prose(remedy)) : null,
        may && served() ? h('a', { class: 'button more no-print', href: compareLink(a.run, b.run, all.map((one) => one.factor)) }, 'Compare them all the same') : null)
}

/** What only one run has. */
function only({ only_a, only_b }: ComparedRuns): HTMLElement | null {
    const sides = ([['A', only_a], ['B', only_b]] as const).filter(([, names]) => names.length)
    if (!sides.length) return null
    return section('only', 'In one run only', null, sides.map(([name, names]) => h('details', { class: 'card', open: names.length <= 12 },
        h('summary', {}, `Only in ${name}: ${count(names.length)} ${names.length === 1 ? 'configuration' : 'configurations'}`), h('ul', { class: 'plain-list' }, names.map((one) => h('li', {}, one))))))
}
