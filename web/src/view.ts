// The data of the page: of a run, of a list, of a comparison and of a history, as the crate `report` writes them, and the types within
// them. Made by `cargo xtask types --write`; `cargo xtask tidy` compares.
//
// Units:   the last part of a name is its unit; rows hold their quantity's own unit, times of day are nanoseconds since 1970.

/** What the page shows. */
export interface View {
    /** `sonde-view/1`. */
    schema: ViewSchema
    /** What was asked, when and by what. */
    run: RunHead
    /** The run in a sentence or two. */
    verdict: string
    /** What the screen of an assessment says; null of other runs. */
    answer: Assessment | null
    /** The hosts. */
    hosts: HostRecord[]
    /** The networks, with ceilings and overhead chains. */
    networks: NetworkRecord[]
    /** One for each quantity of each cell, as in `--json`. */
    results: ResultRow[]
    /** How samples are spread. */
    distributions: Distribution[]
    /** The medians that intervals are made of, of what each probe is for. */
    launch_medians: LaunchMedians[]
    /** The cost of messages. */
    fits: FitRow[]
    /** What load adds to latency. */
    queueing: QueueingRow[]
    /** What libraries cost over the transports beneath them. */
    library: LibraryRow[]
    /** The kernels, with what papers print of them. */
    kernels: KernelRow[]
    /** What papers print of these kernels on machines of other kinds. */
    kernels_elsewhere: PrintedElsewhere[]
    /** The messages of these kernels. */
    kernels_traffic: KernelTraffic[]
    /** The phases of these kernels. */
    kernels_phases: KernelPhase[]
    /** Where the time of messages goes. */
    anatomy: AnatomyRow[]
    /** Rates against the program's buffer; empty where only one was measured. */
    sweep: SweepCurve[]
    /** Files of servers; empty where none were asked for. */
    files: FilesRow[]
    /** Workloads at once, and who slows whom; null where none were measured so. */
    contention: ContentionView | null
    /** All pairs of hosts as heat maps; null of a run that is not of all pairs. */
    heat: HeatView | null
    /** Which host, link or direction stands out among all pairs; null of a run that is not of all pairs. */
    all_pairs: AllPairs | null
    /** What is too much for a page: a sentence each. */
    left_out: string[]
    /** What a person can act on, warnings first. */
    findings: Finding[]
    /** Name and value of what held for the whole run. */
    conditions: [string, string][]
    /** What disturbed the hosts. */
    interference: InterferenceRow[]
    /** How busy the hosts were over the run. */
    timeline: Moment[]
    /** What the launches saw beside their samples. */
    seen: SeenRow[]
    /** Check these before trusting the results. */
    warnings: string[]
    /** What happened meanwhile. */
    events: EventRecord[]
}

/** The runs of a store. */
export interface RunList {
    /** `sonde-runs/1`. */
    schema: RunListSchema
    /** The folder of the store. */
    store: string
    /** The runs, the newest first. */
    runs: ListedRun[]
    /** How many older ones there are beside these. */
    older: number
}

/** Two runs side by side. */
export interface ComparedRuns {
    /** `sonde-compare/1`. */
    schema: ComparedSchema
    /** The first run, the baseline. */
    a: ListedRun
    /** The second. */
    b: ListedRun
    /** What both have, and in what they differ. */
    comparison: Comparison
    /** The rows of the comparison in words, in their order. */
    names: string[]
    /** Configurations that only the first run has, in words. */
    only_a: string[]
    /** Configurations that only the second run has, in words. */
    only_b: string[]
    /** Changes below this share are none. */
    threshold: number
    /** How far apart equal runs are, in a sentence. */
    equal_runs: string
    /** How configurations that differ can be compared, in a sentence; null where none differ. */
    remedy: string | null
}

/** The history of a store's runs. */
export interface HistoryOfRuns {
    /** `sonde-history/1`. */
    schema: HistorySchema
    /** What all its runs are called; null where runs of any name are in it. */
    name: string | null
    /** The history. */
    history: History
}

/** What a matrix of all pairs says. */
export interface AllPairs {
    /** Whether no host, link or direction stands out. */
    state: Judged
    /** The network on which they were measured. */
    network: string
    /** Ordered pairs of hosts that gave a figure. */
    pairs: number
    /** Ordered pairs that there are. */
    pairs_all: number
    /** Hosts that are bad; empty where none is, and where that is inconclusive. */
    hosts: string[]
    /** Directions that are bad between good hosts, as `a>b`; of a link both. */
    directions: string[]
    /** What stands out, with its figures and its remedy, or why it is inconclusive; one sentence where nothing does. */
    reasons: string[]
    /** Hosts that are set otherwise than the others. */
    notes: string[]
    /** The smallest faults that would have been found four times of five; null where that is not known. */
    detectable: string | null
}

/** Where the time of one cell's messages goes. */
export interface AnatomyRow {
    /** The cell. */
    cell: string
    /** The network. */
    network: string
    /** The path. */
    path: string
    /** How bytes are handed over, as `zerocopy`. */
    method: string | null
    /** What else was set, by name. */
    knobs: Record<string, string>
    /** `block` or `poll`. */
    wait: string | null
    /** The load, as `0.6`; null where the network was idle. */
    load: string | null
    /** The message's size. */
    size_bytes: number
    /** Messages in the middle halves of all launches. */
    messages: number
    /** From the call that sends to the return of the call that receives. */
    one_way_ns: number
    /** Until the packet scheduler has it; null where its stamp was not to be had, here and below. */
    send_call_ns: number | null
    /** Until the driver has it. */
    queue_ns: number | null
    /** Until the peer's kernel took it from its driver. */
    wire_ns: number | null
    /** Until the reader runs. */
    wake_ns: number | null
    /** Until the call that receives has returned. */
    receive_ns: number | null
    /** What could not be told apart. */
    rest_ns: number
}

/** What files of a server reach on a network. */
export interface AssessedFiles {
    /** The path, as `nfs3:tcp`. */
    path: string
    /** Its name, as `NFS v3`. */
    name: string
    /** `read` or `write`. */
    operation: string
    /** The fastest of its cells. */
    reached_bps: number
    /** Whether a disturbance leaves it uncertain. */
    is_disturbed: boolean
}

/** What was found of a network. */
export interface AssessedNetwork {
    /** The network. */
    network: string
    /** Whether it is this machine's loopback beside networks. */
    is_floor: boolean
    /** What a stream of TCP can reach; null where that is not known. */
    possible_bps: number | null
    /** What the fastest one reached; null where none was measured. */
    reached_bps: number | null
    /** Whether a disturbance leaves it uncertain. */
    is_stream_disturbed: boolean
    /** The one-way times, in the order of `paths`; null where the path was not measured here. */
    one_way: (OneWay | null)[]
    /** The kernel's time over that on one host; null where it was not measured on both. */
    kernel_times: number | null
    /** What files of a server on another host reach, a service and operation each. */
    files: AssessedFiles[]
}

/** A path whose small messages are told. */
export interface AssessedPath {
    /** The path, as `openmpi:tcp`. */
    path: string
    /** Its name, as `Open MPI`. */
    name: string
}

/** What a run of the main job says, as facts. */
export interface Assessment {
    /** What was measured. */
    scope: Scope
    /** How far the figures can be trusted. */
    trust: Trust
    /** Which host, link or direction stands out; null where not all pairs were measured. */
    all_pairs: AllPairs | null
    /** The message whose one-way times stand in `networks`; null where no message was measured. */
    message_bytes: number | null
    /** The paths whose one-way times stand in `networks`, at most two. */
    paths: AssessedPath[]
    /** The kernel that `networks` hold against one host, as `is`; null where none was measured. */
    kernel: string | null
    /** The networks, those that lose most first. */
    networks: AssessedNetwork[]
    /** What is lost, the largest first. */
    lost: Loss[]
    /** What to do, the most urgent first. */
    next: Next[]
    /** How many findings there are. */
    findings: number
}

/** What holds a sending host back when its network is busy. */
export type Backpressure =
    /** A queueing discipline that the emulated network opens and closes. */
    | 'gate'
    /** Nothing: what does not fit is dropped. */
    | 'none'

/** What the model allows for one quantity: a point of a line on the plot. */
export interface Ceiling {
    /** The path: `tcp`, `udp`. */
    path: string
    /** What it bounds. */
    quantity: Quantity
    /** Warm, or cold with everything that is paid once. */
    phase: Phase
    /** A stream's ceiling does not depend on the size of messages: null. */
    size_bytes: number | null
    /** The bound, in the quantity's base unit. */
    value: number
}

/** How a cell of the second run is to that of the first. */
export type Change =
    /** Lower latency or cost, or higher rate. */
    | 'better'
    /** Higher latency or cost, or lower rate. */
    | 'worse'
    /** No difference was found. */
    | 'same'
    /** There are too few launches to find any. */
    | 'unsure'

/** A clock against another: theirs minus ours. */
export interface ClockRecord {
    /** At the begin of the run. */
    offset_ns: number
    /** Change of the offset, in nanoseconds a second; null before it was asked a second time. */
    drift_ppb: number | null
    /** The true offset is at most so far from it: half of the shortest exchange. */
    bound_ns: number
}

/** One cell of both. */
export interface CompareRow {
    /** The cell in the first run. */
    cell_a: string
    /** The cell in the second run; the same unless some factors may differ. */
    cell_b: string
    /** What is compared. */
    quantity: Quantity
    /** The factors of the first cell, as in a row. */
    probe: string
    /** Of throughput. */
    mode: string | null
    /** Of the first cell. */
    network: string
    /** The channel. */
    path: string
    /** How bytes are handed over, in the first run. */
    method: string | null
    /** `block` or `poll`, in the first run. */
    wait: string | null
    /** Background traffic. */
    load: string | null
    /** User bytes in a message. */
    size_bytes: number
    /** What else was set. */
    knobs: Record<string, string>
    /** Launches of the first run. */
    launches_a: number
    /** Launches of the second run. */
    launches_b: number
    /** The median of the launches' medians, in the quantity's unit. */
    p50_a: number
    /** The same of the second run. */
    p50_b: number
    /** The second over the first; null below six launches. */
    ratio: number | null
    /** Lower end of its interval at 95 %. */
    ratio_low: number | null
    /** Upper end of its interval at 95 %. */
    ratio_high: number | null
    /** Of the rank sum. */
    p: number
    /** How far apart equal runs are here, as a share: as the runs before say, but once in twenty comparisons by chance. What is nearer is no change. Null where they are too few to tell. */
    equal_runs_apart: number | null
    /** What follows. */
    change: Change
    /** Launches of each run that would find the change asked for nine times in ten, where there are fewer and where any number would. */
    launches_wanted: number | null
}

/** The name and version of a comparison's data. */
export type ComparedSchema =
    /** The first. */
    | 'sonde-compare/1'

/** Two runs, compared. */
export interface Comparison {
    /** The first run. */
    run_a: string
    /** The second run. */
    run_b: string
    /** What follows, in one sentence. */
    sentence: string
    /** The factors in which cells that one run alone has differ from those of the other, the most frequent first. */
    differences: Difference[]
    /** What both have, in the order of the first. */
    rows: CompareRow[]
    /** Cells that only the first has a measurement of. */
    only_a: string[]
    /** Cells that only the second has a measurement of. */
    only_b: string[]
}

/** What was otherwise after a change. */
export interface Condition {
    /** What: `kernel`, or the name of a setting. */
    what: string
    /** On which hosts; empty where it is of the run. */
    hosts: string[]
    /** In the last run before; null where it was not there. */
    before: string | null
    /** In the first run after; null where it is not there. */
    after: string | null
}

/** A configuration through all runs. */
export interface Configuration {
    /** What it is called in words. */
    name: string
    /** What was measured. */
    quantity: Quantity
    /** The factors, as in a row. */
    probe: string
    /** Of throughput. */
    mode: string | null
    /** The network. */
    network: string
    /** The channel. */
    path: string
    /** Background traffic. */
    load: string | null
    /** User bytes in a message. */
    size_bytes: number
    /** What else was set. */
    knobs: Record<string, string>
    /** What it gave, the oldest first; runs that do not have it are left out. */
    past: Past[]
    /** Where its level changed, the oldest first. */
    changes: LevelChange[]
    /** How much the newest level rises from its first run to its last by its trend, as a share; null where there is none. */
    trend: number | null
    /** The least change that would be found two runs after it, as a share; null where the newest level has too few runs. */
    detectable: number | null
}

/** Workloads at once, as the page shows them. */
export interface ContentionView {
    /** How long they were measured at once. */
    during: string | null
    /** Who hurts whom. */
    sentences: string[]
    /** Why slow-downs are inconclusive or not measured. */
    reasons: string[]
    /** One for each network. */
    matrices: SlowdownMatrix[]
}

/** A difference with its interval. */
export interface Cost {
    /** The library's median less the transport's. */
    value: number
    /** Lower end of the interval at 95 %; null below six launches of either. */
    ci95_low: number | null
    /** Upper end of the interval at 95 %; null below six launches of either. */
    ci95_high: number | null
}

/** A factor in which cells of the two runs differ. */
export interface Difference {
    /** A name of the factors, or a knob. */
    factor: string
    /** What it is in the first run, of cells that only this has; empty where nothing is set. */
    a: string[]
    /** What it is in the second run. */
    b: string[]
    /** Whether the runs may differ in it (`--ignore`). */
    may_differ: boolean
}

/** How the samples of a row are spread, all launches together. */
export interface Distribution {
    /** The cell. */
    cell: string
    /** What was measured. */
    quantity: Quantity
    /** Cold or warm. */
    phase: Phase
    /** The part of a start-up. */
    step: Step | null
    /** The largest value that a bucket counts, and how many; ascending. */
    buckets: [number, number][]
}

/** Why a figure is uncertain. */
export type Doubt =
    /** Fewer than six repetitions gave it: it has no interval. */
    | 'few_repetitions'
    /** Fewer than 100 of its samples met no disturbance, and most met none. */
    | 'few_samples'
    /** More than half of its repetitions were set aside, since a disturbance met most of their time: those that count are a choice. */
    | 'set_aside'
    /** A disturbance met so many of its samples that the undisturbed figure has no bound, or none that is near. */
    | 'disturbed'
    /** The emulation was behind schedule, and it was not seen which samples met that. */
    | 'late'
    /** No frame was delivered, so that the emulation cannot be judged. */
    | 'not_judged'
    /** Its repetitions differ. */
    | 'wide'
    /** Frames were lost between a host and the network, where the model loses none. */
    | 'frames_lost'
    /** A program replaced a host's queueing discipline, by which the network holds senders back. */
    | 'gate_replaced'
    /** It is above what the model allows: an error of the measurement. */
    | 'above_bound'
    /** Unauthenticated peers came to a data port. */
    | 'strangers'

/** Something that happened during a run. */
export interface EventRecord {
    /** When. */
    at_unix_ns: number
    /** `interrupted`, `host_lost`, `resumed`, `budget`. */
    kind: string
    /** In words. */
    text: string
}

/** A kind of figures. */
export type Figures =
    /** Rates of streams. */
    | 'throughput'
    /** Rates of single messages. */
    | 'messages'
    /** Times of messages. */
    | 'latency'
    /** Times of first messages. */
    | 'startup'
    /** Times of kernels. */
    | 'kernel'

/** A part of what a call or a transfer takes, measured apart. */
export interface FilesPart {
    /** `server`, `round trip` and `line` of a call; the stages of a transfer. */
    name: string
    /** What it takes. */
    ns: number
}

/** A cell of files for the page: what it reached, and what its calls or transfers take. */
export interface FilesRow {
    /** The cell. */
    cell: string
    /** The network. */
    network: string
    /** The path. */
    path: string
    /** What was set, by name. */
    knobs: Record<string, string>
    /** `block` or `poll`. */
    wait: string | null
    /** The load, as `0.6`; null where the network was idle. */
    load: string | null
    /** As `--op` has it. */
    operation: string
    /** The size of the file; null of calls on names. */
    size_bytes: number | null
    /** Bits a second, or calls a second of calls on names. */
    rate: number
    /** Whether it is a transfer of a whole file, and not made of calls. */
    is_transfer: boolean
    /** What a call or a transfer takes, the median; null where it was not measured. */
    took_ns: number | null
    /** Of a call that has others beside it none: it waits for them too. Parts of a call follow each other, stages of a transfer overlap. */
    parts: FilesPart[]
    /** What the parts give together; null where one is not known. */
    expected_ns: number | null
    /** The stage that takes longest. */
    slowest: string | null
}

/** A sentence with numbers. */
export interface Finding {
    /** The rule that found it, as `window-limited`. */
    rule: string
    /** What it is for. */
    severity: Severity
    /** The network that it is about; null where it is about several. */
    network: string | null
    /** The path that it is about; null where it is about several. */
    path: string | null
    /** What was found. */
    sentence: string
    /** The figures that it follows from. */
    arithmetic: string | null
    /** What to do. */
    remedy: string | null
    /** What is lost by it; absent where it is not a loss. */
    lost?: Lost | null
}

/** The cost of messages on one (network, path, method, wait, knobs). */
export interface FitRow {
    /** The network. */
    network: string
    /** The path. */
    path: string
    /** How bytes are handed over, as `zerocopy`. */
    method: string | null
    /** What else was set, by name. */
    knobs: Record<string, string>
    /** `block` or `poll`. */
    wait: string | null
    /** For each message, one way; null below two sizes. */
    per_message_ns: number | null
    /** For each frame of it; null where frames and bytes cannot be told apart. */
    per_frame_ns: number | null
    /** For each user byte of it; null below two sizes. */
    per_byte_ns: number | null
    /** Once, at first use; null where no cold start was measured. */
    setup_ns: number | null
    /** Where single messages reach half of the rate; null where no measured pair of sizes spans it. */
    half_size_bytes: number | null
    /** The largest distance of a point from the fit, as a share of the point; null below two sizes. */
    residual: number | null
}

/** A CPU, and the longest time between two readings of the clock by a thread that did nothing else there. */
export interface Gap {
    /** The CPU, as Linux counts them. */
    cpu: number
    /** The longest time. */
    gap_ns_max: number
}

/** What a heat map is of, with its unit last. */
export type HeatFigure =
    /** Half a round trip. */
    | 'latency_ns'
    /** A stream. */
    | 'rate_bps'
    /** A stream beside one the other way. */
    | 'duplex_bps'

/** One figure of all pairs; cells row by row, null where nothing was measured. */
export interface HeatMap {
    /** What the values are of. */
    figure: HeatFigure
    /** The median over a cell's launches, and over its pairs where there are several. */
    values: (number | null)[]
    /** The lower end of the interval of each; empty where no pair has six launches, or pairs share a cell. */
    low: (number | null)[]
    /** The upper end. */
    high: (number | null)[]
    /** The worst of the pairs of a cell; empty where each is one pair. */
    worst: (number | null)[]
}

/** Whom a verdict blames. */
export interface HeatMark {
    /** The rule, as `host-slow`. */
    rule: string
    /** The host of a row and column, or the sender. */
    src: number
    /** The receiver; null where the mark is of a host. */
    dst: number | null
    /** Whether the way back is meant too. */
    both: boolean
    /** The verdict. */
    sentence: string
}

/** The heat maps of a run of all pairs. */
export interface HeatView {
    /** The network. */
    network: string
    /** The hosts, in the order of rows and columns. */
    hosts: string[]
    /** So many hosts next to each other share a row and a column: 1 up to [`SIDE_MAX`] hosts. */
    share: number
    /** Cells on a side. */
    side: number
    /** One for each figure that was measured of any pair. */
    maps: HeatMap[]
    /** Whom the verdict blames. */
    marks: HeatMark[]
}

/** The runs of a store, as a history. */
export interface History {
    /** What follows, in a sentence. */
    sentence: string
    /** The runs, the oldest first. */
    runs: PastRun[]
    /** Those of the newest run. */
    configurations: Configuration[]
}

/** The name and version of a history's data. */
export type HistorySchema =
    /** The first. */
    | 'sonde-history/1'

/** What a host is, by its own account. What it does not tell is null. */
export interface HostFacts {
    /** The name that it gives itself. */
    hostname: string
    /** Kernel release. */
    kernel: string
    /** CPU model. */
    cpu: string | null
    /** CPUs online. */
    cpus: number
    /** Main memory. */
    memory_bytes: number | null
    /** The kernel's clock source: `tsc`, `kvm-clock`. */
    clock_source: string | null
    /** What reading the clock costs. */
    clock_read_ns: number | null
    /** The smallest difference between two readings that is not zero. */
    clock_resolution_ns: number | null
    /** The interface by which its peers are reached. */
    interface: string | null
    /** That interface's MTU. */
    mtu_bytes: number | null
    /** That interface's rate. */
    line_bps: number | null
    /** Settings of its TCP: the sysctl's name below `net.`, and its value. */
    settings: Record<string, string>
    /** Paths that it has not, by name, with the reason and what to do. */
    absent?: Record<string, string>
    /** What of it programs could have when the host was asked. */
    memory_available_bytes?: number | null
    /** How disturbed it was before the measurement; null where it was not looked at, as on hosts other than this machine's. */
    noise?: Noise | null
}

/** A host as its agent describes it. */
export interface HostRecord {
    /** Its name: `h1` in the lab, as given on the command line else. */
    name: string
    /** Its address on the network that is measured. */
    address: string
    /** What it is. */
    facts: HostFacts
    /** Its clock against the first host's; null for the first host, and where one clock serves all. */
    clock: ClockRecord | null
}

/** What disturbed the hosts while one probe measured one (network, path, method, knobs). */
export interface InterferenceRow {
    /** The network. */
    network: string
    /** The path. */
    path: string
    /** How bytes are handed over, as `zerocopy`. */
    method: string | null
    /** What else was set, by name. */
    knobs: Record<string, string>
    /** The probe. */
    probe: string
    /** The load of the network, as `0.6`; null where it was idle. */
    load: string | null
    /** Times that a measuring thread was put aside, at all hosts and in all launches. */
    involuntary_switches: number
    /** CPU time that a hypervisor took; null where no host can tell. */
    steal_ns: number | null
    /** TCP segments sent again; null where no host can tell. */
    retransmits: number | null
    /** Part of all its CPUs that the busier host used, in the median launch; null where no host can tell. */
    cpu_busy_share: number | null
}

/** What a judgement is: of requirements, checks and comparisons, and of all pairs of hosts. */
export type Judged =
    /** All that was required, checked or compared holds. */
    | 'pass'
    /** Something does not hold, or is missing. */
    | 'fail'
    /** Something cannot be told. */
    | 'inconclusive'

/** A phase of a kernel's timed part. */
export interface KernelPhase {
    /** The cell. */
    cell: string
    /** Its name. */
    name: string
    /** Between calls of the library: the mean of ranks and launches. */
    computing_ns: number
    /** In calls of the library: the same. */
    communicating_ns: number
}

/** One kernel, as it ran. */
export interface KernelRow {
    /** The cell. */
    cell: string
    /** The kernel, as `cg`. */
    kernel: string
    /** How large it is, as it was asked for: `S`, `upc`. */
    class: string
    /** How many ranks share it. */
    ranks: number
    /** On how many hosts. */
    hosts: number
    /** The network. */
    network: string
    /** What carries the messages. */
    path: string
    /** `block` or `poll`. */
    wait: string | null
    /** What else was set, by name. */
    knobs: Record<string, string>
    /** Traffic of others; null when idle. */
    load: string | null
    /** Its level, 0 when idle. */
    level: number
    /** The kernel's time: the median of all launches. */
    time_ns: number
    /** Lower end of the interval of the launches' median; null below six launches. */
    ci95_low_ns: number | null
    /** Upper end of the interval of the launches' median; null below six launches. */
    ci95_high_ns: number | null
    /** Millions of operations a second, as the benchmark counts them. */
    mops: number | null
    /** The part of the time in which a rank communicates; what is left is computing. */
    communicating_share: number | null
    /** Messages of all ranks. */
    messages: number | null
    /** Their mean length. */
    mean_bytes: number | null
    /** The median of their lengths. */
    median_bytes: number | null
    /** The time over that of the reference; null where there is none. */
    of_reference: Times | null
    /** What the reference is, as `4 ranks over native:shm on one host`. */
    reference: string | null
    /** What a paper prints of the same. */
    printed: PrintedTime | null
    /** What a paper prints of the messages. */
    printed_messages: PrintedMessages | null
}

/** The messages of a kernel among so many ranks. */
export interface KernelTraffic {
    /** The kernel. */
    kernel: string
    /** How large it is. */
    class: string
    /** Among how many ranks. */
    ranks: number
    /** What carries these messages, each with what was set of it. */
    paths: string[]
    /** How many messages there are from each power of two bytes on, below the next; ascending. Those without are left out. */
    lengths: [number, number][]
    /** From each rank to each, sender by sender: bytes; empty of more ranks than a page shows. */
    bytes: number[]
    /** The same: messages. */
    messages: number[]
}

/** The median of each launch of a row. */
export interface LaunchMedians {
    /** The cell. */
    cell: string
    /** What was measured. */
    quantity: Quantity
    /** Cold or warm. */
    phase: Phase
    /** The part of a start-up. */
    step: Step | null
    /** In the order in which the launches ended. */
    medians: number[]
    /** When each launch began, since the run did. */
    began_ms: number[]
}

/** Where between the wire and the application a result was taken. */
export type Layer =
    /** Frames, without the kernel's protocols. */
    | 'wire'
    /** The kernel's sockets. */
    | 'transport'
    /** A communication library. */
    | 'library'
    /** A program that computes. */
    | 'application'
    /** Files over the network. */
    | 'files'
    /** Stages joined by streams. */
    | 'pipeline'
    /** Requests to objects. */
    | 'objects'

/** A level that ended, and the one that began. */
export interface LevelChange {
    /** The first run of the new level, by its place among `runs`. */
    run: number
    /** The median of the level before, in the quantity's unit. */
    before: number
    /** The median of the new level. */
    after: number
    /** The new level over the one before. */
    ratio: number
    /** `better` or `worse`. */
    change: Change
    /** What was otherwise from then on. */
    conditions: Condition[]
}

/** What a library costs on one network, by one way of waiting. */
export interface LibraryRow {
    /** The network. */
    network: string
    /** The library's path. */
    path: string
    /** The transport's that it is held against. */
    beneath: string
    /** `block` or `poll`, of both. */
    wait: string | null
    /** Traffic of others, of both; null when idle. */
    load: string | null
    /** For each message: at the smallest size; nanoseconds. */
    per_message_ns: Cost
    /** For each byte between the smallest and the largest size; picoseconds; null where one size was measured. */
    per_byte_ps: Cost | null
    /** Each size, ascending. */
    sizes: SizeCost[]
}

/** A run in a list. */
export interface ListedRun {
    /** Its id. */
    run: string
    /** What it is called; null where it is not. */
    name: string | null
    /** When it began. */
    began_unix_ns: number
    /** When it ended; null while it runs, and after it was killed. */
    ended_unix_ns: number | null
    /** How far it came. */
    state: RunState
    /** The command as it was given. */
    command: string
}

/** What is lost in one place, by one kind of finding. */
export interface Loss {
    /** Where. */
    at: LostAt
    /** The rules that found it. */
    rules: string[]
    /** The networks on which it is, the one that loses most first. */
    networks: string[]
    /** The largest share of a time or rate that is lost. */
    share: number
    /** The figures, the largest first: the network of each, and what is lost there. */
    figures: LossFigure[]
    /** The same as a sentence. */
    sentence: string
}

/** What is lost on one network. */
export interface LossFigure {
    /** The network. */
    network: string
    /** What is lost. */
    lost: Lost
}

/** What is lost. */
export interface Lost {
    /** Where. */
    at: LostAt
    /** By what: a path, a host, or two hosts as `a>b`. */
    by: string
    /** The unit of all that follows. */
    unit: LostUnit
    /** How much is lost. */
    value: number
    /** Of how much. */
    of: number
    /** What it is made of, as far as it is known. */
    parts: LostPart[]
    /** The rules that explain it. */
    causes: string[]
}

/** Where something is lost. */
export type LostAt =
    /** One host, with whichever other. */
    | 'host'
    /** The route between two hosts. */
    | 'route'
    /** A stream of a transport. */
    | 'stream'
    /** The rate of a library. */
    | 'library_rate'
    /** The time that a library adds to each message. */
    | 'library'
    /** The transport and the hosts, above the wire. */
    | 'hosts'
    /** The first message. */
    | 'start'
    /** The first message after a pause. */
    | 'pause'
    /** Datagrams on their way. */
    | 'datagrams'

/** A part of a loss, or a figure that explains it, in the same unit. */
export interface LostPart {
    /** What it is. */
    name: string
    /** How much. */
    value: number
}

/** The unit of a loss and of its whole. */
export type LostUnit =
    /** Nanoseconds of each message. */
    | 'ns'
    /** Nanoseconds, once. */
    | 'ns_once'
    /** Bits a second. */
    | 'bps'
    /** Thousandths of what others have. */
    | 'per_mille'

/** How busy the hosts were during one launch, or several. */
export interface Moment {
    /** When it began, since the run did. */
    began_ms: number
    /** When it ended. */
    ended_ms: number
    /** Part of all its CPUs that the busiest host used; null where no host can tell, or none was watched for long enough. */
    busy_share: number | null
    /** The same of what a hypervisor took. */
    stolen_share: number | null
    /** Part of the deliveries that the emulated network made behind schedule; null where none was emulated. */
    late_share: number | null
}

/** A network as it was resolved. */
export interface NetworkRecord {
    /** Ceilings and overhead chain. Its name is the selector with knobs, and names the network in all rows. */
    row: NetworkRow
    /** What the model allows, beside what is measured. */
    ceilings: Ceiling[]
    /** How hosts are attached to an emulated network: `tap` or `veth`. */
    attachment: string | null
    /** What holds senders back. */
    backpressure: Backpressure | null
    /** The resolved description, as TOML; null for a real network. */
    spec: string | null
}

/** A network technology with its ceilings. */
export interface NetworkRow {
    /** The name that `--network` takes. */
    name: string
    /** The family: `ethernet`, `atm`, `wan`. */
    technology: string
    /** One sentence about it. */
    summary: string | null
    /** How its hosts are joined, for example `star`. */
    topology: string | null
    /** The largest IP packet. */
    mtu_bytes: number
    /** The nominal rate of the line; null on a network without one. */
    line_bps: number | null
    /** The upper bound for a stream with the profile's headers, without acknowledgements; null without a rate. */
    tcp_max_bps: number | null
    /** What the model reaches with a kernel-like sender in the same window; null where it was not worked out. */
    tcp_expected_bps: number | null
    /** The model's time for one byte of user data from host to host. */
    one_way_1b_ns: number | null
    /** From the line rate down to user bytes. */
    overhead: OverheadStep[]
}

/** One action. */
export interface Next {
    /** What. */
    what: string
    /** The command that does it; null where there is none. */
    command: string | null
}

/** What was seen of a machine in some 300 ms, while sonde did nothing else on it. */
export interface Noise {
    /** The name that the machine gives itself. */
    machine: string
    /** When it was looked at. */
    at_unix_ns: number
    /** How long it was looked at. */
    span_ns: number
    /** CPUs online. */
    cpus_online: number
    /** CPUs that this program may use. */
    cpus_allowed: number
    /** The kernel's mean of threads that run or want to, over the last minute; null where it does not tell. */
    load_1min: number | null
    /** What a hypervisor took of the allowed CPUs' time, 0 to 1; null where /proc/stat cannot be read. */
    stolen_share: number | null
    /** What others used of it, 0 to 1; null likewise. */
    others_share: number | null
    /** How exact the two shares are: one tick of /proc/stat. */
    tick_share: number
    /** For how long each allowed CPU was away at most. */
    gaps: Gap[]
    /** By how much sleeps of 1 ms ended late: the median. */
    wake_late_ns_p50: number
    /** The 99th percentile. */
    wake_late_ns_p99: number
    /** The latest. */
    wake_late_ns_max: number
    /** Whether nothing disturbs timings. */
    quiet: boolean
    /** What does: of `stolen`, `others`, `gap`, `late`. */
    causes: string[]
}

/** The one-way time of a small message, and its parts. */
export interface OneWay {
    /** All of it. */
    whole_ns: number
    /** The network's model; null where there is none. */
    wire_ns: number | null
    /** The transport and the hosts above it, or all of the transport where the wire is not known; null where that was not measured. */
    hosts_ns: number | null
    /** The library above the transport; null of a transport, and where that was not measured. */
    library_ns: number | null
    /** Whether the hosts' part is not distinguishable from 0. */
    is_hosts_unsure: boolean
    /** Whether the library's part is not distinguishable from 0. */
    is_library_unsure: boolean
    /** Whether a disturbance leaves it uncertain. */
    is_disturbed: boolean
}

/** What remains after one step of framing. */
export interface OverheadStep {
    /** What the step is, for example `cell`. */
    step: string
    /** The rate that is left for what it carries. */
    bps: number
    /** Bytes that are left of one full-sized frame. */
    bytes: number
}

/** What a configuration gave in one run. */
export interface Past {
    /** The run, by its place among `runs`. */
    run: number
    /** The median of the launches' medians, in the quantity's unit. */
    p50: number
    /** Launches that gave one. */
    launches: number
}

/** A run of a history. */
export interface PastRun {
    /** Its id. */
    run: string
    /** When it began. */
    began_unix_ns: number
}

/** Whether anything was set up before the first sample. */
export type Phase =
    /** First use: nothing was connected, resolved or cached. */
    | 'cold'
    /** After warm-up messages, which were discarded. */
    | 'warm'

/** A time that a paper prints of a machine that sonde has none of. */
export interface PrintedElsewhere {
    /** The kernel. */
    kernel: string
    /** The study, with the table. */
    cite: string
    /** The machine. */
    what: string
    /** The time. */
    seconds: number
    /** The time over that of the study's reference; null where it has none. */
    of_reference: number | null
}

/** What a paper prints of a kernel's messages. */
export interface PrintedMessages {
    /** The study, with the table. */
    cite: string
    /** How many, of all ranks. */
    messages: number
    /** Their mean length. */
    mean_bytes: number
    /** The median of their lengths. */
    median_bytes: number
}

/** A time that a paper prints. */
export interface PrintedTime {
    /** The study, with the table. */
    cite: string
    /** What was measured there. */
    what: string
    /** Its size, as printed. */
    size: string
    /** The time. */
    seconds: number
    /** The greatest reading, where the print is damaged. */
    seconds_to: number | null
    /** The time over that of the study's reference, idle; null where it has none. */
    of_reference: number | null
    /** What to know of it. */
    note: string | null
}

/** What was measured, with its unit last. */
export type Quantity =
    /** Half a round trip, always. */
    | 'latency_ns'
    /** A round trip. */
    | 'rtt_ns'
    /** From a start-up's begin to its end, or one of its steps. */
    | 'startup_ns'
    /** From the begin of a step, in which every host sends to its neighbours at once, to the arrival of the whole message. */
    | 'exchange_ns'
    /** User bytes at the receiver; of files those of a pass over a whole file. */
    | 'throughput_bps'
    /** CPU time of the sending thread for each user byte; of files the client's. */
    | 'cpu_src_ns_per_byte'
    /** CPU time of the receiving thread for each user byte; of files the server's. */
    | 'cpu_dst_ns_per_byte'
    /** Datagrams sent and never received, of all sent. */
    | 'lost_share'
    /** Datagrams that came after a later one, of all received. */
    | 'reordered_share'
    /** Datagrams that came again, of all received. */
    | 'duplicated_share'
    /** Time with something to send, of the timed window, at the sender. */
    | 'busy_share'
    /** Time that the peer's window held the sender back, of the timed window. */
    | 'rwnd_limited_share'
    /** Time that the send buffer held the sender back, of the timed window. */
    | 'sndbuf_limited_share'
    /** Segments sent again in the timed window; of files messages of the client beyond one for each call, by FTP segments of both ends. */
    | 'retransmits'
    /** Of one message: from the call that sends to the return of the call that receives; the sum of the five that follow. */
    | 'one_way_ns'
    /** From the call that sends until the packet scheduler has the message. */
    | 'send_call_ns'
    /** From there until the driver has it. */
    | 'queue_ns'
    /** From there until the peer's kernel took it from its driver. */
    | 'wire_ns'
    /** From there until the reader runs: the protocols of the receiving kernel, and the waking of a reader that sleeps. */
    | 'wake_ns'
    /** The call that receives, from there to its return. */
    | 'receive_ns'
    /** From the call that sends until the sending kernel has the peer's acknowledgement. */
    | 'ack_ns'
    /** By the sender's network card alone: from the message's leaving it to the answer's arrival at it. */
    | 'nic_trip_ns'
    /** Messages at a rate: from the time at which a message was due to its answer. */
    | 'response_ns'
    /** Messages at a rate: from the call that sent a message to its answer. Files: from the first send of a call to its reply; by FTP of a whole transfer. */
    | 'service_ns'
    /** Messages at a rate: how many were sent in a second. Files: calls, by FTP transfers, in a second. */
    | 'rate_per_s'
    /** A collective call: from its agreed begin to its end at the last rank. */
    | 'collective_ns'
    /** Of the calls that are samples of it: from the agreed begin until the last rank called, which is no part of the call. */
    | 'entry_late_ns'
    /** Messages at a rate: those sent only when the next was due already, of all. */
    | 'late_share'
    /** A kernel: its timed part at the longest rank, of FT at rank 0. */
    | 'kernel_ns'
    /** A kernel: millions of operations a second, as its benchmark counts operations. */
    | 'mop_per_s'
    /** A kernel: the share of the ranks' time that they were in calls of the library, in the timed part. */
    | 'communicating_share'
    /** A replay of messages: from its first step to the end of the last one at the longest rank. */
    | 'replay_ns'
    /** A kernel or a replay: messages of all ranks in the timed part. */
    | 'messages'
    /** A replay of messages: their lengths, summed. */
    | 'message_bytes'
    /** A kernel or a replay: the mean length of these messages. */
    | 'message_bytes_mean'
    /** A kernel or a replay: the lower median of their lengths, off by at most a 64th of itself. */
    | 'message_bytes_median'
    /** A kernel or a replay in a lab: frames of programs that the network lost, of all that it took. */
    | 'network_lost_share'
    /** A check of a library: collective calls and messages that were held against what they must give. */
    | 'checks'
    /** A program under a placement: its own time on the slowest rank. */
    | 'program_ns'

/** What a load adds to the latency of one cell. */
export interface QueueingRow {
    /** The loaded cell. */
    cell: string
    /** The network. */
    network: string
    /** The path. */
    path: string
    /** How bytes are handed over, as `zerocopy`. */
    method: string | null
    /** What else was set, by name. */
    knobs: Record<string, string>
    /** `block` or `poll`. */
    wait: string | null
    /** The load, as `0.6`. */
    load: string
    /** The message's size. */
    size_bytes: number
    /** The median of the idle launches' medians. */
    idle_ns: number
    /** The median of the loaded launches' medians. */
    loaded_ns: number
    /** How much more the loaded one is. */
    waits_ns: number
    /** Lower end of the interval at 95 %; null below six launches of either. */
    ci95_low_ns: number | null
    /** Upper end of the interval at 95 %; null below six launches of either. */
    ci95_high_ns: number | null
    /** Half a round trip on the virtual clock, idle; null for messages of several frames. */
    model_idle_ns: number | null
    /** The same under the load. */
    model_loaded_ns: number | null
}

/** One quantity of one cell. The statistics of a row that was not measured are all null. */
export interface ResultRow {
    /** The kind of measurement: `startup`, `latency`, `throughput`. */
    probe: string
    /** The layer. */
    layer: Layer
    /** `library[:transport[:provider]]`, for example `tcp`. */
    path: string
    /** How bytes are handed over: `plain`, `zerocopy`. */
    method: string | null
    /** What else was set, by name: `streams` = `4`. Empty where all was left to the kernel. */
    knobs: Record<string, string>
    /** Of throughput: `stream`, or `message` (single messages, each with everything in it); null else. */
    mode: string | null
    /** `block` or `poll`. */
    wait: string | null
    /** The network's name with its knobs. */
    network: string
    /** What the hosts were. */
    testbed: Testbed
    /** The hosts' settings: `modern`, `era`, `asis`. */
    profile: string | null
    /** Background traffic; null when idle. */
    load: string | null
    /** The sending host. */
    src: string | null
    /** The receiving host. */
    dst: string | null
    /** User bytes in a message; null of a kernel, whose messages have sizes of their own. */
    size_bytes: number | null
    /** Cold or warm; never mixed. */
    phase: Phase | null
    /** The part of a start-up. */
    step: Step | null
    /** The id of the cell: the hash of its resolved factors. */
    cell: string
    /** Launches that gave samples. */
    launches: number
    /** Launches that were set aside and made again, since a disturbance met most of their time. */
    set_aside: number
    /** Samples in all of them. */
    samples: number
    /** What was measured. */
    quantity: Quantity
    /** The smallest sample. */
    min: number | null
    /** The median sample. */
    p50: number | null
    /** The 90th percentile. */
    p90: number | null
    /** The 99th percentile; null below 1,000 samples. */
    p99: number | null
    /** The 99.9th percentile; null below 10,000 samples. */
    p999: number | null
    /** The largest sample. */
    max: number | null
    /** The mean, rounded as the samples are. */
    mean: number | null
    /** Lower end of the interval of the launches' median; null below six launches. */
    ci95_low: number | null
    /** Upper end of the interval of the launches' median; null below six launches. */
    ci95_high: number | null
    /** The share of the samples whose time met a disturbance, 0 to 1; null where it was not seen which did. */
    touched_share: number | null
    /** The median of the samples that met none, of a stream that of its launches; null where it was not seen which did. */
    undisturbed_p50: number | null
    /** Lower end of the interval within which the median of an undisturbed machine lies, whatever the disturbance did to the samples that it met, or to all of them where it was not seen which it met; of fewer than six launches that of their medians. Null where there is no bound. */
    undisturbed_low: number | null
    /** Its upper end, likewise. */
    undisturbed_high: number | null
    /** Whether it was measured. */
    status: Status
    /** Why not, or what to know before trusting it. */
    reason: string | null
    /** What the figure is worth. */
    state: State
    /** Why it is uncertain, in kind. */
    doubts: Doubt[]
    /** The same in words; null else. */
    why: string | null
    /** What holds the sender back. */
    backpressure: Backpressure | null
    /** Whether the emulation kept its own times. */
    verdict: Verdict | null
}

/** What was asked. */
export interface RunHead {
    /** Its id: the time of its begin and six random digits, as in `20261121T043302Z-1f09c3`. */
    id: string
    /** The command as it was given. */
    command: string
    /** The plan that it became, as TOML. */
    plan: string
    /** Where random draws began: the order of launches, the networks' losses. */
    seed: number
    /** Version of sonde that began it. */
    version: string
    /** When it began. */
    began_unix_ns: number
    /** When it ended; null while it runs, and after it was killed. */
    ended_unix_ns: number | null
    /** How it ended. */
    state: RunState
}

/** The name and version of a list's data. */
export type RunListSchema =
    /** The first. */
    | 'sonde-runs/1'

/** How far a run is. */
export type RunState =
    /** Begun and not ended: it is running, or it was killed. */
    | 'open'
    /** All launches were made. */
    | 'complete'
    /** It ended before all launches were made: interrupted, out of budget, or a host was lost. `--resume` goes on. */
    | 'partial'

/** What was measured. */
export interface Scope {
    /** The run's id. */
    run: string
    /** What the hosts are; null where there are no cells. */
    testbed: Testbed | null
    /** The hosts. */
    hosts: string[]
    /** Networks, without the loopback that is measured beside them. */
    networks: number
    /** Ordered pairs of hosts between which something was measured. */
    pairs: number
    /** The same without the matrix of all pairs. */
    pairs_beside: number
    /** Ordered pairs that there are. */
    pairs_all: number
    /** When it began. */
    began_unix_ns: number
    /** How long it took; null while it runs, and after it was killed. */
    took_ns: number | null
}

/** What the launches of a line and probe saw. */
export interface SeenRow {
    /** The network. */
    network: string
    /** The path. */
    path: string
    /** How bytes are handed over, as `zerocopy`. */
    method: string | null
    /** `block` or `poll`. */
    wait: string | null
    /** The load of the network, as `0.6`; null where it was idle. */
    load: string | null
    /** What else was set, by name. */
    knobs: Record<string, string>
    /** The probe. */
    probe: string
    /** How many launches. */
    launches: number
    /** Each fact: its path in a launch, and what it was. */
    facts: [string, string][]
}

/** What a finding is for. */
export type Severity =
    /** It is so. */
    | 'note'
    /** Something can be changed for the better. */
    | 'advice'
    /** Check this before trusting the results. */
    | 'warning'

/** The cost of one size. */
export interface SizeCost {
    /** User bytes in a message. */
    size_bytes: number
    /** What the network's model takes for it over the transport; null where there is no model. */
    wire_ns: number | null
    /** Half a round trip of the transport. */
    transport_ns: number
    /** Half a round trip of the library. */
    library_ns: number
    /** The difference, in nanoseconds. */
    cost_ns: Cost
}

/** A workload beside others. */
export interface Slowdown {
    /** The network that it is measured on, with its knobs. */
    network: string
    /** What is slowed, in the words of the command line. */
    workload: string
    /** What is measured at once with it, and the level of a background load. */
    beside: string[]
    /** Its own figure. */
    quantity: Quantity
    /** The cell alone; null where none was planned. */
    cell_alone: string | null
    /** The cell beside the others. */
    cell: string
    /** The median of the repetitions' medians alone, in the quantity's unit. */
    alone: number | null
    /** The same beside the others. */
    together: number | null
    /** How many times as long it takes. */
    slowdown: number | null
    /** Lower end of its interval at 95 %; null below six repetitions. */
    low: number | null
    /** Upper end of its interval at 95 %. */
    high: number | null
    /** Repetitions of the fewer of both. */
    launches: number
    /** What follows. */
    state: SlowdownState
    /** Why it is inconclusive or not measured. */
    why: string | null
    /** The slow-down of the same on `wire`, where only the hosts' CPUs are shared; null where that was not measured. */
    cpu_slowdown: number | null
}

/** The slow-downs of a network, as people read them. */
export interface SlowdownMatrix {
    /** The network of what is measured, with its knobs. */
    network: string
    /** Whether all share the hosts' CPUs alone on it. */
    is_cpu: boolean
    /** What runs beside it, single ones first. */
    columns: string[]
    /** Who is measured. */
    rows: SlowdownRow[]
}

/** A workload beside each of the columns. */
export interface SlowdownRow {
    /** In the words of the command line. */
    workload: string
    /** One for each column; null where they were not measured at once. */
    cells: (Slowdown | null)[]
}

/** What becomes of a workload beside others. */
export type SlowdownState =
    /** Its interval is above 1.1. */
    | 'slowed'
    /** Its interval is below 1.1. */
    | 'not_slowed'
    /** Its interval holds 1.1, or there are fewer than six repetitions. */
    | 'inconclusive'
    /** It has no figure, alone or beside the others. */
    | 'not_measured'

/** What a figure is worth. */
export type State =
    /** It is what an undisturbed machine would have given, within its interval. */
    | 'sound'
    /** It may be; why not, `why` says. */
    | 'uncertain'
    /** There is none; `reason` says why. */
    | 'not_measured'

/** Whether a row holds a measurement. */
export type Status =
    /** Measured. */
    | 'measured'
    /** Tried, and failed; `reason` says why. */
    | 'failed'
    /** Not tried; `reason` names the missing capability. */
    | 'skipped'

/** The part of a start-up that a row measures; a row without a step is the whole start-up. */
export type Step =
    /** Of a library: from the start of its ranks to the first line of rank 0's program. */
    | 'spawn'
    /** Of a library: from there until it can send. */
    | 'init'
    /** Address resolution. */
    | 'neighbour'
    /** The set-up of a virtual circuit. */
    | 'vc'
    /** The transport's handshake. */
    | 'connect'
    /** The round trip of the first message. */
    | 'first'
    /** The round trip of the second message, beside `first`: what was paid only once is the difference. */
    | 'second'
    /** The first message after a pause. */
    | 'idle'

/** The rate against the program's buffer, all else being equal. */
export interface SweepCurve {
    /** The network. */
    network: string
    /** The path. */
    path: string
    /** `block` or `poll`. */
    wait: string | null
    /** How bytes are handed over. */
    method: string | null
    /** What was set, by name. */
    knobs: Record<string, string>
    /** By ascending buffer. */
    points: SweepPoint[]
    /** The largest median. */
    plateau_bps: number
    /** The smallest buffer on the plateau. */
    knee_bytes: number
    /** Lower end of its interval; null below six launches. */
    knee_low: number | null
    /** Upper end. */
    knee_high: number | null
    /** The window that was set. */
    window_bytes: number | null
    /** What that window allows: window / round trip. */
    bound_bps: number | null
    /** User bytes in a segment. */
    segment_bytes: number | null
}

/** One buffer of a curve. */
export interface SweepPoint {
    /** The program's buffer: bytes of each call. */
    size_bytes: number
    /** The median rate. */
    bps: number
    /** Lower end of its interval; null below six launches. */
    ci95_low: number | null
    /** Upper end. */
    ci95_high: number | null
    /** The sender's buffer as its kernel granted it; null where no launch read it back. */
    granted_send_bytes: number | null
    /** The receiver's. */
    granted_recv_bytes: number | null
    /** CPU time of the sender, in ns a byte. */
    cpu_src: number | null
    /** CPU time of the receiver, in ns a byte. */
    cpu_dst: number | null
    /** Datagrams lost, of all sent. */
    lost: number | null
}

/** What the hosts were. */
export type Testbed =
    /** This machine. */
    | 'local'
    /** An emulated cluster on this machine. */
    | 'lab'
    /** Real machines. */
    | 'hosts'
    /** Virtual time. */
    | 'virtual'

/** A time over another. */
export interface Times {
    /** How many times the other. */
    value: number
    /** Lower end of the interval at 95 %; null below six launches of either. */
    ci95_low: number | null
    /** Upper end of the interval at 95 %; null below six launches of either. */
    ci95_high: number | null
}

/** The trust in a run. */
export interface Trust {
    /** How far. */
    level: TrustLevel
    /** Figures that were measured, one a cell. */
    figures: number
    /** Of these, those that a disturbance leaves uncertain. */
    disturbed: number
    /** The least and the most CPU time that a hypervisor took, over the networks where it took 1 % or more; null where it did not. */
    stolen: [number, number] | null
    /** The fewest and the most repetitions of a cell; null where nothing was measured. */
    repetitions: [number, number] | null
    /** Medians that are not known within 5 %. */
    wide: number
    /** Medians that have an interval. */
    intervals: number
    /** Repetitions that are missing or failed. */
    missing: number
    /** Kinds of figures that can be used though some are disturbed. */
    usable: Figures[]
    /** Kinds that cannot. */
    unusable: Figures[]
    /** The reasons, the weightiest first. */
    reasons: string[]
}

/** How far figures can be trusted. */
export type TrustLevel =
    /** Not without a look at the reasons. */
    | 'low'
    /** With the reasons in mind. */
    | 'medium'
    /** As they stand. */
    | 'high'

/** The judgement with its figures. */
export interface Verdict {
    /** The judgement. */
    status: VerdictStatus
    /** Frames that the network delivered. */
    deliveries: number
    /** Of these, later than the bound. */
    late: number
    /** `late` over `deliveries`; null without deliveries. */
    late_share: number | null
    /** The smallest bound that a delivery had. */
    bound_ns: number
    /** Median lateness. */
    lateness_p50_ns: number | null
    /** 99th percentile of lateness. */
    lateness_p99_ns: number | null
    /** Largest lateness. */
    lateness_max_ns: number | null
    /** Frames lost between a host and the network. */
    attachment_losses: number
    /** Why it failed, each with figures; empty when passed. */
    reasons: string[]
    /** The best figure of a row over what the model allows, where that is above 1.003; absent else. */
    above_bound?: number | null
    /** How often a host's gate was put back, because a program had replaced it; absent when 0. */
    gate_rearmed?: number
}

/** The judgement. */
export type VerdictStatus =
    /** The emulation kept its times. */
    | 'passed'
    /** It did not: do not trust the cell. */
    | 'failed'

/** The name and version of the page's data. */
export type ViewSchema =
    /** The first. */
    | 'sonde-view/1'
