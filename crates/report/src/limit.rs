//! What a stream's rate cannot exceed, by each cause, and whether that explains the rate that was measured.
//!
//! Model:   window or buffer: bytes / round trip, since one of them may be on the way at a time. Loss: one segment a round trip times
//!          sqrt(1.5 / p) for reno and cubic, and for cubic, where it is more, 1.054 (round trip / p)^(3/4) segments with the round
//!          trip in seconds; other congestion controls (bbr) do not take loss for a full path, and have no limit by it. CPU: the
//!          rate over the part of one CPU that it used. A limit is named as the cause of a rate only if it lies below what the
//!          network allows ([`FULL`]), explains the rate ([`explains`]), and no other limit that does so is lower ([`is_behind`]).
//!          What is known by the time that it took, as TCP's account of its windows, is the cause from half of the time on
//!          ([`HELD`]): then no other can have taken more.
//! Source:  RFC 7323 §1.1; Mathis, Semke, Mahdavi & Ott, CCR 27(3) 1997, eq. 3; RFC 9438 §5.1, eq. 6 and §4.3. Factor of 0.5 to
//!          1.1: a stream that a limit of L holds for a part h of its time carries h L or more, so that half of the time is half
//!          of L. Mathis' constant is 1.22 for an acknowledgement a segment and 0.87 for one of two, and time-outs take the formula of
//!          Padhye et al. (SIGCOMM 1998) to 0.5 of it at a loss of 1 %. Above, a limit is passed only by the error of a round trip, of
//!          which the median is known within 5 % and the spread of a run is as much again.
//! Units:   bits a second, nanoseconds, bytes; shares are parts of one.
//! Checked: `a_limit_explains_what_is_near_it`, `a_window_is_a_rate`, `loss_limits_reno_and_cubic_alone`,
//!          `the_lowest_limit_comes_first`.

use std::ops::RangeInclusive;

/// Part of what the network allows from which a stream fills its path.
pub const FULL: f64 = 0.9;
/// Part of the time from which what holds a stream decides its rate.
pub(crate) const HELD: f64 = 0.5;
/// Part of a limit at which it explains the rate.
pub(crate) const EXPLAINS: RangeInclusive<f64> = 0.5..=1.1;
/// Part of a limit at which it alone explains the rate, where nothing else tells: acknowledgements that come late take the rest.
pub(crate) const FILLS: RangeInclusive<f64> = 0.8..=1.1;
/// A thread that uses so much of a CPU has no more.
pub(crate) const BUSY: f64 = 0.9;

/// Whether a limit explains a rate.
pub(crate) fn explains(bps: f64, limit_bps: f64) -> bool {
    limit_bps > 0.0 && EXPLAINS.contains(&(bps / limit_bps))
}

/// Whether a limit is below what the network allows; where that is not known, it may be.
pub(crate) fn binds(limit_bps: f64, reach_bps: Option<f64>) -> bool {
    reach_bps.is_none_or(|reach| limit_bps < FULL * reach)
}

/// Whether another limit holds a stream before this one does.
pub(crate) fn is_behind(limit_bps: f64, other_bps: f64) -> bool {
    limit_bps > EXPLAINS.end() * other_bps
}

/// What a window or buffer of so many bytes allows; nothing where there is no round trip.
pub(crate) fn window_bps(bytes: u64, rtt_ns: f64) -> Option<f64> {
    (rtt_ns > 0.0).then(|| bytes as f64 * 8e9 / rtt_ns)
}

/// User bytes of the largest TCP segment that an MTU allows, without the headers of IPv4 and of TCP with time stamps.
pub(crate) fn full_segment_bytes(mtu_bytes: u64) -> u64 {
    mtu_bytes.saturating_sub(52)
}

/// Bytes that are on the way at a rate.
pub(crate) fn on_the_way_bytes(bps: f64, rtt_ns: f64) -> f64 {
    bps * rtt_ns / 8e9
}

/// What a loss of `p` of the segments leaves to a congestion control; nothing where it does not give way to loss, or is not known.
pub(crate) fn loss_bps(control: &str, mss_bytes: u64, rtt_ns: f64, p: f64) -> Option<f64> {
    if !(rtt_ns > 0.0 && p > 0.0) {
        return None;
    }
    let reno = (1.5 / p).sqrt();
    let segments = match control {
        "reno" => reno,
        "cubic" => reno.max(1.054 * (rtt_ns / 1e9 / p).powf(0.75)),
        _ => return None,
    };
    Some(mss_bytes as f64 * 8e9 / rtt_ns * segments)
}

/// What one CPU allows of which a rate used such a part.
pub(crate) fn cpu_bps(bps: f64, used: f64) -> Option<f64> {
    (used > 0.0).then(|| bps / used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_explains_what_is_near_it() {
        for (bps, is_so) in [(49.0, false), (50.0, true), (110.0, true), (111.0, false)] {
            assert_eq!(explains(bps, 100.0), is_so, "{bps}");
        }
        assert!(!explains(1.0, 0.0));
        assert!(binds(89.0, Some(100.0)) && !binds(90.0, Some(100.0)) && binds(1e12, None));
    }

    #[test]
    fn a_window_is_a_rate() {
        let bps = window_bps(65_535, 20e6).unwrap();
        assert!((bps - 26_214_000.0).abs() < 1.0);
        assert!((on_the_way_bytes(bps, 20e6) - 65_535.0).abs() < 1e-6);
        assert_eq!(window_bps(65_535, 0.0), None);
    }

    #[test]
    fn loss_limits_reno_and_cubic_alone() {
        // 1 460 B, 10 ms, one in a thousand: 45.2 Mb/s.
        let reno = loss_bps("reno", 1_460, 10e6, 1e-3).unwrap();
        assert!((reno - 45.2e6).abs() < 0.1e6, "{reno}");
        assert_eq!(loss_bps("cubic", 1_460, 10e6, 1e-3), Some(reno));
        // Over a long way cubic takes more: 1.054 (0.1 / 1e-5)^0.75 = 1 054 segments, reno 387.
        let far = |control| loss_bps(control, 1_460, 100e6, 1e-5).unwrap() * 0.1 / 8.0 / 1_460.0;
        assert!((far("cubic") - 1_054.0).abs() < 1.0, "{}", far("cubic"));
        assert!((far("reno") - 387.3).abs() < 0.1, "{}", far("reno"));
        assert_eq!(loss_bps("bbr", 1_460, 10e6, 1e-3), None);
        assert_eq!(loss_bps("reno", 1_460, 10e6, 0.0), None);
        assert_eq!(cpu_bps(9e9, 0.9), Some(1e10));
    }

    #[test]
    fn the_lowest_limit_comes_first() {
        assert!(is_behind(26e6, 20e6));
        assert!(!is_behind(21e6, 20e6), "both are as low");
        assert!(!is_behind(20e6, 26e6));
    }
}
