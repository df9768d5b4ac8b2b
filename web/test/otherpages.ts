// Made-up lists, comparisons and histories for tests: the same bytes every time.
import type { Change, CompareRow, ComparedRuns, Configuration, HistoryOfRuns, ListedRun, RunList } from '../src/view'
import { embed } from './sample'

const HOUR_NS = 3_600e9
const BEGAN_NS = 1_795_000_000e9

/** The page as a server hands it out. */
export const served = (html: string, data: unknown, refreshS?: number): string =>
    embed(html, data).replace('id="view">', `id="view" data-served${refreshS === undefined ? '' : ` data-refresh-s="${refreshS}"`}>`)

export function listed(nth: number, changes: Partial<ListedRun> = {}): ListedRun {
    const began = BEGAN_NS - nth * 7 * HOUR_NS
    return {
        run: `2026112${nth % 10}T0433${String(nth).padStart(2, '0')}Z-1f09c3`, name: nth % 3 === 0 ? 'nightly' : nth % 3 === 1 ? `change-${nth}` : null,
        began_unix_ns: began, ended_unix_ns: began + 194e9, state: nth % 7 === 5 ? 'partial' : 'complete',
        command: `sonde assess --quick --network ethernet-100 --network atm-oc3c:vc=svc --name ${nth}`, ...changes,
    }
}

export function runsOf(count: number): RunList {
    const runs = Array.from({ length: count }, (_, nth) => listed(nth))
    if (runs[0]) Object.assign(runs[0], { state: 'open', ended_unix_ns: null })
    return { schema: 'sonde-runs/1', store: './sonde-runs', runs, older: count > 50 ? 12 : 0 }
}

function row(nth: number, change: Change): CompareRow {
    const isRate = nth % 2 === 0
    const by = { better: isRate ? 1.08 : 0.91, worse: isRate ? 0.8 : 1.06 + nth / 50, same: 1 + ((nth % 5) - 2) / 400, unsure: 1.3 }[change]
    const before = isRate ? 93.1e6 : 23_000 + 900 * nth
    const [low, high] = [by * 0.985, by * 1.016]
    return {
        cell_a: `a${nth}`, cell_b: `a${nth}`, quantity: isRate ? 'throughput_bps' : 'latency_ns', probe: isRate ? 'throughput' : 'latency', mode: isRate ? 'stream' : null, network: 'ethernet-100', path: 'tcp',
        method: 'plain', wait: 'block', load: null, size_bytes: 2 ** (nth % 20), knobs: nth === 1 ? { sndbuf: '64KiB' } : {}, launches_a: change === 'unsure' ? 2 : 8, launches_b: 8,
        p50_a: before, p50_b: before * by, ratio: change === 'unsure' ? null : by, ratio_low: change === 'unsure' ? null : low, ratio_high: change === 'unsure' ? null : high,
        p: change === 'same' ? 0.4 : 0.00003, equal_runs_apart: nth % 4 === 3 ? null : 0.012 + nth / 4000, change, launches_wanted: change === 'unsure' ? 14 : null,
    }
}

export function comparedOf(count: number): ComparedRuns {
    const kinds: Change[] = ['same', 'worse', 'same', 'better', 'same', 'unsure', 'same']
    const rows = Array.from({ length: count }, (_, nth) => row(nth, kinds[nth % kinds.length] ?? 'same'))
    return {
        schema: 'sonde-compare/1', a: listed(4), b: listed(1),
        comparison: {
            run_a: listed(4).run, run_b: listed(1).run, rows, only_a: ['x', 'y'], only_b: ['z'],
            sentence: count ? '2 of 7 configurations worse (the most throughput stream of 64 KiB over tcp on ethernet-100: -20.0 %, 95 % CI -21.2 to -18.7 %); 1 better.' : 'Nothing was compared: no configuration is the same in both runs; they differ in network (wire; fddi).',
            differences: [{ factor: 'network', a: ['wire'], b: ['fddi'], may_differ: true }, { factor: 'sndbuf', a: [], b: ['64KiB', '128KiB'], may_differ: true }],
        },
        names: rows.map((one, nth) => `${one.probe}${one.mode ? ' stream' : ''} of ${one.size_bytes} B over tcp, plain, blocking, configuration ${nth}, on ethernet-100`),
        only_a: ['latency of 1 B over tcp on wire', 'latency of 64 B over tcp on wire'], only_b: ['latency of 1 B over tcp on fddi'],
        threshold: 0.02, equal_runs: 'Equal runs differ by up to 1.2 % to 3 % here, depending on the configuration, as the other runs say.', remedy: '`--ignore network,sndbuf` compares them all the same.',
    }
}

function configuration(nth: number, runs: number, changed: boolean): Configuration {
    const at = Math.floor(runs * 0.7)
    const past = Array.from({ length: runs }, (_, run) => ({ run, p50: (changed && run >= at ? 1.15 : 1) * (61_000 + nth * 500 + ((run * 7) % 11) * 120), launches: 6 })).filter(({ run }) => nth !== 2 || run % 4 !== 1)
    return {
        name: `latency of ${2 ** nth} B over tcp on ethernet-100`, quantity: 'latency_ns', probe: 'latency', mode: null, network: 'ethernet-100', path: 'tcp', load: null, size_bytes: 2 ** nth, knobs: {}, past,
        changes: changed ? [{ run: at, before: 61_500 + nth * 500, after: 70_700 + nth * 500, ratio: 1.15, change: 'worse', conditions: nth ? [] : [{ what: 'kernel', hosts: ['h1', 'h2'], before: '6.1.0', after: '6.6.2' }, { what: 'net.ipv4.tcp_congestion_control', hosts: [], before: 'cubic', after: null }] }] : [],
        trend: nth === 5 ? 0.03 : null, detectable: nth === 6 ? null : 0.021,
    }
}

export function historyOf(runs: number, configurations: number): HistoryOfRuns {
    return {
        schema: 'sonde-history/1', name: 'nightly',
        history: {
            sentence: `Of ${configurations} configurations in ${runs} runs 2 became worse (the most latency of 1 B over tcp on ethernet-100: +15.0 %), ${configurations - 2} did not change.`,
            runs: Array.from({ length: runs }, (_, at) => ({ run: listed(runs - at).run, began_unix_ns: BEGAN_NS - (runs - at) * 24 * HOUR_NS })),
            configurations: Array.from({ length: configurations }, (_, nth) => configuration(nth, runs, nth < 2)),
        },
    }
}
