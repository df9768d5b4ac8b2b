// Files of servers: rates against the size of the file, and what a call or a transfer takes, of what was measured apart.
//
// Model:   of each line the largest file is cut. Parts of a call add up where one is outstanding; what they do not explain is the last piece. Stages
//          of a transfer overlap, so each has a bar of its own on the scale of the whole, and the slowest is marked.
// Checked: `files have their calls and stages`.
import { bar, colourKey, type Piece } from '../bars'
import type { Context } from '../context'
import { drawCurves, type Curve } from '../curves'
import { h, section } from '../dom'
import { said, type Model } from '../model'
import { panels, shownAs } from '../panels'
import { count, rate, size, time } from '../units'
import type { FilesRow } from '../view'

const COLOURS: Record<string, string> = {
    server: 'var(--step-first)', 'round trip': 'var(--step-neighbour)', line: 'var(--step-vc)',
}
const REST = 'var(--faint)'
const STAGE = 'var(--step-connect)'
const SLOWEST = 'var(--accent)'
/** A line is drawn between so many sizes. */
const SIZES_MIN = 2

/** The section; null where no files were asked for. */
export function files(context: Context): HTMLElement | null {
    const { model } = context
    const all = model.view.files
    if (!all.length) return null
    const cut = all.filter((row) => row.took_ns !== null && !all.some((other) => nameOf(other) === nameOf(row) && other.network === row.network && (other.size_bytes ?? 0) > (row.size_bytes ?? 0)))
    const [transfers, calls] = [cut.filter((row) => row.is_transfer), cut.filter((row) => !row.is_transfer)]
    return section('files', 'Files', 'What a file service reaches over each network, and what a call or a transfer is made of. Nothing is fitted: the parts were measured apart.',
        curves(context),
        calls.length ? h('div', { id: 'files-calls' }, h('div', { class: 'sub' }, h('h3', {}, 'What a call takes')),
            colourKey([...Object.entries(COLOURS), ['not explained, or waiting for other calls', REST]]),
            h('div', { class: 'grid wide' }, byPath(model, calls).map((rows) => callPanel(model, rows)))) : null,
        transfers.length ? h('div', { id: 'files-stages' }, h('div', { class: 'sub' }, h('h3', {}, 'What a transfer takes')),
            colourKey([['a stage, measured apart', STAGE], ['the slowest stage', SLOWEST], ['the transfer', 'var(--ink)']]),
            h('div', { class: 'grid wide' }, transfers.map((row) => stagePanel(model, row)))) : null)
}

/** Lines of one network and path: their calls are alike, and share a scale. */
const byPath = (model: Model, all: FilesRow[]): FilesRow[][] =>
    model.networks.flatMap((network) => model.paths.map((path) => all.filter((row) => row.network === network && row.path === path))).filter((rows) => rows.length > 0)

/** Everything but network and size: `write nfs2:udp, transfer=8K`. */
function nameOf(row: FilesRow): string {
    const knobs = Object.fromEntries(Object.entries(row.knobs).filter(([name, value]) => name !== 'op' && !(name === 'outstanding' && value === '1')))
    const others = said({ ...row, method: null, knobs })
    return [`${row.operation} ${row.path}`, others].filter(Boolean).join(', ')
}

const ofSize = (row: FilesRow): string => (row.size_bytes === null ? '' : `, ${size(row.size_bytes)}`)
const reached = (row: FilesRow): string => (row.size_bytes === null ? `${count(Math.round(row.rate))}/s` : rate(row.rate))

function callPanel(model: Model, rows: FilesRow[]): HTMLElement {
    const [network, path] = [rows[0]?.network ?? '', rows[0]?.path ?? '']
    const most = Math.max(...rows.map((row) => Math.max(row.took_ns ?? 0, row.expected_ns ?? 0)))
    return h('div', { class: 'card panel' }, h('h3', {}, h('i', { class: 'swatch', '--colour': model.colour(network) }), `${network} ${path}`),
        h('div', { class: 'bars times' }, rows.map((row) => {
            const took = row.took_ns ?? 0
            const parts = row.parts.map(({ name, ns }): Piece => ({ name, value: ns, colour: COLOURS[name] ?? STAGE, tip: `${name}: ${time(ns)} of ${time(took)}` }))
            const rest = took - row.parts.reduce((sum, { ns }) => sum + ns, 0)
            const pieces = [...parts, ...(rest > 0 ? [{ name: 'rest', value: rest, colour: REST, tip: `not explained: ${time(rest)} of ${time(took)}` }] : [])]
            return bar(nameOf(row).replace(` ${path}`, '') + ofSize(row), pieces, most, `${time(took)} ${reached(row)}`)
        })))
}

function stagePanel(model: Model, row: FilesRow): HTMLElement {
    const took = row.took_ns ?? 0
    const most = Math.max(took, row.expected_ns ?? 0, ...row.parts.map(({ ns }) => ns))
    const stages = row.parts.map(({ name, ns }) => bar(name, [{ name, value: ns, colour: name === row.slowest ? SLOWEST : STAGE, tip: `${name}: ${time(ns)}` }], most, time(ns)))
    const together = row.expected_ns === null ? [] : bar('together', [{ name: 'together', value: row.expected_ns, colour: REST, tip: `these together: ${time(row.expected_ns)}` }], most, time(row.expected_ns))
    return h('div', { class: 'card panel' }, h('h3', {}, h('i', { class: 'swatch', '--colour': model.colour(row.network) }), `${row.network}: ${nameOf(row)}${ofSize(row)}`),
        h('div', { class: 'bars' }, ...stages, together, bar('measured', [{ name: 'measured', value: took, colour: 'var(--ink)', tip: `measured: ${time(took)}, ${reached(row)}` }], most, `${time(took)} ${reached(row)}`)))
}

/** Rates against the size of the file; null where one size was measured. */
function curves(context: Context): HTMLElement | null {
    const { model, selection } = context
    const rows = model.rows({ quantity: 'throughput_bps', probe: 'files' })
    if (new Set(rows.map((row) => row.size_bytes)).size < SIZES_MIN) return null
    const own = new Set(rows.map((row) => model.of(row)?.id))
    const { plots, choose } = panels(context, (series) => own.has(series.id), (network) => ({
        label: `Rate of files against their size${network === null ? '' : ` on ${network}`}.`,
        draw: (width) => drawCurves({
            context, width, yLabel: '↑ bytes of files', yFormat: (bps) => rate(bps),
            curves: shownAs(model, selection, network).map((series): Curve => ({
                series, phase: 'warm', scale: (bps) => bps, bound: [], rows: model.rows({ series, quantity: 'throughput_bps', probe: 'files' }),
            })),
        }),
        empty: 'Nothing selected has what this figure shows.',
    }))
    return h('div', { class: 'card' }, h('div', { class: 'card-head' }, choose), plots)
}
