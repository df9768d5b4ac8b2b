//! The times of every pair of hosts of an idle network or site: what a placement of ranks has to know.
//!
//! Model:   the network itself is run with all its hosts, one pair after the other: a frame there and one back that set up what must be set
//!          up and do not count, one small frame alone, one of the MTU alone, and a train of these. What each further frame of the train adds is
//!          what bounds the rate of a stream between the two.
//! Units:   layer-3 bytes in frames; times rounded down to picoseconds.
//! Checked: `pairs_agree_with_one_way`, `a_trunk_bounds_only_its_pairs`, `a_path_over_routers_is_as_long_as_alone`.

use crate::Clock;
use crate::idle::{Built, TimeError, carried, frame, quiet, travel};
use crate::site;
use sonde_link::{Port, SiteSpec, Subnets};
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
    /// That MTU: the longest frame that comes through as one, in layer-3 bytes.
    pub mtu: u64,
}

/// The times of each ordered pair of hosts, row after row by sender; none from a host to itself, or where no way leads. `small` are the
/// layer-3 bytes of the small frame; `subnets` are the site's.
///
/// # Errors
/// [`TimeError`].
pub fn pair_times(
    site: &SiteSpec,
    subnets: &Subnets,
    small: Bytes,
) -> Result<Vec<Option<PairTime>>, TimeError> {
    let hosts = site.count();
    let mut clock: Clock<Built> = match &site.segment[..] {
        [one] => quiet(&one.network, hosts)?,
        _ => Clock::new(site::quiet(site)?),
    };
    let mut id = 0;
    let mut times = Vec::with_capacity(usize::from(hosts) * usize::from(hosts));
    for (from, to) in (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to))) {
        let ends = subnets.between(from, to).filter(|_| from != to);
        let path = ends.and_then(|(from, to)| Some((from, to, subnets.segments(from, to)?)));
        let Some((from, to, segments)) = path else {
            times.push(None);
            continue;
        };
        let mtus = segments.iter().map(|one| site.segment[*one].network.mtu);
        let mtu = mtus.min().unwrap_or(0);
        let mut next = |from: Port, to: Port, len: Bytes| {
            id += 1;
            frame(id, from, to, len)
        };
        for (from, to) in [(from, to), (to, from)] {
            let first = next(from, to, small);
            travel(&mut clock, first, to)?;
        }
        let mut took = Vec::new();
        for (count, len) in [(1, small), (1, Bytes(mtu)), (TRAIN, Bytes(mtu))] {
            let frames: Vec<_> = (0..count).map(|_| next(from, to, len)).collect();
            let begin = clock.now();
            took.push(carried(&mut clock, frames.into_iter(), usize::MAX)?.since(begin));
        }
        let more = took[2].saturating_sub(took[1]);
        times.push(Some(PairTime {
            one_way: took[0],
            each: Span::picos(more.as_picos() / (TRAIN - 1)),
            mtu,
        }));
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Between, one_way};
    use sonde_link::{NetworkSpec, named, parse, resolve_site};

    fn of(spec: &NetworkSpec, hosts: u16) -> Vec<Option<PairTime>> {
        let site = SiteSpec::single(spec.clone(), hosts);
        pair_times(&site, &site.subnets().unwrap(), Bytes(29)).unwrap()
    }

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
            let times = of(&spec, 3);
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
        let times = of(&spec, 4);
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

    #[test]
    fn a_path_over_routers_is_as_long_as_alone() {
        let site = resolve_site("two-cities", &|_| Err("no file".into())).unwrap();
        let (subnets, hosts) = (site.subnets().unwrap(), site.count());
        let times = pair_times(&site, &subnets, Bytes(29)).unwrap();
        assert_eq!(times.len(), usize::from(hosts) * usize::from(hosts));
        for (from, to) in [(0, 1), (0, hosts - 1), (hosts - 1, 1)] {
            let (near, far) = subnets.between(from, to).unwrap();
            let path = Between {
                site: &site,
                from: near,
                to: far,
            };
            let alone = path.one_way(Bytes(29)).unwrap().0.as_picos() as f64;
            let here = times[usize::from(from) * usize::from(hosts) + usize::from(to)].unwrap();
            assert_eq!(here.mtu, path.mtu());
            let apart = (here.one_way.as_picos() as f64 / alone - 1.0).abs();
            assert!(apart < 0.01, "{from} {to}: {here:?} {alone}");
            // What each further frame adds is the slowest network's time.
            let networks = path.networks();
            let times = networks.iter().map(|one| one.frame_time(Bytes(here.mtu)));
            let slowest = times.max().unwrap().as_picos() as f64;
            let each = here.each.as_picos() as f64;
            assert!((each / slowest - 1.0).abs() < 0.01, "{each} {slowest}");
        }
    }
}
