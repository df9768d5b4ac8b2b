// Throughput against message size: single messages as curves, streams as marks, ceilings as lines.
import * as Plot from '@observablehq/plot'
import type { Context } from '../context'
import { drawCurves, part as named, type Curve } from '../curves'
import { h, section } from '../dom'
import type { Drawing, Point } from '../figure'
import { key } from '../key'
import { choice } from '../legend'
import type { Series } from '../model'
import { panels, shownAs } from '../panels'
import { figures } from '../rowtip'
import { rate, share, size } from '../units'
import type { ResultRow } from '../view'

type Scale = 'rate' | 'fraction'

/** The section; null when no throughput was measured. */
export function throughput(context: Context): HTMLElement | null {
    const { model } = context
    // Files have a view of their own.
    const rows = model.rows({ quantity: 'throughput_bps' }).filter(({ probe }) => probe !== 'files')
    if (!rows.length) return null
    let scale: Scale = 'rate'
    const own = new Set(rows.map((row) => model.of(row)?.id))
    const { plots, choose, redraw } = panels(context, (series) => own.has(series.id), (network) => ({
        label: `Throughput against message size${network === null ? '' : ` on ${network}`}.`,
        draw: (width) => draw(context, width, scale, network),
        empty: 'Nothing selected has what this figure shows.',
    }))
    const scales = choice('Scale', [['rate', 'bits per second'], ['fraction', 'part of the ceiling']], scale, (chosen) => {
        scale = chosen as Scale
        redraw()
    })
    return section('throughput', 'Throughput against size',
        'A single message pays for everything in it; a stream is rated after its first second. The ceiling is what framing and headers leave of the line.',
        h('div', { class: 'card' },
            h('div', { class: 'card-head' }, choose, scales),
            plots,
            key(['message', 'stream', 'ceiling', 'line', 'bound', 'half', 'band'])))
}

interface Marked {
    series: Series
    row: ResultRow
    y: number
}

function draw(context: Context, width: number, scale: Scale, network: string | null): Drawing | null {
    const { model, selection } = context
    const fractions = scale === 'fraction'
    const shown = shownAs(model, selection, network).filter((series) => !fractions || model.streamCeiling(series))
    if (!selection.showsPhase('warm')) return null
    const scaled = (series: Series) => {
        const ceiling = model.streamCeiling(series)
        return (bps: number): number => (fractions && ceiling ? bps / ceiling : bps)
    }
    const curves = shown.map((series): Curve => ({
        series, phase: 'warm', scale: scaled(series),
        rows: model.rows({ series, quantity: 'throughput_bps', mode: 'message', phase: 'warm', step: null }),
        bound: model.ceilings(series, 'throughput_bps'),
    }))
    const streams = shown.flatMap((series) => model.rows({ series, quantity: 'throughput_bps' })
        .filter((row) => row.mode !== 'message' && row.probe !== 'files' && row.p50 !== null && row.size_bytes !== null)
        .map((row): Marked => ({ series, row, y: scaled(series)(row.p50 ?? 0) })))
    const lines = shown.filter((series, at) => shown.findIndex((other) => other.network === series.network) === at)
    const ceilings = shown.map((series) => ({ series, y: model.streamCeiling(series) })).filter((one): one is { series: Series; y: number } => one.y !== null)
    const physical = lines.map((series) => ({ series, y: model.network(series.network)?.row.line_bps ?? null })).filter((one): one is { series: Series; y: number } => one.y !== null)
    const at = (marks: { series: Series; y: number }[]): { series: Series; y: number }[] => marks.map((mark) => ({ ...mark, y: scaled(mark.series)(mark.y) }))
    const halves = fractions ? [] : shown.flatMap((series) => halfMark(context, series, curves.find((curve) => curve.series === series)))
    const top = Math.max(1, ...streams.map((mark) => mark.y), ...curves.flatMap((curve) => curve.rows.map((row) => curve.scale(row.p50 ?? 0))))
    return drawCurves({
        context, width, curves,
        yLabel: fractions ? '↑ part of the ceiling' : '↑ user bytes at the receiver',
        yFormat: fractions ? share : (bps) => rate(bps),
        linearY: fractions ? [0, top * 1.06] : undefined,
        holds: [...streams.map((mark) => mark.y), ...ceilings.map((mark) => mark.y)],
        holdsSizes: [...streams.map(({ row }) => row.size_bytes ?? 1), ...halves.map((half) => half.x)],
        drops: halves,
        below: [
            ...at(physical).map(({ series, y }) => rule(series, y, '2 2', 0.9, 0.55, 'line')),
            ...at(ceilings).map(({ series, y }) => rule(series, y, '9 3', 1.2, 0.8, 'ceiling')),
        ],
        above: streams.map((mark) => Plot.dot([mark], {
            x: () => mark.row.size_bytes, y: 'y', r: 6.5, symbol: mark.series.symbol, stroke: mark.series.colour, strokeWidth: 2.4,
            fill: mark.series.colour, fillOpacity: 0.18, className: named(mark.series, 'stream'),
        })),
        tellMore: (row, curve) => part(context, curve.series, row),
        others: [
            ...streams.map((mark) => ({ x: mark.row.size_bytes ?? 1, y: mark.y, point: streamPoint(context, mark) })),
            ...halves.map((half) => ({ x: half.x, y: half.y, point: half.point })),
        ],
    })
}

function rule(series: Series, y: number, dash: string, width: number, opacity: number, name: string): Plot.Markish {
    return Plot.ruleY([y], { stroke: series.colour, strokeDasharray: dash, strokeWidth: width, strokeOpacity: opacity, className: named(series, name) })
}

function part({ model }: Context, series: Series, row: ResultRow): [string, string][] {
    const ceiling = model.streamCeiling(series)
    return ceiling && row.p50 ? [['ceiling', rate(ceiling)], ['reached', share(row.p50 / ceiling)]] : []
}

function streamPoint(context: Context, { series, row }: Marked): Omit<Point, 'x' | 'y'> {
    return {
        line: `${series.id} stream`, colour: series.colour,
        tell: () => ({ title: `${series.label} · stream`, rows: [...figures(row), ...part(context, series, row)], note: row.ci95_low === null ? row.reason : null }),
        data: row,
    }
}

/** The half-performance size, on the curve of single messages. */
function halfMark({ model }: Context, series: Series, curve: Curve | undefined): { series: Series; x: number; y: number; point: Omit<Point, 'x' | 'y'> }[] {
    const half = model.fit(series)?.half_size_bytes
    const rows = (curve?.rows ?? []).filter((row) => row.p50 !== null && row.size_bytes !== null)
    const after = rows.findIndex((row) => (row.size_bytes ?? 0) >= (half ?? Infinity))
    const [low, high] = [rows[after - 1], rows[after]]
    if (!half || !low?.p50 || !high?.p50 || !low.size_bytes || !high.size_bytes) return []
    const along = Math.log(half / low.size_bytes) / Math.log(high.size_bytes / low.size_bytes)
    const y = low.p50 * (high.p50 / low.p50) ** along
    const point = {
        line: `${series.id} half`, colour: series.colour,
        tell: () => ({ title: `${series.label} · half-performance size`, rows: [['size', size(half)], ['rate there', rate(y)]] as [string, string][] }),
        data: { network: series.network, path: series.path, wait: series.wait, half_size_bytes: half, throughput_bps: y },
    }
    return [{ series, x: half, y, point }]
}
