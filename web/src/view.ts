// The data of the page, as the crate `report` writes them: a mirror of its `View` and of the types in `crates/record`.
//
// Units:   the last part of a name is its unit; rows hold their quantity's own unit, times of day are nanoseconds since 1970.
// Checked: `every field of the sample is read`, and the compiler, over the sample.

export type Phase = 'cold' | 'warm'
export type Step = 'neighbour' | 'vc' | 'connect' | 'first' | 'second' | 'idle' | 'spawn' | 'init'
export type Quantity =
    | 'latency_ns'
    | 'rtt_ns'
    | 'startup_ns'
    | 'exchange_ns'
    | 'throughput_bps'
    | 'cpu_src_ns_per_byte'
    | 'cpu_dst_ns_per_byte'
    | 'lost_share'
    | 'reordered_share'
    | 'duplicated_share'
    | 'busy_share'
    | 'rwnd_limited_share'
    | 'sndbuf_limited_share'
    | 'retransmits'
    | 'one_way_ns'
    | 'send_call_ns'
    | 'queue_ns'
    | 'wire_ns'
    | 'nic_trip_ns'
    | 'wake_ns'
    | 'receive_ns'
    | 'ack_ns'
    | 'response_ns'
    | 'service_ns'
    | 'collective_ns'
    | 'kernel_ns'
    | 'mop_per_s'
    | 'communicating_share'
    | 'messages'
    | 'message_bytes_mean'
    | 'message_bytes_median'
    | 'replay_ns'
    | 'message_bytes'
    | 'network_lost_share'
    | 'checks'
    | 'program_ns'
    | 'rate_per_s'
    | 'late_share'

export interface RunHead {
    id: string
    command: string
    plan: string
    seed: number
    version: string
    began_unix_ns: number
    ended_unix_ns: number | null
    state: 'open' | 'complete' | 'partial'
}

export interface HostFacts {
    hostname: string
    kernel: string
    cpu: string | null
    cpus: number
    memory_bytes: number | null
    clock_source: string | null
    clock_read_ns: number | null
    clock_resolution_ns: number | null
    interface: string | null
    mtu_bytes: number | null
    line_bps: number | null
    settings: Record<string, string>
    /** Paths that it has not, with the reason. */
    absent?: Record<string, string>
}

export interface HostRecord {
    name: string
    address: string
    facts: HostFacts
    clock: { offset_ns: number; drift_ppb: number | null; bound_ns: number } | null
}

export interface OverheadStep {
    step: string
    bps: number
    bytes: number
}

export interface NetworkRow {
    name: string
    technology: string
    summary: string | null
    topology: string | null
    mtu_bytes: number
    line_bps: number | null
    tcp_max_bps: number | null
    tcp_expected_bps: number | null
    one_way_1b_ns: number | null
    overhead: OverheadStep[]
}

export interface Ceiling {
    path: string
    quantity: Quantity
    phase: Phase
    size_bytes: number | null
    value: number
}

export interface NetworkRecord {
    row: NetworkRow
    ceilings: Ceiling[]
    attachment: string | null
    backpressure: 'gate' | 'none' | null
    spec: string | null
}

export interface Verdict {
    status: 'passed' | 'failed'
    deliveries: number
    late: number
    late_share: number | null
    bound_ns: number
    lateness_p50_ns: number | null
    lateness_p99_ns: number | null
    lateness_max_ns: number | null
    attachment_losses: number
    /** The best figure over what the model allows, where it is above 1.003. */
    above_bound?: number
    reasons: string[]
}

export interface ResultRow {
    probe: string
    mode: string | null
    layer: string
    path: string
    method: string | null
    knobs: Record<string, string>
    wait: string | null
    network: string
    testbed: 'local' | 'lab' | 'hosts' | 'virtual'
    profile: string | null
    load: string | null
    src: string | null
    dst: string | null
    size_bytes: number | null
    phase: Phase | null
    step: Step | null
    cell: string
    launches: number
    samples: number
    quantity: Quantity
    min: number | null
    p50: number | null
    p90: number | null
    p99: number | null
    p999: number | null
    max: number | null
    mean: number | null
    ci95_low: number | null
    ci95_high: number | null
    status: 'measured' | 'failed' | 'skipped'
    reason: string | null
    backpressure: string | null
    verdict: Verdict | null
}

/** One population of a cell: what a distribution or the medians of launches are of. */
export interface Population {
    cell: string
    quantity: Quantity
    phase: Phase | null
    step: Step | null
}

/** Buckets in the unit of the rows: the largest value that each counts, ascending, and how many. */
export interface Distribution extends Population {
    buckets: [number, number][]
}

/** Medians in the unit of the rows, by launch. */
export interface LaunchMedians extends Population {
    medians: number[]
    /** When each launch began, since the run's begin; absent where it is not known. */
    began_ms?: number[]
}

export interface Fit {
    network: string
    path: string
    method?: string | null
    knobs?: Record<string, string>
    wait: string | null
    per_message_ns: number | null
    per_frame_ns: number | null
    per_byte_ns: number | null
    setup_ns: number | null
    half_size_bytes: number | null
    residual: number | null
}

/** What a load adds to the latency of a cell. */
export interface Queueing {
    cell: string
    network: string
    path: string
    method?: string | null
    knobs?: Record<string, string>
    wait: string | null
    load: string
    size_bytes: number
    idle_ns: number
    loaded_ns: number
    waits_ns: number
    ci95_low_ns: number | null
    ci95_high_ns: number | null
    model_idle_ns: number | null
    model_loaded_ns: number | null
}

/** A difference with its interval at 95 %; null below six launches. */
export interface Cost {
    value: number
    ci95_low: number | null
    ci95_high: number | null
}

/** What a library costs over the transport beneath it, at equal wait. */
export interface LibraryRow {
    network: string
    path: string
    beneath: string
    wait: string | null
    load: string | null
    per_message_ns: Cost
    per_byte_ps: Cost | null
    /** `wire_ns` is the model's time over the transport; null where there is no model. */
    sizes: { size_bytes: number; wire_ns?: number | null; transport_ns: number; library_ns: number; cost_ns: Cost }[]
}

/** One kernel, as it ran; null where something was not measured, or there is nothing to set beside it. */
export interface KernelRow {
    cell: string
    kernel: string
    class: string
    ranks: number
    hosts: number
    network: string
    path: string
    wait: string | null
    /** What else was set, by name. */
    knobs: Record<string, string>
    load: string | null
    /** The level of the load, 0 when idle. */
    level: number
    time_ns: number
    ci95_low_ns: number | null
    ci95_high_ns: number | null
    mops: number | null
    communicating_share: number | null
    messages: number | null
    mean_bytes: number | null
    median_bytes: number | null
    of_reference: { value: number; ci95_low: number | null; ci95_high: number | null } | null
    reference: string | null
    /** What a paper prints; `seconds_to` is the greatest reading where the print is damaged. */
    printed: { cite: string; what: string; size: string; seconds: number; seconds_to: number | null; of_reference: number | null; note: string | null } | null
    printed_messages: { cite: string; messages: number; mean_bytes: number; median_bytes: number } | null
}

/** What a kernel's ranks send by paths that carry the same. */
export interface KernelTraffic {
    kernel: string
    class: string
    ranks: number
    paths: string[]
    /** How many messages there are from each power of two bytes on, below the next. */
    lengths: [number, number][]
    /** From each rank to each, sender by sender; empty where ranks are too many. */
    bytes: number[]
    messages: number[]
}

/** A phase of a kernel's timed part: means of ranks and launches. */
export interface KernelPhase {
    cell: string
    name: string
    computing_ns: number
    communicating_ns: number
}

/** Where the time of a cell's messages goes; null where a stamp was not to be had. */
export interface Anatomy {
    cell: string
    network: string
    path: string
    method?: string | null
    knobs?: Record<string, string>
    wait: string | null
    load: string | null
    size_bytes: number
    messages: number
    one_way_ns: number
    send_call_ns: number | null
    queue_ns: number | null
    wire_ns: number | null
    wake_ns: number | null
    receive_ns: number | null
    rest_ns: number
}

/** One buffer of a sweep's curve. */
export interface SweepPoint {
    size_bytes: number
    bps: number
    ci95_low: number | null
    ci95_high: number | null
    granted_send_bytes: number | null
    granted_recv_bytes: number | null
    cpu_src: number | null
    cpu_dst: number | null
    lost: number | null
}

/** The rate against the program's buffer, all else being equal. */
export interface SweepCurve {
    network: string
    path: string
    wait: string | null
    method: string | null
    knobs: Record<string, string>
    points: SweepPoint[]
    plateau_bps: number
    knee_bytes: number
    knee_low: number | null
    knee_high: number | null
    window_bytes: number | null
    bound_bps: number | null
    segment_bytes: number | null
}

/** A figure of all pairs; cells row by row, of senders. The lists but the first are empty where they have nothing to say. */
export interface HeatMap {
    figure: 'latency_ns' | 'rate_bps' | 'duplex_bps'
    values: (number | null)[]
    low: (number | null)[]
    high: (number | null)[]
    /** The worst pair of each cell, where pairs share cells. */
    worst: (number | null)[]
}

/** Whom a verdict blames: a host where `dst` is null. */
export interface HeatMark {
    rule: string
    src: number
    dst: number | null
    both: boolean
    sentence: string
}

export interface Heat {
    network: string
    hosts: string[]
    /** Hosts that share a row and a column. */
    share: number
    /** Cells on a side. */
    side: number
    maps: HeatMap[]
    marks: HeatMark[]
}

export type Severity = 'note' | 'advice' | 'warning'

export interface Finding {
    rule: string
    severity: Severity
    network: string | null
    path: string | null
    sentence: string
    arithmetic: string | null
    remedy: string | null
}

export interface InterferenceRow {
    network: string
    path: string
    method?: string | null
    knobs?: Record<string, string>
    probe: string
    load?: string | null
    involuntary_switches: number
    steal_ns: number | null
    retransmits: number | null
    cpu_busy_share: number | null
}

/** What the launches of a line and probe saw: each fact by its path, and what it was. */
export interface SeenRow {
    network: string
    path: string
    method: string | null
    wait: string | null
    load: string | null
    knobs: Record<string, string>
    probe: string
    launches: number
    facts: [string, string][]
}

export interface EventRecord {
    at_unix_ns: number
    kind: string
    text: string
}

/** Rows by column, for a run whose rows would make the page large. Where `values` is there, `rows` are places in it. */
export interface PackedRows {
    columns: { name: keyof ResultRow; values?: unknown[]; rows: unknown[] }[]
}

/** What stands in the page: a `View` whose rows may be packed. */
export type Embedded = Omit<View, 'results'> & { results: ResultRow[] | PackedRows }

export interface View {
    schema: 'sonde-view/1'
    run: RunHead
    /** The run in a sentence or two: it stands below the page's own headline. */
    verdict?: string | null
    hosts: HostRecord[]
    networks: NetworkRecord[]
    results: ResultRow[]
    distributions: Distribution[]
    launch_medians: LaunchMedians[]
    fits: Fit[]
    /** Absent where it was written before there were loads. */
    queueing?: Queueing[]
    /** Absent where it was written before libraries were measured. */
    library?: LibraryRow[]
    /** Absent where it was written before kernels were measured. */
    kernels?: KernelRow[]
    /** What papers print of these kernels on machines of other kinds. */
    kernels_elsewhere?: { kernel: string; cite: string; what: string; seconds: number; of_reference: number | null }[]
    /** Absent where it was written before ranks told of their messages. */
    kernels_traffic?: KernelTraffic[]
    kernels_phases?: KernelPhase[]
    /** Absent where it was written before messages were cut. */
    anatomy?: Anatomy[]
    /** Absent where it was written before there were sweeps. */
    sweep?: SweepCurve[]
    /** Absent or null where the run is not of all pairs. */
    heat?: Heat | null
    /** What is too much for a page. */
    left_out?: string[]
    findings: Finding[]
    conditions: [string, string][]
    interference: InterferenceRow[]
    /** Absent where it was written before facts were shown. */
    seen?: SeenRow[]
    warnings: string[]
    events: EventRecord[]
}
