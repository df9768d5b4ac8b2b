// The answer of an assessment, as its screen gives it: how far to trust it, a line a network, what is lost, what to do. A run of another
// kind has what a matrix of all pairs says, and the findings that ask for something.
//
// Model:   a bar of a stream is its part of what is possible. A bar of a message is all of its time, cut into the layers; so bars of two
//          networks are not compared by their length, but by the figure beside each. Hatched is what is not distinguishable from 0.
// Checked: `an assessment answers first`.
import type { Context } from '../context'
import { TOLD, h, none, prose, rove, type Child } from '../dom'
import type { Model } from '../model'
import { link } from '../route'
import { viewOfRule } from '../rules'
import { copyButton } from '../save'
import { rate, share, significant, size, time, times } from '../units'
import type { AllPairs, AssessedNetwork, Assessment, Figures, Judged, Loss, LostAt, OneWay, Trust, TrustLevel } from '../view'
import { groupsByRule } from './findings'

const TONES: Record<Judged | TrustLevel, string> = { pass: 'good', high: 'good', inconclusive: 'fair', medium: 'fair', fail: 'bad', low: 'bad' }
const FIGURES: Record<Figures, string> = { throughput: 'throughput', messages: 'rates of single messages', latency: 'latency', startup: 'start-up', kernel: 'kernels' }
/** What is lost, in a word, and the view that has its figures. */
const LOSSES: Record<LostAt, [string, string]> = {
    host: ['Host', 'pairs'], route: ['Route', 'pairs'], stream: ['Stream', 'throughput'], library_rate: ['Rate', 'libraries'], library: ['Library', 'libraries'],
    hosts: ['Hosts', 'latency'], start: ['Start', 'coldstart'], pause: ['Pause', 'coldstart'], datagrams: ['UDP', 'throughput'],
}
const LAYERS: [string, string][] = [['wire', 'var(--step-neighbour)'], ['transport and hosts', 'var(--step-connect)'], ['library', 'var(--step-first)']]
/** So many losses stand open. */
const SHOWN = 6
/** From this part on a message is the line's. */
const NEAR = 0.95
const UNCERTAIN = 'a disturbance leaves this figure uncertain'

/** The section; null where there is nothing to answer. */
export function answer(context: Context): HTMLElement | null {
    const { model } = context
    const { answer: all, all_pairs: pairs } = model.view
    const judged = [all ? trust(all.trust) : null, pairs ? allPairs(pairs, h('a', { href: context.link('pairs') }, 'The matrix')) : null].filter((one) => one !== null)
    const body = all
        ? [networks(context, all), h('div', { class: 'halves' }, losses(context, all.lost), next(all))]
        : [toActOn(context)]
    if (!judged.length && body.every((one) => one === null)) return null
    return h('section', { id: 'answer', 'aria-labelledby': 'answer-title' },
        h('h2', { id: 'answer-title', class: 'unseen' }, 'The answer'),
        judged.length ? h('div', { class: 'judgements' }, judged) : null, body)
}

function judgement(name: string, tone: string, word: string, reasons: string[], more: Child): HTMLElement {
    const [first, ...rest] = reasons
    return h('div', { class: `judgement ${tone}` },
        h('p', { class: 'judgement-head' }, name, h('b', {}, word)),
        first === undefined ? null : h('p', { class: 'judgement-reason' }, prose(first)),
        rest.length ? h('ul', {}, rest.map((reason) => h('li', {}, prose(reason)))) : null, more)
}

function trust(all: Trust): HTMLElement {
    const named = (some: Figures[]): string => some.map((one) => FIGURES[one]).join(', ')
    const usable = all.usable.length || all.unusable.length
        ? h('p', { class: 'judgement-more' },
            all.usable.length ? h('span', { class: 'usable' }, `Can be used: ${named(all.usable)}.`) : null,
            all.unusable.length ? h('span', { class: 'unusable' }, `Not without a look at the rows: ${named(all.unusable)}.`) : null)
        : null
    return judgement('Trust', TONES[all.level], all.level.toUpperCase(), all.reasons, [usable, h('a', { href: '#trust' }, 'How it was judged')])
}

/** What the matrix of all pairs says; `more` leads to it. */
export function allPairs(all: AllPairs, more: Child = null): HTMLElement {
    const reasons = all.state === 'pass' ? [`On ${all.network}, ${all.reasons.join('; ')}.`] : all.reasons
    const detectable = all.detectable ? h('p', { class: 'judgement-more' }, `Found four times of five: ${all.detectable}.`) : null
    return judgement('All pairs', TONES[all.state], all.state.toUpperCase(), reasons, [detectable, more])
}

function networks(context: Context, all: Assessment): HTMLElement {
    const { model } = context
    const hasFiles = all.networks.some((network) => network.files.length > 0)
    const message = all.message_bytes === null ? '' : `, ${size(all.message_bytes)} one way`
    const heads = ['Network', 'TCP stream, of what is possible', ...all.paths.map((path) => `${path.name}${message}`), ...(all.kernel ? [`${all.kernel.toUpperCase()}, times one host`] : []), ...(hasFiles ? ['Files'] : [])]
    const row = (network: AssessedNetwork): HTMLElement => {
        const cells: Child[] = [stream(model, network), ...network.one_way.map(oneWay), ...(all.kernel ? [network.kernel_times === null ? none('not measured on both') : h('span', { class: 'figure-value' }, times(network.kernel_times))] : []), ...(hasFiles ? [files(network)] : [])]
        return h('tr', { class: network.is_floor ? 'floor' : null },
            h('th', { scope: 'row' }, h('a', { href: context.link('latency', [['net', network.network]]) }, h('i', { class: 'swatch', '--colour': model.colour(network.network) }), network.network),
                network.is_floor ? h('small', {}, 'this machine alone, as a floor') : null),
            cells.map((cell, at) => h('td', { 'data-name': heads[at + 1] }, cell)))
    }
    return h('div', {},
        rove(h('div', { class: 'scroll answer-networks', tabindex: 0, role: 'region', 'aria-label': 'The networks' },
            h('table', {}, h('caption', { class: 'unseen' }, 'The networks, those that lose most first'),
                h('thead', {}, h('tr', {}, heads.map((head) => h('th', { scope: 'col' }, head)))), h('tbody', {}, all.networks.map(row)))), TOLD),
        h('ul', { class: 'line-key plain' }, LAYERS.map(([name, colour]) => h('li', {}, h('i', { class: 'swatch', '--colour': colour }), name)),
            h('li', {}, h('i', { class: 'swatch untold' }), 'not distinguishable from 0, or not known')))
}

function stream(model: Model, { network, reached_bps: reached, possible_bps: possible, is_stream_disturbed: isDisturbed }: AssessedNetwork): Child {
    if (reached === null) return none('no TCP stream was measured here')
    const part = possible === null ? null : reached / possible
    return h('div', { class: 'reached-of' },
        h('span', {}, h('span', { class: 'figure-value' }, rate(reached, 3)), uncertain(isDisturbed), h('small', {}, possible === null ? ' no rate of its own' : ` of ${rate(possible, 3)}`)),
        part === null ? null : h('span', { class: `part ${part < NEAR ? 'short' : ''}` }, share(part)),
        part === null ? null : h('span', { class: 'bar', 'aria-hidden': 'true' }, h('i', { 'width-share': `${Math.min(100, part * 100)}%`, '--colour': model.colour(network) })))
}

function files({ files: services }: AssessedNetwork): Child {
    if (!services.length) return none('no files of a server were measured here')
    return services.map((one) => h('div', {}, h('span', { class: 'figure-value' }, rate(one.reached_bps, 3)), uncertain(one.is_disturbed), h('small', {}, ` ${one.operation} by ${one.name}`)))
}

const uncertain = (isDisturbed: boolean): Child => (isDisturbed ? h('span', { class: 'uncertain', tabindex: 0, 'data-tip': UNCERTAIN }, ' ~') : null)

function oneWay(one: OneWay | null): Child {
    if (one === null) return none('not measured here')
    const values: [number | null, boolean][] = [[one.wire_ns, false], [one.hosts_ns, one.is_hosts_unsure], [one.library_ns, one.is_library_unsure]]
    const pieces = values.map(([value, isUnsure], at) => ({ name: LAYERS[at]?.[0] ?? '', colour: LAYERS[at]?.[1], value: Math.max(0, value ?? 0), isUnsure }))
    const told = pieces.filter(({ value, isUnsure }) => value > 0 && !isUnsure)
    const rest = one.whole_ns - told.reduce((sum, piece) => sum + piece.value, 0)
    const words = pieces.map(({ name, value, isUnsure }, at) => `${name} ${isUnsure ? 'not distinguishable from 0' : values[at]?.[0] === null ? 'not known' : time(value)}`).join(', ')
    return h('div', { class: 'one-way' },
        h('span', { class: 'figure-value' }, time(one.whole_ns), uncertain(one.is_disturbed)),
        h('span', { class: 'track', role: 'img', tabindex: 0, 'aria-label': words, 'data-tip': words },
            told.map(({ colour, value }) => h('i', { class: 'segment', 'width-share': `${Math.min(100, (100 * value) / Math.max(1, one.whole_ns))}%`, '--colour': colour })),
            rest > 0.01 * one.whole_ns ? h('i', { class: 'segment untold', 'width-share': `${(100 * rest) / one.whole_ns}%` }) : null))
}

function losses(context: Context, all: Loss[]): HTMLElement {
    const entry = (loss: Loss): HTMLElement => {
        const [name, view] = LOSSES[loss.at]
        const state: [string, string][] = loss.networks.length === 1 ? [['net', loss.networks[0] ?? '']] : []
        return h('li', {},
            h('div', { class: 'loss-head' }, h('b', {}, name), h('span', { class: 'bar', 'aria-hidden': 'true' }, h('i', { 'width-share': `${Math.min(100, 100 * loss.share)}%` })), h('span', { class: 'part' }, `${share(loss.share)} lost`)),
            h('p', {}, prose(loss.sentence)),
            h('p', { class: 'loss-links' }, h('a', { href: context.link(view, state) }, 'Figures'), h('a', { href: link('findings', [['rule', loss.rules.join('.')]]) }, 'Findings')))
    }
    const [first, rest] = [all.slice(0, SHOWN), all.slice(SHOWN)]
    return h('div', { class: 'card' }, h('h3', {}, 'Lost, largest first'),
        all.length ? h('ol', { class: 'losses' }, first.map(entry)) : h('p', { class: 'nothing' }, 'No measurement shows a noticeable loss.'),
        rest.length ? h('details', {}, h('summary', {}, `${rest.length} more`), h('ol', { class: 'losses' }, rest.map(entry))) : null)
}

function next(all: Assessment): HTMLElement {
    return h('div', { class: 'card' }, h('h3', {}, 'Do next'),
        all.next.length
            ? h('ul', { class: 'next' }, all.next.map(({ what, command }) => h('li', {}, h('p', {}, prose(what)), command === null ? null : h('div', { class: 'command-line' }, h('code', {}, command), copyButton('Copy', () => command)))))
            : h('p', { class: 'nothing' }, 'Nothing.'),
        h('p', { class: 'axis-note' }, h('a', { href: '#findings' }, `All ${significant(all.findings, 6)} findings`), ' · ', h('a', { href: '#rows' }, 'all rows')))
}

/** The findings of a run without a screen that ask for something; null where none does. */
function toActOn(context: Context): HTMLElement | null {
    const groups = groupsByRule(context.model.view.findings.filter((finding) => finding.severity !== 'note'))
    if (!groups.length) return null
    return h('div', { class: 'card' }, h('h3', {}, 'To act on'),
        h('ul', { class: 'next' }, groups.slice(0, SHOWN).map(([first, ...rest]) => h('li', {}, h('p', {}, prose(first.sentence)),
            h('p', { class: 'loss-links' }, h('a', { href: context.link(viewOfRule(first.rule)) }, 'Figures'), h('a', { href: link('findings', [['rule', first.rule]]) }, rest.length ? `${rest.length + 1} findings` : 'Finding'))))))
}
