//! Cold: what the first message on a fresh socket costs, the measuring side.
//!
//! Model:   the serving side knows the sockets by their port. It is chosen before anything is timed; binding to it is part of
//!          the time, as the socket is. Forget the neighbours if asked. Whole: one time from before the socket exists to the first answer. In parts,
//!          each step alone and in this order, so that none holds the cost of another: `neighbour`, its resolution and
//!          nothing else; `vc`, the set-up of a circuit ([`crate::circuit`]);
//!          `connect` (byte streams), from before the socket to its return; `first` and `second` message, there and back; `idle`,
//!          a message after a pause. Only then the hello. Behind a gateway it is the gateway that is resolved. One size a
//!          conversation: the next one's neighbours are forgotten by both hosts when this one is over, and nothing of it is
//!          still under way then.
//! Units:   nanoseconds.
//! Checked: `tests/conversation.rs`, `startup_*`.

use std::net::IpAddr;

use sonde_channel::{Aligned, ByteStream, Channel, Options, Shm, Tcp, Udp, Unix, payload};
use sonde_measure::spec::NO_START;
use sonde_measure::{Interference, Measurement, Phase, Quantity, Step};
use sonde_measure::{Neighbour, Path, Socket, Spec, StartUp, Startup};
use sonde_sys::clock::{monotonic_ns, sleep_until_ns};
use sonde_sys::netlink::{Netlink, Resolved};

use crate::Result;
use crate::admission::{self, Visit};
use crate::circuit::{self, RESEND_AFTER};
use crate::talk::{Measure, Measured, SizeMeasured};
use crate::watch::Watch;

/// Forgets the neighbours of an interface.
pub(crate) fn flush(interface: Option<&str>) -> Result<()> {
    if let Some(name) = interface {
        let mut netlink = Netlink::open()?;
        let index = netlink.index(name)?;
        netlink.flush_neighbours(index)?;
    }
    Ok(())
}

/// A time, or why there is none.
type Found = std::result::Result<u64, String>;

fn row(step: Option<Step>, found: Found) -> Measurement {
    Measurement {
        touched: None,
        quantity: Quantity::StartupNs,
        phase: Phase::Cold,
        step,
        series: found.iter().copied().collect(),
        reason: found.err(),
    }
}

fn lost() -> String {
    "the datagram or its answer was lost and retransmitted".into()
}

/// Buffers for one start-up, prepared before it.
struct Messages<'a> {
    measure: &'a Measure,
    ping: Aligned,
    pong: Aligned,
    sequence: u32,
}

impl<'a> Messages<'a> {
    fn new(measure: &'a Measure, size: usize) -> Result<Self> {
        Ok(Self {
            measure,
            ping: Aligned::new(payload::message(size), &measure.spec.knobs)?,
            pong: Aligned::new(vec![0; size], &measure.spec.knobs)?,
            sequence: 0,
        })
    }

    /// One message there and back: when it was over; `None` when it had to be sent again.
    fn exchange(&mut self, channel: &mut impl Channel) -> Result<Option<u64>> {
        let resent = channel.exchange(&self.ping, &mut self.pong)?;
        let end_ns = monotonic_ns();
        self.check()?;
        self.sequence += 1;
        payload::stamp(&mut self.ping, self.sequence);
        Ok((resent == 0).then_some(end_ns))
    }

    /// The time of one message there and back.
    fn trip(&mut self, channel: &mut impl Channel) -> Result<Found> {
        let begin_ns = monotonic_ns();
        let end_ns = self.exchange(channel)?;
        Ok(end_ns.map(|end_ns| end_ns - begin_ns).ok_or_else(lost))
    }

    fn check(&self) -> Result<()> {
        let checked = match self.measure.spec.verify {
            true => payload::verify(&self.pong, self.sequence),
            false => payload::check(&self.pong, self.sequence),
        };
        checked.map_err(|mismatch| {
            let peer = self.measure.peer;
            sonde_channel::Error::Payload { peer, mismatch }.into()
        })
    }
}

pub(crate) fn measure(measure: &Measure, procedure: Startup) -> Result<Measured> {
    let spec = &measure.spec;
    let mut measured = Measured {
        sizes: Vec::new(),
        evidence: Default::default(),
        interference: Interference::default(),
    };
    for visit in Visit::all(spec) {
        let size_bytes = spec.sizes_bytes[visit.size];
        let messages = Messages::new(measure, size_bytes as usize)?;
        let options = admission::sent_from(measure)?;
        let mut cold = Cold {
            measure,
            options,
            procedure,
            visit,
            rows: Vec::new(),
            start_up: StartUp::default(),
        };
        // Before the neighbours are forgotten: reading the counters takes its time.
        let watch = Watch::begin()?;
        flush(measure.flush_neighbour.as_deref())?;
        let socket = match spec.path {
            Path::Tcp => cold.stream::<Tcp>(messages)?,
            Path::Unix => cold.stream::<Unix>(messages)?,
            Path::Shm => cold.stream::<Shm>(messages)?,
            Path::Udp => cold.udp(messages)?,
            // Refused by the specification.
            Path::Packet | Path::Xdp => {
                return Err(crate::Error::Integrity(NO_START.into()));
            }
        };
        watch.end(&mut measured.interference, None)?;
        measured.evidence.src.socket = socket;
        measured.evidence.start_up = cold.start_up;
        measured.sizes.push(SizeMeasured {
            moments: None,
            size_bytes,
            measurements: cold.rows,
            round_trips: 0,
            sent: None,
        });
    }
    Ok(measured)
}

/// One start-up.
struct Cold<'a> {
    measure: &'a Measure,
    /// Those of its sockets, with the port by which the peer knows them.
    options: Options,
    procedure: Startup,
    visit: Visit,
    rows: Vec<Measurement>,
    /// What else is to be known.
    start_up: StartUp,
}

impl Cold<'_> {
    fn spec(&self) -> &Spec {
        &self.measure.spec
    }

    fn in_steps(&self) -> bool {
        matches!(self.procedure, Startup::Steps { .. })
    }

    fn stream<C: ByteStream>(&mut self, mut messages: Messages<'_>) -> Result<Socket> {
        let options = self.options.clone();
        self.before_the_transport()?;
        let begin_ns = monotonic_ns();
        let mut channel = C::connect(self.measure.peer, options)?;
        if self.in_steps() {
            let connect_ns = monotonic_ns() - begin_ns;
            self.rows.push(row(Some(Step::Connect), Ok(connect_ns)));
            self.messages(&mut channel, &mut messages)?;
        } else {
            let end_ns = messages.exchange(&mut channel)?;
            self.whole(begin_ns, end_ns);
        }
        admission::hello_stream(&mut channel, self.measure, self.visit)?;
        let settings = channel.settings()?;
        channel.end()?;
        // The peer's end comes when it has taken ours: after that only our acknowledgement is under way, for which the
        // peer waits.
        while channel.recv_some(&mut [0; 16])? > 0 {}
        Ok(settings)
    }

    fn udp(&mut self, mut messages: Messages<'_>) -> Result<Socket> {
        let options = self.options.clone();
        self.before_the_transport()?;
        let begin_ns = monotonic_ns();
        let mut channel = Udp::connect(self.measure.peer, options)?;
        channel.set_resend_after(RESEND_AFTER)?;
        if self.in_steps() {
            self.messages(&mut channel, &mut messages)?;
        } else {
            let end_ns = messages.exchange(&mut channel)?;
            self.whole(begin_ns, end_ns);
        }
        admission::hello_udp(&mut channel, self.measure, self.visit)?;
        Ok(channel.settings()?)
    }

    fn whole(&mut self, begin_ns: u64, end_ns: Option<u64>) {
        let found = end_ns.map(|end_ns| end_ns - begin_ns).ok_or_else(lost);
        self.rows.push(row(None, found));
    }

    /// In parts: what the network needs before any transport.
    fn before_the_transport(&mut self) -> Result<()> {
        if !self.in_steps() {
            return Ok(());
        }
        let neighbour = self.neighbour()?;
        self.rows.push(row(Some(Step::Neighbour), neighbour));
        let vc = if self.procedure.has_circuits() && !self.spec().path.is_within_machine() {
            circuit::measure(self.measure.peer, self.options.clone())?.map(|set_up| {
                self.start_up.peer_neighbour_ns = Some(set_up.peer_neighbour_ns);
                set_up.ns
            })
        } else {
            Err("this network has no circuits".into())
        };
        self.rows.push(row(Some(Step::Vc), vc));
        Ok(())
    }

    /// The three messages of a start-up in parts.
    fn messages(&mut self, channel: &mut impl Channel, messages: &mut Messages<'_>) -> Result<()> {
        for step in [Step::First, Step::Second, Step::Idle] {
            if let (Step::Idle, Startup::Steps { idle_ns, .. }) = (step, self.procedure) {
                sleep_until_ns(monotonic_ns() + idle_ns);
            }
            let found = messages.trip(channel)?;
            self.rows.push(row(Some(step), found));
        }
        Ok(())
    }

    /// The resolution of the neighbour by itself.
    fn neighbour(&mut self) -> Result<Found> {
        if self.measure.flush_neighbour.is_none() {
            return Ok(Err(
                "there is no right to flush the ARP cache, so that nothing was resolved".into(),
            ));
        }
        let peer = self.measure.peer.ip();
        let mut netlink = Netlink::open()?;
        let way = netlink.way_to(peer)?;
        let whom = match (way.local, way.gateway, peer) {
            (true, ..) => return Ok(Err("the peer is this host, which needs no ARP".into())),
            (_, Some(gateway), _) => gateway,
            (_, None, IpAddr::V4(peer)) => peer,
            (_, None, IpAddr::V6(_)) => {
                return Ok(Err("only IPv4 addresses are resolved alone (ARP)".into()));
            }
        };
        let timeout = self.spec().timeout();
        let found = match netlink.resolve_neighbour(way.ifindex, whom, timeout) {
            Ok(Resolved::After { ns }) => Ok(ns),
            Ok(Resolved::Needless) => Err(format!(
                "{whom} needs no resolution: it is known already, or its interface has no ARP"
            )),
            Ok(Resolved::Failed) => Err(format!("{whom} does not answer ARP")),
            Ok(Resolved::Silence) => Err(format!(
                "{whom} was not resolved within {:.3} s",
                timeout.as_secs_f64()
            )),
            Err(error) => Err(format!("{error}; resolving alone takes CAP_NET_ADMIN")),
        };
        if found.is_ok() {
            self.start_up.neighbour = Some(Neighbour {
                address: whom.into(),
                is_gateway: way.gateway.is_some(),
            });
        }
        Ok(found)
    }
}
