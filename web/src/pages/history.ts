// What the same configurations gave in one run after another: a figure each, with its levels, where they changed, and what changed with them.
//
// Model:   runs are equally far apart, the oldest at the left. The axis of a figure holds at least a fifth of its values' middle, so that noise
//          looks small, as it does on the terminal. Configurations that changed come first.
// Checked: `a history shows levels and changes`.
import * as Plot from '@observablehq/plot'
import { h, none, section, type Child } from '../dom'
import type { Drawing, Point } from '../figure'
import { count, moment, quantityName, share, value } from '../units'
import type { Condition, Configuration, HistoryOfRuns, LevelChange, PastRun } from '../view'
import { change, ticksBetween } from './change'
import { Drawn, frame } from './frame'
import { historyLink, runName, served } from './served'

/** So many that did not change are drawn until all are asked for. */
const SHOWN = 12
/** Of the middle of its values an axis holds at least this share. */
const SPAN = 0.2
const DAY_NS = 86_400e9

export function history(page: HTMLElement, { name, history: data }: HistoryOfRuns): void {
    const drawn = new Drawn()
    const { runs, configurations } = data
    const changed = configurations.filter((one) => one.changes.length)
    const same = configurations.filter((one) => !one.changes.length)
    const [first, last] = [runs[0], runs.at(-1)]
    const end = (run: PastRun): Child => [runName(run.run), h('small', { class: 'began' }, moment(run.began_unix_ns))]
    frame(page, drawn, {
        title: `history${name === null ? '' : ` of ${name}`}`, eyebrow: name === null ? 'History' : `History of ${name}`, here: name === null ? historyLink(null) : null,
        sentence: data.sentence,
        facts: [['Runs', count(runs.length)], ['Configurations', count(configurations.length)], ['Changed', count(changed.length)], ...(first && last ? [['From', end(first)], ['To', end(last)]] as [string, Child][] : []),
            ...(name !== null && served() ? [['Others', h('a', { href: historyLink(null) }, 'All runs, of any name')] as [string, Child]] : [])],
        body: [
            changed.length ? section('changed', 'What changed', 'A level is a line, a change of it a rule. What changed with it is no proof of a cause.', h('div', { class: 'grid wide' }, changed.map((one) => panel(drawn, runs, one)))) : null,
            unchanged(drawn, runs, same),
        ],
        foot: `${count(runs.length)} runs that have ended.`,
    })
}

function unchanged(drawn: Drawn, runs: PastRun[], same: Configuration[]): HTMLElement | null {
    if (!same.length) return null
    const grid = h('div', { class: 'grid wide' }, same.slice(0, SHOWN).map((one) => panel(drawn, runs, one)))
    const more = same.length > SHOWN ? h('button', { type: 'button', class: 'button more no-print', onclick: () => {
        grid.append(...same.slice(SHOWN).map((one) => panel(drawn, runs, one)))
        more?.remove()
    } }, `Show all ${count(same.length)}`) : null
    return section('unchanged', 'What did not change', 'Of each the least change that two more runs would show.', grid, more)
}

function panel(drawn: Drawn, runs: PastRun[], one: Configuration): HTMLElement {
    const figure = drawn.figure({ label: `${one.name}: ${quantityName(one.quantity)} over the runs.`, draw: (width) => draw(runs, one, width) })
    const latest = one.past.at(-1)
    return h('div', { class: 'card history' }, h('h3', {}, one.name),
        h('p', { class: 'axis-note' }, `${quantityName(one.quantity)}, latest ${latest ? value(one.quantity, latest.p50) : 'unknown'}; ${one.detectable === null ? 'too few runs of this level to say what would be found' : `a change of ${share(one.detectable)} would be found two runs after it`}${one.trend === null ? '' : `; its newest level moved by ${change(1 + one.trend)} from its first run to its last`}.`),
        figure.element,
        one.changes.length ? h('ul', { class: 'level-changes' }, [...one.changes].reverse().map((at) => h('li', { class: at.change },
            h('b', {}, `${at.change === 'better' ? 'Better' : 'Worse'} since `), runs[at.run] ? runName(runs[at.run]!.run) : none('a run that is not listed'), `: ${value(one.quantity, at.before)} to ${value(one.quantity, at.after)}, ${change(at.ratio)}`,
            at.conditions.length ? h('ul', {}, at.conditions.map((condition) => h('li', {}, said(condition)))) : h('p', {}, 'Nothing else that was recorded changed with it.')))) : null)
}

const said = ({ what, hosts, before, after }: Condition): string => `${what}${hosts.length ? ` of ${hosts.join(' ')}` : ''}: ${before ?? 'not there'} before, ${after ?? 'not there'} now`

/** Where levels begin and end, and how high they are. */
function levels({ past, changes }: Configuration): { from: number; to: number; height: number }[] {
    const begins = [0, ...changes.map((at) => at.run)]
    const middle = [...past].map((at) => at.p50).sort((a, b) => a - b)
    return begins.flatMap((begin, nth) => {
        const own = past.filter((at) => at.run >= begin && at.run < (begins[nth + 1] ?? Infinity))
        const height = changes.length === 0 ? middle[Math.floor(middle.length / 2)] : nth === 0 ? changes[0]?.before : changes[nth - 1]?.after
        const [first, last] = [own[0], own.at(-1)]
        return first && last && height !== undefined ? [{ from: first.run - 0.4, to: last.run + 0.4, height }] : []
    })
}

function draw(runs: PastRun[], one: Configuration, width: number): Drawing | null {
    if (!one.past.length) return null
    const values = one.past.map((at) => at.p50)
    const [least, most] = [Math.min(...values), Math.max(...values)]
    const middle = (least + most) / 2
    const span = Math.max(most - least, SPAN * Math.abs(middle), Number.MIN_VALUE) * 0.6
    const ys: [number, number] = [middle - span, middle + span]
    const xs: [number, number] = [-0.6, runs.length - 0.4]
    const isOneDay = (runs.at(-1)?.began_unix_ns ?? 0) - (runs[0]?.began_unix_ns ?? 0) < DAY_NS
    const days = (run: PastRun | undefined): string => (run ? (isOneDay ? moment(run.began_unix_ns).slice(11, 16) : moment(run.began_unix_ns).slice(5, 10)) : '')
    const step = Math.max(1, Math.ceil(runs.length / Math.max(2, Math.floor(width / 90))))
    const plot = Plot.plot({
        width, height: 190, className: 'chart', marginLeft: 66, marginRight: 12, marginTop: 22, marginBottom: 26,
        x: { domain: xs, axis: null }, y: { domain: ys, axis: null },
        marks: [
            Plot.gridY(ticksBetween(ys[0], ys[1], 4), { stroke: 'var(--line)', strokeOpacity: 1 }),
            Plot.axisY(ticksBetween(ys[0], ys[1], 4), { text: (tick: number) => value(one.quantity, tick), tickSize: 0, fill: 'currentColor', label: null }),
            Plot.axisX(runs.map((_, at) => at).filter((at) => at % step === 0), { text: (at: number) => days(runs[at]), tickSize: 4, stroke: 'var(--faint)', fill: 'currentColor', label: null }),
            Plot.ruleX(one.changes, { x: (at: LevelChange) => at.run - 0.5, stroke: (at: LevelChange) => (at.change === 'better' ? 'var(--good)' : 'var(--warning)'), strokeDasharray: '4 3', strokeWidth: 1.5, className: 'level-change' }),
            Plot.text(one.changes, { x: (at: LevelChange) => at.run - 0.5, frameAnchor: 'top', dy: -14, text: (at: LevelChange) => change(at.ratio), fill: (at: LevelChange) => (at.change === 'better' ? 'var(--good)' : 'var(--warning)') }),
            Plot.line(one.past, { x: 'run', y: 'p50', stroke: 'var(--network-0)', strokeOpacity: 0.45 }),
            Plot.ruleY(levels(one), { y: 'height', x1: 'from', x2: 'to', stroke: 'var(--ink)', strokeWidth: 1.4, className: 'level' }),
            Plot.dot(one.past, { x: 'run', y: 'p50', r: 3, fill: 'var(--network-0)', className: 'past' }),
        ],
    }) as SVGSVGElement & Plot.Plot
    const [x, y] = [plot.scale('x')?.apply ?? Number, plot.scale('y')?.apply ?? Number]
    const points = one.past.map((at): Point => {
        const run = runs[at.run]
        return {
            x: x(at.run), y: y(at.p50), line: 'past', colour: 'var(--network-0)', data: { configuration: one.name, quantity: one.quantity, run_id: run?.run ?? '', began_unix_ns: run?.began_unix_ns ?? null, p50: at.p50, launches: at.launches },
            tell: () => ({ title: run?.run ?? '', rows: [['began', run ? moment(run.began_unix_ns) : none('not known')], [`median ${quantityName(one.quantity)}`, value(one.quantity, at.p50)], ['repetitions', count(at.launches)]] }),
        }
    })
    return { node: plot, points }
}
