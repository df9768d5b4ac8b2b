// Where a message's time goes: one bar a size, idle beside loaded, cut at the kernel's stamps.
//
// Model:   parts are those of the middle half of each launch's messages, so that they add up to the bar. What a missing stamp
//          leaves untold is its last piece. Bars of one network share a scale from zero.
// Checked: `the anatomy of messages adds up`.
import { bar, colourKey } from '../bars'
import type { Context } from '../context'
import { h, section } from '../dom'
import type { Model, Series } from '../model'
import { size, time } from '../units'
import type { AnatomyRow } from '../view'

type Part = 'send_call_ns' | 'queue_ns' | 'wire_ns' | 'wake_ns' | 'receive_ns' | 'rest_ns'

const PARTS: [Part, string, string][] = [
    ['send_call_ns', 'send call', 'var(--step-first)'],
    ['queue_ns', 'queue', 'var(--step-vc)'],
    ['wire_ns', 'wire', 'var(--step-neighbour)'],
    ['wake_ns', 'wake-up', 'var(--step-connect)'],
    ['receive_ns', 'receive call', 'var(--beside)'],
    ['rest_ns', 'not attributed', 'var(--faint)'],
]

/** The section; null when no message was cut. */
export function anatomy(context: Context): HTMLElement | null {
    const { model, selection } = context
    const all = model.view.anatomy
    if (!all.length) return null
    const place = h('div', { class: 'grid wide' })
    const draw = (): void => {
        const panels = model.networks.map((network) => panel(model, network, selection.visible, all))
        place.replaceChildren(...panels.filter((one) => one !== null))
        if (!place.childElementCount) place.append(h('p', { class: 'nothing' }, 'Nothing is selected.'))
    }
    selection.onChange(draw)
    draw()
    const present = PARTS.filter(([part]) => all.some((row) => row[part]))
    const key = colourKey(present.map(([, name, colour]) => [name, colour]))
    return section('anatomy', 'Where a message’s time goes', 'One-way time, from the call that sends to the return of the call that receives, cut at the kernels’ time stamps. Each panel has its own scale, from zero.', key, place)
}

function panel(model: Model, network: string, visible: Series[], all: AnatomyRow[]): HTMLElement | null {
    const of = (series: Series): AnatomyRow[] => all.filter((row) => model.of(row) === series)
    const own = visible.filter((series) => series.network === network && of(series).length)
    if (!own.length) return null
    const most = Math.max(1, ...own.flatMap(of).map((row) => row.one_way_ns))
    const loaded = own.some((series) => series.load !== null)
    // Sizes first, so that idle and loaded stand beside each other.
    const bars = own.flatMap((series) => of(series).map((row) => ({ series, row })))
        .sort((a, b) => a.series.path.localeCompare(b.series.path) || a.row.size_bytes - b.row.size_bytes || a.series.index - b.series.index)
    return h('div', { class: 'card panel' },
        h('h3', {}, h('i', { class: 'swatch', '--colour': model.colour(network) }), network),
        h('div', { class: 'bars anatomy' }, bars.map(({ series, row }) => rowBar(series, row, most, loaded))))
}

function rowBar(series: Series, row: AnatomyRow, most: number, beside: boolean): Node[] {
    const pieces = PARTS.map(([part, name, colour]) => ({ name, colour, value: row[part] ?? 0 })).filter(({ value }) => value > 0)
    const label = `${series.short}${beside && series.load === null ? ', idle' : ''}, ${size(row.size_bytes)}`
    return bar(label, pieces.map((piece) => ({ ...piece, tip: `${piece.name}: ${time(piece.value)} of ${time(row.one_way_ns)}` })), most, time(row.one_way_ns),
        pieces.map(({ name, value }) => `${name} ${time(value)}`).join(', '))
}
