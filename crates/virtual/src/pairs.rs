//! The times of every pair of hosts of an idle network: what a placement of ranks has to know.
//!
//! Model:   the network itself is run with all its hosts, one pair after the other: a frame that sets up what must be set up and
//!          does not count, one small frame alone, one of the MTU alone, and a train of these. What each further frame of the train adds is
//!          what bounds the rate of a stream between the two.
//! Units:   layer-3 bytes in frames; times rounded down to picoseconds.
//! Checked: `pairs_agree_with_one_way`, `a_trunk_bounds_only_its_pairs`.

use crate::idle::{TimeError, carried, frame, quiet, travel};
use sonde_link::{NetworkSpec, Port};
use sonde_units::{Bytes, Span};

/// How many frames a train has.
const TRAIN: u64 = 9;

/// What frames take between two hosts of an idle network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairTime {
    /// A small frame, from its offer to its last bit at the other host.
    pub one_way: Span,
    /// How much later each further frame of the MTU arrives.
    pub each: Span,
}

/// The times of each ordered pair of so many hosts, row after row by sender; none from a host to itself. `small` are the layer-3
/// bytes of the small frame.
///
/// # Errors
/// [`TimeError`]: also where two of the hosts cannot reach each other.
pub fn pair_times(
    spec: &NetworkSpec,
    hosts: u16,
    small: Bytes,
) -> Result<Vec<Option<PairTime>>, TimeError> {
    let mut clock = quiet(spec, hosts)?;
    let mut id = 0;
    let mut times = Vec::with_capacity(usize::from(hosts) * usize::from(hosts));
    for (from, to) in (0..hosts).flat_map(|from| (0..hosts).map(move |to| (Port(from), Port(to)))) {
        if from == to {
            times.push(None);
            continue;
        }
        let mut next = |len: Bytes| {
            id += 1;
            frame(id, from, to, len)
        };
        let first = next(small);
        travel(&mut clock, first, to)?;
        let mut took = Vec::new();
        for (count, len) in [(1, small), (1, Bytes(spec.mtu)), (TRAIN, Bytes(spec.mtu))] {
            let frames: Vec<_> = (0..count).map(|_| next(len)).collect();
            let begin = clock.now();
            took.push(carried(&mut clock, frames.into_iter(), usize::MAX)?.since(begin));
        }
        let more = took[2].saturating_sub(took[1]);
        times.push(Some(PairTime {
            one_way: took[0],
            each: Span::picos(more.as_picos() / (TRAIN - 1)),
        }));
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::one_way;
    use sonde_link::{named, parse};

    #[test]
    fn pairs_agree_with_one_way() {
        for name in [
            "ethernet-100",
            "atm-oc3c",
            "wan-ds3",
            "fddi",
            "fc-266",
            "sci-1g8",
            "wire",
            "hippi-800",
        ] {
            let spec = named(name).unwrap();
            let times = pair_times(&spec, 3, Bytes(29)).unwrap();
            assert_eq!((times[0], times[4]), (None, None));
            let alone = one_way(&spec, Bytes(29)).unwrap().0.as_picos();
            let here = times[1].unwrap().one_way.as_picos();
            // A token may be anywhere, and a ring of three is longer than one of two.
            let near = if name == "fddi" || name == "sci-1g8" {
                0.5
            } else {
                0.01
            };
            let apart = (here as f64 - alone as f64).abs() / alone.max(1) as f64;
            assert!(apart <= near, "{name}: {here} {alone}");
            let frame = spec.frame_time(Bytes(spec.mtu)).as_picos() as f64;
            let each = times[1].unwrap().each.as_picos() as f64;
            assert!(
                (each - frame).abs() <= 0.05 * frame,
                "{name}: {each} {frame}"
            );
        }
    }

    #[test]
    fn a_trunk_bounds_only_its_pairs() {
        let text = "name = \"x\"\nsummary = \"x\"\ntechnology = \"wan\"\ntopology = \"sites\"\nmtu = 1500\n\
            [line]\nrate = \"100Mbit\"\nframing = \"ethernet\"\n\
            [switch]\nforwarding = \"store-and-forward\"\nlatency = \"10us\"\nbuffer = \"512KiB\"\n\
            [[site]]\nname = \"a\"\nhosts = 2\n[[site]]\nname = \"b\"\nhosts = 2\n\
            [[trunk]]\nbetween = [0, 1]\nrate = \"10Mbit\"\ndelay = \"2ms\"\n";
        let spec = parse("x", text).unwrap();
        let times = pair_times(&spec, 4, Bytes(29)).unwrap();
        let [near, far] = [1, 2].map(|at| times[at].unwrap());
        assert!(
            near.one_way < Span::micros(100) && far.one_way > Span::millis(2),
            "{near:?} {far:?}"
        );
        // 1538 bytes on the wire.
        assert_eq!(
            (near.each, far.each),
            (Span::nanos(123_040), Span::nanos(1_230_400))
        );
        assert_eq!(times[4 * 3 + 2], times[1]);
    }
}
