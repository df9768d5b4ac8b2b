//! Doors for the fuzz targets: what is read back from a store, and is private.
//!
//! Checked: the fuzz targets `blobs` and `columns`.

use rusqlite::types::{FromSql, ValueRef};
use sonde_measure::{
    Disturbance, Evidence, HostFacts, Measurement, NetworkRow, Quantity, RunState, Step,
};
use sonde_stats::{Parts, Series};

use crate::store::blob;
use crate::store::value::{Json, Wide, Wide64, Word};

/// A series of the columns that a store keeps it in; none where they are of no series.
pub fn series(first: &[u8], buckets: &[u8]) -> Option<Series> {
    let (first, buckets) = (blob::samples(first).ok()?, blob::buckets(buckets).ok()?);
    let parts = Parts {
        min: first.iter().copied().min().unwrap_or(0),
        max: first.iter().copied().max().unwrap_or(0),
        sum: first.iter().map(|sample| u128::from(*sample)).sum(),
        first,
        buckets,
    };
    Series::try_from(parts).ok()
}

/// A column: the first byte says whether it is an integer, a real number, a text, bytes or nothing.
pub fn column(bytes: &[u8]) {
    let [kind, rest @ ..] = bytes else {
        return;
    };
    let number = rest
        .first_chunk()
        .map_or(0, |eight| i64::from_le_bytes(*eight));
    let value = match kind % 5 {
        0 => ValueRef::Integer(number),
        1 => ValueRef::Real(f64::from_bits(number as u64)),
        2 => ValueRef::Text(rest),
        3 => ValueRef::Blob(rest),
        _ => ValueRef::Null,
    };
    let _ = Wide::column_result(value);
    let _ = Wide64::column_result(value);
    let _ = Json::<Evidence>::column_result(value);
    let _ = Json::<HostFacts>::column_result(value);
    let _ = Json::<NetworkRow>::column_result(value);
    let _ = Json::<Vec<Disturbance>>::column_result(value);
    let _ = Json::<Measurement>::column_result(value);
    let _ = Word::<Quantity>::column_result(value);
    let _ = Word::<RunState>::column_result(value);
    let _ = Word::<Step>::column_result(value);
}
