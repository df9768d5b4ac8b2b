//! Which CPUs agents and an emulated network's switch run on.
//!
//! Model:   what waits asleep for every message is measured with everything on one CPU, since waking an idle CPU costs more
//!          than the message. A stream gets its ends apart, or in a lab the switch apart from both. What polls needs a CPU
//!          for each end: two that poll on one wait for each other's slices (4 ms instead of 22 us on two CPUs, seen on
//!          Linux 6.18). The switch has its own from three CPUs on; with two it shares both, and is let in when it wakes.
//! Checked: `placements_follow_the_probe`, `ends_have_cpus_of_their_own`, `one_cpu_is_everyones`; `tests/local.rs`.

use sonde_measure::files::{Files, Service};
use sonde_measure::{Probe, Procedure, Spec, Wait};

/// Where an agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Placement {
    /// With all others on one CPU.
    One,
    /// With the other end, apart from the switch.
    Split,
    /// The measuring end, apart from the other.
    Src,
    /// The answering end, apart from the other.
    Dst,
    /// Where its host lets it.
    Any,
    /// The same: beside one that measures, for a load.
    Load,
    /// With all that is measured at once, apart from the switch: the n-th of them.
    Lane(u8),
}

/// Whether nothing goes between hosts, so that all CPUs are the measuring one's: a file system of its own.
pub(crate) fn is_within_host(spec: &Spec) -> bool {
    let Procedure::Files(Files { service, .. }) = &spec.procedure else {
        return false;
    };
    *service == Service::Fs
}

/// The CPUs of this machine, and who shares them.
#[derive(Debug)]
pub(crate) struct Cpus {
    online: Vec<usize>,
    has_switch: bool,
}

impl Cpus {
    /// Those that this process may use; with a switch, or without.
    pub(crate) fn here(has_switch: bool) -> sonde_sys::Result<Self> {
        Ok(Self {
            online: sonde_sys::cpu::online()?,
            has_switch,
        })
    }

    /// Where measuring and answering agent run.
    pub(crate) fn placements(&self, wait: Wait, probe: Probe) -> [Placement; 2] {
        match (wait, probe) {
            (Wait::Block, Probe::Startup | Probe::Latency | Probe::Anatomy) => [Placement::One; 2],
            (Wait::Block, _) if self.has_switch => [Placement::Split; 2],
            _ => [Placement::Src, Placement::Dst],
        }
    }

    /// The CPUs of an agent.
    pub(crate) fn of_agent(&self, placement: Placement) -> &[usize] {
        let (others, last) = self.parted();
        let ends = if self.has_switch && others.len() > 1 {
            others
        } else {
            &self.online
        };
        let (src, dst) = ends.split_at(ends.len() / 2);
        match placement {
            Placement::Any | Placement::Load => &self.online,
            Placement::One => last,
            Placement::Lane(_) if !self.has_switch => &self.online,
            Placement::Lane(_) => self.of_agent(Placement::Split),
            Placement::Split if others.is_empty() => last,
            Placement::Split => others,
            Placement::Src if src.is_empty() => dst,
            Placement::Src => src,
            Placement::Dst => dst,
        }
    }

    /// The CPUs of the switch, while an agent so placed measures.
    pub(crate) fn of_switch(&self, placement: Placement) -> &[usize] {
        let (others, last) = self.parted();
        match placement {
            Placement::Src | Placement::Dst if others.len() < 2 => &self.online,
            _ => last,
        }
    }

    /// All but the last, and the last.
    fn parted(&self) -> (&[usize], &[usize]) {
        self.online.split_at(self.online.len().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(online: &[usize], has_switch: bool) -> Cpus {
        Cpus {
            online: online.to_vec(),
            has_switch,
        }
    }

    #[test]
    fn placements_follow_the_probe() {
        use Placement::{Dst, One, Split, Src};
        let of = |has_switch, probe, wait| cpus(&[0, 1], has_switch).placements(wait, probe);
        for has_switch in [false, true] {
            assert_eq!(of(has_switch, Probe::Latency, Wait::Block), [One, One]);
            assert_eq!(of(has_switch, Probe::Startup, Wait::Block), [One, One]);
            assert_eq!(of(has_switch, Probe::Latency, Wait::Poll), [Src, Dst]);
            assert_eq!(of(has_switch, Probe::Stream, Wait::Poll), [Src, Dst]);
        }
        assert_eq!(of(true, Probe::Stream, Wait::Block), [Split, Split]);
        assert_eq!(of(true, Probe::Message, Wait::Block), [Split, Split]);
        assert_eq!(of(false, Probe::Stream, Wait::Block), [Src, Dst]);
    }

    #[test]
    fn ends_have_cpus_of_their_own() {
        let two = cpus(&[0, 1], true);
        assert_eq!(
            (two.of_agent(Placement::Src), two.of_agent(Placement::Dst)),
            (&[0][..], &[1][..])
        );
        assert_eq!(
            (two.of_switch(Placement::Src), two.of_switch(Placement::One)),
            (&[0, 1][..], &[1][..])
        );
        assert_eq!(
            (
                two.of_agent(Placement::Split),
                two.of_switch(Placement::Split)
            ),
            (&[0][..], &[1][..])
        );
        let five = cpus(&[0, 1, 4, 5, 8], true);
        assert_eq!(
            (five.of_agent(Placement::Src), five.of_agent(Placement::Dst)),
            (&[0, 1][..], &[4, 5][..])
        );
        assert_eq!(five.of_switch(Placement::Src), [8]);
        let local = cpus(&[0, 1, 4], false);
        assert_eq!(
            (
                local.of_agent(Placement::Src),
                local.of_agent(Placement::Dst)
            ),
            (&[0][..], &[1, 4][..])
        );
        assert_eq!(
            (
                local.of_agent(Placement::One),
                local.of_agent(Placement::Any)
            ),
            (&[4][..], &[0, 1, 4][..])
        );
    }

    #[test]
    fn one_cpu_is_everyones() {
        for has_switch in [false, true] {
            let one = cpus(&[3], has_switch);
            for placement in [
                Placement::One,
                Placement::Split,
                Placement::Src,
                Placement::Dst,
                Placement::Any,
                Placement::Lane(1),
            ] {
                assert_eq!(
                    (one.of_agent(placement), one.of_switch(placement)),
                    (&[3][..], &[3][..])
                );
            }
        }
    }
}
