// The kernels: a graph of each, with a curve for each level of load, and the figures as tables.
//
// Model:   down the graph stand the places where a kernel ran: network, path, ranks, hosts. Along it is the time over the
//          reference's, or the time itself where there is no reference. Where there are several loads a curve joins the places under each, to
//          follow it; under one load places are kinds that no line joins. A bar is the 95 % interval. Hollow and dashed is what a paper
//          prints of the same, over the paper's own reference.
// Checked: `kernels have a graph each and a curve for each load`, `what a paper prints is hollow`, `kernels without a reference show times`.
import * as Plot from '@observablehq/plot'
import { linearTicks, decadeTicks } from '../axes'
import type { Context } from '../context'
import { h, none, section, shown, table, type Child } from '../dom'
import type { Drawing, Point } from '../figure'
import { by, byPlace, colourOf, groups, kernelName, loadName, loadsOf, placeOf } from '../kernelplace'
import { distinct } from '../model'
import { share, significant, time, times } from '../units'
import type { KernelRow, View } from '../view'
import { answers, placesTable, split } from './kernelglance'
import { messagesTable, traffic } from './kernelmessages'

/** Beyond this ratio of the largest to the smallest the axis is logarithmic. */
const WIDE = 20
const FEW = 'a confidence interval needs six repetitions'
const ROW_HEIGHT = 30

/** A row on its graph, or what a paper prints of it. */
interface Dot {
    row: KernelRow
    place: string
    value: number
    low: number | null
    high: number | null
    printed: boolean
}

/** The section; null where no kernel was measured. */
export function kernels(context: Context): HTMLElement | null {
    const all = context.model.view.kernels
    if (!all.length) return null
    const loads = loadsOf(all)
    const cites = distinct(all.flatMap((row) => (row.printed ? [row.printed.cite] : [])))
    const references = distinct(all.flatMap((row) => (row.reference ? [row.reference] : [])))
    const key = h('ul', { class: 'line-key plain', 'aria-label': 'Loads' },
        loads.map((load) => h('li', {}, h('i', { class: 'swatch', '--colour': colourOf(loads, load) }), loadName(load))),
        cites.map((cite) => h('li', {}, `○ ‒‒ printed: ${cite}`)))
    const lead = references.length
        ? `What networks, routes, places and loads do to each kernel: its time over the idle time of ${references.join(', or ')}. What is printed is over the reference of its paper.`
        : 'What networks, routes, places and loads do to each kernel.'
    return section('kernels', 'Kernels', lead, answers(context.model.view), placesTable(all), key,
        h('div', { class: `grid kernel-curves${groups(all).length < 3 ? ' wide' : ''}` }, groups(all).map((rows) => panel(context, byPlace(rows), all, loads))),
        split(context.model.view, all), traffic(context.model.view),
        h('div', { class: 'kernel-tables' }, timesTable(all, cites.length > 0), messagesTable(all), elsewhereTable(context.model.view)))
}

function panel(context: Context, rows: KernelRow[], all: KernelRow[], loads: (string | null)[]): HTMLElement {
    const name = rows[0] ? kernelName(rows[0]) : ''
    const over = rows.every((row) => row.of_reference !== null)
    const figure = context.figure({ label: `${name}: ${over ? 'time over the reference' : 'time'} by place, a curve for each load.`, draw: (width) => draw(rows, all, loads, over, width) })
    return h('div', { class: 'card panel' }, h('h3', {}, name), figure.element)
}

function dotsOf(rows: KernelRow[], all: KernelRow[], over: boolean): Dot[] {
    return rows.flatMap((row): Dot[] => {
        const place = placeOf(row, all)
        const own = over && row.of_reference
            ? { value: row.of_reference.value, low: row.of_reference.ci95_low, high: row.of_reference.ci95_high }
            : { value: row.time_ns, low: row.ci95_low_ns, high: row.ci95_high_ns }
        const dots: Dot[] = [{ row, place, ...own, printed: false }]
        // Seconds of another age stand beside no time of ours: only what is divided does.
        if (over && row.printed?.of_reference != null) dots.push({ row, place, value: row.printed.of_reference, low: null, high: null, printed: true })
        return dots
    })
}

function draw(rows: KernelRow[], all: KernelRow[], loads: (string | null)[], over: boolean, width: number): Drawing | null {
    const dots = dotsOf(rows, all, over).filter((dot) => dot.value > 0)
    if (!dots.length) return null
    const places = distinct(dots.map((dot) => dot.place))
    const values = dots.flatMap((dot) => [dot.value, dot.high ?? dot.value])
    const [least, most] = [Math.min(...dots.map((dot) => dot.low ?? dot.value)), Math.max(...values)]
    const log = least > 0 && most / least > WIDE
    const xs: [number, number] = log ? [least / 1.3, most * 1.3] : [0, most * 1.08]
    const ticks = (log ? decadeTicks(xs[0], xs[1]) : linearTicks(most)).filter((_, at, kept) => kept.length <= 6 || at % 2 === 0)
    const format = over ? times : (ns: number) => time(ns)
    const longest = Math.max(...places.map((place) => place.length))
    const curves = loads.flatMap((load) => [false, true].map((printed) => ({ load, printed, dots: dots.filter((dot) => dot.row.load === load && dot.printed === printed) }))).filter((curve) => curve.dots.length)
    const plot = Plot.plot({
        width, height: 70 + places.length * ROW_HEIGHT, className: 'chart', marginLeft: Math.min(Math.round(width * 0.48), 14 + longest * 6.4), marginRight: 18, marginTop: 12, marginBottom: 42,
        x: { type: log ? 'log' : 'linear', domain: xs, axis: null }, y: { type: 'point', domain: places, padding: 0.6, axis: null },
        marks: [
            Plot.gridX(ticks, { stroke: 'var(--line)', strokeOpacity: 1 }),
            Plot.axisX(ticks, { text: format, label: over ? 'time over the reference →' : 'time →', tickSize: 4, stroke: 'var(--faint)', fill: 'currentColor' }),
            Plot.axisY(places, { tickSize: 0, label: null, fill: 'currentColor', lineWidth: Math.max(6, (width * 0.46) / 11), textOverflow: 'ellipsis' }),
            ...(over ? [Plot.ruleX([1], { stroke: 'var(--faint)', strokeDasharray: '2 3' })] : []),
            ...curves.flatMap((curve) => curveMarks(curve.dots, colourOf(loads, curve.load), curve.printed, loads.length > 1)),
        ],
    }) as SVGSVGElement & Plot.Plot
    const [x, y] = [plot.scale('x')?.apply ?? Number, plot.scale('y')?.apply ?? Number]
    const points = curves.flatMap((curve) => curve.dots.map((dot): Point => ({
        x: x(dot.value), y: y(dot.place) as unknown as number, line: `${loadName(curve.load)} ${curve.printed}`, colour: colourOf(loads, curve.load), tell: () => tell(dot), data: dot.printed ? { ...dot.row.printed, kernel: dot.row.kernel } : dot.row,
    })))
    return { node: plot, points }
}

function curveMarks(dots: Dot[], colour: string, printed: boolean, joined: boolean): Plot.Markish[] {
    const name = printed ? 'kernel-printed' : 'kernel-curve'
    const channels = { x: 'value', y: 'place' }
    return [
        ...(joined && dots.length > 1 ? [Plot.line(dots, { ...channels, stroke: colour, strokeWidth: printed ? 1 : 1.4, strokeDasharray: printed ? '4 4' : undefined, strokeOpacity: 0.6, className: name })] : []),
        Plot.ruleY(dots.filter((dot) => dot.low !== null && dot.high !== null), { x1: 'low', x2: 'high', y: 'place', stroke: colour, strokeWidth: 5, strokeOpacity: 0.3, className: 'kernel-interval' }),
        Plot.dot(dots, { ...channels, r: 3.6, fill: printed ? 'var(--surface)' : colour, stroke: colour, strokeWidth: 1.4, className: `${name}-points` }),
    ]
}

function tell({ row, printed }: Dot): { title: Child; rows: [string, Child][]; note?: Child } {
    const where = row.hosts === 1 ? `${row.ranks} ${row.ranks === 1 ? 'rank' : 'ranks'} over ${by(row)} on one host` : `${row.ranks} ranks over ${by(row)} on ${row.hosts} hosts of ${row.network}`
    if (printed && row.printed) {
        return {
            title: `${row.kernel.toUpperCase()} · ${loadName(row.load)} · printed`,
            rows: [['size', row.printed.size], ['time', seconds(row)], ['over its reference', shown(row.printed.of_reference, times, 'the paper has none')]],
            note: [row.printed.what, row.printed.cite, row.printed.note].filter(Boolean).join('. '),
        }
    }
    const rows: [string, Child][] = [['time', time(row.time_ns, 4)], ['95 % interval', between(row.ci95_low_ns, row.ci95_high_ns, time)]]
    if (row.of_reference) rows.push(['over the reference', times(row.of_reference.value)], ['95 % interval', between(row.of_reference.ci95_low, row.of_reference.ci95_high, times)])
    if (row.communicating_share !== null) rows.push(['communicating', share(row.communicating_share)])
    if (row.mops !== null) rows.push(['Mop/s', significant(row.mops, 4)])
    return { title: `${row.kernel.toUpperCase()} · ${loadName(row.load)}`, rows, note: where }
}

function between(low: number | null, high: number | null, format: (value: number) => string): Child {
    return low === null || high === null ? none(FEW) : `${format(low)} … ${format(high)}`
}

/** A printed time; a range where the print is damaged. */
function seconds({ printed }: KernelRow): Child {
    if (!printed) return none('no paper prints it')
    const text = printed.seconds_to === null ? `${significant(printed.seconds, 5)} s` : `${significant(printed.seconds, 5)} to ${significant(printed.seconds_to, 5)} s`
    return printed.note ? h('span', { class: 'noted', tabindex: 0, 'data-tip': printed.note }, text) : text
}

function timesTable(all: KernelRow[], printed: boolean): HTMLElement {
    const lonely = 'nothing of the same kernel and class ran on one host'
    const rows = all.map((row): Child[] => [
        row.kernel.toUpperCase(), row.class, row.network, by(row), row.ranks, row.hosts, row.load ?? 'idle',
        time(row.time_ns, 4), between(row.ci95_low_ns, row.ci95_high_ns, time),
        shown(row.communicating_share, share, 'not measured'), shown(row.mops, (mops) => significant(mops, 4), 'not measured'),
        row.of_reference ? times(row.of_reference.value) : none(lonely),
        row.of_reference ? between(row.of_reference.ci95_low, row.of_reference.ci95_high, times) : none(lonely),
        ...(printed ? [seconds(row), shown(row.printed?.of_reference ?? null, times, 'no paper prints it')] : []),
    ])
    return h('details', { class: 'card flush', open: all.length <= 12 }, h('summary', {}, `What the kernels take: ${all.length} times with their intervals`),
        table('What the kernels take', ['Kernel', 'Class', 'Network', 'Path', '#ranks', '#hosts', 'Load', '#time', '#95 % interval', '#communicating', '#Mop/s', '#over the reference', '#95 % interval', ...(printed ? ['#printed', '#over its own'] : [])], rows))
}

/** What papers print of machines of other kinds; null where they print none. */
function elsewhereTable(view: View): HTMLElement | null {
    const all = view.kernels_elsewhere
    if (!all.length) return null
    const rows = all.map((one): Child[] => [one.kernel.toUpperCase(), one.what, `${significant(one.seconds, 5)} s`, shown(one.of_reference, times, 'the paper has none'), one.cite])
    return h('details', { class: 'card flush' }, h('summary', {}, `Printed for other machines: ${all.length === 1 ? 'one time' : `${all.length} times`}`),
        table('Printed of other machines', ['Kernel', 'Machine', '#printed', '#over its own', 'Source'], rows))
}
