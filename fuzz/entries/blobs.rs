//! What is read back from a store or an exported file: blobs, series.

use sonde_stats::Series;

pub fn run(bytes: &[u8]) {
    let (first, buckets) = bytes.split_at(bytes.len() / 2);
    look(sonde_record::fuzz::series(first, buckets));
    look(serde_json::from_slice::<Series>(bytes).ok());
}

/// What reports do with a series.
fn look(series: Option<Series>) {
    let Some(mut series) = series else {
        return;
    };
    if let Some(summary) = series.summary() {
        assert!(summary.min <= summary.p50 && summary.p50 <= summary.max);
    }
    let _ = series.median_interval(0.95);
    let mut twice = series.clone();
    twice.merge(&series);
    let _ = twice.summary();
    series.record(5);
}
