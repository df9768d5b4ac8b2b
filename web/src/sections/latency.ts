// Latency against message size, cold beside warm, with what the model allows; and what load adds to it.
//
// Checked: `a load is drawn apart, and what it adds is in a table`.
import type { Context } from '../context'
import { drawCurves, type Curve } from '../curves'
import { h, none, section, shown, table, type Child } from '../dom'
import { panels, shownAs } from '../panels'
import { perByte, rate, share, size, time } from '../units'
import type { Phase } from '../view'
import { key } from '../key'

const PHASES: Phase[] = ['warm', 'cold']

/** The section; null when no latency was measured. */
export function latency(context: Context): HTMLElement | null {
    const { model } = context
    const rows = model.rows({ quantity: 'latency_ns' })
    if (!rows.length) return null
    const own = new Set(rows.map((row) => model.of(row)?.id))
    const { plots, choose } = panels(context, (series) => own.has(series.id), (network) => ({
        label: `Latency against message size${network === null ? '' : ` on ${network}`}, both axes logarithmic.`,
        draw: (width) => drawCurves({ context, width, curves: curves(context, network), yLabel: '↑ one-way latency (RTT/2)', yFormat: (ns) => time(ns), tellMore }),
    }))
    return section('latency', 'Latency against size', 'Half a round trip of a message. Where a curve leaves its dotted bound, hosts and not the network cost the time.',
        h('div', { class: 'card' },
            choose ? h('div', { class: 'card-head' }, choose) : null,
            plots,
            key(rows.some((row) => row.phase === 'cold') ? ['warm', 'cold', 'bound', 'band'] : ['warm', 'bound', 'band'])))
}

/** How much longer messages wait under load than idle, beside the virtual clock's figure; null where nothing was measured under load. */
export function queueing({ model }: Context): HTMLElement | null {
    const all = model.view.queueing
    if (!all.length) return null
    const several = 'a message of several frames: the virtual clock is asked for one'
    const rows = all.map((row): Child[] => {
        const waits = row.model_loaded_ns === null || row.model_idle_ns === null ? null : row.model_loaded_ns - row.model_idle_ns
        const [low, high] = [row.ci95_low_ns, row.ci95_high_ns]
        const inside = waits === null || low === null || high === null ? null : low <= waits && waits <= high
        const series = model.of(row)
        return [
            [h('i', { class: 'swatch', '--colour': series?.colour ?? model.colour(row.network) }), series?.label ?? row.network], size(row.size_bytes), time(row.idle_ns), time(row.loaded_ns), time(row.waits_ns),
            low === null || high === null ? none('a confidence interval needs six repetitions of both') : `${time(low)} … ${time(high)}`,
            shown(waits, time, several), inside === null ? none(several) : h('span', { class: inside ? '' : 'alarm' }, inside ? 'within' : 'outside'),
        ]
    })
    return section('load', 'What load adds', `How much longer a message waits under load than on the idle network: ${all.length} cells beside idle ones. The virtual clock says what the network alone adds.`,
        h('div', { class: 'card flush' }, table('What load adds', ['Series', '#size', '#idle', '#loaded', '#waits', '#95 % interval', '#virtual clock', 'which is'], rows)))
}

/** The cost of a message as a sum: what is paid once, for each message, for each frame and for each byte; null where none was fitted. */
export function fits({ model }: Context): HTMLElement | null {
    const known = model.series.map((series) => ({ series, fit: model.fit(series) })).filter(({ fit }) => fit && [fit.per_message_ns, fit.per_byte_ns, fit.setup_ns, fit.half_size_bytes].some((term) => term !== null))
    if (!known.length) return null
    const few = 'fewer than two sizes were measured'
    return section('fits', 'The one-way cost of a message', 'A sum of what is paid once, for each message, for each frame and for each byte, fitted to the curves above.', h('details', { class: 'card flush', open: known.length <= 16 }, h('summary', {}, `${known.length} ${known.length === 1 ? 'line' : 'lines'}`),
        table('The one-way cost of a message', ['Series', '#paid once', '#each message', '#each frame', '#each byte', '#as a rate', '#n½', '#farthest point'], known.map(({ series, fit }) => [
            [h('i', { class: 'swatch', '--colour': series.colour }), series.label],
            shown(fit?.setup_ns, time, 'no cold start was measured'), shown(fit?.per_message_ns, time, few), shown(fit?.per_frame_ns, time, 'frames and bytes grow together here: they are not distinguishable'),
            shown(fit?.per_byte_ns, perByte, few), shown(fit?.per_byte_ns || null, (ns) => rate(8e9 / ns, 3), few),
            shown(fit?.half_size_bytes, size, 'no measured pair of sizes spans half of the peak rate'), shown(fit?.residual, share, few),
        ]))))
}

function curves({ model, selection }: Context, network: string | null): Curve[] {
    return PHASES.filter((phase) => selection.showsPhase(phase)).flatMap((phase) => shownAs(model, selection, network).map((series) => ({
        series, phase, scale: (ns: number) => ns,
        // Cold is the first message of its size, a row of its own.
        rows: model.rows({ series, quantity: 'latency_ns', phase, step: phase === 'cold' ? 'first' : null }),
        bound: phase === 'warm' ? model.ceilings(series, 'latency_ns') : [],
    })))
}

function tellMore(row: { size_bytes: number | null; p50: number | null }, curve: Curve): [string, string][] {
    const bound = curve.bound.find((ceiling) => ceiling.size_bytes === row.size_bytes)
    if (!bound || !row.p50) return []
    return [['the model allows', time(bound.value)], ['the model’s part', share(bound.value / row.p50)]]
}
