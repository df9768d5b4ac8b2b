// Curves over message size on logarithmic axes: what the figures of latency and of throughput have in common.
//
// Model:   warm curves are solid with filled symbols, cold ones dashed with hollow ones; a band is the rank interval of the
//          launches' median; dotted is what the model allows. Where curves are many, cold ones have no band. Fewer than FEW sizes
//          are points without a line: between them nothing was measured. A warm curve has its name at its end where there is room.
// Checked: `curves have their names, and few sizes have no line`.
import * as Plot from '@observablehq/plot'
import { decadeTicks, linearTicks, mtuRules, sizeTicks, spread } from './axes'
import type { Context } from './context'
import { node } from './dom'
import type { Drawing, Point } from './figure'
import type { Series } from './model'
import { figures } from './rowtip'
import { size } from './units'
import type { Ceiling, Phase, ResultRow } from './view'

/** So many curves in one figure are many. */
const MANY = 8
/** Fewer sizes than this have no line. */
const FEW = 4
/** Between two names at the ends of curves, in pixels. */
const NAME_HEIGHT = 13
/** The widest name at an end, and the width of a letter. */
const NAME_WIDTH = 150
const LETTER = 6.1
/** More names than this are not read. */
const NAMES_MAX = 14

/** Rows of one series and phase that were measured. */
export interface Curve {
    series: Series
    phase: Phase
    rows: ResultRow[]
    /** The value of a row's statistic on the axis. */
    scale: (value: number) => number
    bound: Ceiling[]
}

export interface CurvesOptions {
    context: Context
    width: number
    curves: Curve[]
    yLabel: string
    yFormat: (value: number) => string
    /** Drawn below and above the curves. */
    below?: Plot.Markish[]
    above?: Plot.Markish[]
    /** Values and sizes that the axes must hold beside the curves'. */
    holds?: number[]
    holdsSizes?: number[]
    linearY?: [number, number]
    /** Lines from a point of a curve down to the sizes. */
    drops?: { series: Series; x: number; y: number }[]
    /** Further rows of a tooltip. */
    tellMore?: (row: ResultRow, curve: Curve) => [string, string][]
    /** Points beside the curves', in the data's units. */
    others?: { x: number; y: number; point: Omit<Point, 'x' | 'y'> }[]
}

/** The class of a mark: which series it is of, and which part. */
export const part = (series: Series, name: string): string => `s${series.index}-${name}`

/** Says of each mark in a drawn plot which series it is of. */
export function nameMarks(plot: SVGSVGElement, all: Series[]): void {
    for (const group of plot.querySelectorAll<SVGGElement>('g[class]')) {
        const [, index, name] = /^s(\d+)-(.+)$/.exec(group.getAttribute('class') ?? '') ?? []
        const series = all[Number(index)]
        if (!series || !name) continue
        group.dataset.series = series.id
        group.dataset.part = name
    }
}

const measured = (row: ResultRow): row is ResultRow & { p50: number; size_bytes: number } => row.p50 !== null && row.p50 > 0 && row.size_bytes !== null

function bandMarks({ series, rows, scale }: Curve): Plot.Markish[] {
    const banded = rows.filter((row) => measured(row) && row.ci95_low !== null && row.ci95_high !== null)
    // Where points have no line, intervals have no band.
    if (rows.filter(measured).length < FEW) return [Plot.ruleX(banded, {
        x: 'size_bytes', y1: (row: ResultRow) => scale(row.ci95_low ?? 0), y2: (row: ResultRow) => scale(row.ci95_high ?? 0),
        stroke: series.colour, strokeOpacity: 0.3, strokeWidth: 4, className: part(series, 'interval'),
    })]
    if (banded.length < 2) return []
    return [Plot.areaY(banded, {
        x: 'size_bytes', y1: (row: ResultRow) => scale(row.ci95_low ?? 0), y2: (row: ResultRow) => scale(row.ci95_high ?? 0),
        fill: series.colour, fillOpacity: 0.16, className: part(series, 'interval'),
    })]
}

function curveMarks({ series, phase, rows, scale }: Curve): Plot.Markish[] {
    const warm = phase === 'warm'
    const kept = rows.filter(measured)
    const channels = { x: 'size_bytes', y: (row: ResultRow) => scale(row.p50 ?? 0) }
    return [
        ...(kept.length < FEW ? [] : [Plot.line(kept, {
            ...channels, stroke: series.colour, strokeWidth: series.weight, strokeDasharray: warm ? undefined : '5 4',
            strokeOpacity: warm ? 1 : 0.85, className: part(series, phase),
        })]),
        Plot.dot(kept, {
            ...channels, symbol: series.symbol, r: 3.4, fill: warm ? series.colour : 'var(--surface)', stroke: series.colour,
            strokeWidth: 1.4, className: part(series, `${phase}-points`),
        }),
    ]
}

function boundMarks({ series, bound, scale }: Curve): Plot.Markish[] {
    if (!bound.length) return []
    return [Plot.line(bound, {
        x: 'size_bytes', y: (ceiling: Ceiling) => scale(ceiling.value), stroke: series.colour, strokeWidth: 1.3,
        strokeDasharray: '1 4', strokeLinecap: 'round', className: part(series, 'bound'),
    })]
}

/** Draws curves; null when there are none. */
export function drawCurves(options: CurvesOptions): Drawing | null {
    const { curves, width, context } = options
    const sizes = [...curves.flatMap((curve) => curve.rows.filter(measured).map((row) => row.size_bytes)), ...(options.holdsSizes ?? [])]
    const values = [
        ...curves.flatMap((curve) => [
            ...curve.rows.filter(measured).map((row) => curve.scale(row.p50)),
            ...curve.bound.map((ceiling) => curve.scale(ceiling.value)),
        ]),
        ...(options.holds ?? []),
    ]
    if (!sizes.length) return null
    const xs = spread(sizes, 1.35)
    const ys = options.linearY ?? spread(values, 1.5)
    const narrow = width < 560
    const named = narrow ? [] : namesOf(curves)
    const room = Math.min(NAME_WIDTH, Math.max(0, ...named.map(({ name }) => name.length)) * LETTER + 20)
    const yTicks = options.linearY ? linearTicks(ys[1]) : decadeTicks(ys[0], ys[1])
    const rules = mtuRules(context.model, distinctSeries(curves), xs[0], xs[1])
    const plot = Plot.plot({
        width, height: Math.round(Math.min(470, Math.max(300, width * 0.5))), className: 'chart',
        marginLeft: narrow ? 54 : 68, marginRight: named.length ? room : 16, marginTop: 26, marginBottom: 40,
        x: { type: 'log', domain: xs, axis: null },
        y: options.linearY
            ? { domain: ys, axis: null }
            : { type: 'log', domain: ys, axis: null },
        marks: [
            Plot.gridY(yTicks, { stroke: 'var(--line)', strokeOpacity: 1 }),
            Plot.axisX(sizeTicks(xs[0], xs[1], Math.max(3, Math.floor(width / 78))), { text: (tick: number) => size(tick), label: 'message size →', tickSize: 4, stroke: 'var(--faint)', fill: 'currentColor' }),
            Plot.axisY(yTicks, { text: options.yFormat, label: options.yLabel, tickSize: 0, fill: 'currentColor' }),
            Plot.ruleX(rules, { x: 'bytes', stroke: 'var(--faint)', strokeDasharray: '2 3' }),
            ...[false, true].map((atEnd) => Plot.text(labelled(rules, xs, width).filter(({ bytes }) => bytes > xs[0] * (xs[1] / xs[0]) ** 0.88 === atEnd), {
                x: 'bytes', text: 'label', frameAnchor: 'bottom', dy: -6, dx: atEnd ? -4 : 4, textAnchor: atEnd ? 'end' : 'start', fill: 'var(--quiet)', stroke: 'var(--surface)', strokeWidth: 3, fontSize: 10.5,
            })),
            ...(options.drops ?? []).map((drop) => Plot.ruleX([drop], { x: 'x', y1: () => ys[0], y2: 'y', stroke: drop.series.colour, strokeWidth: 1.2, strokeOpacity: 0.7, className: part(drop.series, 'half') })),
            ...(options.drops ?? []).map((drop) => Plot.dot([drop], { x: 'x', y: 'y', r: 2.6, fill: 'var(--surface)', stroke: drop.series.colour, strokeWidth: 1.6, className: part(drop.series, 'half-point') })),
            ...curves.filter((curve) => curve.phase === 'warm' || curves.length <= MANY).flatMap(bandMarks), ...(options.below ?? []), ...curves.flatMap(boundMarks), ...curves.flatMap(curveMarks), ...(options.above ?? []),
        ],
    }) as SVGSVGElement & Plot.Plot
    nameMarks(plot, context.model.series)
    const x = plot.scale('x')?.apply ?? Number
    const y = plot.scale('y')?.apply ?? Number
    plot.append(...endNames(named.map(({ name, curve, last }) => ({ name, colour: curve.series.colour, x: x(last.size_bytes), y: y(curve.scale(last.p50)) })), width - room, Number(plot.getAttribute('height')) - 40))
    const points = curves.flatMap((curve) => curve.rows.filter(measured).map((row): Point => ({
        x: x(row.size_bytes), y: y(curve.scale(row.p50)), line: `${curve.series.id} ${curve.phase} ${row.quantity}`, colour: curve.series.colour,
        tell: () => ({
            title: `${curve.series.label} · ${curve.phase}`,
            rows: [...figures(row), ...(options.tellMore?.(row, curve) ?? [])],
            note: row.status === 'measured' && row.ci95_low !== null ? null : row.reason,
        }),
        data: row,
    })))
    const others = (options.others ?? []).map((other): Point => ({ ...other.point, x: x(other.x), y: y(other.y) }))
    return { node: plot, points: [...points, ...others] }
}

interface Named {
    name: string
    curve: Curve
    last: { size_bytes: number; p50: number }
}

/** The warm curves that have a name at their end: all or, where they are too many to be told apart, none. */
function namesOf(curves: Curve[]): Named[] {
    const ends = curves.filter((curve) => curve.phase === 'warm').flatMap((curve) => {
        const last = curve.rows.filter(measured).at(-1)
        return last ? [{ curve, last }] : []
    })
    if (ends.length > NAMES_MAX) return []
    const isOne = new Set(ends.map(({ curve }) => curve.series.network)).size === 1
    return ends.map(({ curve, last }) => ({ name: shortened(isOne ? curve.series.short : curve.series.label), curve, last }))
}

const shortened = (name: string): string => (name.length * LETTER + 20 > NAME_WIDTH ? `${name.slice(0, Math.floor((NAME_WIDTH - 20) / LETTER) - 1)}…` : name)

/** Names right of the ends of curves, none above another, each with a line to its end. */
function endNames(all: { name: string; colour: string; x: number; y: number }[], left: number, bottom: number): SVGElement[] {
    const sorted = [...all].sort((a, b) => a.y - b.y)
    const places: number[] = []
    for (const one of sorted) places.push(Math.max(one.y, (places.at(-1) ?? -Infinity) + NAME_HEIGHT))
    // What was pushed below the axis is moved up again, with those above it.
    for (let at = places.length - 1, most = bottom; at >= 0; at -= 1, most = (places[at + 1] ?? most) - NAME_HEIGHT) places[at] = Math.min(places[at] ?? 0, most)
    return sorted.flatMap((one, at) => {
        const y = places[at] ?? one.y
        const line = node('path', { d: `M${one.x + 5},${one.y}L${left + 4},${y}H${left + 9}`, fill: 'none', stroke: one.colour, 'stroke-width': 1, 'stroke-opacity': 0.6, class: 'end-line' })
        return [line, node('text', { x: left + 12, y, fill: 'var(--soft)', 'font-size': 11, 'text-anchor': 'start', 'dominant-baseline': 'central', class: 'end-name' }, one.name)]
    })
}

/** The rules whose label does not lie over the one before it; the others are told by the table of networks. */
function labelled(rules: { bytes: number; label: string }[], [low, high]: [number, number], width: number): { bytes: number; label: string }[] {
    const apart = (a: number, b: number): number => (Math.log(b / a) / Math.log(high / low)) * width
    const kept: { bytes: number; label: string }[] = []
    for (const rule of rules) {
        const last = kept[kept.length - 1]
        // The label of a rule at the right end stands on its left.
        const room = rule.bytes > low * (high / low) ** 0.88 ? 165 : 80
        if (!last || apart(last.bytes, rule.bytes) > room) kept.push(rule)
    }
    return kept
}

const distinctSeries = (curves: Curve[]): Series[] => [...new Set(curves.map((curve) => curve.series))]
