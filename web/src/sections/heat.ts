// All pairs of hosts: a heat map of each figure, with what the verdict blames framed.
//
// Model:   rows are senders and columns receivers. Where hosts share cells, a cell has the median of its pairs and tells the worst.
// Checked: `all pairs are heat maps`, `many hosts share cells and say so`.
import type { Context } from '../context'
import { h, none, section, type Child } from '../dom'
import { drawHeat } from '../heatmap'
import { rate, time } from '../units'
import type { HeatFigure, HeatMap, HeatView } from '../view'

const FIGURES: Record<HeatFigure, [string, string, (value: number) => string]> = {
    latency_ns: ['Latency', 'one-way latency (RTT/2)', (ns) => time(ns)],
    rate_bps: ['Rate', 'of a stream', (bps) => rate(bps)],
    duplex_bps: ['Rate in both directions', 'of a stream with one in the other direction', (bps) => rate(bps)],
}
/** Up to so many hosts have names beside rows and columns. */
const NAMED_MAX = 64

/** The section; null where not all pairs were measured. */
export function heat(context: Context): HTMLElement | null {
    const all = context.model.view.heat
    if (!all?.maps.length) return null
    const framed = all.marks.length ? h('ul', { class: 'line-key plain' }, h('li', {}, h('i', { class: 'swatch framed' }), 'framed: whom the verdict blames')) : null
    const shared = all.share === 1 ? null : h('p', { class: 'axis-note', id: 'pairs-shared' },
        `${all.hosts.length} hosts are too many for a cell each: ${all.share} × ${all.share} hosts share one. Its shade is the median of their pairs, and the worst is shown beside it.`)
    return section('pairs', 'All pairs',
        'Each cell is what one host sends to another, while other pairs flow too. What is worse than the usual stands out.', framed, shared,
        h('div', { class: 'grid wide' }, all.maps.map((map) => card(context, all, map))))
}

function card(context: Context, all: HeatView, map: HeatMap): HTMLElement {
    const [title, words, format] = FIGURES[map.figure]
    const figure = context.figure({
        label: `${title} of all pairs of ${all.hosts.length} hosts, ${words}: rows send, columns receive.`,
        draw: (width) => drawHeat({
            width, side: all.side, values: map.values, risesWorse: map.figure === 'latency_ns', format,
            names: all.hosts.length <= NAMED_MAX ? all.hosts : [],
            marks: all.marks.map((mark) => ({ src: Math.floor(mark.src / all.share), dst: mark.dst === null ? null : Math.floor(mark.dst / all.share), both: mark.both })),
            tell: (src, dst, value) => tell(all, map, format, src, dst, value),
        }),
    })
    return h('div', { class: 'card' }, h('h3', {}, `${title}, ${words}`), h('p', { class: 'axis-note' }, 'Rows send, columns receive.'), figure.element)
}

/** The hosts of a row or column. */
function hosts({ hosts: all, share }: HeatView, at: number): string {
    const [first, last] = [all[at * share], all[Math.min(all.length, (at + 1) * share) - 1]]
    return first === last ? first ?? '' : `${first} … ${last}`
}

function tell(all: HeatView, map: HeatMap, format: (value: number) => string, src: number, dst: number, value: number | null): { title: Child; rows: [string, Child][]; note?: Child } {
    const at = src * all.side + dst
    const [low, high, worst] = [map.low[at] ?? null, map.high[at] ?? null, map.worst[at] ?? null]
    const blamed = all.marks.filter((mark) => {
        const [one, other] = [Math.floor(mark.src / all.share), mark.dst === null ? null : Math.floor(mark.dst / all.share)]
        if (other === null) return one === src || one === dst
        return (one === src && other === dst) || (mark.both && one === dst && other === src)
    })
    const interval: [string, Child][] = all.share > 1 ? [['the worst pair', worst === null ? none('nothing was measured') : format(worst)]]
        : [['95 % interval', low === null || high === null ? none('a confidence interval of a median needs six repetitions') : `${format(low)} … ${format(high)}`]]
    return {
        title: `${hosts(all, src)} → ${hosts(all, dst)}`,
        rows: [['median', value === null ? none('not measured') : format(value)], ...interval],
        note: blamed.length ? [...new Set(blamed.map((mark) => mark.sentence))].join(' ') : null,
    }
}
