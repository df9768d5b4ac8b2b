// All pairs of hosts: each host in red, amber or green, then a heat map of each figure, with what the verdict blames framed.
//
// Model:   red is a host that the verdict blames, amber one at an end of a direction or link that it blames, grey one without a figure
//          and, where the verdict is inconclusive, whatever is not blamed; green are the others. In the maps rows are senders and columns receivers. Where hosts
//          share cells, a cell has the median of its pairs and tells the worst.
// Checked: `all pairs are heat maps`, `many hosts share cells and say so`, `hosts are red, amber or green`.
import type { Context } from '../context'
import { h, none, rove, section, type Child } from '../dom'
import { drawHeat } from '../heatmap'
import { rate, time } from '../units'
import type { AllPairs, HeatFigure, HeatMap, HeatView } from '../view'
import { allPairs } from './answer'

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
    const { all_pairs: judged } = context.model.view
    return section('pairs', 'All pairs',
        'Each cell is what one host sends to another, while other pairs flow too. What is worse than the usual stands out.',
        judged ? h('div', { class: 'judgements' }, allPairs(judged)) : null, lamps(all, judged), framed, shared,
        h('div', { class: 'grid wide' }, all.maps.map((map) => card(context, all, map))))
}

/** What is said of a host. */
const LAMPS = { bad: 'blamed', fair: 'at an end of what is blamed', good: 'as the others', unknown: 'not judged' } as const
type Lamp = keyof typeof LAMPS

/** A lamp for each host. */
function lamps(all: HeatView, judged: AllPairs | null): HTMLElement {
    const measured = new Set(all.maps.flatMap((map) => map.values.flatMap((value, at) => (value === null ? [] : [Math.floor(at / all.side), at % all.side]))))
    const lamp = (host: number): Lamp => {
        const own = all.marks.filter((mark) => mark.src === host || mark.dst === host)
        if (own.some((mark) => mark.dst === null)) return 'bad'
        if (own.length) return 'fair'
        return judged?.state === 'inconclusive' || !measured.has(Math.floor(host / all.share)) ? 'unknown' : 'good'
    }
    const of = all.hosts.map((name, host) => ({ name, lamp: lamp(host), sentences: all.marks.filter((mark) => mark.src === host || mark.dst === host).map((mark) => mark.sentence) }))
    const present = (Object.keys(LAMPS) as Lamp[]).filter((kind) => of.some((one) => one.lamp === kind))
    return h('div', { class: 'card lamps-card' },
        h('ul', { class: 'line-key plain' }, present.map((kind) => h('li', {}, h('i', { class: `swatch lamp-${kind}` }), `${of.filter((one) => one.lamp === kind).length} ${LAMPS[kind]}`))),
        rove(h('ul', { class: `lamps${all.hosts.length > NAMED_MAX ? ' small' : ''}`, 'aria-label': 'Hosts' },
            of.map(({ name, lamp, sentences }) => h('li', { class: `lamp-${lamp}`, tabindex: -1, 'aria-label': `${name}: ${LAMPS[lamp]}`, 'data-tip': [`${name}: ${LAMPS[lamp]}`, ...new Set(sentences)].join('. ') }, all.hosts.length > NAMED_MAX ? null : name))), 'li'))
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
            record: (src, dst, value) => ({ network: all.network, src: hosts(all, src), dst: hosts(all, dst), [map.figure]: value, ci95_low: map.low[src * all.side + dst] ?? null, ci95_high: map.high[src * all.side + dst] ?? null }),
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
