// The ladder from the wire through the transport to a library: what each rung takes of a message, and of each further byte.
//
// Model:   the wire is the network's model; the transport is what was measured above it, with the hosts' part; the library is
//          what was measured above the transport at equal wait. A message is the smallest size, a byte the slope from the
//          smallest to the largest. A library that is faster than the transport has no piece of its own and says so. Bars of a
//          panel that stand together share a scale from zero.
// Checked: `the ladder of libraries adds up`.
import { bar, colourKey } from '../bars'
import type { Context } from '../context'
import { h, none, section, table, type Child } from '../dom'
import type { Model } from '../model'
import { perByte, size, time } from '../units'
import type { Cost, LibraryRow } from '../view'

const RUNGS: [keyof Rungs, string, string][] = [
    ['wire', 'wire, by the model', 'var(--step-neighbour)'],
    ['transport', 'transport and hosts', 'var(--step-connect)'],
    ['library', 'library', 'var(--step-first)'],
]

interface Rungs {
    wire: number
    transport: number
    library: number
}

/** The section; null when no library was measured beside its transport. */
export function ladder(context: Context): HTMLElement | null {
    const { model, selection } = context
    const all = model.view.library
    if (!all.length) return null
    const place = h('div', { class: 'grid wide' })
    const draw = (): void => {
        const visible = all.filter((row) => selection.visible.some((series) => series.network === row.network && series.path === row.path && series.wait === row.wait && series.load === row.load))
        place.replaceChildren(...model.networks.map((network) => panel(model, network, visible)).filter((one) => one !== null))
        if (!place.childElementCount) place.append(h('p', { class: 'nothing' }, 'Nothing is selected.'))
    }
    selection.onChange(draw)
    draw()
    const key = colourKey(RUNGS.map(([, name, colour]) => [name, colour]))
    return section('ladder', 'From the wire to the library', 'What each layer takes of the one-way latency (RTT/2), by messages and by bytes: the wire, then the transport with the hosts, then the library. A library is set beside the transport that waits as it does.', key, place, costs(model, all))
}

function panel(model: Model, network: string, all: LibraryRow[]): HTMLElement | null {
    const own = all.filter((row) => row.network === network)
    const first = own[0]?.sizes[0]
    if (!first) return null
    const messages = own.map((row) => ({ row, rungs: ofMessage(row) }))
    const bytes = own.map((row) => ({ row, rungs: ofByte(row) })).filter((one): one is { row: LibraryRow; rungs: Rungs } => one.rungs !== null)
    return h('div', { class: 'card panel' },
        h('h3', {}, h('i', { class: 'swatch', '--colour': model.colour(network) }), network),
        group(`a message of ${size(first.size_bytes)}`, messages, time),
        bytes.length ? group('each further byte', bytes, perByte) : null)
}

function group(title: string, all: { row: LibraryRow; rungs: Rungs }[], told: (value: number) => string): HTMLElement {
    const sum = ({ wire, transport, library }: Rungs): number => wire + transport + library
    // The transports first, then what stands on each.
    const beneath = new Map(all.map(({ row, rungs }) => [`${row.beneath} ${row.wait ?? ''}`, { ...rungs, library: 0 }]))
    const bars = [...[...beneath].map(([name, rungs]) => ({ name, rungs, load: null as string | null })), ...all.map(({ row, rungs }) => ({ name: `${row.path} ${row.wait ?? ''}`, rungs, load: row.load }))]
    const most = Math.max(Number.MIN_VALUE, ...bars.map(({ rungs }) => sum({ ...rungs, library: Math.max(0, rungs.library) })))
    return h('div', { class: 'rungs' }, h('p', { class: 'rungs-title' }, title),
        h('div', { class: 'bars anatomy' }, bars.map(({ name, rungs, load }) => {
            const label = load === null ? name : `${name}, load ${load}`
            // What a library saves is taken from the transport's piece.
            const drawn = rungs.library < 0 ? { wire: Math.min(rungs.wire, sum(rungs)), transport: Math.max(0, sum(rungs) - rungs.wire), library: 0 } : rungs
            const saves = rungs.library < 0 ? `; it saves ${told(-rungs.library)}` : ''
            const pieces = RUNGS.map(([rung, name, colour]) => ({ name, colour, value: drawn[rung], tip: `${name}: ${told(drawn[rung])} of ${told(sum(rungs))}${saves}` }))
            const words = RUNGS.filter(([rung]) => rungs[rung] !== 0).map(([rung, word]) => `${word} ${told(rungs[rung])}`).join(', ')
            return bar(label, pieces, most, told(sum(rungs)), words)
        })))
}

function ofMessage(row: LibraryRow): Rungs {
    const at = row.sizes[0]
    const [wire, transport, library] = [at?.wire_ns ?? 0, at?.transport_ns ?? 0, at?.library_ns ?? 0]
    return { wire, transport: Math.max(0, transport - wire), library: library - Math.max(transport, wire) }
}

/** Nanoseconds a byte; null where one size was measured. */
function ofByte(row: LibraryRow): Rungs | null {
    const [first, last] = [row.sizes[0], row.sizes[row.sizes.length - 1]]
    const bytes = (last?.size_bytes ?? 0) - (first?.size_bytes ?? 0)
    if (!first || !last || bytes <= 0) return null
    const slope = (of: (size: LibraryRow['sizes'][number]) => number): number => (of(last) - of(first)) / bytes
    const [wire, transport, library] = [slope((at) => at.wire_ns ?? 0), slope((at) => at.transport_ns), slope((at) => at.library_ns)]
    return { wire, transport: Math.max(0, transport - wire), library: library - Math.max(transport, wire) }
}

/** The same as a table, with intervals. */
function costs(model: Model, all: LibraryRow[]): HTMLElement {
    const few = 'a confidence interval needs six repetitions of both'
    const between = (cost: Cost | null, unit: (value: number) => string): Child =>
        cost === null || cost.ci95_low === null || cost.ci95_high === null ? none(few) : `${unit(cost.ci95_low)} … ${unit(cost.ci95_high)}`
    const bytes = (ps: number): string => perByte(ps / 1000)
    const rows = all.map((row): Child[] => [
        [h('i', { class: 'swatch', '--colour': model.colour(row.network) }), row.network], row.path, row.beneath, row.wait ?? '',
        time(row.per_message_ns.value), between(row.per_message_ns, time),
        row.per_byte_ps === null ? none('one size was measured') : bytes(row.per_byte_ps.value), between(row.per_byte_ps, bytes),
    ])
    return h('details', { class: 'card flush', open: all.length <= 8 }, h('summary', {}, `What libraries cost over the transport beneath, at equal completion: ${all.length} differences with their intervals`),
        table('What libraries cost', ['Network', 'Library', 'over', 'completion', '#per message', '#95 % interval', '#per byte', '#95 % interval'], rows))
}
