// The kernels at a glance: what the findings say of them, each beside each by place, and where their time goes.
//
// Model:   a line of the table is a kernel under a load on a network; what ran idle on one host stands in the lines of every network. A
//          cell is the time over the reference's, or the time; below it what a load makes of it, and what a paper prints, over
//          its own reference. The least of the places with several hosts is bold, and marked where its interval is below all others';
//          where both routes of PVM ran, the last column is what the default one takes over the direct one. Bars are as long as the mean time of a
//          rank, cut into computing and communicating; those of a kernel share a scale from zero.
// Checked: `the kernels are told at a glance`.
import { colourKey } from '../bars'
import { h, none, table, type Child } from '../dom'
import { by, byPlace, groups, kernelName, loadName, placeOf } from '../kernelplace'
import { distinct } from '../model'
import { share, time, times } from '../units'
import type { KernelRow, View } from '../view'

const ANSWERS: Record<string, string> = {
    'kernel-route': 'Which route', 'kernel-load': 'What a load does', 'kernel-route-load': 'Routes under load', 'kernel-placement': 'Hosts or one host',
    'kernel-reference': 'Beside shared memory', 'kernel-one-host': 'Load on one host', 'kernel-messages': 'Messages',
}
/** The one that is expected to be slower first. */
const ROUTES = ['pvm:default', 'pvm:direct']
type Standing = 'least' | 'unsure' | 'other'
const COMPUTING = 'var(--step-connect)'
const COMMUNICATING = 'var(--step-first)'
/** Sentences of one answer that stand open. */
const SHOWN = 2
/** Phases that a bar names. */
const NAMED = 3

/** What the findings say of kernels; null where they say nothing. */
export function answers(view: View): HTMLElement | null {
    const said = view.findings.filter((finding) => finding.rule in ANSWERS)
    if (!said.length) return null
    const cards = distinct(said.map((finding) => finding.rule)).map((rule) => {
        const sentences = said.filter((finding) => finding.rule === rule).map((finding) => h('p', { 'data-tip': finding.arithmetic }, finding.sentence))
        const more = sentences.splice(SHOWN)
        return h('div', { class: 'card', 'data-rule': rule }, h('dt', {}, ANSWERS[rule] ?? ''),
            h('dd', {}, sentences, more.length ? h('details', {}, h('summary', {}, `${more.length} more`), more) : null))
    })
    return h('dl', { class: 'answers' }, cards)
}

/** Lines of the table: kernel, network and load. A network of single hosts alone has none where others have several. */
function lines(all: KernelRow[]): KernelRow[] {
    const networks = distinct(all.filter((row) => row.hosts > 1).map((row) => row.network))
    const own = all.filter((row) => !networks.length || networks.includes(row.network))
    const order = groups(all)
    const rank = (row: KernelRow): number => order.findIndex((rows) => rows.includes(row))
    const seen = new Set<string>()
    return [...own].sort((a, b) => rank(a) - rank(b) || networks.indexOf(a.network) - networks.indexOf(b.network) || a.level - b.level)
        .filter((row) => {
            const name = JSON.stringify([row.kernel, row.class, row.network, row.load])
            return !seen.has(name) && seen.add(name)
        })
}

/** The table of all places; null where there is one alone. */
export function placesTable(all: KernelRow[]): HTMLElement | null {
    const places = distinct(byPlace(all).map((row) => placeOf(row, all, false)))
    if (places.length < 2) return null
    const over = all.every((row) => row.of_reference !== null)
    const several = (of: (row: KernelRow) => unknown): boolean => distinct(all.map(of)).length > 1
    const [classes, loads, networks] = [several((row) => row.class), several((row) => row.load), distinct(lines(all).map((row) => row.network)).length > 1]
    const routes = ROUTES.every((path) => all.some((row) => row.hosts > 1 && row.path === path))
    const rows = lines(all).map((line): Child[] => {
        const here = all.filter((row) => row.kernel === line.kernel && row.class === line.class)
        const found = places.map((place) => {
            const at = here.filter((row) => placeOf(row, all, false) === place && row.load === line.load)
            return at.find((row) => row.network === line.network) ?? at.find((row) => row.hosts === 1 && row.load === null)
        })
        const apart = found.flatMap((row) => (row && row.hosts > 1 ? [row] : []))
        const least = apart.length > 1 ? Math.min(...apart.map((row) => row.time_ns)) : null
        const standing = (row: KernelRow): Standing => (row.hosts === 1 || row.time_ns !== least ? 'other' : apart.every((other) => other === row || isBelow(row, other)) ? 'least' : 'unsure')
        return [
            h('span', { class: 'strong' }, line.kernel.toUpperCase()), ...(classes ? [line.class] : []), ...(networks ? [line.network] : []), ...(loads ? [line.load ?? 'idle'] : []),
            ...found.map((row) => (row ? cell(row, here, over, standing(row)) : none('not measured'))),
            ...(routes ? [route(apart)] : []),
        ]
    })
    const heads = ['Kernel', ...(classes ? ['Class'] : []), ...(networks ? ['Network'] : []), ...(loads ? ['Load'] : []), ...places.map((place) => `#${place}`), ...(routes ? ['#default over direct'] : [])]
    return h('div', { class: 'card flush places' },
        h('h3', {}, over ? 'Time over the reference, by place' : 'Time, by place'), table('The kernels by place', heads, rows))
}

/** Whether one took less than the other, intervals apart. */
const isBelow = (one: KernelRow, other: KernelRow): boolean => one.ci95_high_ns !== null && other.ci95_low_ns !== null && one.ci95_high_ns < other.ci95_low_ns

/** The default route over the direct one, of as many ranks on as many hosts. */
function route(rows: KernelRow[]): Child {
    const [slow, fast] = ROUTES.map((path) => rows.find((row) => row.path === path))
    if (!slow || !fast || slow.hosts !== fast.hosts || slow.ranks !== fast.ranks) return none('not measured by both')
    const sure = isBelow(fast, slow) || isBelow(slow, fast)
    return [
        h('span', { class: sure ? 'strong' : null, tabindex: 0, 'data-tip': sure ? 'significant: the intervals do not overlap' : 'not significant: the intervals overlap, or there are none (six repetitions give one)' }, times(slow.time_ns / fast.time_ns)),
        slow.printed && fast.printed ? h('small', { class: 'print' }, `printed ${times(slow.printed.seconds / fast.printed.seconds)}`) : null,
    ]
}

function cell(row: KernelRow, here: KernelRow[], over: boolean, standing: Standing): Child {
    const idle = row.load === null ? undefined : here.find((one) => one.load === null && one.network === row.network && one.hosts === row.hosts && one.ranks === row.ranks && one.wait === row.wait && by(one) === by(row))
    const value = over && row.of_reference ? times(row.of_reference.value) : time(row.time_ns)
    const said = { least: ', the least of several hosts, significantly', unsure: ', the least of several hosts, which is not sure', other: '' }[standing]
    return [
        h('span', { class: { least: 'strong least', unsure: 'strong', other: null }[standing], tabindex: 0, 'data-tip': `${time(row.time_ns, 4)}${said}` }, value),
        idle ? h('small', {}, `${times(row.time_ns / idle.time_ns)} idle`) : null,
        over && row.printed?.of_reference != null ? h('small', { class: 'print', 'data-tip': [row.printed.what, row.printed.cite, row.printed.note].filter(Boolean).join('. ') }, `printed ${times(row.printed.of_reference)}`) : null,
    ]
}

/** Where the time goes: a panel a kernel, a bar a place and load; null where it was not told apart. */
export function split(view: View, all: KernelRow[]): HTMLElement | null {
    const told = all.filter((row) => row.communicating_share !== null)
    if (!told.length) return null
    const key = colourKey([['computing', COMPUTING], ['communicating: in calls of the library, waiting included; its part is printed', COMMUNICATING]])
    const panels = groups(told).map((rows) => {
        const most = Math.max(...rows.map((row) => row.time_ns))
        const places = distinct(byPlace(rows).map((row) => placeOf(row, all)))
        const ordered = [...rows].sort((a, b) => places.indexOf(placeOf(a, all)) - places.indexOf(placeOf(b, all)) || a.level - b.level)
        return h('div', { class: 'card panel' }, h('h3', {}, rows[0] ? kernelName(rows[0]) : ''), h('div', { class: 'bars times' }, ordered.map((row) => bar(view, row, all, most))))
    })
    return h('div', { id: 'kernels-split' }, h('div', { class: 'sub' }, h('h3', {}, 'Where the time goes')), key, h('div', { class: 'grid wide' }, panels))
}

function bar(view: View, row: KernelRow, all: KernelRow[], most: number): Node[] {
    const part = row.communicating_share ?? 0
    const loaded = all.some((one) => one.load !== null)
    const label = `${placeOf(row, all)}${loaded ? `, ${loadName(row.load)}` : ''}`
    const phases = view.kernels_phases.filter((phase) => phase.cell === row.cell)
    const pieces = ([['computing', 1 - part, COMPUTING, 'computing_ns'], ['communicating', part, COMMUNICATING, 'communicating_ns']] as const).filter(([, value]) => value > 0)
    const tip = (name: string, value: number, of: 'computing_ns' | 'communicating_ns'): string => {
        const longest = [...phases].sort((a, b) => b[of] - a[of]).slice(0, NAMED).filter((phase) => phase[of] > 0)
        return `${name}: ${share(value)} of ${time(row.time_ns)}${longest.length > 0 && phases.length > 1 ? `; most in ${longest.map((phase) => `${phase.name} ${time(phase[of])}`).join(', ')}` : ''}`
    }
    return [
        h('span', { class: 'bars-name' }, label),
        h('div', { class: 'track', role: 'img', 'aria-label': `${label}: ${pieces.map(([name, value]) => `${name} ${share(value)}`).join(', ')} of ${time(row.time_ns)}` },
            pieces.map(([name, value, colour, of]) => h('i', { class: 'segment', 'width-share': `${(100 * value * row.time_ns) / most}%`, '--colour': colour, 'data-tip': tip(name, value, of) }))),
        h('span', { class: 'bars-value' }, h('span', { class: 'strong' }, time(row.time_ns)), ` ${share(part)}`),
    ]
}
