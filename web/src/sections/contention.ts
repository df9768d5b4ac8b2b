// Several workloads at once: who slows whom, a matrix for each network, and each slow-down with what it was worked out of.
//
// Model:   rows are measured, columns run beside them; a cell is how many times as long the same takes as alone, with its interval, in the
//          colour of its state, which it says in words too. Beneath stands what the hosts' CPUs alone do. Where columns have no room each
//          pair is a line.
// Checked: `workloads at once are a matrix for each network`, `a matrix of workloads is read on a narrow window`.
import { colourKey } from '../bars'
import type { Context } from '../context'
import { h, node, none, section, shown, table, type Child } from '../dom'
import type { Drawing, Point } from '../figure'
import { count, quantityName, value } from '../units'
import type { Slowdown, SlowdownMatrix, SlowdownState } from '../view'

/** Each state: its words, its ground, its letters. */
const STATES: Record<SlowdownState, [string, string, string]> = {
    slowed: ['slowed', 'var(--warning-soft)', 'var(--warning)'],
    not_slowed: ['not slowed', 'var(--good-soft)', 'var(--good)'],
    inconclusive: ['inconclusive', 'var(--note-soft)', 'var(--note)'],
    not_measured: ['not measured', 'none', 'var(--quiet)'],
}
const CELL_PX_MIN = 78
const CELL_PX_MAX = 150
const CELL_HEIGHT = 66
const LINE_HEIGHT = 36
const LETTER_PX = 6.6

const figure = (ratio: number): string => ratio.toFixed(2)
const interval = (one: Slowdown): string | null => (one.low === null || one.high === null ? null : `${figure(one.low)} … ${figure(one.high)}`)
const beside = (one: Slowdown): string => one.beside.join(' + ')

/** The section; null where nothing was measured at once. */
export function contention(context: Context): HTMLElement | null {
    const found = context.model.view.contention
    if (!found?.matrices.length) return null
    const present = (Object.keys(STATES) as SlowdownState[]).filter((state) => found.matrices.some((matrix) => all(matrix).some((one) => one.state === state)))
    const during = found.during === null ? '' : `, ${found.during} at once`
    return section('contention', 'Who slows whom', `How many times as long each takes beside others as alone${during}. Rows are what is measured, columns what runs beside it. It is slowed where the interval is above 1.1.`,
        h('div', { class: 'card contention-answer' }, found.sentences.map((sentence) => h('p', {}, sentence)), found.reasons.map((why) => h('p', { class: 'axis-note' }, why))),
        colourKey(present.map((state) => [STATES[state][0], STATES[state][2]])),
        h('div', { class: 'grid wide' }, found.matrices.map((matrix) => card(context, matrix))))
}

const all = (matrix: SlowdownMatrix): Slowdown[] => matrix.rows.flatMap(({ cells }) => cells.filter((one) => one !== null))

function card(context: Context, matrix: SlowdownMatrix): HTMLElement {
    const { network } = matrix
    const drawn = context.figure({ label: `Who slows whom on ${network}: rows are measured, columns run beside them.`, draw: (width) => draw(matrix, width) })
    const note = matrix.is_cpu ? 'This network takes no time: these slow-downs are those of the hosts’ CPUs.'
        : all(matrix).some((one) => one.cpu_slowdown !== null) ? 'CPUs: the same over a network that takes no time. Where it is as large, the network’s own figure tells nothing of the network.' : null
    return h('div', { class: 'card contention-card' },
        h('h3', {}, h('i', { class: 'swatch', '--colour': context.model.colour(network) }), network), note ? h('p', { class: 'axis-note' }, note) : null, drawn.element,
        table(`Slow-downs on ${network}`, ['measured', 'beside', '#slow-down', '#95 % interval', 'state', '#by the CPUs', '#alone', '#together', '#repetitions'], all(matrix).map(cells)))
}

function cells(one: Slowdown): Child[] {
    const why = one.why ?? 'it was not measured'
    const [words] = STATES[one.state]
    const format = (of: number): string => value(one.quantity, of)
    return [
        one.workload, beside(one), shown(one.slowdown, figure, why), interval(one) ?? none('an interval needs six repetitions'),
        one.why === null ? words : h('span', { tabindex: 0, 'data-tip': one.why }, words), shown(one.cpu_slowdown, figure, 'it was not measured over a network that takes no time'),
        shown(one.alone, format, why), shown(one.together, format, why), count(one.launches),
    ]
}

function tell(one: Slowdown): ReturnType<Point['tell']> {
    const why = one.why ?? 'it was not measured'
    const format = (of: number): string => value(one.quantity, of)
    return {
        title: `${one.workload} beside ${beside(one)}`,
        rows: [
            ['takes', shown(one.slowdown, (ratio) => `${figure(ratio)} times as long`, why)], ['95 % interval', interval(one) ?? none('an interval needs six repetitions')], ['it is', STATES[one.state][0]],
            ['by the CPUs alone', shown(one.cpu_slowdown, figure, 'it was not measured over a network that takes no time')],
            [`${quantityName(one.quantity)} alone`, shown(one.alone, format, why)], ['beside the others', shown(one.together, format, why)], ['repetitions', count(one.launches)],
        ],
        note: one.why,
    }
}

/** A line of the figure's CSV. */
const record = (one: Slowdown): object => ({
    network: one.network, workload: one.workload, beside: beside(one), slowdown: one.slowdown, ci95_low: one.low, ci95_high: one.high, state: one.state, cpu_slowdown: one.cpu_slowdown,
    quantity: one.quantity, alone: one.alone, together: one.together, repetitions: one.launches, cell_alone: one.cell_alone, cell: one.cell, why: one.why,
})

const text = (x: number, y: number, words: string, looks: Record<string, string>): SVGElement => node('text', { x, y, ...looks }, words)
const short = (words: string, width: number): string => (words.length * LETTER_PX <= width ? words : `${words.slice(0, Math.max(3, Math.floor(width / LETTER_PX) - 1))}…`)
const point = (one: Slowdown, x: number, y: number): Point => ({ x, y, line: one.workload, colour: STATES[one.state][2], tell: () => tell(one), data: record(one) })

function canvas(width: number, height: number): SVGSVGElement {
    return node('svg', { width, height, viewBox: `0 0 ${width} ${height}`, class: 'contention' })
}

function draw(matrix: SlowdownMatrix, width: number): Drawing {
    const longest = Math.max(...matrix.rows.map(({ workload }) => workload.length))
    const left = Math.min(width * 0.34, longest * LETTER_PX + 12)
    const room = (width - left - 2) / matrix.columns.length
    return room < CELL_PX_MIN ? lines(matrix, width) : square(matrix, left, Math.min(CELL_PX_MAX, room))
}

/** Rows and columns. */
function square(matrix: SlowdownMatrix, left: number, cell: number): Drawing {
    const top = 24
    const svg = canvas(left + cell * matrix.columns.length + 2, top + CELL_HEIGHT * matrix.rows.length + 2)
    matrix.columns.forEach((column, at) => svg.append(text(left + (at + 0.5) * cell, 15, short(column, cell - 6), { class: 'contention-name', 'text-anchor': 'middle' })))
    const points = matrix.rows.flatMap((row, nth) => {
        const y = top + nth * CELL_HEIGHT
        svg.append(text(0, y + CELL_HEIGHT / 2, short(row.workload, left - 6), { class: 'contention-name', 'dominant-baseline': 'central' }))
        return row.cells.flatMap((one, at) => {
            const [x, middle] = [left + at * cell, left + (at + 0.5) * cell]
            if (one === null) {
                svg.append(text(middle, y + CELL_HEIGHT / 2, '–', { class: 'contention-small', 'text-anchor': 'middle', 'dominant-baseline': 'central' }))
                return []
            }
            const [words, ground, ink] = STATES[one.state]
            const within = [one.slowdown === null ? null : `${figure(one.slowdown)} ×`, interval(one), words, one.cpu_slowdown === null ? null : `CPUs ${figure(one.cpu_slowdown)}`].filter((line) => line !== null)
            svg.append(node('rect', { x: x + 1, y: y + 1, width: cell - 2, height: CELL_HEIGHT - 2, rx: 5, fill: ground, stroke: one.state === 'not_measured' ? 'var(--faint)' : 'none', 'data-state': one.state }))
            const first = y + CELL_HEIGHT / 2 - (within.length - 1) * 7.25
            within.forEach((line, place) => svg.append(text(middle, first + place * 14.5, line, { class: place === 0 ? 'contention-figure' : 'contention-small', 'text-anchor': 'middle', 'dominant-baseline': 'central', ...(place === 0 || line === words ? { fill: ink } : {}) })))
            return [point(one, middle, y + CELL_HEIGHT / 2)]
        })
    })
    return { node: svg, points }
}

/** A line for each pair, where columns have no room. */
function lines(matrix: SlowdownMatrix, width: number): Drawing {
    const svg = canvas(width, matrix.rows.length * 26 + all(matrix).length * LINE_HEIGHT + 2)
    let y = 0
    const points = matrix.rows.flatMap((row) => {
        svg.append(text(0, y + 16, short(row.workload, width), { class: 'contention-name contention-head' }))
        y += 26
        return row.cells.flatMap((one, at) => {
            if (one === null) return []
            const [words, ground, ink] = STATES[one.state]
            const [top, right] = [y, width - 8]
            svg.append(node('rect', { x: 1, y: top + 1, width: width - 2, height: LINE_HEIGHT - 2, rx: 5, fill: ground, stroke: one.state === 'not_measured' ? 'var(--faint)' : 'none', 'data-state': one.state }))
            const more = [interval(one), one.cpu_slowdown === null ? null : `CPUs ${figure(one.cpu_slowdown)}`].filter((line) => line !== null).join(', ')
            svg.append(text(8, top + 13, short(`beside ${matrix.columns[at] ?? beside(one)}`, width * 0.62), { class: 'contention-name', 'dominant-baseline': 'central' }),
                text(8, top + 26, words, { class: 'contention-small', 'dominant-baseline': 'central', fill: ink }),
                text(right, top + 13, one.slowdown === null ? '–' : `${figure(one.slowdown)} ×`, { class: 'contention-figure', 'text-anchor': 'end', 'dominant-baseline': 'central', fill: ink }),
                text(right, top + 26, more, { class: 'contention-small', 'text-anchor': 'end', 'dominant-baseline': 'central' }))
            y += LINE_HEIGHT
            return [point(one, width / 2, top + LINE_HEIGHT / 2)]
        })
    })
    return { node: svg, points }
}
