// The head of the page: the run in one sentence; and the key figures by network.
import type { Context } from '../context'
import { TOLD, h, none, rove, shown, type Child } from '../dom'
import { glyph } from '../legend'
import type { Model, Series } from '../model'
import { NEAR } from '../model'
import { interval } from '../rowtip'
import { duration, moment, perByte, rate, share, size, time, value, count } from '../units'
import type { ResultRow, Verdict } from '../view'

const STATES = {
    open: ['not ended', 'The run had not ended when this page was written: it was running, or it was killed.'],
    complete: ['complete', 'All repetitions were made.'],
    partial: ['partial', 'It ended before all repetitions were made; sonde assess --resume resumes it.'],
} as const

/** The head with everything in it. */
export function head({ model }: Context): HTMLElement {
    const { run } = model.view
    const [state, meaning] = STATES[run.state]
    const warnings = model.view.findings.filter((finding) => finding.severity === 'warning').length
    const testbeds = [...new Set(model.view.results.map((row) => row.testbed))].join(', ')
    const fact = (name: string, content: Child): HTMLElement => h('div', {}, h('dt', {}, name), h('dd', {}, content))
    return h('header', { class: 'masthead', id: 'top' },
        h('p', { class: 'eyebrow' }, 'Network report', h('span', { class: `state ${run.state}`, tabindex: 0, 'data-tip': meaning }, state)),
        h('h1', { class: model.verdict().length > 130 ? 'long' : null }, model.verdict()),
        h('p', { class: 'standfirst' }, model.view.verdict),
        h('p', { class: 'command' }, h('code', {}, run.command)),
        h('dl', { class: 'facts' },
            fact('Testbed', testbeds || none('nothing was measured')),
            fact('Hosts', `${model.view.answer?.scope.hosts.length ?? model.view.hosts.length}`),
            fact('Began', moment(run.began_unix_ns)),
            fact('Took', run.ended_unix_ns === null ? none('it had not ended') : duration(run.ended_unix_ns - run.began_unix_ns)),
            fact('Samples', count(model.view.results.filter((row) => row.quantity.endsWith('_ns')).reduce((sum, row) => sum + row.samples, 0))),
            fact('Findings', h('a', { href: '#findings' }, warnings ? `${warnings} ${warnings === 1 ? 'warning' : 'warnings'}, ${model.view.findings.length} in all` : `${model.view.findings.length}`))))
}

/** The key figures; null where there is no series. They stand open where nothing else answers. */
export function keyFigures({ model }: Context): HTMLElement | null {
    if (!model.series.length) return null
    const name = `Key figures by network and path: ${model.series.length} ${model.series.length === 1 ? 'line' : 'lines'}`
    const isOpen = model.view.answer === null
    const fold = h('details', { class: 'card flush', open: isOpen }, h('summary', {}, name), isOpen ? keyTable(model) : null)
    // A table of hundreds of lines takes its time: it is made when it is asked for.
    if (!isOpen) fold.addEventListener('toggle', () => fold.append(keyTable(model)), { once: true })
    return h('section', { id: 'key', 'aria-label': name }, fold)
}

const COLUMNS: [string, string][] = [
    ['Network', 'Each network with its paths.'],
    ['Cold start', 'Time to the first reply: ARP, circuit, connection, first message. Median of repetitions.'],
    ['Latency', 'Half a round trip of the smallest message, warm. Median.'],
    ['Throughput', 'User bytes at the receiver, of the best stream. Median.'],
    ['Ceiling', 'The most that this path can carry on this network, by its framing.'],
    ['Reached', 'Throughput over ceiling.'],
    ['n½', 'Half-performance size: a message of this size gets half of the peak rate.'],
    ['CPU per byte', 'CPU time of sender and receiver for each user byte of that stream.'],
    ['Emulation', 'Whether the emulated network kept its own times.'],
]

/** Why a figure beside a ceiling is not there. */
const LOADED = 'ceilings are of an idle network'

function keyTable(model: Model): HTMLElement {
    const rows = model.networks.flatMap((network) => {
        const own = model.series.filter((series) => series.network === network)
        return own.map((series, at) => keyRow(model, series, at === 0 ? own.length : 0))
    })
    return rove(h('div', { class: 'scroll key', tabindex: 0, role: 'region', 'aria-label': 'Key figures by network' },
        h('table', {},
            h('caption', { class: 'unseen' }, 'Key figures by network and path'),
            h('thead', {}, h('tr', {}, h('th', { scope: 'col', colspan: 2, tabindex: 0, 'data-tip': COLUMNS[0]?.[1] }, 'Network'),
                COLUMNS.slice(1).map(([name, tip]) => h('th', { scope: 'col', tabindex: 0, 'data-tip': tip, class: 'number' }, name)))),
            h('tbody', {}, rows))), TOLD)
}

function keyRow(model: Model, series: Series, span: number): HTMLElement {
    const cold = model.coldStart(series)
    const latency = model.latency(series)
    const throughput = model.throughput(series)
    const ceiling = model.streamCeiling(series)
    const part = model.fraction(series)
    const half = model.fit(series)?.half_size_bytes ?? null
    let column = 0
    const cell = (content: Child, kind = 'number'): HTMLElement => h('td', { class: kind, 'data-name': COLUMNS[column += 1]?.[0] }, content)
    const record = model.network(series.network)
    return h('tr', { class: span ? 'first' : null },
        span ? h('th', { scope: 'rowgroup', rowspan: span, class: 'network' }, h('i', { class: 'swatch', '--colour': series.colour }), h('span', {}, series.network,
            record?.row.summary ? h('small', {}, record.row.summary) : null)) : null,
        h('th', { scope: 'row', class: 'path' }, glyph(series), series.short),
        cell(median(cold)), cell(median(latency)), cell(median(throughput)),
        cell(shown(ceiling, (bps) => rate(bps), series.load !== null ? LOADED : record?.row.line_bps ? 'not worked out for this path' : 'this network has no rate')),
        cell(reached(series, part)),
        cell(shown(half, size, series.load !== null ? LOADED : 'the curve of single messages does not cross half of its peak, or was not measured')),
        cell(cpu(model, throughput)),
        cell(fidelity(model.fidelity(series)), 'number fidelity'))
}

function median(row: ResultRow | undefined): Child {
    if (!row) return none('not in the plan')
    if (row.p50 === null) return none(row.reason ?? 'not measured')
    const known = row.ci95_low !== null
    return [h('span', { class: 'figure-value' }, value(row.quantity, row.p50)), h('small', {}, known ? interval(row) : `${row.launches} ${row.launches === 1 ? 'repetition' : 'repetitions'}`)]
}

function reached(series: Series, part: number | null): Child {
    if (part === null) return none(series.load !== null ? LOADED : 'needs a stream and a ceiling')
    return h('div', { class: `reached ${part < NEAR ? 'short' : ''}` },
        h('span', { class: 'figure-value' }, share(part)),
        h('span', { class: 'bar', 'aria-hidden': 'true' }, h('i', { 'width-share': `${Math.min(100, part * 100)}%`, '--colour': series.colour })))
}

function cpu(model: Model, row: ResultRow | undefined): Child {
    const ends = (['cpu_src_ns_per_byte', 'cpu_dst_ns_per_byte'] as const).map((quantity) => model.beside(row, quantity))
    if (ends.every((end) => end?.p50 === null || end?.p50 === undefined)) return none(ends[0]?.reason ?? 'not measured')
    const [src, dst] = ends.map((end) => shown(end?.p50, perByte, end?.reason ?? 'not measured'))
    return [h('span', { class: 'end', 'data-tip': 'sender' }, src), h('small', { 'data-tip': 'receiver' }, dst)]
}

/** Whether the emulation kept its times, with the figures. */
export function fidelity(verdict: Verdict | null): Child {
    if (!verdict) return none('not emulated: there is no model to keep to')
    const p99 = verdict.lateness_p99_ns === null ? '' : `, 99 % within ${time(verdict.lateness_p99_ns)}`
    const figures = `${count(verdict.late)} of ${count(verdict.deliveries)} deliveries more than ${time(verdict.bound_ns)} behind schedule${p99}`
    const words = verdict.status === 'passed' ? 'on schedule' : 'behind schedule'
    return h('span', { class: `badge ${verdict.status}`, tabindex: 0, 'data-tip': [figures, ...verdict.reasons].join('. ') }, words)
}
