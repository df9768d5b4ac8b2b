//! Values as columns: words, JSON, and integers of more than 63 bits.
//!
//! Units:   an integer column holds up to 2⁶³-1. Where more can come, the column is of any type and holds decimal text
//!          beyond that.
//! Checked: `large_integers_come_back`, `words_are_those_of_json`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::StoreError;

/// An integer of any size up to 128 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wide(pub(crate) u128);

impl ToSql for Wide {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match i64::try_from(self.0) {
            Ok(small) => ToSqlOutput::from(small),
            Err(_) => ToSqlOutput::from(self.0.to_string()),
        })
    }
}

impl FromSql for Wide {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value {
            ValueRef::Integer(integer) => u128::try_from(integer)
                .map(Self)
                .map_err(|_| FromSqlError::OutOfRange(integer)),
            other => other
                .as_str()?
                .parse()
                .map(Self)
                .map_err(|e| FromSqlError::Other(Box::new(e))),
        }
    }
}

/// A 64-bit integer of any size.
pub(crate) struct Wide64(pub(crate) u64);

impl FromSql for Wide64 {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let Wide(wide) = Wide::column_result(value)?;
        u64::try_from(wide)
            .map(Self)
            .map_err(|e| FromSqlError::Other(Box::new(e)))
    }
}

/// An integer for a column that holds no more than 63 bits.
pub(crate) fn whole(what: &'static str, value: u64) -> Result<i64, StoreError> {
    i64::try_from(value).map_err(|_| StoreError::TooLarge { what, value })
}

/// A value as JSON text; nothing for a type that cannot be JSON: those of a run can.
pub(crate) fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// A value that was written by [`json`].
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromSql for Json<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        serde_json::from_str(value.as_str()?)
            .map(Self)
            .map_err(|e| FromSqlError::Other(Box::new(e)))
    }
}

/// A variant without fields as its word.
///
/// # Panics
/// When it is none.
pub(crate) fn word<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        other => panic!("no word: {other:?}"),
    }
}

/// A variant that was written by [`word`].
pub(crate) struct Word<T>(pub(crate) T);

impl<T: DeserializeOwned> FromSql for Word<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        serde_json::from_value(Value::from(value.as_str()?))
            .map(Self)
            .map_err(|e| FromSqlError::Other(Box::new(e)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_measure::{Quantity, Step};

    #[test]
    fn large_integers_come_back() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        connection
            .execute_batch("CREATE TABLE t (v ANY) STRICT")
            .unwrap();
        let all = [
            0,
            1,
            (1 << 63) - 1,
            1 << 63,
            u128::from(u64::MAX),
            u128::MAX,
        ];
        for value in all {
            connection.execute("DELETE FROM t", []).unwrap();
            connection
                .execute("INSERT INTO t VALUES (?1)", [Wide(value)])
                .unwrap();
            let (back, kind): (Wide, String) = connection
                .query_row("SELECT v, typeof(v) FROM t", [], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
                .unwrap();
            assert_eq!(back.0, value);
            assert_eq!(kind == "integer", value < 1 << 63, "{value}: {kind}");
            let narrow = connection.query_row("SELECT v FROM t", [], |row| row.get::<_, Wide64>(0));
            assert_eq!(narrow.ok().map(|n| n.0), u64::try_from(value).ok());
        }
        for wrong in ["-1", "'x'", "'-5'", "1.5", "x'00'"] {
            let sql = format!("SELECT {wrong}");
            assert!(
                connection
                    .query_row(&sql, [], |row| row.get::<_, Wide>(0))
                    .is_err(),
                "{wrong}"
            );
        }
        assert_eq!(whole("x", 5).unwrap(), 5);
        let error = whole("took_ns", u64::MAX).unwrap_err().to_string();
        assert!(
            error.contains("took_ns") && error.contains("18446744073709551615"),
            "{error}"
        );
    }

    #[test]
    fn words_are_those_of_json() {
        assert_eq!(word(&Quantity::CpuSrcNsPerByte), "cpu_src_ns_per_byte");
        let read = |text: &str| {
            Word::<Step>::column_result(ValueRef::Text(text.as_bytes())).map(|word| word.0)
        };
        assert_eq!(read("neighbour").unwrap(), Step::Neighbour);
        assert!(read("neighbor").is_err());
    }
}
