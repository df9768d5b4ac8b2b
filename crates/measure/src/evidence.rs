//! What a launch saw beside its samples: sockets, interfaces, places, libraries, loads, losses.
//!
//! Model:   an [`Evidence`] is of one launch: two sides, what is of each size, of the ranks, of the load and of the network. What was
//!          not seen is absent. In JSON it is what it is here, by the names of the fields; stores of versions 1 and 2 have texts by
//!          names of their own, which [`Evidence::read`] and [`Library::read`] alone read.
//! Units:   in the names: nanoseconds, bytes, parts of one.
//! Checked: `any_evidence_comes_back`, `what_no_one_knows_is_an_error`, `texts_of_a_run_are_read`, `each_text_is_a_fact_of_its_own`,
//!          `sides_are_joined`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts::{Facts, Reader, Unread, facts, is_empty, merge_all, take_all};
use crate::files::Stage;
use crate::fixed::{Fixed, RelativeError, Shares};
use crate::loss::Loss;
use crate::npb::Kernel;
use crate::replay::Replay;
use crate::text::{
    Buffer, ColdBuffers, EndedBy, HostChange, LoadLimit, LongMessages, Name, Names, Neighbour,
    Placed, RingShape, SampleClock, Splice, Strayed, Verification, Words, XdpMode, ZerocopyNote,
};

facts! {
    /// What the kernel says that a socket or a shared segment is, read back after it was asked.
    Socket {
        /// The send buffer.
        "send_buffer_bytes" send_buffer: Buffer,
        /// The receive buffer.
        "recv_buffer_bytes" recv_buffer: Buffer,
        /// TCP only: the largest window that it offers, where one was asked for.
        "window_bytes" window: Buffer,
        /// TCP only: small messages are sent at once.
        "nodelay" nodelay: bool,
        /// TCP only: the congestion control in use.
        "congestion" congestion: Name,
        /// TCP only: user bytes in a segment.
        "mss_bytes" mss_bytes: u32,
        /// How long a receive looks at the device's queue before it sleeps, microseconds; absent where it was not asked for.
        "busy_poll_us" busy_poll_us: u32,
        /// UDP only: the socket has one peer in the kernel.
        "connected" connected: bool,
    }

    /// Where an end ran.
    Place {
        /// The CPU of its thread after what was timed.
        "cpu" cpu: usize,
        /// The CPU of the last packet's receive path (SO_INCOMING_CPU).
        "rx_cpu" rx_cpu: usize,
        /// The CPU that it was bound to.
        "place" bound: Placed,
        /// Users' buffers, where no cache was to have them.
        "buffers" buffers: ColdBuffers,
        /// What timed its samples.
        "clock" clock: SampleClock,
    }

    /// How bytes were handed over.
    Transfer {
        /// TCP: bytes that a receive asked for.
        "chunk_bytes" chunk_bytes: usize,
        /// UDP: datagrams in a call, the mean.
        "datagrams_per_call" datagrams_per_call: Fixed<1>,
        /// UDP with `gso`: of the datagrams received, those that came joined.
        "joined_share" joined_share: Fixed<3>,
        /// MSG_ZEROCOPY: of the bytes, those that the kernel copied after all.
        "zerocopy_copied_share" zerocopy_copied_share: Fixed<3>,
        /// MSG_ZEROCOPY: waits for the kernel to be done with what was sent.
        "zerocopy_waits" zerocopy_waits: u64,
        /// MSG_ZEROCOPY: whether it was of no use.
        "zerocopy_note" zerocopy_note: ZerocopyNote,
        /// io_uring: messages in a chain of calls.
        "uring_chain_messages" uring_chain_messages: usize,
        /// sendfile.
        "splice" splice: Splice,
        /// Packet sockets: the interface.
        "interface" interface: Name,
        /// Packet sockets: slots shared with the kernel.
        "ring" ring: RingShape,
        /// AF_XDP: where frames are taken.
        "xdp" xdp: XdpMode,
        /// Packet sockets: frames that the device refused.
        "frames_refused" frames_refused: u64,
        /// Packet sockets: frames for which there was no room.
        "frames_without_room" frames_without_room: u64,
        /// The address that it used on the network.
        "address" address: IpAddr,
    }

    /// What an interface counted during the launch. Drops and errors are absent where there were none.
    InterfaceCounters {
        /// Bytes received.
        "if.*.rx_bytes" rx_bytes: u64,
        /// Bytes sent.
        "if.*.tx_bytes" tx_bytes: u64,
        /// Frames received.
        "if.*.rx_packets" rx_packets: u64,
        /// Frames sent.
        "if.*.tx_packets" tx_packets: u64,
        /// Frames received for which the kernel had no room.
        "if.*.rx_dropped" rx_dropped: u64,
        /// Frames for which the device had no room in its ring.
        "if.*.rx_missed" rx_missed: u64,
        /// Broken frames received.
        "if.*.rx_errors" rx_errors: u64,
        /// Frames to send for which the device had no room.
        "if.*.tx_dropped" tx_dropped: u64,
        /// Frames that could not be sent.
        "if.*.tx_errors" tx_errors: u64,
        /// Frames dropped by the queueing discipline before the device.
        "if.*.queue_dropped" queue_dropped: u64,
    }

    /// A counter of the kernel's UDP, by its name.
    UdpCounter {
        /// By how much it grew.
        "udp.*" count: u64,
    }

    /// A setting of a host that was changed for the launch, by its name.
    HostSetting {
        /// How.
        "host.*" change: HostChange,
    }

    /// How busy others kept the host of an end in a pattern.
    Others {
        /// Their CPU time, of all CPUs.
        "others_share" share: Fixed<3>,
    }

    /// What is to be known of one size of messages.
    SizeFacts {
        /// Why no further sample was taken.
        "ended_by.*" ended_by: EndedBy,
        /// A collective: who made it, `library` or an algorithm.
        "made_by.*" made_by: Name,
        /// A stream by a library: messages under way.
        "window.*" window_messages: u64,
        /// Messages at a rate: those sent before the count began.
        "rate.discarded.*" discarded: u64,
        /// Messages at a rate: those due that were never sent.
        "rate.unsent.*" unsent: u64,
        /// Messages at a rate: why no further one was sent.
        "rate.ended_by.*" rate_ended_by: EndedBy,
        /// One-way times: the bound of the clocks' offset.
        "anatomy.clock_error_ns.*" clock_error_ns: u64,
        /// One-way times: messages lost.
        "anatomy.lost.*" anatomy_lost: u64,
        /// One-way times: stamps that were not in their order.
        "anatomy.out_of_order.*" out_of_order: u64,
        /// Several streams: what each sent, of all.
        "src_stream_shares.*" src_stream_shares: Shares,
        /// Several streams: what of each was received, of all.
        "dst_stream_shares.*" dst_stream_shares: Shares,
        /// The time stamp counter went astray.
        "src_clock.*" strayed: Strayed,
        // The texts of these two have no size in their names: Evidence::read takes them for that of the cell.
        /// Under a load: half a round trip on the virtual clock, idle.
        "load.model_idle_ns" load_model_idle_ns: u64,
        /// The same under the load.
        "load.model_loaded_ns" load_model_loaded_ns: u64,
    }

    /// What a library says of itself.
    Library {
        /// Its name: `native`, `openmpi`, `mpich`, `pvm`, `ucx`, `ofi`.
        "library" library: Name,
        /// Its version.
        "version" version: Words,
        /// The standard that it implements.
        "standard" standard: Words,
        /// What carries its messages.
        "transport" transport: Words,
        /// What that is made of.
        "provider" provider: Words,
        /// How a native rank waits: `block`, `poll`.
        "wait" wait: Name,
        /// How native ranks hand over long messages.
        "large messages" long_messages: LongMessages,
        /// `single`, `funneled`, `serialized`, `multiple`.
        "thread_level" thread_level: Name,
        /// What it does when it finds nothing: `spin`, `yield`, `auto`.
        "idle" idle: Name,
        /// Open MPI: point-to-point layers.
        "pml" pml: Words,
        /// Open MPI: transports of bytes.
        "btl" btl: Words,
        /// Open MPI: transports with matching.
        "mtl" mtl: Words,
        /// MPICH: its device.
        "device" device: Words,
        /// UCX: the transports that were asked for.
        "asked" asked: Words,
        /// libfabric: the domain.
        "domain" domain: Words,
        /// PVM: `direct`, `default`.
        "route" route: Name,
        /// PVM: `default`, `raw`, `inplace`.
        "encoding" encoding: Name,
        /// PVM: hosts of the virtual machine.
        "hosts" hosts: u64,
        /// PVM: the longest fragment.
        "fragment_bytes" fragment_bytes: u64,
        /// The adapter's file.
        "adapter" adapter: Words,
        /// The virtual topology by which messages go.
        "topology" topology: Words,
        /// How they go by it.
        "topology_mode" topology_mode: Words,
        /// By how much ranks were held, as a ratio.
        "aged" aged: Words,
    }

    /// The ranks of a launch.
    Ranks {
        /// How many.
        "ranks" count: u64,
        /// The host of each, in their order, as it names itself.
        "ranks.hosts" hosts: Names<' '>,
        /// How they ended, where not well.
        "ranks.end" end: Words,
        /// Whether the library yields the CPU when it finds nothing, as who started it knows.
        "yield" yields: Words,
        /// A burst of messages: how many.
        "window" burst_messages: u64,
    }

    /// A start-up in parts.
    StartUp {
        /// Whose address was resolved.
        "neighbour" neighbour: Neighbour,
        /// The same at the peer, in nanoseconds, where a circuit was set up.
        "peer_neighbour_ns" peer_neighbour_ns: u64,
    }

    /// Datagrams of all sizes.
    Datagrams {
        /// Sent.
        "datagrams.sent" sent: u64,
        /// Sent and never received.
        "datagrams.lost" lost: u64,
    }

    /// What an emulated network took.
    Emulation {
        /// CPU time of the switch, for all that it did meanwhile.
        "emulation.switch_cpu_ns" switch_cpu_ns: u64,
        /// The priority of the lab's own processes at the end: `usual`, `real-time`, or `given-up` where its switch would have kept a CPU for itself.
        "emulation.priority" priority: Name,
    }

    /// A load as a whole.
    Load {
        /// A lab's: the switch's part of a CPU, for the load and all else.
        "load.switch_cpu_share" switch_cpu_share: Fixed<4>,
    }

    /// A load's flow: by its port in a lab, by `src>dst` between hosts. Shares are of the link.
    LoadFlow {
        /// The level that was asked for.
        "load.wanted.*" wanted: Fixed<4>,
        /// What the law's chance planned.
        "load.planned.*" planned: Fixed<4>,
        /// What was sent.
        "load.sent.*" sent: Fixed<4>,
        /// What was received.
        "load.achieved.*" achieved: Fixed<4>,
        /// The sending thread's part of a CPU.
        "load.sender_cpu_share.*" sender_cpu_share: Fixed<4>,
        /// What held it below what was planned.
        "load.limit.*" limit: LoadLimit,
    }

    /// Frames of a program that an emulated network lost, by place, cause and port.
    NetworkLoss {
        /// How many.
        "network.lost.*" frames: u64,
    }

    /// Results of a kernel.
    Application {
        /// All that its runs gave.
        "npb" kernel: Kernel,
        /// What its ranks did when, packed.
        "npb.trace" trace: Words,
        /// By how much computing was stretched.
        "npb.age" age: Fixed<4>,
        /// The timed part of a sequential run on the old host.
        "npb.age.recorded_ns" age_recorded_ns: u64,
        /// The same here.
        "npb.age.own_ns" age_own_ns: u64,
        /// Whether its results are the official ones.
        "npb.verification" verification: Verification,
        /// The largest relative error of its results.
        "npb.error" error: RelativeError,
        /// What the replays of a program's messages gave.
        "messages" replay: Replay,
    }

    /// What was counted of files of one size, and what was measured apart.
    FilesFacts {
        /// Calls, of all clients.
        "files.calls.*" calls: u64,
        /// Messages of clients beyond one for each call.
        "files.retransmissions.*" retransmissions: u64,
        /// Replies that came to calls that were answered already.
        "files.late_replies.*" late_replies: u64,
        /// Messages of clients that reached the server.
        "files.received.*" received: u64,
        /// Of these, those that it was working on already.
        "files.in_progress.*" in_progress: u64,
        /// Of these, those that it answered with a kept reply.
        "files.repeated.*" repeated: u64,
        /// Of these, those that its queue had no room for.
        "files.overflowed.*" overflowed: u64,
        /// Replies that the server sent.
        "files.replied.*" replied: u64,
        /// Datagrams that the server's socket had no room for.
        "files.lost.server_buffer.*" lost_server_buffer: u64,
        /// Datagrams of which fragments were missing at the server's host.
        "files.lost.server_fragments.*" lost_server_fragments: u64,
        /// Datagrams that the client's socket had no room for.
        "files.lost.client_buffer.*" lost_client_buffer: u64,
        /// Datagrams of which fragments were missing at the client's host.
        "files.lost.client_fragments.*" lost_client_fragments: u64,
        /// Time that calls waited for a daemon, summed.
        "files.waited_ns.*" waited_ns: u64,
        /// Time that daemons were held, summed.
        "files.held_ns.*" held_ns: u64,
        /// The time of all rounds, between the readings of counts.
        "files.span_ns.*" span_ns: u64,
        /// The receive buffer of the server's UDP socket, as granted.
        "files.receive_buffer_bytes.*" receive_buffer_bytes: u64,
        /// A call that does nothing: its round trip, the median; of FTP an empty file.
        "files.null_ns.*" null_ns: u64,
        /// The same on the server's own loopback.
        "files.own_null_ns.*" own_null_ns: u64,
        /// The call that is measured, on the server's own loopback and from its cache, the median; of FTP the file's bytes without disk or
        /// translation.
        "files.own_call_ns.*" own_call_ns: u64,
        /// What the network's model has for the bytes that the call carries beyond one that does nothing.
        "files.wire_ns.*" wire_ns: u64,
        /// Of several clients: what the slowest has of their rate, in millionths.
        "files.client_share_least_ppm.*" client_share_least_ppm: u64,
        /// The same of the fastest.
        "files.client_share_most_ppm.*" client_share_most_ppm: u64,
        /// A file system: the most bytes of the file that were in memory as a pass over it began.
        "files.resident_bytes.*" resident_bytes: u64,
        /// FTP: a round trip of the command NOOP, the median.
        "files.trip_ns.*" trip_ns: u64,
        /// FTP: a plain stream of the file's bytes by the same sockets over the network, with its opening, the median.
        "files.stream_ns.*" stream_ns: u64,
        /// FTP: the file read at its source, by the disk's model or measured.
        "files.source_ns.*" source_ns: u64,
        /// FTP: the file translated at its source, in memory.
        "files.translate_source_ns.*" translate_source_ns: u64,
        /// FTP: the file translated at its sink, in memory.
        "files.translate_sink_ns.*" translate_sink_ns: u64,
        /// FTP: the file written at its sink, by the disk's model or measured.
        "files.sink_ns.*" sink_ns: u64,
        /// FTP: what the stages that were measured apart give together.
        "files.expected_ns.*" expected_ns: u64,
        /// FTP: the stage that takes longest.
        "files.bottleneck.*" bottleneck: Stage,
    }

    /// What was checked of a library.
    Check {
        /// Collective calls.
        "check.collectives" collectives: u64,
        /// Of these, the library's own.
        "check.collectives.by_library" by_library: u64,
        /// Messages.
        "check.messages" messages: u64,
        /// What it does not have.
        "check.left_out" left_out: Names<','>,
    }

    /// One flow of a pattern, or all of a kind together.
    Flow {
        /// All of a kind together: how many flows.
        "flows" flows: u64,
        /// Flows of the round, beside this one.
        "together" together: u64,
        /// By how much the hosts' starts may differ.
        "start_bound_ns" start_bound_ns: u64,
        /// How late it started.
        "late_ns" late_ns: u64,
        /// TCP: segments sent.
        "segments" segments: u64,
        /// TCP: segments sent again.
        "retransmits" retransmits: u64,
        /// TCP: segments sent again for nothing, as the receiver said (DSACK).
        "in_vain" in_vain: u64,
        /// TCP: segments that were overtaken.
        "overtaken" overtaken: u64,
        /// TCP: time with something to send, microseconds.
        "busy_us" busy_us: u64,
        /// TCP: of it, time that the peer's window held it back, microseconds.
        "rwnd_limited_us" rwnd_limited_us: u64,
        /// TCP: the shortest round trip, microseconds.
        "min_rtt_us" min_rtt_us: u64,
        /// What came before the start.
        "early" early: u64,
        /// How often the round was measured again.
        "rounds_again" rounds_again: u64,
    }
}

/// One end of a launch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Side {
    /// Its socket, read back.
    #[serde(skip_serializing_if = "is_empty")]
    pub socket: Socket,
    /// Where it ran.
    #[serde(skip_serializing_if = "is_empty")]
    pub place: Place,
    /// How it handed bytes over.
    #[serde(skip_serializing_if = "is_empty")]
    pub transfer: Transfer,
    /// What its interfaces counted, by name.
    #[serde(skip_serializing_if = "is_empty")]
    pub interfaces: BTreeMap<Name, InterfaceCounters>,
    /// Counters of UDP that grew, by name.
    #[serde(skip_serializing_if = "is_empty")]
    pub udp: BTreeMap<Name, UdpCounter>,
    /// Settings of its host that were changed, by name.
    #[serde(skip_serializing_if = "is_empty")]
    pub host: BTreeMap<Name, HostSetting>,
    /// What others did on its host.
    #[serde(skip_serializing_if = "is_empty")]
    pub others: Others,
}

impl Side {
    fn take(&mut self, from: &mut Reader, side: &str) {
        let name = |name: &str| format!("{side}_{name}");
        self.socket.take(from, &name);
        self.place.take(from, &name);
        self.transfer.take(from, &name);
        let prefix = format!("{side}_");
        take_all(&mut self.interfaces, from, &prefix);
        take_all(&mut self.udp, from, &prefix);
        take_all(&mut self.host, from, &prefix);
        self.others.take(from, &|name| format!("{side}.{name}"));
    }

    /// Takes over what `other` has.
    pub fn merge(&mut self, other: Self) {
        self.socket.merge(other.socket);
        self.place.merge(other.place);
        self.transfer.merge(other.transfer);
        merge_all(&mut self.interfaces, other.interfaces);
        merge_all(&mut self.udp, other.udp);
        merge_all(&mut self.host, other.host);
        self.others.merge(other.others);
    }
}

/// What a launch saw beside its samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Evidence {
    /// The sending or measuring end.
    #[serde(skip_serializing_if = "is_empty")]
    pub src: Side,
    /// The receiving or answering end.
    #[serde(skip_serializing_if = "is_empty")]
    pub dst: Side,
    /// What is of one size, by user bytes in a message.
    #[serde(skip_serializing_if = "is_empty")]
    pub sizes: BTreeMap<u64, SizeFacts>,
    /// Files, by their size.
    #[serde(skip_serializing_if = "is_empty")]
    pub files: BTreeMap<u64, FilesFacts>,
    /// What the library says of itself.
    #[serde(skip_serializing_if = "is_empty")]
    pub library: Library,
    /// The ranks.
    #[serde(skip_serializing_if = "is_empty")]
    pub ranks: Ranks,
    /// A start-up in parts.
    #[serde(skip_serializing_if = "is_empty")]
    pub start_up: StartUp,
    /// Datagrams of all sizes.
    #[serde(skip_serializing_if = "is_empty")]
    pub datagrams: Datagrams,
    /// An emulated network.
    #[serde(skip_serializing_if = "is_empty")]
    pub emulation: Emulation,
    /// A load as a whole.
    #[serde(skip_serializing_if = "is_empty")]
    pub load: Load,
    /// Its flows.
    #[serde(skip_serializing_if = "is_empty")]
    pub load_flows: BTreeMap<Name, LoadFlow>,
    /// Frames that an emulated network lost.
    #[serde(skip_serializing_if = "is_empty")]
    pub network_losses: BTreeMap<Loss, NetworkLoss>,
    /// A kernel or a replay.
    #[serde(skip_serializing_if = "is_empty")]
    pub application: Application,
    /// A check of a library.
    #[serde(skip_serializing_if = "is_empty")]
    pub check: Check,
    /// A flow of a pattern.
    #[serde(skip_serializing_if = "is_empty")]
    pub flow: Flow,
}

impl Evidence {
    /// The evidence that the texts of a launch in a store of version 1 or 2 say. `size_bytes`: of the launch's cell, whose the model's
    /// times under a load are.
    ///
    /// # Errors
    /// A name that no fact has; a text that its fact does not write.
    pub fn read(texts: BTreeMap<String, String>, size_bytes: u64) -> Result<Self, Unread> {
        let mut from = Reader::new(texts);
        let (mut all, mut of_cell) = (Self::default(), SizeFacts::default());
        from.one("load.model_idle_ns", &mut of_cell.load_model_idle_ns);
        from.one("load.model_loaded_ns", &mut of_cell.load_model_loaded_ns);
        let own = |name: &str| name.to_string();
        // Names with a fixed part come before those that a `*` could take for a key.
        all.src.take(&mut from, "src");
        all.dst.take(&mut from, "dst");
        all.library.take(&mut from, &own);
        all.ranks.take(&mut from, &own);
        all.start_up.take(&mut from, &own);
        all.datagrams.take(&mut from, &own);
        all.emulation.take(&mut from, &own);
        all.load.take(&mut from, &own);
        all.application.take(&mut from, &own);
        all.check.take(&mut from, &own);
        all.flow.take(&mut from, &own);
        take_all(&mut all.sizes, &mut from, "");
        take_all(&mut all.files, &mut from, "");
        take_all(&mut all.load_flows, &mut from, "");
        take_all(&mut all.network_losses, &mut from, "");
        if !is_empty(&of_cell) {
            all.size(size_bytes).merge(of_cell);
        }
        from.finish().map(|()| all)
    }

    /// Takes over what `other` has.
    pub fn merge(&mut self, other: Self) {
        self.src.merge(other.src);
        self.dst.merge(other.dst);
        merge_all(&mut self.sizes, other.sizes);
        merge_all(&mut self.files, other.files);
        self.library.merge(other.library);
        self.ranks.merge(other.ranks);
        self.start_up.merge(other.start_up);
        self.datagrams.merge(other.datagrams);
        self.emulation.merge(other.emulation);
        self.load.merge(other.load);
        merge_all(&mut self.load_flows, other.load_flows);
        merge_all(&mut self.network_losses, other.network_losses);
        self.application.merge(other.application);
        self.check.merge(other.check);
        self.flow.merge(other.flow);
    }

    /// What is known of one size, to be filled.
    pub fn size(&mut self, size_bytes: u64) -> &mut SizeFacts {
        self.sizes.entry(size_bytes).or_default()
    }

    /// Both sides: `src`, `dst`.
    pub fn sides(&self) -> [&Side; 2] {
        [&self.src, &self.dst]
    }
}

impl Library {
    /// What a library or an adapter says of itself, by the names of these facts.
    ///
    /// # Errors
    /// A name that no fact has; a text that its fact does not write.
    pub fn read(told: impl IntoIterator<Item = (String, String)>) -> Result<Self, Unread> {
        let mut library = Self::default();
        let mut from = Reader::new(told.into_iter().collect());
        library.take(&mut from, &|name| name.to_string());
        from.finish().map(|()| library)
    }
}

#[cfg(test)]
mod tests;
