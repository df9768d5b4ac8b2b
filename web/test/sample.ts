// A made-up run for tests and for working on the page: the same bytes every time.
//
// Model:   latency = host cost + the model's time of the message's frames; throughput = size over twice that, up to the
//          ceiling; a launch shifts all of it by a seeded factor. Figures are plausible, not measured.
import { gzipSync } from 'node:zlib'
import type { Ceiling, Distribution, Finding, HeatFigure, HeatMap, KernelRow, LaunchMedians, Loss, NetworkRecord, Phase, Quantity, QueueingRow, ResultRow, Slowdown, SlowdownMatrix, SlowdownState, Step, SweepCurve, SweepPoint, Verdict, View } from '../src/view'
import { ALPHABET, type Embedded } from '../src/read'

/** The page with a run in it, as the crate `report` makes it. */
export function embed(html: string, view: unknown): string {
    const json = JSON.stringify(view)
    // Beyond so many bytes it is compressed.
    const [kind, data] = json.length > 3_000_000 ? ['gzip', gzipSync(json).toString('base64')] : ['json', json.replace(/</g, '\\u003c')]
    const [before, rest] = html.split('<!--view-begin-->')
    const after = rest?.split('<!--view-end-->')[1]
    if (before === undefined || after === undefined) throw new Error('the page has no place for its data')
    return `${before}<!--view-begin--><script type="application/${kind}" id="view">${data}</script><!--view-end-->${after}`
}

/** The same view with its rows by column: what the crate `report` does where plain rows would make the page large. */
export function packed(view: View): Embedded {
    const names = Object.keys(view.results[0] ?? {}) as (keyof ResultRow)[]
    const columns = names.map((name) => {
        const texts = view.results.map((row) => JSON.stringify(row[name]))
        const places = new Map([...new Set(texts)].map((text, place) => [text, place]))
        // A list of values pays where most come more than once.
        if (places.size * 2 > texts.length) return { name, rows: view.results.map((row) => row[name]) }
        const values = [...places.keys()].map((text): unknown => JSON.parse(text))
        let width = 0
        while (ALPHABET.length ** width < values.length) width += 1
        const code = (place: number): string => Array.from({ length: width }, (_, nth) => ALPHABET[Math.floor(place / ALPHABET.length ** (width - 1 - nth)) % ALPHABET.length]).join('')
        return { name, values, codes: texts.map((text) => code(places.get(text) ?? 0)).join('') }
    })
    return { ...view, results: { length: view.results.length, columns } }
}

/** mulberry32. */
function generator(seed: number): () => number {
    let state = seed
    return () => {
        state = (state + 0x6d2b79f5) | 0
        let word = Math.imul(state ^ (state >>> 15), state | 1)
        word ^= word + Math.imul(word ^ (word >>> 7), word | 61)
        return ((word ^ (word >>> 14)) >>> 0) / 4294967296
    }
}

interface Made {
    name: string
    technology: string
    summary: string
    mtu: number
    line: number | null
    steps: [string, number, number][]
    delay: number
    circuit: number
    /** Part of the ceiling that a stream reaches. */
    reach: number
    late: number
}

const NETWORKS: Made[] = [
    { name: 'loopback', technology: 'interface', summary: 'this machine, talking to itself', mtu: 65536, line: null, steps: [], delay: 0, circuit: 0, reach: 1, late: 0 },
    { name: 'wire', technology: 'wire', summary: 'a delay and nothing else: no rate, no framing, no switch', mtu: 1500, line: null, steps: [], delay: 0, circuit: 0, reach: 1, late: 0.0004 },
    {
        name: 'ethernet-100', technology: 'ethernet', summary: 'switched Fast Ethernet: 100 Mb/s full duplex, one store-and-forward switch', mtu: 1500, line: 100e6,
        steps: [['line', 100e6, 1538], ['framing', 97529258, 1500], ['ip', 96228868, 1480], ['tcp', 94148244, 1448]], delay: 23640, circuit: 0, reach: 0.997, late: 0.0011,
    },
    {
        name: 'ethernet-1g', technology: 'ethernet', summary: 'switched Gigabit Ethernet: 1 Gb/s full duplex, one store-and-forward switch', mtu: 1500, line: 1e9,
        steps: [['line', 1e9, 1538], ['framing', 975292587, 1500], ['ip', 962288686, 1480], ['tcp', 941482444, 1448]], delay: 6544, circuit: 0, reach: 0.958, late: 0.016,
    },
    {
        name: 'atm-oc3c:vc=svc', technology: 'atm', summary: 'ATM over SONET OC-3c: SVCs, LLC/SNAP, one cell switch of 10 µs, 13,312 cells a port', mtu: 9180, line: 155520000,
        steps: [['line', 155520000, 10176], ['sonet', 149760000, 10176], ['cell', 135631678, 9216], ['aal5', 135101866, 9180], ['ip', 134807527, 9160], ['tcp', 134336583, 9128]],
        delay: 16223, circuit: 21e6, reach: 0.991, late: 0.0021,
    },
    {
        name: 'wan-100m-20ms', technology: 'wan', summary: 'a wide-area network of 100 Mb/s access lines, 10 ms each way', mtu: 1500, line: 100e6,
        steps: [['line', 100e6, 1538], ['framing', 97529258, 1500], ['ip', 96228868, 1480], ['tcp', 94148244, 1448]], delay: 10011800, circuit: 0, reach: 0.617, late: 0.0003,
    },
]

const LAUNCHES = 6
const LATENCY_SIZES = [1, 8, 64, 256, 512, 1024, 4096, 8192, 16384, 32768, 61440]
const MESSAGE_SIZES = [1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576, 4194304]
const BEGAN_NS = 1795237982000 * 1e6

class Sample {
    private readonly random = generator(3)
    readonly results: ResultRow[] = []
    readonly distributions: Distribution[] = []
    readonly launchMedians: LaunchMedians[] = []
    private cells = 0
    private verdict: Verdict | null = null

    private factor(width: number): number {
        return 1 + (this.random() + this.random() - 1) * width
    }

    private bound(network: Made, path: string, size: number): number {
        if (network.line === null) return network.delay
        const frame = path === 'tcp' ? network.mtu - 52 : network.mtu - 28
        const rate = (network.steps[network.steps.length - 1]?.[1] ?? network.line) * (path === 'tcp' ? 1 : 1.016)
        const frames = Math.ceil(size / frame)
        // Two links, store and forward: the first frame twice, then the rest.
        return network.delay + ((size * 8) / rate) * 1e9 + (frames > 1 ? (frame * 8e9) / rate : (size * 8e9) / rate)
    }

    private host(network: Made, path: string, size: number): number {
        const base = network.name === 'loopback' ? 5200 : network.name === 'wire' ? 21000 : 34000
        return (path === 'tcp' ? base : base * 0.86) + size * 0.32
    }

    row(network: Made, probe: string, path: string, size: number, quantity: Quantity, median: number, more: Partial<ResultRow> = {}, width = 0.04): ResultRow {
        const launches = more.launches ?? LAUNCHES
        const unsorted = Array.from({ length: launches }, () => median * this.factor(width))
        const medians = [...unsorted].sort((a, b) => a - b)
        const low = medians[0] ?? median
        const high = medians[medians.length - 1] ?? median
        const mid = medians[Math.floor(medians.length / 2)] ?? median
        const down = quantity === 'throughput_bps'
        const scale = quantity.endsWith('_ns_per_byte') ? 1000 : quantity.endsWith('_share') ? 1e6 : 1
        const whole = (value: number): number => Math.round(value * scale) / scale
        const samples = more.samples ?? launches * (probe === 'latency' ? 400 : 1)
        const row: ResultRow = {
            probe, mode: null, layer: 'transport', path, method: 'plain', knobs: {}, wait: 'block', network: network.name,
            testbed: network.name === 'loopback' ? 'local' : 'lab', profile: network.name === 'loopback' ? 'asis' : 'modern', load: null,
            src: null, dst: null, size_bytes: size, phase: 'warm', step: null,
            cell: (0x9e3779b97f4a7c15n * BigInt(this.cells + 1) & 0xffffffffffffffffn).toString(16).padStart(16, '0'),
            launches, set_aside: 0, samples, quantity, min: whole(low * (down ? 0.93 : 0.9)), p50: whole(mid), p90: whole(mid * (down ? 1.02 : 1.16)),
            p99: samples >= 1000 ? whole(mid * (down ? 1.03 : 1.9)) : null, p999: null, max: whole(high * (down || quantity.endsWith('_share') ? 1.03 : 4.2)), mean: whole(mid * (down ? 0.997 : 1.07)),
            ci95_low: launches >= 6 ? whole(low) : null, ci95_high: launches >= 6 ? whole(high) : null,
            touched_share: probe === 'latency' ? 0.004 : null, undisturbed_p50: probe === 'latency' ? whole(mid) : null, undisturbed_low: probe === 'latency' && launches >= 6 ? whole(low) : null, undisturbed_high: probe === 'latency' && launches >= 6 ? whole(high) : null,
            status: 'measured', state: launches >= 6 ? 'sound' : 'uncertain', doubts: launches >= 6 ? [] : ['few_repetitions'], why: launches >= 6 ? null : 'fewer than six repetitions',
            reason: launches >= 6 ? null : `${launches} launches: an interval of their median needs six`, backpressure: network.line ? 'gate' : null,
            verdict: network.name === 'loopback' ? null : this.verdict, ...more,
        }
        this.results.push(row)
        this.launchMedians.push({
            cell: row.cell, quantity, phase: row.phase ?? 'warm', step: row.step, medians: unsorted.map(whole),
            began_ms: unsorted.map((_, at) => Math.round((at * 26000 + this.random() * 25000))),
        })
        return row
    }

    private distribution(row: ResultRow, tail: number): void {
        if (row.p50 === null) return
        const buckets: [number, number][] = []
        for (let at = 0; at < 40; at += 1) {
            const value = Math.round(row.p50 * (0.9 + 0.012 * at * (1 + (at / 22) ** 3 * tail)))
            const weight = Math.exp(-(((at - 9) / 4.2) ** 2)) * 900 + (at > 9 ? 260 * Math.exp(-(at - 9) / 5) : 0)
            const counted = Math.round(weight * this.factor(0.3))
            if (counted > 0) buckets.push([value, counted])
        }
        this.distributions.push({ cell: row.cell, quantity: row.quantity, phase: row.phase ?? 'warm', step: row.step, buckets })
    }

    private failed(network: Made, probe: string, path: string, size: number, quantity: Quantity, reason: string, more: Partial<ResultRow> = {}): void {
        const nothing = { min: null, p50: null, p90: null, p99: null, p999: null, max: null, mean: null, ci95_low: null, ci95_high: null, touched_share: null, undisturbed_p50: null, undisturbed_low: null, undisturbed_high: null, state: 'not_measured' as const, doubts: [], why: null }
        const row = this.row(network, probe, path, size, quantity, 1, { ...nothing, launches: 0, samples: 0, status: 'failed', reason, ...more })
        this.launchMedians.pop()
        row.launches = 0
    }

    network(network: Made): void {
        const deliveries = 182000
        const late = Math.round(deliveries * network.late)
        this.verdict = {
            status: network.late > 0.01 ? 'failed' : 'passed', deliveries, late, late_share: late / deliveries, bound_ns: Math.max(50000, network.delay / 20),
            lateness_p50_ns: 3100, lateness_p99_ns: network.late > 0.01 ? 61000 : 17400, lateness_max_ns: 412000, attachment_losses: 0,
            reasons: network.late > 0.01 ? [`${late} of ${deliveries} deliveries were more than 50000 ns behind schedule; at most 1 % may be: fewer hosts, a slower network or more CPUs`] : [],
        }
        for (const path of ['tcp', 'udp']) {
            this.startup(network, path)
            this.latency(network, path)
            if (path === 'tcp') this.messages(network)
            this.stream(network, path)
        }
    }

    private startup(network: Made, path: string): void {
        this.cells += 1
        const one = this.bound(network, path, 8) + this.host(network, path, 8)
        const steps: [Step, number | null][] = [
            ['neighbour', network.name === 'loopback' ? null : one * 2.3 + 42000], ['vc', network.circuit || null], ['connect', path === 'tcp' ? one * 2.1 + 31000 : null],
            ['first', one * 2 + 88000], ['second', one * 2 + 14000], ['idle', one * 2 + 61000],
        ]
        const whole = steps.slice(0, 4).reduce((sum, [, ns]) => sum + (ns ?? 0), 0)
        const row = this.row(network, 'startup', path, 8, 'startup_ns', whole * 1.02, { phase: 'cold', samples: LAUNCHES }, 0.06)
        this.distribution(row, 2)
        for (const [step, ns] of steps) {
            if (ns !== null) this.row(network, 'startup', path, 8, 'startup_ns', ns, { phase: 'cold', step, samples: LAUNCHES }, step === 'vc' ? 0.004 : 0.08)
            else if (step === 'neighbour') this.failed(network, 'startup', path, 8, 'startup_ns', 'loopback resolves no addresses', { phase: 'cold', step, status: 'skipped' })
        }
    }

    private latency(network: Made, path: string): void {
        const payload = network.mtu - (path === 'tcp' ? 52 : 28)
        const sizes = [...new Set([...LATENCY_SIZES, ...(payload < 61440 ? [payload, payload + 1] : [])])].sort((a, b) => a - b)
        for (const size of sizes) {
            this.cells += 1
            if (network.name === 'wan-100m-20ms' && path === 'udp' && size === 61440) {
                this.failed(network, 'latency', path, size, 'latency_ns', 'h3: no answer within 2 s in any of 6 launches; 42 fragments of one datagram had to arrive, look at the receive buffer: sysctl net.ipv4.ipfrag_high_thresh')
                continue
            }
            const ns = this.bound(network, path, size) + this.host(network, path, size)
            const warm = this.row(network, 'latency', path, size, 'latency_ns', ns, network.name === 'wan-100m-20ms' ? { launches: 4, samples: 88 } : {}, 0.05)
            const cold = this.row(network, 'latency', path, size, 'latency_ns', ns * 1.04 + 48000 + size * 0.9, { phase: 'cold', step: 'first', samples: LAUNCHES }, 0.16)
            if ([1, payload, 61440].includes(size)) {
                this.distribution(warm, 1)
                this.distribution(cold, 0.4)
            }
        }
    }

    private messages(network: Made): void {
        const ceiling = network.steps[network.steps.length - 1]?.[1] ?? Infinity
        for (const size of MESSAGE_SIZES) {
            this.cells += 1
            const ns = this.bound(network, 'tcp', size) + this.host(network, 'tcp', size) + this.bound(network, 'tcp', 1) + this.host(network, 'tcp', 1)
            this.row(network, 'throughput', 'tcp', size, 'throughput_bps', Math.min(ceiling * 0.995, (size * 8e9) / ns), { mode: 'message', samples: 60 }, 0.03)
        }
    }

    private stream(network: Made, path: string): void {
        this.cells += 1
        const ceiling = network.steps[network.steps.length - 1]?.[1]
        const bps = ceiling ? ceiling * network.reach * (path === 'tcp' ? 1 : 1.012) : network.name === 'loopback' ? 21.3e9 : 1.84e9
        const size = path === 'tcp' ? 65536 : Math.min(network.mtu - 28, 65507)
        const more: Partial<ResultRow> = { mode: 'stream', launches: path === 'tcp' ? LAUNCHES : 2 }
        this.row(network, 'throughput', path, size, 'throughput_bps', path === 'udp' && !ceiling ? bps * 0.3 : bps, more, 0.012)
        const cost = network.name === 'loopback' ? 0.31 : 1.9
        this.row(network, 'throughput', path, size, 'cpu_src_ns_per_byte', path === 'tcp' ? cost : cost * 3.4, more, 0.1)
        this.row(network, 'throughput', path, size, 'cpu_dst_ns_per_byte', path === 'tcp' ? cost * 1.3 : cost * 3.1, more, 0.1)
        if (path === 'tcp') {
            const window = network.reach < 0.9 ? 0.58 : 0.002
            this.row(network, 'throughput', path, size, 'busy_share', 0.998, more, 0.001)
            this.row(network, 'throughput', path, size, 'rwnd_limited_share', window, more, 0.03)
            this.row(network, 'throughput', path, size, 'sndbuf_limited_share', network.name === 'loopback' ? 0.12 : 0.004, more, 0.03)
            this.row(network, 'throughput', path, size, 'retransmits', network.name === 'ethernet-1g' ? 14 : 0, more, 0)
        } else if (network.name === 'wire') {
            this.failed(network, 'throughput', path, size, 'lost_share', 'the receiver of launch 1 was gone: h2 ended with signal 9', more)
        } else {
            this.row(network, 'throughput', path, size, 'lost_share', network.name === 'ethernet-1g' ? 0.0231 : network.name === 'loopback' ? 0.31 : 0, more, 0.1)
            this.row(network, 'throughput', path, size, 'reordered_share', 0, more, 0)
            this.row(network, 'throughput', path, size, 'duplicated_share', 0, more, 0)
        }
    }

    record(network: Made): NetworkRecord {
        const ceilings: Ceiling[] = []
        const rate = network.steps[network.steps.length - 1]?.[1]
        for (const path of ['tcp', 'udp']) {
            if (network.line === null) continue
            const ceiling = (quantity: Quantity, phase: Phase, size: number | null, value: number): void => {
                ceilings.push({ path, quantity, phase, size_bytes: size, value: Math.round(value) })
            }
            for (const size of LATENCY_SIZES) ceiling('latency_ns', 'warm', size, this.bound(network, path, size))
            ceiling('throughput_bps', 'warm', null, (rate ?? 0) * (path === 'tcp' ? 1 : 1.0166))
            if (path === 'tcp') for (const size of MESSAGE_SIZES) ceiling('throughput_bps', 'warm', size, (size * 8e9) / (this.bound(network, path, size) + this.bound(network, path, 1)))
            ceiling('startup_ns', 'cold', 8, network.circuit + this.bound(network, path, 8) * (path === 'tcp' ? 6 : 4))
        }
        return {
            row: {
                name: network.name, technology: network.technology, summary: network.summary, topology: network.name === 'loopback' ? null : 'star', mtu_bytes: network.mtu, line_bps: network.line,
                tcp_max_bps: rate ?? null, tcp_expected_bps: rate ?? null, one_way_1b_ns: network.line === null ? null : network.delay,
                overhead: network.steps.map(([step, bps, bytes]) => ({ step, bps, bytes })),
            },
            ceilings, attachment: network.name === 'loopback' ? null : 'tap', backpressure: network.name === 'loopback' ? null : 'gate',
            spec: network.name === 'loopback' ? null : `name = "${network.name}"\ntechnology = "${network.technology}"\nmtu = ${network.mtu}\n`,
        }
    }
}

const FINDINGS: Finding[] = [
    {
        rule: 'cold-cost', severity: 'advice', network: 'atm-oc3c:vc=svc', path: 'tcp', sentence: 'The first message costs 21.5 ms, 400 times a warm one: a switched circuit is set up first.',
        arithmetic: '21.0 ms circuit + 0.2 ms address + 0.1 ms connection + 0.2 ms first message, against 53 µs warm', remedy: 'Keep circuits open between messages, or use permanent ones: atm-oc3c:vc=pvc.',
    },
    {
        rule: 'window-limited', severity: 'warning', network: 'wan-100m-20ms', path: 'tcp', sentence: 'A stream stops at 58.1 Mb/s of 94.1 Mb/s, because the receiver’s window holds the sender back 58 % of the time.',
        arithmetic: 'window 149 KiB / round trip 20.2 ms = 60.4 Mb/s; the path holds 94.1 Mb/s x 20.2 ms = 232 KiB', remedy: 'sysctl -w net.ipv4.tcp_rmem="4096 131072 6291456" at the receiver: at least 232 KiB.',
    },
    {
        rule: 'fidelity', severity: 'warning', network: 'ethernet-1g', path: null, sentence: 'The emulation of ethernet-1g was late: do not trust its figures below 60 µs.',
        arithmetic: '2912 of 182000 deliveries (1.6 %) were more than 50 µs late; at most 1 % may be', remedy: 'Fewer hosts (--hosts 2), or a machine with more CPUs.',
    },
    { rule: 'mtu-step', severity: 'note', network: 'ethernet-100', path: 'udp', sentence: 'One byte over the MTU costs 17 µs: a second frame.', arithmetic: null, remedy: null },
]

/** The run. */
export function sampleView(): View {
    const sample = new Sample()
    for (const network of NETWORKS) sample.network(network)
    const settings = { 'ipv4.tcp_congestion_control': 'cubic', 'ipv4.tcp_rmem': '4096 131072 6291456', 'ipv4.tcp_wmem': '4096 16384 4194304', 'ipv4.tcp_timestamps': '1', 'core.rmem_max': '212992' }
    return {
        schema: 'sonde-view/1',
        run: {
            id: '20261121T043302Z-1f09c3', command: 'sonde assess --testbed lab', plan: '[testbed]\nkind = "lab"\nhosts = 4\nfloors = true\n\n[repeat]\nlaunches = 6\nseed = 1\n', seed: 1, version: '0.1.0',
            began_unix_ns: BEGAN_NS, ended_unix_ns: BEGAN_NS + 178e9, state: 'complete',
        },
        verdict: '248 of 248 cells on 6 networks were measured. Streams over TCP reach 61.5 % to 99.7 % of what the networks allow. 2 warnings: read them before the figures.',
        hosts: [1, 2, 3, 4].map((nth) => ({
            name: `h${nth}`, address: `10.9.0.${nth}`, clock: null,
            facts: {
                hostname: `h${nth}`, kernel: '6.1.0-28-amd64', cpu: 'AMD EPYC 7B13', cpus: 2, memory_bytes: 25769803776, clock_source: 'kvm-clock', clock_read_ns: 24, clock_resolution_ns: 1,
                interface: 'eth0', mtu_bytes: 1500, line_bps: null, settings: nth === 3 ? { ...settings, 'core.rmem_max': '425984' } : settings,
            },
        })),
        networks: NETWORKS.map((network) => sample.record(network)),
        results: sample.results,
        distributions: sample.distributions,
        launch_medians: sample.launchMedians,
        fits: NETWORKS.map((network) => ({
            network: network.name, path: 'tcp', method: 'plain', knobs: {}, wait: 'block', per_message_ns: 34000, per_frame_ns: network.mtu > 9000 ? null : 900, per_byte_ns: network.line ? 8e9 / network.line : 0.4,
            setup_ns: network.circuit || null, half_size_bytes: network.name === 'wire' ? null : network.name === 'wan-100m-20ms' ? 252000 : network.line ? Math.round((network.line / 8e9) * 96000) : 26000, residual: 0.031,
        })),
        queueing: [], library: [], kernels: [], kernels_elsewhere: [], kernels_traffic: [], kernels_phases: [], anatomy: [], sweep: [], files: [], contention: null, heat: null, all_pairs: null, answer: null, left_out: [], seen: [],
        timeline: Array.from({ length: 89 }, (_, at) => ({ began_ms: at * 2000, ended_ms: at * 2000 + 1800, busy_share: at % 11 === 3 ? 0.97 : 0.55 + 0.002 * at, stolen_share: at > 60 && at < 70 ? 0.08 : 0.004, late_share: at % 7 ? 0.001 : 0.06 })),
        findings: FINDINGS,
        conditions: [['Machine', 'AMD EPYC 7B13, 2 CPUs, 24 GiB'], ['Kernel', '6.1.0-28-amd64'], ['CPU plan', 'measured pair pinned to CPU 1, switch on CPU 0'], ['Order', 'shuffled blocks, seed 1'], ['Timer', 'CLOCK_MONOTONIC, 24 ns to read, resolution 1 ns']],
        interference: NETWORKS.flatMap((network) => ['tcp', 'udp'].map((path) => ({
            network: network.name, path, method: 'plain', knobs: {}, probe: 'throughput', load: null, involuntary_switches: network.name === 'ethernet-1g' ? 4132 : 87, steal_ns: path === 'udp' ? null : 31e6,
            retransmits: path === 'tcp' ? (network.name === 'ethernet-1g' ? 14 : 0) : null, cpu_busy_share: network.name === 'loopback' ? 0.98 : 0.61,
        }))),
        warnings: ['wan-100m-20ms: 4 of 6 launches of latency were made before the budget ended; their medians have no interval'],
        events: [{ at_unix_ns: BEGAN_NS + 161e9, kind: 'budget', text: 'the budget of 160 s was spent; 2 launches of wan-100m-20ms were left out' }],
    }
}

/** The sample with what its screen says. */
export function assessedView(): View {
    const view = sampleView()
    const lost = (network: string, by: string, value: number, of: number): Loss['figures'][number] => ({ network, lost: { at: 'library', by, unit: 'ns', value, of, parts: [], causes: [] } })
    view.answer = {
        scope: { run: view.run.id, testbed: 'lab', hosts: ['h1', 'h2', 'h3', 'h4'], networks: 5, pairs: 12, pairs_beside: 11, pairs_all: 12, began_unix_ns: BEGAN_NS, took_ns: 178e9 },
        trust: {
            level: 'medium', figures: 200, disturbed: 12, stolen: [0.012, 0.031], repetitions: [6, 6], wide: 12, intervals: 240, missing: 0, usable: ['throughput', 'startup'], unusable: ['latency'],
            reasons: ['a disturbance leaves 12 of 200 figures uncertain', 'a hypervisor took 1.2 to 3.1 % of the CPUs'],
        },
        all_pairs: null, message_bytes: 8, paths: [{ path: 'mpich:tcp', name: 'MPICH' }, { path: 'pvm:default', name: 'PVM by daemons' }], kernel: 'is',
        networks: NETWORKS.map((network, at) => ({
            network: network.name, is_floor: at === 0, possible_bps: network.steps.at(-1)?.[1] ?? null, reached_bps: Math.round(network.reach * (network.steps.at(-1)?.[1] ?? 21e9)), is_stream_disturbed: at === 3,
            one_way: [
                { whole_ns: network.delay + 22000, wire_ns: at === 0 ? null : network.delay, hosts_ns: 18000, library_ns: 1000, is_hosts_unsure: false, is_library_unsure: at % 2 === 0, is_disturbed: at === 1 },
                at === 0 ? null : { whole_ns: network.delay + 80000, wire_ns: network.delay, hosts_ns: 18000, library_ns: 62000, is_hosts_unsure: false, is_library_unsure: false, is_disturbed: false },
            ],
            kernel_times: at === 0 ? 1 : 3.2 + at * 4,
            files: [['nfs3:tcp', 'NFS v3', 0.4], ['ftp', 'FTP', 0.8]].map(([path, name, share]) => ({ path: String(path), name: String(name), operation: 'read', reached_bps: Math.round(Number(share) * network.reach * (network.steps.at(-1)?.[1] ?? 21e9)), is_disturbed: at === 3 })),
        })).reverse(),
        lost: [
            { at: 'library', rules: ['library-cost'], networks: ['ethernet-100', 'wire'], share: 0.78, figures: [lost('ethernet-100', 'pvm:default', 62000, 80000)], sentence: 'PVM by daemons adds 52 to 66 µs to a message, 60 to 84 % of it, on 4 networks' },
            { at: 'start', rules: ['cold-start'], networks: ['atm-oc3c:vc=svc'], share: 0.4, figures: [], sentence: 'atm-oc3c:vc=svc: the first message takes 21 ms, most of it the circuit' },
        ],
        next: [{ what: 'on a quiet machine', command: 'sonde assess --hosts 2 --network wire' }, { what: "PVM's direct route: `pvm_setopt(PvmRoute, PvmRouteDirect)`", command: null }],
        findings: view.findings.length,
    }
    return view
}

/** The assessed sample under so many settings that it has as many rows, none of which is like another. */
export function largeView(rows: number): View {
    const view = assessedView()
    const random = generator(11)
    const [results, medians] = [view.results, view.launch_medians]
    const settings = Array.from({ length: Math.ceil(rows / results.length) }, (_, nth) => nth)
    view.results = settings.flatMap((nth) => results.map((row): ResultRow => {
        const factor = 0.8 + 0.4 * random()
        const scaled = (value: number | null): number | null => (value === null ? null : Number((value * factor).toPrecision(6)))
        const verdict = row.verdict && { ...row.verdict, late: nth, lateness_max_ns: Math.round(1e6 * factor) }
        return { ...row, cell: `${row.cell.slice(0, 12)}${String(nth).padStart(4, '0')}`, knobs: { sndbuf: `${nth + 1}KiB` }, verdict, min: scaled(row.min), p50: scaled(row.p50), p90: scaled(row.p90), p99: scaled(row.p99), max: scaled(row.max), mean: scaled(row.mean), ci95_low: scaled(row.ci95_low), ci95_high: scaled(row.ci95_high) }
    })).slice(0, rows)
    // As the crate `report` thins them.
    view.launch_medians = settings.flatMap((nth) => medians.map((one) => ({ ...one, cell: `${one.cell.slice(0, 12)}${String(nth).padStart(4, '0')}` }))).filter((one) => one.step === null && ['latency_ns', 'throughput_bps', 'startup_ns'].includes(one.quantity)).slice(0, 2_000)
    return view
}

/** A run of two kernels alone, on one host and on four, under three loads; a paper prints some of IS, one of them damaged. */
export function kernelsView(): View {
    const view = sampleView()
    const row = view.results.find((one) => one.network === 'atm-oc3c:vc=svc' && one.quantity === 'latency_ns' && one.p50 !== null)
    if (!row) throw new Error('the sample has no latency')
    const places: [string, number, number, number][] = [['native:shm', 4, 1, 0.2], ['native:tcp', 1, 1, 1], ['pvm:default', 4, 4, 0.9], ['pvm:direct', 4, 4, 0.5]]
    const cite = 'a study of kernels, Table 2'
    const rows: KernelRow[] = ['is', 'ep'].flatMap((kernel) => [null, '0.6', '0.9'].flatMap((load, at) => places.filter(([path]) => load === null || path !== 'native:shm').map(([path, ranks, hosts, part]): KernelRow => {
        const times = part * (kernel === 'is' && hosts > 1 ? [1, 1.6, 3][at] ?? 1 : 1)
        const over = { value: times / 0.2, ci95_low: (times / 0.2) * 0.97, ci95_high: (times / 0.2) * 1.04 }
        const prints = kernel === 'is' && hosts > 1
        return {
            cell: `kernel-${kernel}-${path}-${ranks}-${load ?? 'idle'}`, kernel, class: 'upc', ranks, hosts, network: row.network, path, wait: 'block', knobs: {}, load, level: Number(load ?? 0),
            time_ns: times * 1e9, ci95_low_ns: times * 0.98e9, ci95_high_ns: times * 1.03e9, mops: 12.5 / times, communicating_share: ranks === 1 ? 0 : kernel === 'is' ? 0.75 : 0.01,
            messages: ranks === 1 ? 0 : 612, mean_bytes: ranks === 1 ? null : 51234, median_bytes: ranks === 1 ? null : 131072, of_reference: over, reference: '4 ranks over native:shm on one host',
            printed: prints ? { cite, what: `four hosts, ${path}`, size: '2^19 keys', seconds: times * 20, seconds_to: load === '0.9' ? times * 21 : null, of_reference: times * 4, note: load === '0.9' ? 'the row is damaged in the scan' : null } : null,
            printed_messages: prints ? { cite: 'a study of kernels, Table 1', messages: 599, mean_bytes: 71364.32, median_bytes: 130016 } : null,
        }
    })))
    view.kernels = rows
    view.kernels_elsewhere = [{ kernel: 'is', cite, what: 'another machine', seconds: 4.99, of_reference: 1 }]
    view.kernels_traffic = [{
        kernel: 'is', class: 'upc', ranks: 4, paths: ['native:shm', 'pvm:default', 'pvm:direct'], lengths: [[0, 12], [1024, 200], [131072, 400]],
        bytes: [0, 4096, 0, 2048, 4096, 0, 0, 0, 0, 0, 0, 4096, 10, 0, 4096, 0], messages: [0, 4, 0, 2, 4, 0, 0, 0, 0, 0, 0, 4, 1, 0, 4, 0],
    }, { kernel: 'ep', class: 'upc', ranks: 4, paths: ['native:shm'], lengths: [[64, 3]], bytes: [], messages: [] }]
    view.kernels_phases = rows.flatMap((one) => [['keys', 0.7], ['ranking', 0.3]].map(([name, part]) => ({
        cell: one.cell, name: String(name), computing_ns: Math.round(one.time_ns * (1 - (one.communicating_share ?? 0)) * Number(part)), communicating_ns: Math.round(one.time_ns * (one.communicating_share ?? 0) * Number(part)),
    })))
    view.findings = [...view.findings, ...['kernel-route', 'kernel-placement', 'kernel-placement', 'kernel-placement'].map((rule, at) => ({ rule, severity: 'note' as const, sentence: `What ${rule} says, ${at}.`, arithmetic: 'IS idle 1.80', remedy: null, network: row.network, path: null }))]
    view.results = rows.map((one) => ({
        ...row, probe: 'npb', layer: 'application', path: one.path, knobs: { kernel: one.kernel, class: one.class, ranks: String(one.ranks) }, load: one.load, size_bytes: null, cell: one.cell, quantity: 'kernel_ns', samples: 6,
        p50: one.time_ns, min: one.time_ns, max: one.time_ns, mean: one.time_ns, p90: one.time_ns, p99: null, ci95_low: one.ci95_low_ns, ci95_high: one.ci95_high_ns,
    }))
    view.networks = view.networks.filter((record) => record.row.name === row.network)
    view.distributions = []
    view.launch_medians = []
    view.fits = []
    view.interference = []
    return view
}

/** The same run with libraries beside TCP on four networks: the native one costs little, PVM's daemons much, MPICH saves. */
export function librariesView(): View {
    const view = sampleView()
    const paths: [string, number][] = [['native:tcp', 1.08], ['pvm:default', 3], ['pvm:direct', 1.6], ['mpich:tcp', 0.9]]
    view.library = []
    for (const network of ['wire', 'ethernet-100', 'ethernet-1g', 'atm-oc3c:vc=svc']) {
        const measured = view.results.filter((row) => row.network === network && row.path === 'tcp' && row.phase === 'warm' && row.quantity === 'latency_ns' && row.p50 !== null)
        const bounds = view.networks.find((record) => record.row.name === network)?.ceilings ?? []
        for (const [path, longer] of paths) {
            const times = (value: number | null): number | null => (value === null ? null : Math.round(value * longer))
            const own = measured.map((row): ResultRow => ({ ...row, layer: 'library', path, cell: `${row.cell}-${path}`, min: times(row.min), p50: times(row.p50), p90: times(row.p90), p99: times(row.p99), max: times(row.max), mean: times(row.mean), ci95_low: times(row.ci95_low), ci95_high: times(row.ci95_high) }))
            view.results.push(...own)
            const sizes = measured.map((row) => ({
                size_bytes: row.size_bytes ?? 0, wire_ns: bounds.find((bound) => bound.path === 'tcp' && bound.quantity === 'latency_ns' && bound.size_bytes === row.size_bytes)?.value ?? null,
                transport_ns: row.p50 ?? 0, library_ns: times(row.p50) ?? 0, cost_ns: { value: (times(row.p50) ?? 0) - (row.p50 ?? 0), ci95_low: null, ci95_high: null },
            }))
            const first = sizes[0]
            if (!first) continue
            const cost = first.library_ns - first.transport_ns
            view.library.push({ network, path, beneath: 'tcp', wait: 'block', load: null, per_message_ns: { value: cost, ci95_low: cost - 400, ci95_high: cost + 500 }, per_byte_ps: { value: Math.round((longer - 1) * 90_000), ci95_low: null, ci95_high: null }, sizes })
        }
    }
    return view
}

/** The same run with latency and streams of ethernet-100 measured under two loads too. */
export function loadedView(): View {
    const view = sampleView()
    const measured = view.results.filter((row) => row.network === 'ethernet-100' && row.phase === 'warm' && row.quantity !== 'retransmits')
    for (const [load, longer] of [['0.6', 1.25], ['0.9', 2]] as const) {
        const cell = (id: string): string => `${id}-${load}`
        const times = (value: number | null): number | null => (value === null ? null : Math.round(value * longer))
        for (const row of measured) {
            const more: Partial<ResultRow> = row.quantity === 'latency_ns' ? { min: times(row.min), p50: times(row.p50), p90: times(row.p90), p99: times(row.p99), max: times(row.max), mean: times(row.mean), ci95_low: times(row.ci95_low), ci95_high: times(row.ci95_high) } : {}
            view.results.push({ ...row, ...more, load, cell: cell(row.cell) })
            for (const entry of view.launch_medians.filter((one) => one.cell === row.cell && one.quantity === row.quantity && one.phase === row.phase)) {
                view.launch_medians.push({ ...entry, cell: cell(entry.cell), medians: entry.medians.map((median) => median * longer) })
            }
            for (const entry of view.distributions.filter((one) => one.cell === row.cell && one.quantity === row.quantity && one.phase === row.phase)) {
                view.distributions.push({ ...entry, cell: cell(entry.cell), buckets: entry.buckets.map(([value, count]) => [value * longer, count]) })
            }
        }
        view.queueing = [...view.queueing, ...measured.filter((row) => row.quantity === 'latency_ns' && row.p50 !== null).map((row): QueueingRow => {
            const [idle, waits] = [row.p50 ?? 0, (row.p50 ?? 0) * (longer - 1)]
            const one = (row.size_bytes ?? 0) < 1448
            return {
                cell: cell(row.cell), network: row.network, path: row.path, method: row.method, knobs: row.knobs, wait: row.wait, load, size_bytes: row.size_bytes ?? 0, idle_ns: idle, loaded_ns: idle + waits, waits_ns: waits,
                ci95_low_ns: Math.round(waits * 0.9), ci95_high_ns: Math.round(waits * 1.1), model_idle_ns: one ? 23640 : null, model_loaded_ns: one ? 23640 + Math.round(waits * (row.path === 'tcp' ? 1.02 : 1.3)) : null,
            }
        })]
    }
    view.interference.push({ network: 'ethernet-100', path: 'tcp', method: 'plain', knobs: {}, probe: 'latency', load: '0.9', involuntary_switches: 12, steal_ns: null, retransmits: 0, cpu_busy_share: 0.7 })
    return view
}

/** The same run with messages cut at the kernel's stamps, idle and at a load, one of them without a stamp of the wire. */
export function cutView(): View {
    const view = sampleView()
    const row = view.results.find((one) => one.network === 'ethernet-100' && one.path === 'udp' && one.quantity === 'latency_ns' && one.p50 !== null)
    if (!row) throw new Error('the sample has no latency over UDP')
    for (const [load, queue] of [[null, 900], ['0.6', 42000]] as const) {
        for (const size of [1, 1024]) {
            const parts = { send_call_ns: 2100, queue_ns: queue, wire_ns: size === 1 ? 30000 : null, wake_ns: 8000 + size, receive_ns: 700, rest_ns: size === 1 ? 0 : 110000 }
            const sum = Object.values(parts).reduce<number>((all, one) => all + (one ?? 0), 0)
            const cell = `anatomy-${load ?? 'idle'}-${size}`
            view.anatomy = [...view.anatomy, { cell, network: row.network, path: row.path, method: row.method, knobs: row.knobs, wait: row.wait, load, size_bytes: size, messages: 3000, one_way_ns: sum, ...parts }]
            view.results.push({ ...row, probe: 'anatomy', cell, quantity: 'one_way_ns', load, size_bytes: size, p50: sum, min: sum, max: sum, mean: sum, p90: sum, p99: null, p999: null, ci95_low: null, ci95_high: null })
        }
    }
    return view
}

/** The same run with streams of ethernet-100 measured by another method, and with a knob set, at half and a quarter of the rate. */
export function knobbedView(): View {
    const view = sampleView()
    const measured = view.results.filter((row) => row.network === 'ethernet-100' && row.path === 'tcp' && row.probe === 'throughput')
    for (const [more, part] of [[{ method: 'zerocopy' }, 0.5], [{ knobs: { sndbuf: '16KiB' } }, 0.25]] as [Partial<ResultRow>, number][]) {
        for (const row of measured) {
            const scaled = row.quantity === 'throughput_bps' && row.p50 !== null ? { p50: row.p50 * part } : {}
            view.results.push({ ...row, ...more, ...scaled, cell: `${row.cell}-${part}` })
        }
    }
    return view
}

/** A sweep of the program's buffer for each socket buffer on ethernet-100, and datagrams at four rates. */
export function sweptView(): View {
    const view = sampleView()
    const row = view.results.find((one) => one.network === 'ethernet-100' && one.path === 'tcp' && one.mode === 'stream' && one.quantity === 'throughput_bps')
    if (!row) throw new Error('the sample has no stream')
    const curve = (path: string, knobs: Record<string, string>, rates: [number, number, number | null][], bound: number | null): SweepCurve => {
        const points = rates.map(([bytes, bps, lost]): SweepPoint => ({
            size_bytes: bytes, bps, ci95_low: lost === null ? bps * 0.97 : null, ci95_high: lost === null ? bps * 1.02 : null, granted_send_bytes: 2 * Number.parseInt(knobs.sndbuf ?? '106496', 10) * (knobs.sndbuf ? 1024 : 1),
            granted_recv_bytes: null, cpu_src: 1.2, cpu_dst: 1.9, lost,
        }))
        const plateau = Math.max(...points.map(({ bps }) => bps))
        for (const [bytes, bps] of rates) view.results.push({ ...row, path, knobs, size_bytes: bytes, p50: bps, cell: `sweep-${path}-${JSON.stringify(knobs)}-${bytes}` })
        return {
            network: row.network, path, wait: row.wait, method: row.method, knobs, points, plateau_bps: plateau, knee_bytes: points.find(({ bps }) => bps >= 0.95 * plateau)?.size_bytes ?? 0,
            knee_low: 16384, knee_high: 65536, window_bytes: bound === null ? null : 16384, bound_bps: bound, segment_bytes: 1448,
        }
    }
    const sizes = [1024, 4096, 16384, 65536, 262144]
    const rising = (top: number): [number, number, null][] => sizes.map((bytes) => [bytes, Math.min(top, (top * bytes) / 15000), null])
    view.sweep = [
        ...['16KiB', '64KiB', '256KiB'].flatMap((sndbuf, at) => ['off', 'on'].map((gro) => curve('tcp', { sndbuf, gro }, rising([31e6, 72e6, 93.6e6][at] ?? 1), at === 0 ? 38e6 : null))),
        ...[[40, 0], [80, 0.0002], [95, 0.004], [120, 0.21]].map(([mega, lost]) => curve('udp', { rate: `${mega}Mbit` }, [[1472, (mega ?? 0) * 1e6 * (1 - (lost ?? 0)), lost ?? 0]], null)),
    ]
    for (const host of view.hosts) host.facts.settings.copy_bps = '41000000000'
    return view
}

/** Files by NFS, one call and eight outstanding, over two networks, and transfers by FTP from a slow disk. */
export function filesView(): View {
    const view = sampleView()
    const row = view.results.find((one) => one.path === 'tcp' && one.mode === 'stream' && one.quantity === 'throughput_bps')
    if (!row) throw new Error('the sample has no stream')
    view.results = []
    for (const [network, wire] of [['ethernet-100', 680e3], ['ethernet-1g', 71e3]] as const) {
        for (const [path, knobs, parts] of [
            ['nfs2:udp', { op: 'read' }, [['server', 21e3], ['round trip', 62e3], ['line', wire]]],
            ['nfs3:tcp', { op: 'read', outstanding: '8' }, []],
            ['ftp', { op: 'read', disk: '16Mbit' }, [['source disk', 4096e3], ['socket', 90e3], ['network', 8 * wire], ['sink disk', 30e3]]],
        ] as const) {
            for (const bytes of [65536, 1048576, 4194304, 16777216]) {
                const isTransfer = path === 'ftp'
                const scale = isTransfer ? bytes / 65536 : 1
                const made = parts.map(([name, ns]) => ({ name, ns: ns * scale }))
                const expected = made.length ? made.reduce((sum, { ns }) => sum + ns, 0) : null
                const took = (expected ?? wire * 2) * 1.08
                const bps = isTransfer ? (bytes * 8e9) / took : (8192 * 8e9) / took
                const cell = `files-${network}-${path}-${bytes}`
                view.results.push({ ...row, network, path, knobs, probe: 'files', layer: 'files', mode: null, size_bytes: bytes, p50: bps, ci95_low: bps * 0.98, ci95_high: bps * 1.01, cell })
                view.files.push({ cell, network, path, knobs, wait: row.wait, load: null, operation: 'read', size_bytes: bytes, rate: bps, is_transfer: isTransfer, took_ns: took, parts: made, expected_ns: expected, slowest: isTransfer ? 'source disk' : null })
            }
        }
    }
    view.distributions = []
    view.launch_medians = []
    view.fits = []
    return view
}

/** Files, a stream and a ping-pong at once, with a background load: on ethernet-10 they slow each other, on `wire` the CPUs do not. */
export function contentionView(): View {
    const view = sampleView()
    const names = ['nfs:write', 'stream', 'latency']
    const columns = [...names, 'load:0.6', 'all others']
    const ratios: Record<string, (number | null)[]> = { 'nfs:write': [null, 1.62, 1.02, 1.9, 3.4], stream: [2.21, null, 1.08, 2.5, 4.75], latency: [7.4, 31.2, null, 2.2, null] }
    const matrix = (network: string, isCpu: boolean): SlowdownMatrix => ({
        network, is_cpu: isCpu, columns,
        rows: names.map((workload) => ({
            workload,
            cells: columns.map((column, at): Slowdown | null => {
                if (column === workload) return null
                const found = ratios[workload]?.[at] ?? null
                const ratio = found !== null && isCpu ? 1 + (found - 1) / 40 : found
                // What lies around the bound is open.
                const [low, high] = ratio === null ? [null, null] : [ratio * 0.96, ratio * 1.05]
                const state: SlowdownState = low === null ? 'not_measured' : low > 1.1 ? 'slowed' : (high ?? 0) < 1.1 ? 'not_slowed' : 'inconclusive'
                const [quantity, alone]: [Quantity, number] = workload === 'latency' ? ['latency_ns', 210000] : ['throughput_bps', 9.1e6]
                const together = ratio === null ? null : workload === 'latency' ? alone * ratio : alone / ratio
                const why = state === 'not_measured' ? 'stream, measured at once, failed: h2 is gone' : state === 'inconclusive' ? 'its interval holds 1.1: more repetitions narrow it' : null
                return {
                    network, workload, beside: column === 'all others' ? [...names.filter((name) => name !== workload), 'load:0.6'] : [column], quantity, cell_alone: `alone-${network}-${workload}`, cell: `at-once-${network}-${workload}-${at}`,
                    alone, together, slowdown: ratio, low, high, launches: ratio === null ? 0 : 6, state, why, cpu_slowdown: isCpu || found === null ? null : 1 + (found - 1) / 40,
                }
            }),
        })),
    })
    view.contention = {
        during: '3s', matrices: [matrix('ethernet-100', false), matrix('wire', true)],
        sentences: ['ethernet-100: stream slows latency most, 31.20 times (1.75 by the CPUs alone); then nfs:write latency 7.40.', 'wire: stream slows latency most, 1.75 times.'],
        reasons: ['latency beside all others on ethernet-100: stream, measured at once, failed: h2 is gone'],
    }
    return view
}

/** A run of all pairs of `count` hosts, of which the sixth is slow to be sent to; above `side` hosts share cells. */
export function pairsView(count: number, most = 128): View {
    const view = sampleView()
    const random = generator(7)
    const share = Math.ceil(count / most)
    const side = Math.ceil(count / share)
    const cells = (value: (src: number, dst: number) => number): (number | null)[] => Array.from({ length: side * side }, (_, at) => {
        const [src, dst] = [Math.floor(at / side), at % side]
        return src === dst && share === 1 ? null : Math.round(value(src, dst) * (0.97 + 0.06 * random()))
    })
    const bad = Math.floor(5 / share)
    const ends = (values: (number | null)[], part: number): (number | null)[] => (share === 1 ? values.map((value) => (value === null ? null : value * part)) : [])
    const map = (figure: HeatFigure, value: (src: number, dst: number) => number): HeatMap => {
        const values = cells(value)
        return { figure, values, low: ends(values, 0.9), high: ends(values, 1.1), worst: share === 1 ? [] : values.map((one) => (one ?? 0) * 1.4) }
    }
    view.heat = {
        network: 'ethernet-100', hosts: Array.from({ length: count }, (_, at) => `h${at + 1}`), share, side,
        maps: [map('latency_ns', () => 61000), map('rate_bps', (_, dst) => (dst === bad ? 31e6 : 93e6)), map('duplex_bps', (_, dst) => (dst === bad ? 22e6 : 88e6))],
        marks: [{ rule: 'host-slow', src: 5, dst: null, both: true, sentence: 'h6 is bad: streams to it are 3.0 times slower than those of others.' }, { rule: 'direction-slow', src: 1, dst: 3, both: false, sentence: 'h2 to h4 is slow.' }],
    }
    view.all_pairs = { state: 'fail', network: 'ethernet-100', pairs: count * (count - 1), pairs_all: count * (count - 1), hosts: ['h6'], directions: ['h2>h4'], reasons: view.heat.marks.map((mark) => mark.sentence), notes: [], detectable: 'a host whose streams are 12 % slower' }
    const row = view.results[0]
    if (!row) throw new Error('the sample has no rows')
    // Single flows are in the heat map, and of no series.
    view.results = [[0, 1], [1, 0]].map(([src, dst]) => ({ ...row, probe: 'pattern', mode: 'latency', network: 'ethernet-100', quantity: 'latency_ns', phase: 'warm', knobs: { flow: `h${(src ?? 0) + 1}>h${(dst ?? 0) + 1}`, pattern: 'all-pairs' }, cell: `pair-${src}-${dst}` }))
    if (share > 1) view.left_out = [`${count} rows of single flows are not in this page.`]
    view.distributions = []
    view.launch_medians = []
    view.fits = []
    return view
}
