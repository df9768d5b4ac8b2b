// A sweep: the rate against the program's buffer, a curve for each socket buffer; and for datagrams loss against the rate sent.
//
// Model:   a panel has what is alike but for the socket buffer, so that a curve is compared with those it differs from in one thing.
//          A knee is the smallest buffer on the plateau; a window that was set allows window / round trip, which is dotted. What
//          the kernel copies in memory is a line where it is near, and words where it is far above.
// Checked: `a sweep has panels, knees and what was granted`.
import * as Plot from '@observablehq/plot'
import { decadeTicks, linearTicks, sizeTicks, spread } from '../axes'
import type { Context } from '../context'
import { nameMarks, part } from '../curves'
import { h, none, section, type Child } from '../dom'
import type { Drawing, Point } from '../figure'
import { legend } from '../legend'
import type { Model, Series } from '../model'
import { perByte, rate, share, size } from '../units'
import type { SweepCurve, SweepPoint } from '../view'

/** Knobs that are a socket's buffer or window, of which a panel has a curve for each value. */
const BUFFERS = ['buffer', 'sndbuf', 'rcvbuf', 'window']
/** A line this many times above the curves would press them flat. */
const FAR = 3
/** What stands above the highest point. */
const ROOM = 1.12

interface Curve {
    series: Series
    curve: SweepCurve
}

/** The section; null where only one buffer was measured. */
export function sweep(context: Context): HTMLElement | null {
    const { model } = context
    const all = model.view.sweep.flatMap((curve): Curve[] => {
        const series = model.of({ ...curve, load: null })
        return series ? [{ series, curve }] : []
    })
    if (!all.length) return null
    const [offered, buffers] = [all.filter(isOffered), all.filter((one) => !isOffered(one))]
    // Rates that were asked for are along the axis, and no kinds of lines.
    const own = new Set(buffers.map(({ series }) => series.id))
    const panels = [...grouped(buffers, BUFFERS).map(([name, curves]) => panel(context, name, curves)), ...grouped(offered, ['rate']).filter(([, curves]) => curves.length > 1).map(([name, curves]) => lossPanel(context, name, curves))]
    if (!panels.length) return null
    return section('sweep', 'Sweep', 'What a stream reaches with each setting: by the program’s buffer, a curve for each buffer of its socket; of datagrams, what is lost at each rate.',
        own.size === 0 ? null : h('div', { class: 'card legend-card' }, legend(model, context.selection, (series) => own.has(series.id))),
        h('div', { class: 'grid wide' }, panels))
}

const isOffered = ({ curve }: Curve): boolean => curve.path.startsWith('udp') && 'rate' in curve.knobs

/** Curves by what they have in common beside some knobs. */
function grouped(all: Curve[], knobs: string[]): [string, Curve[]][] {
    const groups = new Map<string, Curve[]>()
    for (const one of all) {
        const { network, path, method, wait, knobs: set } = one.curve
        const others = Object.entries(set).filter(([name]) => !knobs.includes(name)).map(([name, value]) => `${name}=${value}`)
        const name = [`${network} ${path}`, ...(method && method !== 'plain' ? [method] : []), ...(wait === 'poll' ? [wait] : []), ...others].join(', ')
        groups.set(name, [...(groups.get(name) ?? []), one])
    }
    return [...groups]
}

/** What the slowest host's kernel copies, where one told it. */
function copyBps(model: Model): number | null {
    const told = model.view.hosts.map((host) => Number(host.facts.settings.copy_bps)).filter((bps) => bps > 0)
    return told.length ? Math.min(...told) : null
}

function panel(context: Context, name: string, curves: Curve[]): HTMLElement {
    const copy = copyBps(context.model)
    const top = Math.max(...curves.map(({ curve }) => curve.plateau_bps))
    const near = copy !== null && copy <= FAR * top
    const figure = context.figure({ label: `${name}: rate against the program’s buffer.`, draw: (width) => draw(context, curves, width, near ? copy : null) })
    const bound = curves.some(({ curve }) => (curve.bound_bps ?? Infinity) <= top * ROOM)
    return h('div', { class: 'card' }, h('h3', {}, h('i', { class: 'swatch', '--colour': context.model.colour(curves[0]?.curve.network ?? '') }), name), figure.element,
        h('ul', { class: 'line-key' }, h('li', {}, '◎ knee: the smallest buffer with 95 % of the plateau'), bound ? h('li', {}, '··· what the window allows') : null,
            near ? h('li', {}, '‒‒ what the kernel copies in memory') : copy === null ? null : h('li', {}, `The kernel copies ${rate(copy)} in memory: far above.`)))
}

function draw(context: Context, curves: Curve[], width: number, copy: number | null): Drawing | null {
    const shown = curves.filter(({ series }) => context.selection.shows(series))
    if (!shown.length) return null
    const points = shown.flatMap(({ curve }) => curve.points)
    const xs = spread(points.map((point) => point.size_bytes), 1.35)
    const rates = [...points.flatMap((point) => [point.bps, point.ci95_high ?? 0]), ...(copy === null ? [] : [copy])]
    const low = Math.min(...points.map((point) => point.bps))
    const wide = Math.max(...rates) > 40 * low
    const ys: [number, number] = wide ? spread([low, ...rates], 1.4) : [0, Math.max(...rates) * ROOM]
    const bounds = shown.filter(({ curve }) => curve.bound_bps !== null && curve.bound_bps <= ys[1] && curve.bound_bps >= ys[0])
    const ticks = wide ? decadeTicks(ys[0], ys[1]) : linearTicks(ys[1])
    const narrow = width < 560
    const plot = Plot.plot({
        width, height: Math.round(Math.min(340, Math.max(240, width * 0.6))), className: 'chart', marginLeft: narrow ? 60 : 68, marginRight: 16, marginTop: 26, marginBottom: 40,
        x: { type: 'log', domain: xs, axis: null }, y: { type: wide ? 'log' : 'linear', domain: ys, axis: null },
        marks: [
            Plot.gridY(ticks, { stroke: 'var(--line)', strokeOpacity: 1 }),
            Plot.axisX(sizeTicks(xs[0], xs[1], Math.max(3, Math.floor(width / 78))), { text: (tick: number) => size(tick), label: 'program’s buffer →', tickSize: 4, stroke: 'var(--faint)', fill: 'currentColor' }),
            Plot.axisY(ticks, { text: (bps: number) => rate(bps), label: '↑ user bytes at the receiver', tickSize: 0, fill: 'currentColor' }),
            ...(copy === null ? [] : [Plot.ruleY([copy], { stroke: 'var(--floor)', strokeDasharray: '7 4', strokeWidth: 1.3, className: 'copy' })]),
            ...bounds.map(({ series, curve }) => Plot.ruleY([curve.bound_bps], { stroke: series.colour, strokeDasharray: '1 4', strokeLinecap: 'round', strokeWidth: 1.4, className: part(series, 'bound') })),
            ...shown.filter(({ curve }) => curve.points.filter((point) => point.ci95_low !== null).length > 1).map(({ series, curve }) => Plot.areaY(curve.points.filter((point) => point.ci95_low !== null), { x: 'size_bytes', y1: 'ci95_low', y2: 'ci95_high', fill: series.colour, fillOpacity: 0.16, className: part(series, 'interval') })),
            ...shown.flatMap(({ series, curve }) => [
                Plot.line(curve.points, { x: 'size_bytes', y: 'bps', stroke: series.colour, strokeWidth: series.weight, className: part(series, 'sweep') }),
                Plot.dot(curve.points, { x: 'size_bytes', y: 'bps', r: 3.4, symbol: series.symbol, fill: series.colour, className: part(series, 'sweep-points') }),
                Plot.dot(knee(curve), { x: 'size_bytes', y: 'bps', r: 7.5, stroke: series.colour, strokeWidth: 1.8, className: part(series, 'knee') }),
            ]),
        ],
    }) as SVGSVGElement & Plot.Plot
    nameMarks(plot, context.model.series)
    return { node: plot, points: told(plot, shown, (point) => point.size_bytes, (point) => point.bps) }
}

/** The point of a curve's knee; none where a curve is one point. */
const knee = (curve: SweepCurve): SweepPoint[] => (curve.points.length > 1 ? curve.points.filter((point) => point.size_bytes === curve.knee_bytes) : [])

/** A rate as knobs have it, in bits a second. */
function asked(curve: SweepCurve): number | null {
    const [, digits, unit] = /^([\d.]+)\s*([kMGT]?)(?:bit|b)?/.exec(curve.knobs.rate ?? '') ?? []
    const bps = Number(digits) * 1000 ** ['', 'k', 'M', 'G', 'T'].indexOf(unit ?? '')
    return bps > 0 ? bps : null
}

/** What was sent: what came over what was not lost. */
const sent = (point: SweepPoint): number => point.bps / Math.max(1e-9, 1 - (point.lost ?? 0))

function lossPanel(context: Context, name: string, curves: Curve[]): HTMLElement {
    const figure = context.figure({ label: `${name}: datagrams lost against the rate sent.`, draw: (width) => drawLoss(context, curves, width) })
    return h('div', { class: 'card' }, h('h3', {}, h('i', { class: 'swatch', '--colour': context.model.colour(curves[0]?.curve.network ?? '') }), `${name}: share of the datagrams lost`), figure.element)
}

function drawLoss(context: Context, curves: Curve[], width: number): Drawing | null {
    const shown = curves.filter(({ series }) => context.selection.shows(series))
    const sizes = [...new Set(shown.flatMap(({ curve }) => curve.points.map((point) => point.size_bytes)))].sort((a, b) => a - b)
    const dots = shown.flatMap(({ series, curve }) => curve.points.filter((point) => point.lost !== null).map((point) => ({ series, curve, point, x: asked(curve) ?? sent(point), y: point.lost ?? 0 })))
    if (!dots.length) return null
    const high = Math.max(0.01, ...dots.map(({ y }) => y))
    const right = Math.max(...dots.map(({ x }) => x)) * 1.06
    const colour = context.model.colour(dots[0]?.curve.network ?? '')
    const lines = sizes.map((bytes) => dots.filter(({ point }) => point.size_bytes === bytes).sort((a, b) => a.x - b.x))
    const xTicks = linearTicks(right).filter((_, at) => width > 480 || at % 2 === 0)
    const plot = Plot.plot({
        width, height: Math.round(Math.min(340, Math.max(240, width * 0.6))), className: 'chart', marginLeft: 60, marginRight: 22, marginTop: 26, marginBottom: 40,
        x: { domain: [0, right], axis: null }, y: { domain: [0, high * 1.12], axis: null },
        marks: [
            Plot.gridY(linearTicks(high), { stroke: 'var(--line)', strokeOpacity: 1 }),
            Plot.axisX(xTicks, { text: (bps: number) => rate(bps, 3), label: 'rate asked for →', tickSize: 4, stroke: 'var(--faint)', fill: 'currentColor' }),
            Plot.axisY(linearTicks(high), { text: share, label: '↑ datagrams lost', tickSize: 0, fill: 'currentColor' }),
            ...lines.map((line) => Plot.line(line, { x: 'x', y: 'y', stroke: colour, strokeWidth: 1.6, className: 'loss-line' })),
            ...dots.map((dot) => Plot.dot([dot], { x: 'x', y: 'y', r: 4.2, fill: colour, className: part(dot.series, 'loss') })),
        ],
    }) as SVGSVGElement & Plot.Plot
    nameMarks(plot, context.model.series)
    const [x, y] = [plot.scale('x')?.apply ?? Number, plot.scale('y')?.apply ?? Number]
    const points = dots.map((dot): Point => ({ x: x(dot.x), y: y(dot.y), line: String(dot.point.size_bytes), colour, tell: () => tellPoint(dot.series, dot.curve, dot.point), data: record(dot.curve, dot.point) }))
    return { node: plot, points }
}

function told(plot: Plot.Plot, shown: Curve[], x: (point: SweepPoint) => number, y: (point: SweepPoint) => number): Point[] {
    const [across, up] = [plot.scale('x')?.apply ?? Number, plot.scale('y')?.apply ?? Number]
    return shown.flatMap(({ series, curve }) => curve.points.map((point): Point => ({ x: across(x(point)), y: up(y(point)), line: series.id, colour: series.colour, tell: () => tellPoint(series, curve, point), data: record(curve, point) })))
}

/** A point as a line of CSV. */
const record = ({ network, path, wait, method, knobs }: SweepCurve, point: SweepPoint): object => ({ network, path, wait, method, knobs, ...point })

/** What was asked for and what was granted, and what came of it. */
function tellPoint(series: Series, curve: SweepCurve, point: SweepPoint): { title: Child; rows: [string, Child][]; note?: Child } {
    const silent = 'no repetition read it back'
    const knobs = Object.entries(curve.knobs).map(([name, value]): [string, Child] => [`asked: ${name}`, value])
    const granted = (bytes: number | null): Child => (bytes === null ? none(silent) : size(bytes))
    const isKnee = curve.points.length > 1 && point.size_bytes === curve.knee_bytes
    const ends = curve.knee_low === null || curve.knee_high === null ? '' : ` (95 %: ${size(curve.knee_low)} to ${size(curve.knee_high)})`
    const rows: [string, Child][] = [
        ['program’s buffer', size(point.size_bytes)], ...knobs,
        ['granted: send buffer', granted(point.granted_send_bytes)], ['granted: receive buffer', granted(point.granted_recv_bytes)],
        ['rate', rate(point.bps)],
        ['95 % interval', point.ci95_low === null || point.ci95_high === null ? none('a confidence interval of a median needs six repetitions') : `${rate(point.ci95_low)} … ${rate(point.ci95_high)}`],
    ]
    if (curve.bound_bps !== null) rows.push(['the window allows', rate(curve.bound_bps)])
    if (point.lost !== null) rows.push(['sent', rate(sent(point))], ['lost', share(point.lost)])
    if (point.cpu_dst !== null) rows.push(['CPU at the receiver', perByte(point.cpu_dst)])
    return { title: series.label, rows, note: isKnee ? `The knee: the smallest buffer with 95 % of ${rate(curve.plateau_bps)}${ends}.` : null }
}
