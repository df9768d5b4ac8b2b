//! Available bit rate: circuits that are told their rates share a line fairly, and lose nothing.

use super::rig::{Rig, spec};
use sonde_link::{Network, NetworkSpec, To};
use sonde_units::{Instant, Span};

fn abr(feedback: &str, more: &str) -> String {
    format!("[[atm.contract]]\nclass = 1\ncategory = \"abr\"\nfeedback = \"{feedback}\"\n{more}")
}

/// Layer-3 bits a second that each receiver gets over the second half of the time, all senders full; and frames lost.
pub(super) fn shares(
    spec: &NetworkSpec,
    ports: u16,
    pairs: &[(u16, u16)],
    millis: u64,
) -> (Vec<f64>, u64) {
    let mut rig = Rig::new(spec, ports, 1);
    let mut half = vec![0u64; pairs.len()];
    for part in 1..=2u64 {
        let end = Instant::START + Span::millis(millis / 2 * part);
        loop {
            for (from, to) in pairs {
                while rig.is_ready(*from) {
                    rig.offer(*from, To::One(sonde_link::Port(*to)), 9_180, 1);
                }
            }
            if !rig.step(end) {
                break;
            }
        }
        if part == 1 {
            half = by_pair(&rig, pairs);
        }
    }
    let whole = by_pair(&rig, pairs);
    let rates = whole
        .iter()
        .zip(&half)
        .map(|(whole, half)| (whole - half) as f64 * 8_000.0 / (millis / 2) as f64);
    (rates.collect(), rig.network.counters().lost_total())
}

fn by_pair(rig: &Rig, pairs: &[(u16, u16)]) -> Vec<u64> {
    let of = |(from, to): &(u16, u16)| {
        let arrived = rig
            .fates
            .iter()
            .filter(|((_, at), (_, why))| at.0 == *to && why.is_none());
        let frames = arrived.map(|((id, _), _)| &rig.frames[id.0 as usize]);
        frames
            .filter(|frame| frame.from.0 == *from)
            .map(|frame| frame.len.0)
            .sum()
    };
    pairs.iter().map(of).collect()
}

/// Layer-3 bits of a bit of cells, one cell in 32 being a management cell.
const NET: f64 = 9_180.0 / (192.0 * 53.0) * 31.0 / 32.0;

#[test]
fn abr_circuits_share_fairly() {
    for (feedback, tolerance) in [("explicit-rate", 0.03), ("efci", 0.25)] {
        for senders in [2u16, 5] {
            let spec = spec(
                "atm-oc3c:buffer=4096cells",
                &abr(feedback, "rif = \"1/256\"\n"),
            );
            let pairs: Vec<_> = (0..senders).map(|from| (from, senders)).collect();
            let (rates, lost) = shares(&spec, senders + 1, &pairs, 1_000);
            assert_eq!(lost, 0, "{feedback} {senders}");
            let fair = 149.76e6 * 0.95 * NET / f64::from(senders);
            for rate in &rates {
                assert!(
                    (rate / fair - 1.0).abs() < tolerance,
                    "{feedback}: {rates:?}, {fair}"
                );
            }
        }
    }
}

/// A circuit that a slow line holds back leaves the rest of a shared one to the other; one with a least rate keeps that.
#[test]
fn a_short_share_is_given_to_others() {
    let slow = format!(
        "{}\n[[port]]\nport = 2\nrate = \"25.6Mbit\"\npayload = \"1/1\"\n",
        abr("explicit-rate", "")
    );
    let spec = spec("atm-oc3c:buffer=4096cells", &slow);
    // 2 sends on 25.6 Mb/s to 3, 0 and 1 on OC-3c.
    let (rates, lost) = shares(&spec, 4, &[(0, 3), (1, 3), (2, 3)], 1_000);
    assert_eq!(lost, 0);
    let slow = 25.6e6 * NET;
    let rest = (149.76e6 * 0.95 - 25.6e6) / 2.0 * NET;
    for (rate, want) in rates.iter().zip([rest, rest, slow]) {
        assert!((rate / want - 1.0).abs() < 0.03, "{rates:?}: {want}");
    }
}
