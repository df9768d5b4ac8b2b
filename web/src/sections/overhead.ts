// From the line's rate to what a program gets: where the bits go, as a waterfall for each network.
//
// Model:   each step of framing floats between the rate above it and the rate it leaves; the last step is what was measured
//          by the best TCP stream. The axis need not begin at zero, because floating steps are differences; it says where.
import type { Context } from '../context'
import { h, none, section } from '../dom'
import type { Model } from '../model'
import { rate, share, size } from '../units'
import type { NetworkRow } from '../view'

const WORDS: Record<string, string> = {
    line: 'line rate', framing: 'frames and gaps', sonet: 'SONET', cell: 'cell headers', aal5: 'AAL5, padding', snap: 'LLC/SNAP', ip: 'IP header', tcp: 'TCP header',
}

/** The section; null when no network with series has an overhead chain. */
export function overhead({ model, selection }: Context): HTMLElement | null {
    const chained = model.networks.filter((name) => (model.network(name)?.row.overhead.length ?? 0) > 1 && model.series.some((series) => series.network === name))
    if (!chained.length) return null
    const place = h('div', { class: 'grid wide' })
    const draw = (): void => {
        const names = chained.filter((name) => selection.visible.some((series) => series.network === name))
        place.replaceChildren(...names.map((name) => panel(model, name)))
        if (!names.length) place.append(h('p', { class: 'nothing' }, 'Nothing is selected.'))
    }
    selection.onChange(draw)
    draw()
    return section('overhead', 'From the line to the program', 'What each layer takes of the line’s rate, and how much of the rest a TCP stream got.', place)
}

interface Fall {
    name: string
    from: number
    to: number
    bytes: number | null
    kind: 'start' | 'loss' | 'short' | 'gain'
}

function falls(model: Model, row: NetworkRow): { falls: Fall[]; measured: number | null } {
    const list: Fall[] = row.overhead.map((step, at) => ({
        name: WORDS[step.step] ?? step.step, from: at === 0 ? step.bps : row.overhead[at - 1]?.bps ?? step.bps, to: step.bps, bytes: step.bytes, kind: at === 0 ? 'start' : 'loss',
    }))
    const last = list[list.length - 1]?.to ?? 0
    const streams = model.series.filter((series) => series.network === row.name && series.path === 'tcp' && series.load === null)
    const measured = Math.max(0, ...streams.map((series) => model.throughput(series)?.p50 ?? 0)) || null
    if (measured !== null) list.push({ name: 'hosts, kernel, window', from: last, to: measured, bytes: null, kind: measured > last ? 'gain' : 'short' })
    return { falls: list, measured }
}

function panel(model: Model, name: string): HTMLElement {
    const row = model.network(name)?.row
    if (!row) return h('div')
    const { falls: list, measured } = falls(model, row)
    const top = Math.max(...list.map((fall) => fall.from), measured ?? 0)
    const lowest = Math.min(...list.map((fall) => fall.to))
    // A round begin below the lowest step; zero when that is near.
    const unit = 10 ** Math.floor(Math.log10(top)) / 2
    const begin = lowest < top * 0.5 ? 0 : Math.max(0, Math.floor((lowest - (top - lowest) * 0.25) / (unit / 10)) * (unit / 10))
    const at = (bps: number): number => (100 * (bps - begin)) / (top - begin)
    const ceiling = row.overhead[row.overhead.length - 1]?.bps ?? 0
    return h('div', { class: 'card panel' },
        h('h3', {}, h('i', { class: 'swatch', '--colour': model.colour(name) }), name),
        h('div', { class: 'falls', role: 'img', 'aria-label': `${name}: ${list.map((fall) => `${fall.name} ${rate(fall.to)}`).join(', ')}` },
            list.map((fall, nth) => {
                const low = Math.min(fall.from, fall.to)
                const bytes = fall.bytes === null ? '' : `, ${size(fall.bytes)} left of a full frame`
                const text = fall.kind === 'start' ? `line rate ${rate(fall.to)}${bytes}` : `${fall.name}: ${rate(fall.from - fall.to)} (${share((fall.from - fall.to) / top)} of the line)${bytes}`
                return [
                    h('span', { class: 'bars-name' }, fall.name),
                    h('div', { class: 'track fall', '--from': `${at(fall.from)}%` },
                        nth > 0 ? h('i', { class: 'thread', '--at': `${at(fall.from)}%` }) : null,
                        h('i', { class: `segment ${fall.kind}`, '--at': fall.kind === 'start' ? '0%' : `${at(low)}%`, 'width-share': fall.kind === 'start' ? '100%' : `${Math.max(0.4, at(Math.max(fall.from, fall.to)) - at(low))}%`, 'data-tip': text })),
                    h('span', { class: 'bars-value' }, fall.kind === 'start' ? rate(fall.to) : `−${rate(Math.abs(fall.from - fall.to), 3)}`.replace('−', fall.to > fall.from ? '+' : '−')),
                ]
            }),
            h('span', { class: 'bars-name strong' }, 'measured'),
            h('div', { class: 'track fall' }, measured === null ? null : h('i', { class: 'segment got', '--at': '0%', 'width-share': `${at(measured)}%`, '--colour': model.colour(name), 'data-tip': `${rate(measured)}: ${share(measured / ceiling)} of the ceiling ${rate(ceiling)}` })),
            h('span', { class: 'bars-value strong' }, measured === null ? none('no TCP stream was measured on it') : rate(measured))),
        h('p', { class: 'axis-note' }, begin > 0 ? `axis from ${rate(begin)} to ${rate(top)}` : `axis from 0 to ${rate(top)}`,
            measured === null ? null : ` · ${share(measured / top)} of the line, ${share(measured / ceiling)} of the ceiling`))
}
