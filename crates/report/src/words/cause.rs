//! What is said of the causes that hold a stream back.
//!
//! Units:   as in the evidence: bits a second, nanoseconds, bytes, parts of one.
//! Checked: the tests of `diagnosis::rules`.

use sonde_measure::Setting;

use super::Words;
use crate::diagnosis::window::{Hold, Origin, Window as Bound};
use crate::format::{bytes, count, rate, share, significant, time};

/// From where on a rule speaks, and where it is from.
pub(crate) fn terms(rule: &str) -> (&'static str, &'static str) {
    match rule {
        "receive-window" => (
            "window / round trip is below 90 % of what the network allows, 0.5 to 1.1 of it was measured, and the window (or it and \
             a send buffer of its size) holds the sender in half of the time",
            "RFC 7323 §1.1; tcp(7), tcpi_rwnd_limited",
        ),
        "send-buffer" => (
            "buffer / round trip is below 90 % of what the network allows, 0.5 to 1.1 of it was measured, and the buffer (or it and \
             a window of its size) holds the sender in half of the time",
            "tcp(7), tcpi_sndbuf_limited",
        ),
        "mtu" => (
            "every stream stands still for its timeout while 1 B is answered",
            "RFC 2923 §2.1; RFC 4821",
        ),
        "loss" | "congestion" => (
            "0.1 % of the segments are retransmitted, the rate that reno or cubic keeps with that is below 90 % of what the network \
             allows, and 0.5 to 1.1 of it was measured",
            "Mathis, Semke, Mahdavi & Ott, CCR 27(3) 1997, eq. 3; RFC 9438 §5.1",
        ),
        "reordering" => (
            "0.1 % of a blast of datagrams came after a later one, and the rate that reno or cubic keeps, should they take as \
             many segments for lost, explains what was measured",
            "RFC 4737 §4; RFC 5681 §3.2",
        ),
        "interrupts" => (
            "one CPU serves the receive queue, and 90 to 110 % of one are in use beside the thread",
            "Documentation/networking/scaling.rst",
        ),
        "offload" => (
            "70 % of a CPU for the thread of the side whose offload is off",
            "Documentation/networking/segmentation-offloads.rst",
        ),
        "cpu" => ("90 % of one CPU", "getrusage(2), RUSAGE_THREAD"),
        "cpu-hog" => (
            "95 % of all CPUs in use, 50 preemptions per second, and the thread below 90 % of one; no limit explains the rate",
            "getrusage(2), ru_nivcsw; proc(5), /proc/stat",
        ),
        "slow-reader" => (
            "the window holds the sender in half of the time, and no setting makes it so small",
            "tcp(7), tcpi_rwnd_limited",
        ),
        "nagle" => (
            "35 to 210 ms more than the fastest size, up to 16 KiB",
            "RFC 896; RFC 1122 §4.2.3.2",
        ),
        "duplex" => (
            "with both directions busy two thirds of the rate or less, 0.1 % lost or more, and five times what is lost alone",
            "IEEE 802.3 §28",
        ),
        _ => ("", ""),
    }
}

/// Bytes that must be on the way to fill a path.
pub(crate) struct Need {
    pub bps: f64,
    /// Whether the network's rate is known; else it is taken to be `bps`.
    pub is_known: bool,
    pub rtt_ns: f64,
    pub bytes: u64,
}

impl Need {
    fn words(&self) -> String {
        let unknown = match self.is_known {
            true => "",
            false => " (the line's rate is not known)",
        };
        format!(
            "{}{unknown} x {} / 8 = {} B needed in flight",
            rate(self.bps),
            time(self.rtt_ns),
            count(self.bytes)
        )
    }
}

/// ` The window held the sender back in 97.0 % of the time.`, with the other one where they share the wait.
pub(crate) fn held(hold: &Hold, this: &str, other: &str) -> String {
    match (hold.held, hold.shared) {
        (Some(held), Some(shared)) => format!(
            " {this} held the sender back in {} of the time and {other} of the same size in {}: {} together.",
            share(held),
            share(shared),
            share(held + shared)
        ),
        (Some(held), None) => format!(
            " {this} held the sender back in {} of the time.",
            share(held)
        ),
        (None, _) => String::new(),
    }
}

fn bound(bytes: u64, rtt_ns: f64, limit_bps: f64, need: &Need) -> String {
    format!(
        "{} B x 8 / {} = {}; {}",
        count(bytes),
        time(rtt_ns),
        rate(limit_bps),
        need.words()
    )
}

/// The receiver's window.
pub(crate) struct Window {
    pub network: String,
    pub rtt_ns: f64,
    pub rate_bps: f64,
    pub limit_bps: f64,
    pub hold: Hold,
    pub window: Bound,
    /// What the kernel would give at most.
    pub kernel: Option<u64>,
    pub need: Need,
}

fn origin(origin: Origin) -> String {
    match origin {
        Origin::Program(asked) => format!("the program's SO_RCVBUF of {}", bytes(asked)),
        Origin::Host(buffer) => format!(
            "net.ipv4.tcp_rmem of {} (half of it is the kernel's)",
            count(buffer)
        ),
        Origin::Unscaled => "no window scaling: the header's 16 bits are all".into(),
        Origin::Route => "the route's `window`".into(),
        Origin::Clamp => "the most that the program lets its socket offer".into(),
        Origin::Profile => "the window of the profile".into(),
    }
}

impl Words for Window {
    fn sentence(&self) -> String {
        format!(
            "The receiver's window limits the stream on {}: {} a round trip of {} is {}, and {} was measured.{} It is {}.",
            self.network,
            bytes(self.window.bytes),
            time(self.rtt_ns),
            rate(self.limit_bps),
            rate(self.rate_bps),
            held(&self.hold, "The window", "the send buffer"),
            origin(self.window.origin)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(bound(
            self.window.bytes,
            self.rtt_ns,
            self.limit_bps,
            &self.need,
        ))
    }

    fn remedy(&self) -> Option<String> {
        of_program(self.window.origin, self.kernel)
    }
}

/// What to do about a window that the program itself keeps small.
pub(super) fn of_program(origin: Origin, kernel: Option<u64>) -> Option<String> {
    let option = match origin {
        Origin::Program(_) => "SO_RCVBUF",
        Origin::Clamp => "TCP_WINDOW_CLAMP",
        _ => return None,
    };
    let most = kernel.map_or_else(|| "the last value of net.ipv4.tcp_rmem".into(), bytes);
    Some(format!(
        "let the program leave {option} alone: the kernel then gives up to {most} as the path needs it"
    ))
}

/// The sender's buffer.
pub(crate) struct Buffer {
    pub host: String,
    pub network: String,
    pub rtt_ns: f64,
    pub rate_bps: f64,
    pub limit_bps: f64,
    pub hold: Hold,
    pub buffer: Bound,
    pub need: Need,
}

impl Words for Buffer {
    fn sentence(&self) -> String {
        format!(
            "The send buffer of {} limits the stream on {}: {} a round trip of {} is {}, and {} was measured.{}",
            self.host,
            self.network,
            bytes(self.buffer.bytes),
            time(self.rtt_ns),
            rate(self.limit_bps),
            rate(self.rate_bps),
            held(&self.hold, "The buffer", "the receiver's window")
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(bound(
            self.buffer.bytes,
            self.rtt_ns,
            self.limit_bps,
            &self.need,
        ))
    }

    fn remedy(&self) -> Option<String> {
        matches!(self.buffer.origin, Origin::Program(_)).then(|| {
            "let the program leave SO_SNDBUF alone: the kernel grows it as the path needs it".into()
        })
    }
}

/// An MTU black hole.
pub(crate) struct BlackHole {
    pub network: String,
    pub small_ns: f64,
    pub host_mtus: [Option<u64>; 2],
    pub network_mtu: Option<u64>,
    pub stalls: usize,
    /// The smallest MTU, where it is less than a host's.
    pub smaller: Option<u64>,
}

impl Words for BlackHole {
    fn sentence(&self) -> String {
        format!(
            "Small messages pass on {} ({} a round trip) and streams stand still: packets of full size vanish in transit, \
             an MTU black hole.",
            self.network,
            time(self.small_ns)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        let known = |value: Option<u64>| value.map_or_else(|| "unknown".into(), count);
        Some(format!(
            "MTU of the hosts {} and {}, of the network {}; {} streams stood still",
            known(self.host_mtus[0]),
            known(self.host_mtus[1]),
            known(self.network_mtu),
            self.stalls
        ))
    }

    fn remedy(&self) -> Option<String> {
        Some(match self.smaller {
            Some(least) => format!(
                "give all interfaces of this network the MTU of its smallest part, {least} bytes"
            ),
            None => "let routers send ICMP \"fragmentation needed\" (do not filter it), or lower the interfaces' MTU to the path's; \
                     probing works around it"
                .into(),
        })
    }
}

/// Segments are lost.
pub(crate) struct Loss {
    pub network: String,
    /// Segments sent again, of all.
    pub again: f64,
    /// Datagrams lost, of all, where that is worth a word.
    pub datagrams: Option<f64>,
    pub control: String,
    pub mss_bytes: u64,
    pub rtt_ns: f64,
    pub limit_bps: f64,
    pub rate_bps: f64,
    /// The host that has a congestion control that bears loss.
    pub borne_by: Option<String>,
    /// Whether a cable is between the hosts.
    pub apart: bool,
}

impl Words for Loss {
    fn sentence(&self) -> String {
        let also = self.datagrams.map_or(String::new(), |lost| {
            format!(", and {} of datagrams were lost", share(lost))
        });
        let bbr = self.borne_by.as_ref().map_or(String::new(), |host| {
            format!(" {host} has bbr, which does not take loss for a full path.")
        });
        format!(
            "The stream on {} loses segments: {} were retransmitted{also}. With this loss and {} a round trip {} keeps about {}, and {} \
             was measured.{bbr}",
            self.network,
            share(self.again),
            time(self.rtt_ns),
            self.control,
            rate(self.limit_bps),
            rate(self.rate_bps)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        let segments = self.limit_bps * self.rtt_ns / 8e9 / self.mss_bytes as f64;
        Some(format!(
            "{} B x 8 / {} x {} segments at a loss of {} = {}",
            count(self.mss_bytes),
            time(self.rtt_ns),
            significant(segments, 3),
            share(self.again),
            rate(self.limit_bps)
        ))
    }

    fn remedy(&self) -> Option<String> {
        Some(match self.apart {
            true => "look for the link that loses: `ethtool -S` for errors, a duplex that was not agreed, a switch port that drops; \
                     `sonde probe pattern` finds which"
                .into(),
            false => "no cable carries this stream: look at the loss that the emulated network is set to, at `nstat -az` (TcpExt) and \
                      the queues of this machine (`tc -s qdisc`)"
                .into(),
        })
    }
}

/// Packets overtake each other.
pub(crate) struct Reordering {
    pub network: String,
    pub overtaken: f64,
    pub limit_bps: f64,
    pub rate_bps: f64,
}

impl Words for Reordering {
    fn sentence(&self) -> String {
        format!(
            "Packets overtake each other on {}: {} of datagrams came after a later one. If as many segments are taken for lost, {} is \
             left, and {} was measured.",
            self.network,
            share(self.overtaken),
            rate(self.limit_bps),
            rate(self.rate_bps)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(format!("{} of datagrams", share(self.overtaken)))
    }

    fn remedy(&self) -> Option<String> {
        Some("look for paths of several links that are shared packet by packet (bonding balance-rr, ECMP per packet): share them by flow".into())
    }
}

/// One CPU serves all interrupts.
pub(crate) struct Interrupts {
    pub host: String,
    pub cpu: usize,
    pub beside: f64,
    pub host_cpu: f64,
    pub cpus: u64,
    pub thread_cpu: f64,
}

impl Words for Interrupts {
    fn sentence(&self) -> String {
        format!(
            "CPU {} of {} serves all interrupts of its interface, and beside the receiving thread {} of a CPU were in use: \
             one CPU is the limit.",
            self.cpu,
            self.host,
            share(self.beside)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(format!(
            "{} of {} CPUs, less {} of the thread",
            share(self.host_cpu),
            self.cpus,
            share(self.thread_cpu)
        ))
    }

    fn remedy(&self) -> Option<String> {
        Some(
            "spread the queues: `ethtool -L DEVICE combined N`, or by software: \
             `echo ff > /sys/class/net/DEVICE/queues/rx-0/rps_cpus`; keep the program off that CPU"
                .into(),
        )
    }
}

/// An offload is off.
pub(crate) struct Offload {
    pub network: String,
    pub host: String,
    pub off: Setting,
    pub sends: bool,
    pub used: f64,
    pub rate_bps: f64,
    pub ns_per_byte: f64,
}

impl Words for Offload {
    fn sentence(&self) -> String {
        format!(
            "{} {} each segment alone: {} is off, and the thread uses {} of a CPU for {} on {}.",
            self.host,
            if self.sends { "sends" } else { "receives" },
            self.off,
            share(self.used),
            rate(self.rate_bps),
            self.network
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(format!("{} ns/B", significant(self.ns_per_byte, 3)))
    }
}

/// A thread has no CPU left.
pub(crate) struct Cpu {
    pub network: String,
    pub host: String,
    pub sends: bool,
    pub used: f64,
    pub rate_bps: f64,
    pub ns_per_byte: f64,
}

impl Words for Cpu {
    fn sentence(&self) -> String {
        format!(
            "The {} thread on {} uses {} of one CPU: the host, not the network, limits the stream on {} to {}.",
            if self.sends { "sending" } else { "receiving" },
            self.host,
            share(self.used),
            self.network,
            rate(self.rate_bps)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(format!(
            "{} ns/B x {} MB/s",
            significant(self.ns_per_byte, 3),
            significant(self.rate_bps / 8e6, 4)
        ))
    }

    fn remedy(&self) -> Option<String> {
        Some(
            "several streams (`--with streams=4`), larger messages, or a method that copies less"
                .into(),
        )
    }
}

/// Others have the CPU.
pub(crate) struct Hog {
    pub host: String,
    pub host_cpu: f64,
    pub cpus: u64,
    pub thread_cpu: f64,
    pub put_aside_per_s: f64,
}

impl Words for Hog {
    fn sentence(&self) -> String {
        format!(
            "Others use the CPUs of {}: {} of all are in use, the stream's thread has {} of one and was preempted {} times per second.",
            self.host,
            share(self.host_cpu),
            share(self.thread_cpu),
            significant(self.put_aside_per_s, 3)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(format!("{} of {} CPUs", share(self.host_cpu), self.cpus))
    }

    fn remedy(&self) -> Option<String> {
        Some("`top` there: stop what else runs, or give it a lower priority".into())
    }
}

/// The receiving program is slow.
pub(crate) struct SlowReader {
    pub network: String,
    pub host: String,
    pub held: f64,
}

impl Words for SlowReader {
    fn sentence(&self) -> String {
        format!(
            "The receiving program on {} reads more slowly than the network of {} delivers: its window held the sender back in {} \
             of the time, and no setting makes that window small.",
            self.host,
            self.network,
            share(self.held)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(format!("{} of the time", share(self.held)))
    }

    fn remedy(&self) -> Option<String> {
        Some(
            "look at what else that host does, and whether the program reads in large pieces"
                .into(),
        )
    }
}

/// A delayed acknowledgement.
pub(crate) struct Nagle {
    pub network: String,
    pub size_bytes: u64,
    pub ns: f64,
    pub least_ns: f64,
}

impl Words for Nagle {
    fn sentence(&self) -> String {
        format!(
            "Messages of {} take {} on {}, {} more than the fastest: the last segment waits for an acknowledgement that the peer \
             delays.",
            bytes(self.size_bytes),
            time(self.ns),
            self.network,
            time(self.ns - self.least_ns)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(format!(
            "{} - {} = {}",
            time(self.ns),
            time(self.least_ns),
            time(self.ns - self.least_ns)
        ))
    }

    fn remedy(&self) -> Option<String> {
        Some("set TCP_NODELAY in the program, or send each message by one call".into())
    }
}

/// A link that fails when both directions are busy.
pub(crate) struct Duplex {
    pub network: String,
    pub host: Option<String>,
    pub alone_bps: f64,
    pub together_bps: f64,
    pub lost_alone: f64,
    pub lost_together: f64,
}

impl Words for Duplex {
    fn sentence(&self) -> String {
        format!(
            "A link of {} on {} fails when both directions are busy: {} alone, {} together, and {} are lost then ({} alone). \
             One end behaves as half duplex.",
            self.host.as_deref().unwrap_or("the pair"),
            self.network,
            rate(self.alone_bps),
            rate(self.together_bps),
            share(self.lost_together),
            share(self.lost_alone)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(format!(
            "{} / {} = {}",
            rate(self.together_bps),
            rate(self.alone_bps),
            share(self.together_bps / self.alone_bps)
        ))
    }

    fn remedy(&self) -> Option<String> {
        Some(
            "let both ends of the link agree: `ethtool -s DEVICE autoneg on`, on the switch port too; `ethtool DEVICE` shows \
             the duplex, `ethtool -S DEVICE` late collisions"
                .into(),
        )
    }
}
