// The run as the figures need it: its series with their colours, and rows looked up by what they are of.
//
// Model:   a series is one (network, path, method, wait, knobs, load). Its colour is the network's, with another method, knobs
//          or load one of its own; its symbol is the path's and wait's, and both are the same in every figure. Single flows of a
//          pattern are of no series: they are in the heat map and among the rows; so are kernels, in figures of their own. Bounds, fits and the verdict are of idle networks. The loopback beside other networks is drawn in grey: it is a floor, not a rival.
// Checked: `a series keeps its colour`, `the verdict names who falls short`, `a load is a series of its own`,
//          `method and knobs are series of their own`, `libraries are told in the headline`,
//          `kernels are told in the headline`.
import type { Ceiling, FitRow, HeatFigure, HeatView, NetworkRecord, Phase, Quantity, ResultRow, Step, Verdict, View } from './view'
import { rate, share, time } from './units'

/** Colours in page.css: seven, told apart by people with any colour vision; then they come again. */
const COLOURS = 7
const SYMBOLS = ['circle', 'diamond', 'square', 'triangle', 'hexagon', 'star', 'wye', 'cross'] as const
export type SymbolName = (typeof SYMBOLS)[number]

export interface Series {
    id: string
    /** Its place in the model's list. */
    index: number
    network: string
    path: string
    /** How bytes are handed over. */
    method: string
    wait: string | null
    /** What else was set, by name. */
    knobs: Record<string, string>
    /** What others sent in the network, as `0.6`; null where it was idle. */
    load: string | null
    /** `ethernet-100 tcp`, with the wait where several were measured, and the load. */
    label: string
    /** What follows the network's name. */
    short: string
    /** A CSS colour. */
    colour: string
    symbol: SymbolName
    /** Of the line: the first path is the strongest. */
    weight: number
}

/** What a row is of; what is absent is not asked. */
export interface Asked {
    series?: Series
    network?: string
    probe?: string
    mode?: string | null
    quantity?: Quantity
    phase?: Phase
    step?: Step | null
    size?: number
}

/** What a series is of; a method or knobs that are absent are the usual ones. */
export type Of = Pick<ResultRow, 'network' | 'path' | 'wait'> & { load?: string | null; method?: string | null; knobs?: Record<string, string>; probe?: string }
const PLACES = ['flow', 'stage']
const USUAL = 'plain'

/** The settings among the knobs, by name: of a pattern what names its flows is none. */
export function settings({ knobs, probe }: Of): [string, string][] {
    return Object.entries(knobs ?? {}).filter(([name]) => probe !== 'pattern' || !PLACES.includes(name)).sort(([a], [b]) => (a < b ? -1 : 1))
}

function seriesId(of: Of): string {
    const { network, path, wait, load, method } = of
    const set = settings(of)
    if ((method ?? USUAL) !== USUAL || set.length) return JSON.stringify([network, path, wait, load ?? null, method ?? USUAL, set])
    return JSON.stringify((load ?? null) === null ? [network, path, wait] : [network, path, wait, load])
}

/** What was set otherwise than it is by itself: `zerocopy, sndbuf=64KiB, load 0.6`. */
export function said(of: Of): string {
    const method = (of.method ?? USUAL) === USUAL ? [] : [of.method ?? '']
    const load = (of.load ?? null) === null ? [] : [`load ${of.load}`]
    return [...method, ...settings(of).map(([name, value]) => `${name}=${value}`), ...load].join(', ')
}

/** Whether a row is of one flow of a pattern. */
const isFlow = (row: ResultRow): boolean => row.probe === 'pattern' && (row.knobs.flow ?? 'all') !== 'all'
/** Whether a row is of no series: flows are in the heat map, kernels in figures of their own. */
const isApart = (row: ResultRow): boolean => isFlow(row) || row.layer === 'application'

export class Model {
    readonly view: View
    readonly networks: string[]
    readonly paths: string[]
    readonly waits: string[]
    /** As text, the idle network as null and first. */
    readonly loads: (string | null)[]
    readonly methods: string[]
    /** Settings as JSON, none first. */
    readonly knobs: string[]
    /** What is not a network's usual series: those have colours of their own. */
    private readonly variants: string[]
    readonly series: Series[]
    /** The rows that are of a series. */
    private readonly own: ResultRow[]
    private readonly records = new Map<string, NetworkRecord>()
    private readonly bySeries = new Map<string, ResultRow[]>()
    private readonly byCell = new Map<string, ResultRow[]>()
    /** Networks of which a row was measured on this machine alone. */
    private readonly floors = new Set<string>()

    constructor(view: View) {
        this.view = view
        for (const record of view.networks) this.records.set(record.row.name, record)
        this.own = view.results.filter((row) => !isApart(row))
        for (const row of view.results) {
            if (!isApart(row)) push(this.bySeries, seriesId(row), row)
            push(this.byCell, row.cell, row)
            if (row.testbed === 'local') this.floors.add(row.network)
        }
        this.networks = distinct([...view.networks.map((record) => record.row.name), ...view.results.map((row) => row.network)])
        const curved = view.results.filter((row) => row.layer !== 'application')
        this.paths = distinct(curved.map((row) => row.path))
        this.waits = distinct(curved.map((row) => row.wait ?? ''))
        this.loads = distinct(curved.map((row) => row.load)).sort((a, b) => Number(b === null) - Number(a === null))
        const lines = [...this.bySeries.values()].map((rows) => rows[0]).filter((row): row is ResultRow => row !== undefined)
        this.methods = distinct(lines.map((row) => row.method ?? USUAL)).sort((a, b) => Number(b === USUAL) - Number(a === USUAL))
        this.knobs = distinct(lines.map((row) => JSON.stringify(settings(row)))).sort((a, b) => Number(b === '[]') - Number(a === '[]'))
        // Of a network whose rows all are set otherwise the first setting has its colour.
        const usual = new Map<string, string>()
        for (const row of lines) if (!usual.has(row.network) || !said(row)) usual.set(row.network, variantOf(row))
        this.variants = distinct(lines.filter((row) => !this.isFloor(row.network) && usual.get(row.network) !== variantOf(row)).map(variantOf))
        this.series = this.networks.flatMap((network) => this.seriesOf(network)).map((series, index) => ({ ...series, index }))
    }

    private seriesOf(network: string): Series[] {
        const firsts = [...this.bySeries.values()].map((rows) => rows[0]).filter((row): row is ResultRow => row?.network === network)
        const order = (row: ResultRow): number[] => [this.paths.indexOf(row.path), this.methods.indexOf(row.method ?? USUAL), this.knobs.indexOf(JSON.stringify(settings(row))), this.waits.indexOf(row.wait ?? ''), this.loads.indexOf(row.load)]
        const before = (a: number[], b: number[]): number => a.map((one, at) => one - (b[at] ?? 0)).find((apart) => apart !== 0) ?? 0
        return firsts.sort((a, b) => before(order(a), order(b))).map((row): Series => {
            const { path, wait, load } = row
            const [at, nth] = [this.paths.indexOf(path), this.waits.indexOf(wait ?? '')]
            const of = this.waits.length > 1 && wait !== null ? `${path} ${wait}` : path
            const own = said(row)
            const short = own ? `${of}, ${own}` : of
            const variant = this.variants.indexOf(variantOf(row))
            return {
                id: seriesId(row), index: 0, network, path, wait, load, method: row.method ?? USUAL, knobs: Object.fromEntries(settings(row)), short,
                label: `${network} ${short}`,
                colour: this.colour(network, row),
                // Colours come again after so many variants; symbols then differ.
                symbol: SYMBOLS[(at * this.waits.length + nth + Math.max(0, Math.floor(variant / (COLOURS - 1))) * this.paths.length * this.waits.length) % SYMBOLS.length] ?? 'circle',
                weight: at === 0 ? 2 : 1.4,
            }
        })
    }

    /** A network's colour, everywhere; with a method, knobs or load of its own those that the usual ones left. */
    colour(network: string, row?: ResultRow): string {
        if (this.isFloor(network)) return 'var(--floor)'
        const rivals = this.networks.filter((name) => !this.isFloor(name))
        const own = Math.max(0, rivals.indexOf(network)) % COLOURS
        const variant = row ? this.variants.indexOf(variantOf(row)) : -1
        if (variant < 0) return `var(--network-${own})`
        const others = Array.from({ length: COLOURS }, (_, at) => at).filter((at) => at !== own)
        return `var(--network-${others[(rivals.length - 1 + variant) % others.length]})`
    }

    /** The series of a row. */
    of(row: Of): Series | undefined {
        const id = seriesId(row)
        return this.series.find((series) => series.id === id)
    }

    private isFloor(network: string): boolean {
        return this.networks.length > 1 && this.floors.has(network)
    }

    network(name: string): NetworkRecord | undefined {
        return this.records.get(name)
    }

    cell(id: string): ResultRow | undefined {
        return this.byCell.get(id)?.[0]
    }

    /** Whether so many series are on several networks that one figure of all is not read: each network then has its own. */
    get crowded(): boolean {
        return this.networks.length > 1 && this.series.length > 20
    }

    /** A series as it is drawn where one network stands alone: colour and symbol tell what is within the network. */
    within(series: Series): Series {
        const at = Math.max(0, distinct(this.series.map((one) => one.short)).indexOf(series.short))
        return { ...series, colour: `var(--network-${at % COLOURS})`, symbol: SYMBOLS[at % SYMBOLS.length] ?? 'circle' }
    }

    /** Whether it was asked for of any series. */
    has(quantity: Quantity): boolean {
        return this.own.some((row) => row.quantity === quantity)
    }

    /** The rows that were asked for, by size. */
    rows(asked: Asked): ResultRow[] {
        const all = asked.series ? this.bySeries.get(asked.series.id) ?? [] : this.own
        const kept = all.filter((row) =>
            (asked.network === undefined || row.network === asked.network) &&
            (asked.probe === undefined || row.probe === asked.probe) &&
            (asked.mode === undefined || (row.mode ?? null) === asked.mode) &&
            (asked.quantity === undefined || row.quantity === asked.quantity) &&
            (asked.phase === undefined || row.phase === asked.phase) &&
            (asked.step === undefined || (row.step ?? null) === asked.step) &&
            (asked.size === undefined || row.size_bytes === asked.size))
        return kept.sort((a, b) => (a.size_bytes ?? 0) - (b.size_bytes ?? 0))
    }

    /** The model's bounds of a quantity, by size; of an idle network only. */
    ceilings(series: Series, quantity: Quantity, phase: Phase = 'warm'): Ceiling[] {
        if (series.load !== null) return []
        const all = this.network(series.network)?.ceilings ?? []
        return all
            .filter((ceiling) => ceiling.path === series.path && ceiling.quantity === quantity && ceiling.phase === phase && ceiling.size_bytes !== null)
            .sort((a, b) => (a.size_bytes ?? 0) - (b.size_bytes ?? 0))
    }

    /** What a stream can reach at most, on an idle network. */
    streamCeiling(series: Series): number | null {
        if (series.load !== null) return null
        const record = this.network(series.network)
        const said = record?.ceilings.find((ceiling) =>
            ceiling.path === series.path && ceiling.quantity === 'throughput_bps' && ceiling.size_bytes === null)
        return said?.value ?? (series.path === 'tcp' ? record?.row.tcp_max_bps ?? null : null)
    }

    /** The cold start as a whole, of the smallest message. */
    coldStart(series: Series): ResultRow | undefined {
        return this.rows({ series, probe: 'startup', quantity: 'startup_ns', step: null })[0]
    }

    /** Warm latency of the smallest message. */
    latency(series: Series): ResultRow | undefined {
        return this.rows({ series, quantity: 'latency_ns', phase: 'warm' })[0]
    }

    /** The best stream, else the best of single messages. */
    throughput(series: Series): ResultRow | undefined {
        const rows = this.rows({ series, quantity: 'throughput_bps', step: null })
        const streams = rows.filter((row) => row.mode !== 'message')
        const best = (candidates: ResultRow[]): ResultRow | undefined =>
            candidates.reduce<ResultRow | undefined>((found, row) => ((row.p50 ?? -1) > (found?.p50 ?? -2) ? row : found), undefined)
        return streams.some((row) => row.p50 !== null) ? best(streams) : best(rows)
    }

    /** How much of the ceiling the best stream reached. */
    fraction(series: Series): number | null {
        const reached = this.throughput(series)?.p50 ?? null
        const ceiling = this.streamCeiling(series)
        return reached === null || !ceiling ? null : reached / ceiling
    }

    /** Another quantity of the same cell. */
    beside(row: ResultRow | undefined, quantity: Quantity): ResultRow | undefined {
        return row && this.byCell.get(row.cell)?.find((other) => other.quantity === quantity && other.step === row.step)
    }

    fit(series: Series): FitRow | undefined {
        return series.load !== null ? undefined : this.view.fits.find((fit) => seriesId(fit) === series.id)
    }

    /** The cells' verdicts on the emulation, merged: the worst figures, counts of each launch's cells once. */
    fidelity(series: Series): Verdict | null {
        const seen = new Set<string>()
        let merged: Verdict | null = null
        for (const row of this.bySeries.get(series.id) ?? []) {
            if (!row.verdict || seen.has(row.cell)) continue
            seen.add(row.cell)
            merged = merged ? worse(merged, row.verdict) : { ...row.verdict, reasons: [...row.verdict.reasons] }
        }
        return merged
    }

    /** The run in one sentence: who reaches the ceiling, and who does not. */
    verdict(): string {
        return verdictOf(this)
    }
}

function worse(a: Verdict, b: Verdict): Verdict {
    const most = (x: number | null, y: number | null): number | null => (x === null ? y : y === null ? x : Math.max(x, y))
    return {
        status: a.status === 'failed' ? 'failed' : b.status,
        deliveries: a.deliveries + b.deliveries,
        late: a.late + b.late,
        late_share: (a.late + b.late) / Math.max(1, a.deliveries + b.deliveries),
        bound_ns: Math.min(a.bound_ns, b.bound_ns),
        lateness_p50_ns: most(a.lateness_p50_ns, b.lateness_p50_ns),
        lateness_p99_ns: most(a.lateness_p99_ns, b.lateness_p99_ns),
        lateness_max_ns: most(a.lateness_max_ns, b.lateness_max_ns),
        attachment_losses: a.attachment_losses + b.attachment_losses,
        reasons: distinct([...a.reasons, ...b.reasons]),
    }
}

const variantOf = (row: ResultRow): string => JSON.stringify([row.network, said(row)])

/** At least this part of a ceiling counts as reaching it. */
export const NEAR = 0.9

/** A matrix in one sentence: its medians, and how many are blamed. */
function pairsOf(heat: HeatView): string {
    const middle = (figure: HeatFigure, digits: (value: number) => string): string => {
        const values = (heat.maps.find((map) => map.figure === figure)?.values ?? []).filter((value): value is number => value !== null).sort((a, b) => a - b)
        return values.length ? digits(values[Math.floor((values.length - 1) / 2)] ?? 0) : ''
    }
    const [bps, ns] = [middle('rate_bps', (value) => rate(value, 3)), middle('latency_ns', (value) => time(value))]
    const figures = [bps && `${bps} a stream`, ns && `${ns} one way`].filter(Boolean).join(' and ')
    const bad = heat.marks.length
    return `All pairs of ${heat.hosts.length} hosts on ${heat.network}: ${figures || 'nothing was measured'} in the median; ${bad === 0 ? 'none stands out' : bad === 1 ? 'one stands out' : `${bad} stand out`}.`
}

/** What libraries add to the smallest message, where no stream was measured that could be judged. */
function librariesOf(model: Model): string | null {
    const rows = model.view.library.filter((row) => row.load === null)
    if (!rows.length || model.rows({ quantity: 'throughput_bps', mode: 'stream' }).length) return null
    const said = distinct(rows.map((row) => row.path)).map((path) => {
        const costs = rows.filter((row) => row.path === path).map((row) => row.per_message_ns.value)
        const [low, high] = [Math.min(...costs), Math.max(...costs)]
        return { path, low, text: `${path} ${low === high ? time(low) : `${time(low)} to ${time(high)}`}` }
    })
    const count = distinct(rows.map((row) => row.network)).length
    return `Over ${count === 1 ? rows[0]?.network : `${count} networks`} libraries add to a small message: ${said.sort((a, b) => a.low - b.low).map(({ text }) => text).join(', ')}.`
}

/** What part of the time kernels communicate; null where something else was measured too, or no kernel. */
function kernelsOf(model: Model): string | null {
    const all = model.view.kernels
    if (!all.length || model.series.length) return null
    const names = distinct(all.map((row) => row.kernel))
    const apart = all.filter((row) => row.hosts > 1)
    const networks = distinct(apart.map((row) => row.network))
    const where = networks.length === 0 ? 'on one host' : `over ${networks.length === 1 ? networks[0] : `${networks.length} networks`}`
    const idle = (apart.length ? apart : all).filter((row) => row.ranks > 1 && row.load === null)
    const parts = idle.flatMap((row) => (row.communicating_share === null ? [] : [row.communicating_share]))
    const [low, high] = [Math.min(...parts), Math.max(...parts)]
    const said = parts.length ? `idle, ranks communicate for ${low === high ? share(low) : `${share(low)} to ${share(high)}`} of the time` : `${all.length} times`
    return `${names.length === 1 ? `The kernel ${names[0]?.toUpperCase()}` : `${names.length} kernels`} ${where}: ${said}.`
}

function verdictOf(model: Model): string {
    // An assessment measures pairs, libraries and kernels too; its streams come first.
    const special = model.view.answer ? null : (model.view.heat && pairsOf(model.view.heat)) || kernelsOf(model) || librariesOf(model)
    if (special) return special
    const first = model.paths.includes('tcp') ? 'tcp' : model.paths[0]
    const ofPath = model.series.filter((series) => series.path === first)
    const idle = ofPath.filter((series) => series.load === null)
    const chosen = idle.length ? idle : ofPath
    // Of several waits the one that reaches most.
    const best = new Map<string, { series: Series; part: number }>()
    for (const series of chosen) {
        const part = model.fraction(series)
        if (part !== null && part > (best.get(series.network)?.part ?? -1)) best.set(series.network, { series, part })
    }
    const judged = [...best.values()]
    const name = (first ?? '').toUpperCase()
    if (judged.length === 0) return withoutCeilings(model, chosen, name)
    const short = judged.filter((one) => one.part < NEAR).sort((a, b) => a.part - b.part)
    const near = judged.filter((one) => one.part >= NEAR)
    const said = short.slice(0, 3).map((one) => `${one.series.network} stops at ${share(one.part)}`)
    const more = short.length > 3 ? `, and ${short.length - 3} more fall short` : ''
    if (near.length === 0) return `${name} stays below ${share(NEAR)} of its ceiling everywhere: ${said.join(', ')}${more}.`
    const low = Math.min(...near.map((one) => one.part))
    // What is at the ceiling to a tenth of a per cent is said to be there, and not at it or more.
    const most = low >= 0.9995 ? share(1) : `${share(low)} or more`
    const head = judged.length === 1
        ? `${name} reaches ${share(low)} of what ${near[0]?.series.network} allows`
        : short.length === 0
          ? `${name} reaches ${most} of the ceiling on all ${judged.length} networks that have one`
          : `${name} reaches ${most} of the ceiling on ${near.length} of ${judged.length} networks`
    return said.length ? `${head}; ${said.join(', ')}${more}.` : `${head}.`
}

function withoutCeilings(model: Model, chosen: Series[], name: string): string {
    for (const series of chosen) {
        const throughput = model.throughput(series)?.p50
        const latency = model.latency(series)?.p50
        const parts = [throughput ? `moves ${rate(throughput, 3)}` : '', latency ? `takes ${time(latency)} one way` : ''].filter(Boolean)
        if (parts.length) return `${name} ${parts.join(' and ')} over ${series.network}${series.load === null ? '' : ` under load ${series.load}`}; no ceiling is known for it.`
    }
    return 'Nothing was measured to the end.'
}

/** Each value once, in the order of first appearance. */
export function distinct<T>(values: T[]): T[] {
    return [...new Set(values)]
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
    const list = map.get(key)
    if (list) list.push(value)
    else map.set(key, [value])
}
