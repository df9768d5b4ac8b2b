//! What is read back from a store or an exported file: blobs, series, runs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde::de::IgnoredAny;
use sonde_stats::{Parts, Series};
use std::collections::BTreeMap;

#[expect(dead_code, reason = "reading is what is tried")]
#[path = "../../crates/record/src/store/blob.rs"]
mod blob;

fuzz_target!(|bytes: &[u8]| {
    let (first, buckets) = bytes.split_at(bytes.len() / 2);
    if let (Ok(first), Ok(buckets)) = (blob::samples(first), blob::buckets(buckets)) {
        let parts = Parts {
            min: first.iter().copied().min().unwrap_or(0),
            max: first.iter().copied().max().unwrap_or(0),
            sum: first.iter().map(|sample| u128::from(*sample)).sum(),
            first,
            buckets,
        };
        look(Series::try_from(parts).ok());
    }
    look(serde_json::from_slice::<Series>(bytes).ok());
    let _ = serde_json::from_slice::<sonde_measure::Run>(bytes);
    let _ = serde_json::from_slice::<sonde_record::Document<BTreeMap<String, IgnoredAny>>>(bytes);
});

/// What reports do with a series.
fn look(series: Option<Series>) {
    let Some(mut series) = series else {
        return;
    };
    if let Some(summary) = series.summary() {
        assert!(summary.min <= summary.p50 && summary.p50 <= summary.max);
    }
    let _ = series.median_interval(0.95);
    if series.count() < u64::MAX && series.sum() < u128::MAX - u128::from(u64::MAX) {
        series.record(5);
    }
}
