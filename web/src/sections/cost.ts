// What streams cost and what held them back: CPU time at both ends, the sender's limits, datagrams lost.
import * as Plot from '@observablehq/plot'
import { decadeTicks, spread } from '../axes'
import type { Context } from '../context'
import { nameMarks, part } from '../curves'
import { h, none, section, shown, table, type Child } from '../dom'
import type { Drawing, Point } from '../figure'
import type { Model, Series } from '../model'
import { figures } from '../rowtip'
import { count, perByte, share } from '../units'
import type { Quantity, ResultRow } from '../view'

/** The section; null when none of it was measured. */
export function cost(context: Context): HTMLElement | null {
    const { model } = context
    const parts = [cpu(context), limits(context), losses(model)].filter((one) => one !== null)
    return parts.length ? section('cost', 'What streams cost', 'CPU time for each user byte at both ends, and what kept a sender from sending more.', parts) : null
}

interface Ends {
    series: Series
    src: ResultRow | undefined
    dst: ResultRow | undefined
}

function ends(model: Model, all: Series[]): Ends[] {
    return all.map((series) => {
        const row = model.throughput(series)
        return { series, src: model.beside(row, 'cpu_src_ns_per_byte'), dst: model.beside(row, 'cpu_dst_ns_per_byte') }
    }).filter(({ src, dst }) => src?.p50 || dst?.p50)
}

function cpu(context: Context): HTMLElement | null {
    if (!ends(context.model, context.model.series).length) return null
    const figure = context.figure({ label: 'CPU time for each byte, at the sender and at the receiver.', draw: (width) => drawCpu(context, width) })
    return h('div', { class: 'card' }, h('h3', {}, 'CPU time for each byte'), figure.element,
        h('ul', { class: 'line-key' }, h('li', {}, '● sender'), h('li', {}, '○ receiver'), h('li', {}, 'band: 95 % interval over repetitions')))
}

function drawCpu({ model, selection }: Context, width: number): Drawing | null {
    const list = ends(model, selection.visible)
    if (!list.length) return null
    const values = list.flatMap(({ src, dst }) => [src?.p50, dst?.p50, src?.ci95_low, src?.ci95_high, dst?.ci95_low, dst?.ci95_high]).filter((value): value is number => typeof value === 'number')
    const xs = spread(values, 1.3)
    const dots = list.flatMap(({ series, src, dst }) => [{ series, row: src, end: 'sender' }, { series, row: dst, end: 'receiver' }])
        .filter((dot): dot is { series: Series; row: ResultRow; end: string } => Boolean(dot.row?.p50))
    const narrow = width < 560
    const ticks = decadeTicks(xs[0], xs[1]).filter((_, at) => !narrow || at % 2 === 0)
    const longest = Math.max(...list.map(({ series }) => series.label.length))
    const plot = Plot.plot({
        width, height: 40 + list.length * 26, className: 'chart', marginLeft: Math.min(width * 0.45, longest * 6.6 + 14), marginRight: 16, marginTop: 6, marginBottom: 30,
        x: { type: 'log', domain: xs, axis: null }, y: { type: 'point', domain: list.map(({ series }) => series.id), axis: null, padding: 0.6 },
        marks: [
            Plot.gridX(ticks, { stroke: 'var(--line)', strokeOpacity: 1 }),
            Plot.axisX(ticks, { text: perByte, tickSize: 4, stroke: 'var(--faint)', fill: 'currentColor', label: null }),
            Plot.axisY({ text: (id: string) => model.series.find((series) => series.id === id)?.label ?? '', tickSize: 0, fill: 'var(--soft)', fontSize: narrow ? 11 : 12, label: null }),
            ...list.filter(({ src, dst }) => src?.p50 && dst?.p50).map(({ series, src, dst }) => Plot.link([0], {
                x1: () => src?.p50, x2: () => dst?.p50, y1: () => series.id, y2: () => series.id, stroke: series.colour, strokeOpacity: 0.55, strokeWidth: 2, className: part(series, 'cpu'),
            })),
            ...dots.filter(({ row }) => row.ci95_low !== null).map(({ series, row }) => Plot.link([0], {
                x1: () => row.ci95_low, x2: () => row.ci95_high, y1: () => series.id, y2: () => series.id, stroke: series.colour, strokeOpacity: 0.2, strokeWidth: 9, className: part(series, 'cpu-interval'),
            })),
            ...dots.map(({ series, row, end }) => Plot.dot([0], {
                x: () => row.p50, y: () => series.id, r: 4.6, fill: end === 'sender' ? series.colour : 'var(--surface)', stroke: series.colour, strokeWidth: 1.8, className: part(series, `cpu-${end}`),
            })),
        ],
    }) as SVGSVGElement & Plot.Plot
    nameMarks(plot, model.series)
    const x = plot.scale('x')?.apply ?? Number
    const y = plot.scale('y')?.apply ?? Number
    const points = dots.map(({ series, row, end }): Point => ({
        x: x(row.p50), y: y(series.id), line: end, colour: series.colour, tell: () => ({ title: `${series.label} · ${end}`, rows: figures(row), note: row.ci95_low === null ? row.reason : null }), data: row,
    }))
    return { node: plot, points }
}

const LIMITS: [Quantity, string, string][] = [
    ['rwnd_limited_share', 'receive window', 'var(--step-vc)'],
    ['sndbuf_limited_share', 'send buffer', 'var(--step-connect)'],
]

function limits({ model, selection }: Context): HTMLElement | null {
    if (!model.rows({ quantity: 'busy_share' }).some((row) => row.p50 !== null)) return null
    const place = h('div', { class: 'bars limits' })
    const draw = (): void => place.replaceChildren(...selection.visible.flatMap((series) => limitRow(model, series)))
    selection.onChange(draw)
    draw()
    return h('div', { class: 'card' }, h('h3', {}, 'What held the sender back'),
        h('p', { class: 'axis-note' }, 'Parts of the timed window, as the sender’s TCP counts them.'), place,
        h('ul', { class: 'line-key' }, LIMITS.map(([, name, colour]) => h('li', {}, h('i', { class: 'swatch', '--colour': colour }), name)),
            h('li', {}, h('i', { class: 'swatch', '--colour': 'var(--step-neighbour)' }), 'sending: held by the network or its own congestion window'), h('li', {}, h('i', { class: 'swatch', '--colour': 'var(--hover)' }), 'nothing to send')))
}

function limitRow(model: Model, series: Series): Node[] {
    const row = model.throughput(series)
    const busy = model.beside(row, 'busy_share')?.p50 ?? null
    if (busy === null) return []
    const held = LIMITS.map(([quantity, name, colour]) => ({ name, colour, value: model.beside(row, quantity)?.p50 ?? 0 }))
    const free = Math.max(0, busy - held.reduce((sum, one) => sum + one.value, 0))
    const again = model.beside(row, 'retransmits')
    const pieces = [...held, { name: 'sending', colour: 'var(--step-neighbour)', value: free }].filter((one) => one.value >= 0.0005)
    return [
        h('span', { class: 'bars-name' }, series.label),
        h('div', { class: 'track', role: 'img', 'aria-label': pieces.map((one) => `${one.name} ${share(one.value)}`).join(', ') },
            pieces.map((one) => h('i', { class: 'segment', 'width-share': `${Math.min(100, one.value * 100)}%`, '--colour': one.colour, 'data-tip': `${one.name}: ${share(one.value)} of the timed window` }))),
        h('span', { class: 'bars-value' }, shown(again?.p50, (sent) => `${count(sent)} ${sent === 1 ? 'retransmission' : 'retransmissions'}`, again?.reason ?? 'retransmits were not counted')),
    ]
}

function losses(model: Model): HTMLElement | null {
    const found = model.series.map((series) => ({ series, rows: model.rows({ series, probe: 'throughput' }) })).filter(({ rows }) => rows.some((row) => row.quantity === 'lost_share'))
    if (!found.length) return null
    const cell = (rows: ResultRow[], quantity: Quantity): Child => {
        const row = rows.find((one) => one.quantity === quantity)
        if (row?.p50 === null || row?.p50 === undefined) return none(row?.reason ?? 'not measured')
        return h('span', { class: row.p50 > 0.001 && quantity === 'lost_share' ? 'alarm' : '' }, share(row.p50), row.max === null || row.max === row.p50 ? null : h('small', {}, ` at most ${share(row.max)}`))
    }
    return h('div', { class: 'card flush' }, h('h3', {}, 'Datagrams lost, reordered, duplicated'),
        table('Datagrams lost, reordered, duplicated', ['Series', '#lost', '#reordered', '#duplicated'], found.map(({ series, rows }) => [
            [h('i', { class: 'swatch', '--colour': series.colour }), series.label], cell(rows, 'lost_share'), cell(rows, 'reordered_share'), cell(rows, 'duplicated_share'),
        ])))
}
