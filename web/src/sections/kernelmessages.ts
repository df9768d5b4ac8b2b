// The messages of the kernels: how many and how long, beside a paper's; how their lengths are spread; who sends to whom.
//
// Model:   a card is what one kernel among so many ranks sends by all paths that carry the same. A column of the histogram is the
//          lengths from a power of two on, below the next. A cell of the matrix is what its row sends to its column, shaded by
//          its part of the most. Both are of the timed part.
// Checked: `messages have a histogram and a matrix`.
import { h, none, shown, table, type Child } from '../dom'
import { by, kernelName } from '../kernelplace'
import { distinct } from '../model'
import { count, memory, share, size, times } from '../units'
import type { KernelRow, KernelTraffic, View } from '../view'

const SHADES = 6
const SILENT = 'no paper prints it'

/** A card for each kernel's messages; null where none were told. */
export function traffic(view: View): HTMLElement | null {
    const all = view.kernels_traffic
    if (!all.length) return null
    return h('div', { id: 'kernels-traffic' }, h('div', { class: 'sub' }, h('h3', {}, 'Messages: how many, how long, to whom'),
        h('p', {}, 'In the timed part, of all ranks; collectives that a library makes of its own are none of them.')),
    h('div', { class: 'grid wide' }, all.map((one) => card(one, view.kernels))))
}

function card(one: KernelTraffic, rows: KernelRow[]): HTMLElement {
    const own = rows.filter((row) => row.kernel === one.kernel && row.class === one.class && row.ranks === one.ranks && one.paths.includes(by(row)))
    const row = own.find((row) => row.printed_messages !== null) ?? own[0]
    return h('div', { class: 'card panel traffic' },
        h('h3', {}, `${kernelName(one)}, ${one.ranks} ranks`), h('p', { class: 'axis-note' }, one.paths.join(', ')),
        row ? figures(row) : null,
        h('div', { class: 'traffic-figures' }, histogram(one), matrix(one)))
}

/** Count, mean and median, with what a paper prints and how many times it ours are. */
function figures(row: KernelRow): HTMLElement {
    const printed = row.printed_messages
    const all: [string, number | null, number | null, (value: number) => string][] = [
        ['messages', row.messages, printed?.messages ?? null, count], ['mean length', row.mean_bytes, printed?.mean_bytes ?? null, size], ['median length', row.median_bytes, printed?.median_bytes ?? null, size],
    ]
    return h('dl', { class: 'triple' }, all.map(([name, own, theirs, format]) => h('div', {},
        h('dt', {}, name), h('dd', {}, shown(own, format, 'not counted'),
            theirs === null || own === null ? null : h('small', { 'data-tip': printed?.cite }, `printed ${format(theirs)}${theirs > 0 ? `: ${times(own / theirs)}` : ''}`)))))
}

/** Columns of lengths; powers of two without messages between others keep their place. */
function histogram(one: KernelTraffic): HTMLElement {
    const all = one.lengths.reduce((sum, [, messages]) => sum + messages, 0)
    const most = Math.max(1, ...one.lengths.map(([, messages]) => messages))
    const power = (from: number): number => (from === 0 ? -1 : Math.round(Math.log2(from)))
    const [first, last] = [power(one.lengths[0]?.[0] ?? 0), power(one.lengths[one.lengths.length - 1]?.[0] ?? 0)]
    const columns = Array.from({ length: last - first + 1 }, (_, at) => {
        const from = first + at < 0 ? 0 : 2 ** (first + at)
        const messages = one.lengths.find(([low]) => low === from)?.[1] ?? 0
        const said = `${from === 0 ? 'no bytes' : from === 1 ? size(1) : `${size(from)} to ${size(2 * from - 1)}`}: ${count(messages)} messages, ${share(messages / Math.max(1, all))}`
        return h('div', { class: 'column', 'data-tip': said }, h('i', { '--high': `${(100 * messages) / most}%`, class: messages ? null : 'empty' }), h('span', {}, at % Math.ceil((last - first + 1) / 8) === 0 ? size(from).replace(/\s/g, '') : ''))
    })
    return h('figure', { class: 'histogram', role: 'img', 'aria-label': `Lengths: ${one.lengths.map(([from, messages]) => `from ${size(from)} ${count(messages)}`).join(', ')}` },
        h('div', { class: 'columns' }, columns), h('figcaption', {}, `lengths; the highest column is ${count(most)} messages`))
}

/** Who sends to whom; a sentence where ranks are too many. */
function matrix(one: KernelTraffic): HTMLElement {
    if (!one.bytes.length) return h('p', { class: 'axis-note' }, `${one.ranks} ranks are too many for a matrix here: \`sonde npb --matrix\` writes it.`)
    const most = Math.max(1, ...one.bytes)
    const cells = one.bytes.map((bytes, at) => {
        const [src, dst] = [Math.floor(at / one.ranks), at % one.ranks]
        const shade = bytes === 0 ? 'var(--hover)' : `var(--heat-${Math.min(SHADES - 1, Math.floor((SHADES * bytes) / most))})`
        return h('i', { '--colour': shade, 'data-pair': `${src} ${dst}`, 'data-tip': `${src} → ${dst}: ${bytes ? `${memory(bytes)} in ${count(one.messages[at] ?? 0)} messages` : 'nothing'}` })
    })
    return h('figure', { class: 'matrix', role: 'img', 'aria-label': `Bytes from each of ${one.ranks} ranks to each; at most ${memory(most)}` },
        h('div', { class: 'cells', '--ranks': String(one.ranks) }, cells), h('figcaption', {}, `rows send, columns receive; the most is ${memory(most)}`))
}

/** Messages by kernel, class, count of ranks and path; null where none were counted. */
export function messagesTable(all: KernelRow[]): HTMLElement | null {
    const seen = new Map<string, { row: KernelRow; paths: string[] }>()
    for (const row of all.filter((one) => one.messages !== null && one.ranks > 1)) {
        const name = JSON.stringify([row.kernel, row.class, row.ranks, row.messages, row.mean_bytes, row.median_bytes])
        const known = seen.get(name)
        if (!known) seen.set(name, { row, paths: [by(row)] })
        else {
            if (!known.paths.includes(by(row))) known.paths.push(by(row))
            if (known.row.printed_messages === null) known.row = row
        }
    }
    const counted = [...seen.values()]
    if (!counted.length) return null
    const printed = counted.some(({ row }) => row.printed_messages !== null)
    const length = (bytes: number): string => count(bytes)
    const rows = counted.map(({ row, paths }): Child[] => [
        row.kernel.toUpperCase(), row.class, row.ranks, paths.join(', '), shown(row.messages, count, 'not counted'), shown(row.mean_bytes, length, 'no message was sent'), shown(row.median_bytes, length, 'no message was sent'),
        ...(printed ? [row.printed_messages ? count(row.printed_messages.messages) : none(SILENT), shown(row.printed_messages?.mean_bytes, length, SILENT), shown(row.printed_messages?.median_bytes, length, SILENT)] : []),
    ])
    const cites = distinct(counted.flatMap(({ row }) => (row.printed_messages ? [row.printed_messages.cite] : [])))
    return h('details', { class: 'card flush' }, h('summary', {}, `Messages of all ranks${cites.length ? `, beside ${cites.join('; ')}` : ''}`),
        table('Messages of the kernels', ['Kernel', 'Class', '#ranks', 'Path', '#messages', '#mean, B', '#median, B', ...(printed ? ['#printed messages', '#mean, B', '#median, B'] : [])], rows))
}
