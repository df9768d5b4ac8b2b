// Cold start: what the first message pays for, step by step, beside messages that pay less.
//
// Model:   neighbour, vc, connect and first follow each other and are stacked; second, first after idle and a warm round
//          trip are beside them on the same linear scale. The tick is the whole, measured undivided in launches of its own.
import type { Context } from '../context'
import { h, none, section, type Child } from '../dom'
import type { Model, Series } from '../model'
import { interval } from '../rowtip'
import { share, time, value } from '../units'
import type { ResultRow, Step } from '../view'

const STACKED: Step[] = ['spawn', 'init', 'neighbour', 'vc', 'connect', 'first']
const BESIDE: Step[] = ['second', 'idle']
const WORDS: Record<Step, string> = {
    spawn: 'starting ranks', init: 'joining', neighbour: 'ARP', vc: 'circuit', connect: 'connect', first: 'first message', second: 'second message', idle: 'after a pause',
}

/** The section; null when no start-up was measured. */
export function coldstart(context: Context): HTMLElement | null {
    const { model, selection } = context
    if (!model.rows({ quantity: 'startup_ns' }).length) return null
    const place = h('div', { class: 'grid wide' })
    const draw = (): void => {
        const panels = model.networks.map((network) => panel(model, network, selection.visible))
        place.replaceChildren(...panels.filter((one) => one !== null))
        if (!place.childElementCount) place.append(h('p', { class: 'nothing' }, 'Nothing is selected.'))
    }
    selection.onChange(draw)
    draw()
    const present = STACKED.filter((step) => model.rows({ quantity: 'startup_ns', step }).some((row) => row.p50 !== null))
    const key = h('ul', { class: 'line-key plain' },
        present.map((step) => h('li', {}, h('i', { class: 'swatch', '--colour': `var(--step-${step})` }), WORDS[step])),
        h('li', {}, h('i', { class: 'swatch untold' }), 'explained by no step'),
        h('li', {}, h('i', { class: 'whole-sample' }), 'the whole, measured undivided'))
    return section('coldstart', 'Cold start', 'What the first message pays for, and what the next ones no longer pay. Each panel has its own scale, from zero.', key, place)
}

function panel(model: Model, network: string, visible: Series[]): HTMLElement | null {
    const own = visible.filter((series) => series.network === network && model.rows({ series, quantity: 'startup_ns' }).length)
    if (!own.length) return null
    const starts = own.map((series) => start(model, series))
    const most = Math.max(1, ...starts.map((one) => one.most))
    return h('div', { class: 'card panel' },
        h('h3', {}, h('i', { class: 'swatch', '--colour': model.colour(network) }), network),
        own.map((series, at) => drawStart(series, starts[at], most)))
}

interface Start {
    stacked: ResultRow[]
    beside: [string, string, ResultRow | null, number | null][]
    whole: ResultRow | undefined
    most: number
}

function start(model: Model, series: Series): Start {
    const of = (step: Step): ResultRow | undefined => model.rows({ series, quantity: 'startup_ns', step })[0]
    const stacked = STACKED.map(of).filter((row) => row !== undefined)
    const warmTrip = model.rows({ series, quantity: 'rtt_ns', phase: 'warm' })[0]
    const sizes = new Set(stacked.map((row) => row.size_bytes))
    const warm = warmTrip ?? model.rows({ series, quantity: 'latency_ns', phase: 'warm' }).find((row) => sizes.has(row.size_bytes)) ?? model.latency(series)
    const trip = warm?.p50 ? warm.p50 * (warm.quantity === 'rtt_ns' ? 1 : 2) : null
    const beside = BESIDE.map((step): [string, string, ResultRow | null, number | null] => {
        const row = of(step) ?? null
        return [WORDS[step], step, row, row?.p50 ?? null]
    })
    beside.push(['warm round trip', 'warm', warm ?? null, trip])
    const whole = model.coldStart(series)
    const sum = stacked.reduce((total, row) => total + (row.p50 ?? 0), 0)
    return { stacked, beside, whole, most: Math.max(sum, whole?.p50 ?? 0, ...beside.map(([, , , ns]) => ns ?? 0)) }
}

function drawStart(series: Series, one: Start | undefined, most: number): HTMLElement | null {
    if (!one) return null
    const sum = one.stacked.reduce((total, row) => total + (row.p50 ?? 0), 0)
    const spoken = one.stacked.filter((row) => row.p50 !== null).map((row) => `${WORDS[row.step ?? 'first']} ${time(row.p50 ?? 0)}`).join(', ')
    // What the parts leave of the whole is told by no step.
    const untold = (one.whole?.p50 ?? 0) - sum
    const bar = h('div', { class: 'track', role: 'img', 'aria-label': `${series.label}: ${spoken}${untold > 0 ? `, by no step ${time(untold)}` : ''}` },
        one.stacked.map((row) => segment(row.p50, most, `var(--step-${row.step})`, tip(WORDS[row.step ?? 'first'], row), row)),
        untold > 0 && sum > 0 ? h('i', { class: 'segment untold', 'width-share': `${(100 * untold) / most}%`, 'data-tip': `explained by no step: ${time(untold)}, ${share(untold / (one.whole?.p50 ?? 1))} of the whole` }) : null,
        one.whole?.p50 ? h('i', { class: 'whole', '--at': `${(100 * one.whole.p50) / most}%`, 'data-tip': tip('the whole, undivided', one.whole) }) : null)
    return h('div', { class: 'bars' },
        h('span', { class: 'bars-name' }, series.short), bar, h('span', { class: 'bars-value strong' }, value1(one.whole?.p50 ?? (sum || null), one.whole)),
        one.beside.filter(([, , row]) => row !== null).map(([name, step, row, ns]) => [
            h('span', { class: 'bars-name quiet' }, name),
            h('div', { class: 'track thin' }, segment(ns, most, 'var(--beside)', step === 'warm' ? `warm round trip: ${ns ? time(ns) : ''}` : tip(name, row))),
            h('span', { class: 'bars-value' }, value1(ns, row)),
        ]))
}

const value1 = (ns: number | null, row: ResultRow | null | undefined): Child => (ns === null ? none(row?.reason ?? 'not measured') : time(ns))

function segment(ns: number | null, most: number, colour: string, text: string, named?: ResultRow): HTMLElement | null {
    if (ns === null) return null
    // A name where there is room for it; the figure wraps out of sight where there is none.
    const label = named?.step && ns / most > 0.12 ? h('b', { '--on': `var(--on-${named.step})` }, `${WORDS[named.step].split(' ')[0]} ${time(ns)}`) : null
    return h('i', { class: 'segment', 'width-share': `${(100 * ns) / most}%`, '--colour': colour, 'data-tip': text }, label)
}

function tip(name: string, row: ResultRow | null): string {
    if (!row || row.p50 === null) return name
    const range = row.ci95_low === null ? `${row.launches} ${row.launches === 1 ? 'repetition' : 'repetitions'}` : `95 % interval ${h('i', {}, interval(row)).textContent}`
    return `${name}: ${value(row.quantity, row.p50)}, ${range}`
}
