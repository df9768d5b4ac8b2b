//! The half-performance size: the message for which half of the peak rate is reached.
//!
//! Model:   the smallest size at which the rate comes from below half of the peak to at least half, interpolated linearly
//!          in the rate between the two measured sizes, on a logarithmic axis of sizes.
//! Source:  Hockney, Parallel Computing 20(3) 1994, n½. Deviations: read off the measured curve, not from a fitted line.
//! Units:   bytes, rounded to the nearest; bits a second.
//! Checked: `hockneys_line_gives_its_half_size`, `never_crossed_is_none`, `the_first_crossing_counts`.

/// The size in bytes for which `points` of (bytes, bits a second), in any order, reach half of `peak_bps`.
///
/// `None` when they never come from below half to half: no point reaches it, or the smallest does already.
pub fn half_size(points: &[(u64, u64)], peak_bps: u64) -> Option<u64> {
    let mut sorted = points.to_vec();
    sorted.sort_unstable();
    let half = peak_bps as f64 / 2.0;
    let (below, above) = sorted
        .windows(2)
        .map(|pair| (pair[0], pair[1]))
        .find(|(below, above)| (below.1 as f64) < half && above.1 as f64 >= half)?;
    let share = (half - below.1 as f64) / (above.1 as f64 - below.1 as f64);
    let (low, high) = ((below.0.max(1) as f64).ln(), (above.0.max(1) as f64).ln());
    Some((low + share * (high - low)).exp().round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hockneys_line_gives_its_half_size() {
        // t = 100 us + s / 12.5 B/us: the rate is half of 100 Mb/s where s / 12.5 = 100, at 1250 B.
        let rate = |size: u64| (size * 8_000_000_000) / (100_000 + size * 80);
        let points: Vec<_> = (0..24)
            .map(|power| (1 << power, rate(1 << power)))
            .collect();
        let size = half_size(&points, 100_000_000).unwrap();
        assert!(size.abs_diff(1_250) < 25, "{size}");
        let exact = half_size(&[(1_250, rate(1_250)), (1, rate(1))], 100_000_000);
        assert_eq!(exact, Some(1_250));
    }

    #[test]
    fn never_crossed_is_none() {
        assert_eq!(half_size(&[], 100), None);
        assert_eq!(half_size(&[(1, 100)], 100), None);
        assert_eq!(half_size(&[(1, 10), (2, 49)], 100), None);
        assert_eq!(half_size(&[(1, 50), (2, 100)], 100), None);
    }

    #[test]
    fn the_first_crossing_counts() {
        let dented = [(1, 10), (100, 60), (1_000, 40), (10_000, 90)];
        let size = half_size(&dented, 100).unwrap();
        assert!((1..100).contains(&size), "{size}");
        assert_eq!(half_size(&[(0, 0), (1, 0), (4, 100)], 100), Some(2));
    }
}
