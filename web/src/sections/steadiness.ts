// Whether the run held still: medians of launches over the run, how late the emulation was, what disturbed the hosts.
//
// Model:   a point is a launch; its height is how far its median is from the middle of its cell's launches. Launches are
//          shuffled, so that a drift shows in all networks at once.
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import type { Context } from '../context'
import { h, none, section, shown, table } from '../dom'
import { choice } from '../legend'
import { said, type Model, type Series } from '../model'
import { fidelity } from './head'
import { count, quantityName, share, size, time, value } from '../units'
import type { LaunchMedians, Phase, Quantity, ResultRow } from '../view'

interface Launch {
    series: Series
    row: ResultRow
    /** Seconds since the run's begin. */
    x: number
    /** Part of the cell's middle. */
    deviation: number
    median: number
    quantity: Quantity
    phase: Phase
    nth: number
}

/** The section; null when there is nothing to tell. */
export function steadiness(context: Context): HTMLElement | null {
    const { model } = context
    const drift = launchFigure(context)
    const late = lateness(model)
    const disturbed = interference(model)
    if (!drift && !late && !disturbed) return null
    return section('steadiness', 'Did the run hold still?', 'A difference between networks counts for little where the same cell differs as much from repetition to repetition.', drift, late, disturbed)
}

function launches(model: Model): Launch[] {
    return model.view.launch_medians.flatMap((entry: LaunchMedians) => {
        const row = model.cell(entry.cell)
        const series = row && model.of(row)
        const sorted = [...entry.medians].sort((a, b) => a - b)
        const middle = sorted[Math.floor(sorted.length / 2)]
        if (!row || !series || !middle || sorted.length < 2 || entry.step !== null) return []
        return entry.medians.map((median, nth) => ({
            series, row, median, nth, quantity: entry.quantity, phase: entry.phase, deviation: median / middle - 1, x: (entry.began_ms[nth] ?? 0) / 1000,
        }))
    })
}

const TOPICS: [Quantity, string][] = [['latency_ns', 'latency'], ['throughput_bps', 'throughput'], ['startup_ns', 'start-up']]

function launchFigure(context: Context): HTMLElement | null {
    const all = launches(context.model)
    const topics = TOPICS.filter(([quantity]) => all.some((launch) => launch.quantity === quantity))
    const first = topics[0]
    if (!first) return null
    let quantity = first[0]
    const place = h('div', { class: 'plot uplot-place', role: 'img', 'aria-label': 'Deviation of each repetition from the middle of its cell, over the run. The figures are in the table of all rows.' })
    let chart: uPlot | null = null
    const draw = (): void => {
        chart?.destroy()
        chart = null
        const wanted = all.filter((launch) => launch.quantity === quantity && context.selection.shows(launch.series) && context.selection.showsPhase(launch.phase))
        if (place.clientWidth > 0) chart = drawLaunches(context, place, wanted)
    }
    context.onRedraw(draw)
    let width = 0
    new ResizeObserver(() => {
        if (place.clientWidth !== width) draw()
        width = place.clientWidth
    }).observe(place)
    return h('div', { class: 'card' },
        h('div', { class: 'card-head' }, h('div', {}, h('h3', {}, 'Repetitions over the run'), h('p', { class: 'axis-note' }, 'distance of a repetition’s median from the middle of its cell, against the time of the repetition')),
            topics.length > 1 ? choice('Quantity', topics, quantity, (chosen) => {
                quantity = chosen as Quantity
                draw()
            }) : null),
        place)
}

const css = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name.replace(/^var\(|\)$/g, '')).trim()

function drawLaunches(context: Context, place: HTMLElement, wanted: Launch[]): uPlot | null {
    place.replaceChildren()
    if (!wanted.length) {
        place.append(h('p', { class: 'nothing' }, 'Nothing selected here.'))
        return null
    }
    const sorted = [...wanted].sort((a, b) => a.x - b.x)
    const lines = [...new Set(sorted.map((launch) => launch.series))]
    const data: uPlot.AlignedData = [sorted.map((launch) => launch.x), ...lines.map((series) => sorted.map((launch) => (launch.series === series ? launch.deviation : null)))]
    const most = Math.max(0.02, ...sorted.map((launch) => Math.abs(launch.deviation))) * 1.1
    const axis: uPlot.Axis = { stroke: css('--quiet'), grid: { stroke: css('--line'), width: 1 }, ticks: { show: false }, font: `11px ${css('--sans')}` }
    const nearest = (chart: uPlot): void => {
        const { left = -1, top = -1 } = chart.cursor
        let found: Launch | null = null
        let distance = 24
        for (const launch of left < 0 ? [] : sorted) {
            const away = Math.hypot(chart.valToPos(launch.x, 'x') - left, chart.valToPos(launch.deviation, 'y') - top)
            if (away < distance) [found, distance] = [launch, away]
        }
        if (!found) return context.tooltip.hide()
        const box = chart.over.getBoundingClientRect()
        const rows: [string, string][] = [
            ['size', found.row.size_bytes === null ? '–' : size(found.row.size_bytes)], [`median ${quantityName(found.quantity)}`, value(found.quantity, found.median)],
            ['from the middle', `${found.deviation >= 0 ? '+' : '−'}${share(Math.abs(found.deviation))}`], ['repetition', `${found.nth + 1}, ${Math.round(found.x)} s into the run`],
        ]
        context.tooltip.show([h('p', { class: 'tip-title' }, h('i', { class: 'swatch', '--colour': found.series.colour }), `${found.series.label} · ${found.phase}`), h('dl', {}, rows.map(([name, text]) => [h('dt', {}, name), h('dd', {}, text)]))],
            box.left + chart.valToPos(found.x, 'x'), box.top + chart.valToPos(found.deviation, 'y'))
    }
    return new uPlot({
        width: place.clientWidth, height: 240, legend: { show: false },
        cursor: { drag: { x: false, y: false }, points: { show: false }, x: false, y: false },
        scales: { x: { time: false }, y: { range: [-most, most] } },
        axes: [
            { ...axis, size: 28, values: (_, ticks) => ticks.map((tick) => `${tick} s`) },
            { ...axis, size: 56, values: (_, ticks) => ticks.map((tick) => `${tick > 0 ? '+' : tick < 0 ? '−' : ''}${share(Math.abs(tick))}`) },
        ],
        series: [{}, ...lines.map((series): uPlot.Series => ({ stroke: css(series.colour), paths: () => null, points: { show: true, size: 6, width: 1.2, fill: `${css(series.colour)}66`, stroke: css(series.colour) } }))],
        hooks: { setCursor: [nearest] },
    }, data, place)
}

function lateness(model: Model): HTMLElement | null {
    const judged = model.series.map((series) => ({ series, verdict: model.fidelity(series) })).filter((one) => one.verdict !== null)
    if (!judged.length) return null
    const rows = judged.map(({ series, verdict }) => [
        [h('i', { class: 'swatch', '--colour': series.colour }), series.label], fidelity(verdict), count(verdict?.deliveries ?? 0),
        shown(verdict?.late_share, share, 'nothing was delivered'), time(verdict?.bound_ns ?? 0), shown(verdict?.lateness_p50_ns, time, 'not kept'),
        shown(verdict?.lateness_p99_ns, time, 'needs 1000 deliveries'), shown(verdict?.lateness_max_ns, time, 'not kept'), count(verdict?.attachment_losses ?? 0),
    ])
    return h('div', { class: 'card flush' }, h('h3', {}, 'How far the emulation was behind schedule'),
        table('How far the emulation was behind schedule', ['Series', 'Emulation', '#deliveries', '#behind schedule', '#by more than', '#half within', '#99 % within', '#most', '#lost in attachment'], rows))
}

function interference(model: Model): HTMLElement | null {
    if (!model.view.interference.length) return null
    const rows = model.view.interference.map((row) => [
        [h('i', { class: 'swatch', '--colour': model.of({ wait: null, ...row })?.colour ?? model.colour(row.network) }), [`${row.network} ${row.path}`, said({ wait: null, ...row })].filter(Boolean).join(', ')], row.probe, count(row.involuntary_switches),
        shown(row.steal_ns, time, '/proc/stat cannot be read here'), shown(row.retransmits, count, 'not a TCP path, or TCP_INFO does not report it'),
        row.cpu_busy_share === null ? none('/proc/stat cannot be read here') : h('span', { class: row.cpu_busy_share > 0.95 ? 'alarm' : '' }, share(row.cpu_busy_share)),
    ])
    return h('div', { class: 'card flush' }, h('h3', {}, 'What disturbed the hosts'),
        table('What disturbed the hosts', ['Series', 'Probe', '#preempted', '#stolen by the hypervisor', '#retransmissions', '#CPUs busy'], rows))
}
