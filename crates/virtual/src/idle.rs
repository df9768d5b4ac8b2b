//! The times of an idle network: one frame alone, there and back, a train of frames, and the question for an address.
//!
//! Model:   the network itself is run between two ports, with nothing else on it. Loss and reordering are left out: the
//!          time is that of a frame which meets neither. Circuits are up before the frame is offered, but for
//!          [`first_one_way`], which pays for the set-up of a switched circuit.
//! Source:  RFC 826 (28 bytes with IPv4 over Ethernet). Deviations: the same size is used towards an ATM address server,
//!          where RFC 2225 §8.1 packets have 40 and 60 bytes: one cell of 2.8 us less each way, beside its 1 ms.
//! Checked: `times_are_sums_of_their_parts`, `a_switched_circuit_costs_its_set_up`, `a_neighbour_is_asked_or_served`,
//!          `a_train_is_as_long_as_its_slowest_line`, `a_train_longer_than_a_queue_is_held_back`.

use crate::{Clock, Happening};
use sonde_link::{
    Cause, Change, Class, Command, Event, Frame, FrameId, Kind, Network, NetworkSpec, Place, Port,
    Resolution, SpecError, To, VcCommand, build,
};
use sonde_units::{Bytes, Instant, OneWay, Ratio, RoundTrip, Span};
use thiserror::Error;

/// The one who begins.
pub(crate) const NEAR: Port = Port(0);
/// The other.
pub(crate) const FAR: Port = Port(1);
pub(crate) const ADDRESS_PACKET: Bytes = Bytes(28);
/// The number of the first frame that is looked at: those that went before to make a network warm have lower ones.
pub(crate) const BEGUN: u64 = 4;
/// No time of an idle network comes near: 106 days.
const NEVER: Instant = Instant::from_picos(u64::MAX / 2);

/// Why a frame has no time.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TimeError {
    /// The network is not one.
    #[error("the network cannot be built: {0}")]
    Network(#[from] SpecError),
    /// The frame does not fit.
    #[error(
        "a frame of {len} does not fit: the network's MTU is {mtu} bytes; ask for less, or turn the knob `mtu`"
    )]
    TooLong {
        /// Its length at layer 3.
        len: Bytes,
        /// The longest.
        mtu: u64,
    },
    /// The network lost a lone frame.
    #[error(
        "the idle network lost the frame ({place:?}, {cause:?}); give its queues room for one frame"
    )]
    Lost {
        /// Where.
        place: Place,
        /// Why.
        cause: Cause,
    },
}

/// From the offer of a frame of `len` layer-3 bytes to its last bit at the other station, circuits up.
///
/// # Errors
/// [`TimeError`], also where `len` is above the MTU.
pub fn one_way(spec: &NetworkSpec, len: Bytes) -> Result<OneWay, TimeError> {
    alone(spec, len, true)
}

/// From the offer of the first of these frames to the last bit of the last at the other station, circuits up; each is offered
/// as soon as the station takes it. No message of so many frames is faster: acknowledgements and windows only add to it.
/// Where the queue before a slower line does not hold them all, no more are under way than it holds.
///
/// # Errors
/// [`TimeError`], also where a frame is above the MTU or there is none.
pub fn train(spec: &NetworkSpec, frames: &[Bytes]) -> Result<OneWay, TimeError> {
    for len in frames {
        fits(spec.mtu, *len)?;
    }
    in_train(|| idle(spec, true), (NEAR, FAR), frames)
}

/// The same over a network that `idle` makes, between two of its ports.
pub(crate) fn in_train(
    idle: impl Fn() -> Result<Clock<Built>, TimeError>,
    (from, to): (Port, Port),
    frames: &[Bytes],
) -> Result<OneWay, TimeError> {
    let mut under_way = frames.len();
    loop {
        let mut clock = idle()?;
        let begin = clock.now();
        let all = (BEGUN..)
            .zip(frames)
            .map(|(id, len)| frame(id, from, to, *len));
        match carried(&mut clock, all, under_way) {
            Err(TimeError::Lost {
                cause: Cause::Overflow,
                ..
            }) if under_way > 1 => under_way /= 2,
            carried => return Ok(OneWay(carried?.since(begin))),
        }
    }
}

/// Offers frames one after the other, each as soon as its station takes it and fewer than `under_way` are; when the last one
/// arrived.
pub(crate) fn carried(
    clock: &mut Clock<Built>,
    frames: impl Iterator<Item = Frame>,
    under_way: usize,
) -> Result<Instant, TimeError> {
    let mut frames = frames.peekable();
    let (mut left, mut end) = (0, clock.now());
    loop {
        while let Some(next) =
            frames.next_if(|next| left < under_way && clock.ready(next.from, Class::default()))
        {
            clock.offer(next);
            left += 1;
        }
        if left == 0 && frames.peek().is_none() {
            return Ok(end);
        }
        match clock.step(NEVER) {
            Some(Happening::Event(Event::Deliver { at, .. })) => (left, end) = (left - 1, at),
            Some(Happening::Event(Event::Lost { place, cause, .. })) => {
                return Err(TimeError::Lost { place, cause });
            }
            Some(_) => {}
            None => unreachable!("a taken frame is delivered or lost"),
        }
    }
}

/// The same for the first frame between two stations: with the set-up of a switched circuit, where there is one.
///
/// # Errors
/// [`TimeError`], also where `len` is above the MTU.
pub fn first_one_way(spec: &NetworkSpec, len: Bytes) -> Result<OneWay, TimeError> {
    alone(spec, len, false)
}

/// A frame of `len` layer-3 bytes there and, at the moment of its arrival, one of the same length back; circuits up.
///
/// # Errors
/// [`TimeError`], also where `len` is above the MTU.
pub fn round_trip(spec: &NetworkSpec, len: Bytes) -> Result<RoundTrip, TimeError> {
    fits(spec.mtu, len)?;
    let mut clock = idle(spec, true)?;
    let begin = clock.now();
    travel(&mut clock, frame(0, NEAR, FAR, len), FAR)?;
    let end = travel(&mut clock, frame(1, FAR, NEAR, len), NEAR)?;
    Ok(RoundTrip(end.since(begin)))
}

/// From the question for a station's link address to the answer: a request to all and a reply, or one request to the
/// address server.
///
/// # Errors
/// [`TimeError`].
pub fn neighbour(spec: &NetworkSpec) -> Result<RoundTrip, TimeError> {
    asked(idle(spec, true)?, (NEAR, FAR), spec.resolution())
}

/// The same over a network, between two of its ports.
pub(crate) fn asked(
    mut clock: Clock<Built>,
    (from, to): (Port, Port),
    resolution: Resolution,
) -> Result<RoundTrip, TimeError> {
    let begin = clock.now();
    let request = Frame {
        to: To::All,
        kind: Kind::Resolve(to),
        ..frame(BEGUN, from, to, ADDRESS_PACKET)
    };
    let end = match resolution {
        Resolution::Server => travel(&mut clock, request, from)?,
        Resolution::Broadcast => {
            travel(&mut clock, request, to)?;
            let reply = Frame {
                kind: Kind::Arp,
                ..frame(BEGUN + 1, to, from, ADDRESS_PACKET)
            };
            travel(&mut clock, reply, from)?
        }
    };
    Ok(RoundTrip(end.since(begin)))
}

/// Refuses a frame that is longer than so many bytes.
pub(crate) fn fits(mtu: u64, len: Bytes) -> Result<(), TimeError> {
    if len.0 > mtu {
        return Err(TimeError::TooLong { len, mtu });
    }
    Ok(())
}

fn alone(spec: &NetworkSpec, len: Bytes, warm: bool) -> Result<OneWay, TimeError> {
    fits(spec.mtu, len)?;
    let mut clock = idle(spec, warm)?;
    let begin = clock.now();
    let end = travel(&mut clock, frame(0, NEAR, FAR, len), FAR)?;
    Ok(OneWay(end.since(begin)))
}

/// The network with nothing on it: no load of its own, no faults, circuits up.
pub(crate) fn idle_clock(spec: &NetworkSpec) -> Result<Clock<Built>, TimeError> {
    idle(spec, true)
}

/// The network with so many stations and nothing on it: no load of its own, no faults, neither loss, reordering nor jitter.
pub(crate) fn quiet(spec: &NetworkSpec, ports: u16) -> Result<Clock<Built>, TimeError> {
    let mut quiet = spec.clone();
    hush(&mut quiet);
    Ok(Clock::new(built(&quiet, ports)?))
}

/// Leaves out load, faults, loss, reordering and jitter; permanent circuits are up.
pub(crate) fn hush(spec: &mut NetworkSpec) {
    raise(spec);
    (spec.load, spec.fault) = (Vec::new(), Vec::new());
    (spec.path.loss, spec.path.reorder) = (Ratio::ZERO, Ratio::ZERO);
    spec.path.jitter = Span::ZERO;
}

fn idle(spec: &NetworkSpec, warm: bool) -> Result<Clock<Built>, TimeError> {
    let mut clock = quiet(spec, 2)?;
    if warm {
        raise_circuit(&mut clock, spec);
    }
    Ok(clock)
}

/// A network with its hosts.
pub(crate) type Built = Box<dyn Network + Send>;

/// The network itself, without randomness of the caller's: with so many stations, or more where its file names them, and
/// permanent circuits that have come up.
pub(crate) fn built(spec: &NetworkSpec, ports: u16) -> Result<Built, SpecError> {
    let ports = ports.max(named(spec));
    let mut spec = spec.clone();
    raise(&mut spec);
    build(&spec, ports, 0)
}

/// Permanent circuits are up from the start.
pub(crate) fn raise(spec: &mut NetworkSpec) {
    if let Some(circuits) = &mut spec.circuits {
        circuits.boot = Span::ZERO;
    }
    spec.port.iter_mut().for_each(|port| port.boot = None);
}

/// How many stations the file of a network speaks of one by one; 0 where it names none, or one beyond all labs.
fn named(spec: &NetworkSpec) -> u16 {
    const MOST: u16 = 256;
    let assigned = spec.assign.iter().flat_map(|one| [one.from, one.to]);
    let joined = spec.pvc.iter().flat_map(|one| one.between);
    let own = spec.port.iter().map(|one| one.port);
    let faults = spec.fault.iter().flat_map(|one| one.command.ports());
    let loads = spec.load.iter().flat_map(|one| [one.from, Some(one.to)]);
    let later = faults.chain(loads).flatten().map(|port| port.0);
    let last = assigned.chain(joined).chain(own).chain(later).max();
    last.filter(|last| *last < MOST).map_or(0, |last| last + 1)
}

/// Sets up the circuit between the first two ports where it is a switched one, and waits until it is up.
pub(crate) fn raise_circuit<N: Network, A>(clock: &mut Clock<N, A>, spec: &NetworkSpec) {
    raise_circuits(clock, spec, &[(NEAR, FAR)]);
}

/// The same for these pairs, one after the other. A pair that the tables have no room for is left to its first frame.
pub(crate) fn raise_circuits<N: Network, A>(
    clock: &mut Clock<N, A>,
    spec: &NetworkSpec,
    pairs: &[(Port, Port)],
) {
    if !spec.joins_first() {
        return;
    }
    for (place, &(a, b)) in pairs.iter().enumerate() {
        let same = |pair: &(Port, Port)| *pair == (a, b) || *pair == (b, a);
        if pairs[..place].iter().any(same) {
            continue;
        }
        let establish = Command::Vc(VcCommand::Establish(a, b));
        if clock.command(establish).is_err() {
            continue;
        }
        while let Some(happening) = clock.step(NEVER) {
            let is_up = |change: &Change| matches!(change, Change::CircuitUp(..));
            if matches!(&happening, Happening::Event(Event::State { change, .. }) if is_up(change))
            {
                break;
            }
        }
    }
}

/// A plain frame from one port to another.
pub(crate) fn frame(id: u64, from: Port, to: Port, len: Bytes) -> Frame {
    Frame::datagram(FrameId(id), from, to, len)
}

/// Offers a frame to a network where it is alone; when it arrived at `to`.
pub(crate) fn travel(
    clock: &mut Clock<Built>,
    frame: Frame,
    to: Port,
) -> Result<Instant, TimeError> {
    // An empty queue takes any frame.
    clock.offer(frame);
    while let Some(happening) = clock.step(NEVER) {
        match happening {
            Happening::Event(Event::Deliver {
                at, id, to: there, ..
            }) if id == frame.id && there == to => return Ok(at),
            Happening::Event(Event::Lost { place, cause, .. }) => {
                return Err(TimeError::Lost { place, cause });
            }
            _ => {}
        }
    }
    unreachable!("a taken frame is delivered or lost")
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_link::{Forwarding, Pvc, catalogue, resolve};

    fn spec(selector: &str) -> NetworkSpec {
        resolve(selector, &|_| unreachable!()).unwrap()
    }

    /// Line, propagation, switch, line, propagation; less what a switch forwards before it has all. Where nothing is stored
    /// on the way: what goes before the data, the data, and the way of their last bit.
    fn sum(spec: &NetworkSpec, len: Bytes) -> Span {
        let ways = spec.line.propagation() * 2;
        if let Some(crossbar) = &spec.crossbar {
            let inside = (crossbar.crossing * u64::from(crossbar.crossbars)).as_picos();
            return spec.frame_time(len) + ways + Span::picos(inside.div_ceil(2));
        }
        if let Some(stages) = &spec.stages {
            return spec.frame_time(len) + ways + stages.hop;
        }
        let (time, cell) = (spec.line.time(len), spec.line.unit_time(Bytes(53)));
        let wire = spec.line.propagation() + spec.path.delay;
        let Some(switch) = spec.switch else {
            return time - gap(spec) + wire;
        };
        let head = match switch.forwarding {
            Forwarding::StoreAndForward => time,
            Forwarding::CutThrough => time.min(spec.line.unit_time(Bytes(64))),
            Forwarding::Cells => cell,
        };
        head + wire + switch.latency + time + spec.line.propagation()
    }

    /// On a segment the gap behind a frame is no part of its way, and an answer begins after it.
    fn gap(spec: &NetworkSpec) -> Span {
        let gap = spec.line.unit_time(Bytes(12));
        spec.bus.as_ref().map_or(Span::ZERO, |_| gap)
    }

    /// Once round an idle ring of the two stations, and its token. A way from one to the other is less.
    fn round(spec: &NetworkSpec) -> Option<Span> {
        let token = spec.token.as_ref()?;
        Some(token.latency(2) + spec.line.unit_time(Bytes(11)))
    }

    #[test]
    fn a_train_is_as_long_as_its_slowest_line() {
        for spec in catalogue() {
            let mtu = Bytes(spec.mtu);
            let one = one_way(&spec, mtu).unwrap();
            assert_eq!(train(&spec, &[mtu]), Ok(one));
            for count in [2, 100, 3_000] {
                // All lines of a network have one rate: each further frame is one transmission behind.
                let want = one.0 + spec.frame_time(mtu) * (count - 1);
                let got = train(&spec, &vec![mtu; count as usize]).unwrap().0;
                // A segment's station turns round after each frame.
                let turn = spec.bus.as_ref().map_or(Span::ZERO, |bus| bus.turnaround);
                let want = want + turn * (count - 1);
                if let Some(round) = round(&spec) {
                    // A token is held for the target time less its way; then it goes round twice (Jain).
                    let hold = spec.token.as_ref().unwrap().ttrt - round;
                    let most = want + round * 2 * (want / hold + 1);
                    assert!(got >= want && got <= most, "{} {count}: {got}", spec.name);
                    continue;
                }
                assert_eq!(got, want, "{} {count}", spec.name);
            }
            assert!(train(&spec, &[Bytes(spec.mtu + 1)]).is_err());
        }
    }

    #[test]
    fn a_train_longer_than_a_queue_is_held_back() {
        const SITES: &str = include_str!("../../../plans/examples/networks/two-sites.toml");
        let site = |selector: &str| resolve(selector, &|_| Ok(SITES.into())).unwrap();
        let (small, large) = (site("./sites"), site("./sites:buffer=64MiB"));
        let frames = vec![Bytes(1_500); 2_000];
        let (held, free) = (
            train(&small, &frames).unwrap(),
            train(&large, &frames).unwrap(),
        );
        assert!(held.0 >= free.0, "{held:?} {free:?}");
        // The trunk is never idle for long: its own time decides.
        let ratio = held.0.as_picos() as f64 / free.0.as_picos() as f64;
        assert!(ratio < 1.01, "{ratio}");
    }

    #[test]
    fn times_are_sums_of_their_parts() {
        // Packets overlap in a fabric with credits: `tests/credit.rs` of the link.
        for spec in catalogue().into_iter().filter(|spec| spec.credit.is_none()) {
            if spec.sci.is_some() {
                moves_overlap(&spec);
                continue;
            }
            for len in [1, 40, 46, 552, spec.mtu].map(Bytes) {
                let want = sum(&spec, len);
                if let Some(round) = round(&spec) {
                    // Each waits for the token, and travels a part of the ring.
                    let there = one_way(&spec, len).unwrap().0;
                    assert!(there > want && there <= want + round * 2, "{there}");
                    let back = round_trip(&spec, len).unwrap().0;
                    assert!(back > want * 2 && back <= (want + round * 2) * 2, "{back}");
                    continue;
                }
                assert_eq!(one_way(&spec, len), Ok(OneWay(want)), "{} {len}", spec.name);
                let back = RoundTrip(want * 2 + gap(&spec));
                assert_eq!(round_trip(&spec, len), Ok(back), "{} {len}", spec.name);
            }
            let mtu = spec.mtu;
            let len = Bytes(mtu + 1);
            assert_eq!(one_way(&spec, len), Err(TimeError::TooLong { len, mtu }));
        }
        // 84 bytes at 100 Mb/s twice, 20 m twice, 10 us.
        let ethernet = one_way(&spec("ethernet-100"), Bytes(1)).unwrap();
        assert_eq!(ethernet.0, Span::nanos(2 * 6_720 + 200 + 10_000));
    }

    /// A datagram on a ring of SCI is a row of transactions, several of which are under way: no less than its time at the
    /// bottleneck, and no more than the time of one transaction beyond it.
    fn moves_overlap(spec: &NetworkSpec) {
        let one = one_way(spec, Bytes(1)).unwrap().0;
        for len in [1, 40, 552, spec.mtu].map(Bytes) {
            let (got, time) = (one_way(spec, len).unwrap().0, spec.frame_time(len));
            assert!(
                got >= time && got <= time + one,
                "{} {len}: {got}",
                spec.name
            );
            let back = round_trip(spec, len).unwrap().0;
            assert!(back >= got * 2 && back <= (time + one) * 2, "{back}");
        }
    }

    #[test]
    fn loss_and_reordering_do_not_touch_the_times() {
        let plain = one_way(&spec("wan-100m-20ms"), Bytes(64));
        let knobs = spec("wan-100m-20ms:loss=50%:reorder=50%:reorder_by=1ms");
        assert_eq!(one_way(&knobs, Bytes(64)), plain);
    }

    #[test]
    fn a_switched_circuit_costs_its_set_up() {
        let (pvc, svc) = (spec("atm-oc3c"), spec("atm-oc3c:vc=svc"));
        let len = Bytes(1_500);
        let warm = one_way(&pvc, len).unwrap();
        assert_eq!(one_way(&svc, len), Ok(warm));
        assert_eq!(first_one_way(&pvc, len), Ok(warm));
        assert_eq!(
            first_one_way(&svc, len),
            Ok(OneWay(warm.0 + Span::millis(21)))
        );
        let fabric = spec("fc-266");
        let warm = one_way(&fabric, len).unwrap();
        let cold = OneWay(warm.0 + Span::millis(4));
        assert_eq!(first_one_way(&fabric, len), Ok(cold));
    }

    #[test]
    fn a_neighbour_is_asked_or_served() {
        let ethernet = spec("ethernet-100");
        let there = sum(&ethernet, ADDRESS_PACKET);
        assert_eq!(neighbour(&ethernet), Ok(RoundTrip(there * 2)));
        assert_eq!(
            neighbour(&spec("wire:delay=3ms")),
            Ok(RoundTrip(Span::millis(6)))
        );
        // One cell to the server at the switch, its time, one cell back.
        let atm = spec("atm-oc3c");
        let cell = atm.line.unit_time(Bytes(53));
        let want = (cell + atm.line.propagation()) * 2 + Span::micros(10) + Span::millis(1);
        assert_eq!(neighbour(&atm), Ok(RoundTrip(want)));
    }

    #[test]
    fn a_file_that_names_hosts_gets_them_and_its_circuits_are_up() {
        let mut spec = spec("atm-oc3c");
        let alone = one_way(&spec, Bytes(29)).unwrap();
        spec.circuits.as_mut().unwrap().boot = Span::secs(1);
        spec.pvc = vec![Pvc { between: [0, 1] }, Pvc { between: [2, 5] }];
        assert_eq!(one_way(&spec, Bytes(29)).unwrap(), alone);
    }
}
