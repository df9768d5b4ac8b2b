//! Who sends how much to whom: the communication matrix of a program.
//!
//! Model:   bytes and messages from each rank (row) to each (column). What a rank sends to itself crosses nothing and is
//!          kept, but costs nothing.
//! Source:  the form `sonde-matrix/1`, which the counting decorator and the library for MPI programs write. As
//!          comma-separated values only bytes are given; there a message begins every 64 KiB.
//! Units:   bytes, messages; ranks from 0.
//! Checked: `json_comes_back`, `what_is_wrong_is_said`, `a_table_of_bytes_is_read`.
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

use crate::excerpt;
use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{self, BufRead, Read};
use thiserror::Error;

/// The most ranks of a matrix: its two tables then take 256 MiB.
pub const RANKS_MAX: usize = 4_096;
/// A row of a table takes less: 20 digits and what is between them.
const LINE_BYTES_MAX: u64 = 1 << 17;
const SCHEMA: &str = "sonde-matrix/1";
/// In a table without messages, one begins after so many bytes.
const MESSAGE_BYTES: u64 = 65_536;

/// A communication matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    ranks: usize,
    bytes: Vec<u64>,
    messages: Vec<u64>,
    /// How long the program took from its start to its end, where who counted said so, in nanoseconds.
    pub time_ns: Option<u64>,
}

/// Why a text is not a matrix.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MatrixError {
    /// It is not of the form at all.
    #[error(
        "it is not a communication matrix: {}; write {{\"schema\": \"{SCHEMA}\", \"ranks\": N, \"bytes\": [[...]], \"messages\": [[...]]}}, or a table of bytes as comma-separated values",
        excerpt(.0)
    )]
    Form(String),
    /// It is of another form.
    #[error("its schema is `{}`, not `{SCHEMA}`", excerpt(.0))]
    Schema(String),
    /// Too few or too many ranks.
    #[error("it is of {0} ranks, but 1 to {RANKS_MAX} are possible")]
    Ranks(usize),
    /// A table has not as many rows as ranks.
    #[error("its table `{table}` has {rows} rows for {ranks} ranks: it must be square")]
    Rows {
        /// `bytes` or `messages`.
        table: &'static str,
        /// How many there are.
        rows: usize,
        /// How many there should be.
        ranks: usize,
    },
    /// A row is too short or too long.
    #[error(
        "row {row} of its table `{table}` has {columns} columns for {ranks} ranks: it must be square"
    )]
    Columns {
        /// `bytes` or `messages`.
        table: &'static str,
        /// The sender, from 0.
        row: usize,
        /// How many there are.
        columns: usize,
        /// How many there should be.
        ranks: usize,
    },
    /// A cell is no count.
    #[error(
        "`{table}` from rank {row} to rank {column} is `{}`, but a count is a whole number from 0 on",
        excerpt(value)
    )]
    Count {
        /// `bytes` or `messages`.
        table: &'static str,
        /// The sender, from 0.
        row: usize,
        /// The receiver, from 0.
        column: usize,
        /// What stands there.
        value: String,
    },
    /// Bytes that no message carries.
    #[error(
        "rank {row} sends {bytes} bytes to rank {column} in no message: write in `messages` how many carry them"
    )]
    NoMessages {
        /// The sender, from 0.
        row: usize,
        /// The receiver, from 0.
        column: usize,
        /// How many bytes.
        bytes: u64,
    },
    /// The sum does not fit.
    #[error("its `{0}` add up to more than 2^63")]
    Sum(&'static str),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    schema: String,
    ranks: usize,
    bytes: Table,
    messages: Table,
    #[serde(default)]
    time_ns: Option<u64>,
}

/// A table as it is written: the counts row after row, how many each row has, and the first cell that is no count.
#[derive(Default)]
struct Table {
    counts: Vec<u64>,
    columns: Vec<usize>,
    wrong: Option<(usize, usize, String)>,
}

impl Table {
    fn cell(&mut self, column: usize, count: Option<u64>, shown: impl FnOnce() -> String) {
        if count.is_none() && self.wrong.is_none() {
            self.wrong = Some((self.columns.len(), column, shown()));
        }
        self.counts.push(count.unwrap_or_default());
    }

    /// The counts, if the table is square and of counts alone.
    fn square(self, table: &'static str, ranks: usize) -> Result<Vec<u64>, MatrixError> {
        let rows = self.columns.len();
        if rows != ranks {
            return Err(MatrixError::Rows { table, rows, ranks });
        }
        let mut rows = self.columns.iter().copied().enumerate();
        if let Some((row, columns)) = rows.find(|(_, columns)| *columns != ranks) {
            return Err(MatrixError::Columns {
                table,
                row,
                columns,
                ranks,
            });
        }
        if let Some((row, column, value)) = self.wrong {
            return Err(MatrixError::Count {
                table,
                row,
                column,
                value,
            });
        }
        let mut counts = self.counts.iter();
        let sum = counts.try_fold(0u64, |sum, count| sum.checked_add(*count));
        sum.filter(|sum| *sum <= 1 << 63)
            .ok_or(MatrixError::Sum(table))?;
        Ok(self.counts)
    }
}

impl<'de> Deserialize<'de> for Table {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let mut table = Self::default();
        input.deserialize_seq(Rows(&mut table))?;
        Ok(table)
    }
}

/// All rows of a table, one after the other.
struct Rows<'a>(&'a mut Table);

impl<'de> Visitor<'de> for Rows<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<(), A::Error> {
        while rows.next_element_seed(Row(self.0))?.is_some() {}
        Ok(())
    }
}

/// One row of a table.
struct Row<'a>(&'a mut Table);

impl<'de> DeserializeSeed<'de> for Row<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Row<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row of counts")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut cells: A) -> Result<(), A::Error> {
        let begun = self.0.counts.len();
        while let Some(cell) = cells.next_element::<serde_json::Value>()? {
            let column = self.0.counts.len().saturating_sub(begun);
            self.0.cell(column, cell.as_u64(), || cell.to_string());
        }
        let columns = self.0.counts.len().saturating_sub(begun);
        self.0.columns.push(columns);
        Ok(())
    }
}

#[derive(Serialize)]
struct MatrixDocument<'a> {
    schema: &'static str,
    ranks: usize,
    bytes: Vec<&'a [u64]>,
    messages: Vec<&'a [u64]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_ns: Option<u64>,
}

impl Matrix {
    /// Of so many ranks, which send nothing.
    ///
    /// # Errors
    /// [`MatrixError::Ranks`].
    pub fn new(ranks: usize) -> Result<Self, MatrixError> {
        Self::is_possible(ranks)?;
        let cells = vec![0; ranks.saturating_mul(ranks)];
        Ok(Self {
            ranks,
            bytes: cells.clone(),
            messages: cells,
            time_ns: None,
        })
    }

    /// Adds what one rank sends to another; a count stays at the most there is.
    ///
    /// # Panics
    /// One of the ranks is not there.
    pub fn add(&mut self, from: usize, to: usize, bytes: u64, messages: u64) {
        let at = self.at(from, to);
        let cells = self.bytes.get_mut(at).zip(self.messages.get_mut(at));
        if let Some((all, count)) = cells {
            *all = all.saturating_add(bytes);
            *count = count.saturating_add(messages);
        }
    }

    /// Where the cell of two ranks stands in a table.
    ///
    /// # Panics
    /// One of the ranks is not there.
    fn at(&self, from: usize, to: usize) -> usize {
        assert!(from.max(to) < self.ranks, "a rank of the matrix");
        from.saturating_mul(self.ranks).saturating_add(to)
    }

    /// How many ranks.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// What one rank sends to another, in bytes.
    pub fn bytes(&self, from: usize, to: usize) -> u64 {
        self.bytes.get(self.at(from, to)).copied().unwrap_or(0)
    }

    /// In how many messages.
    pub fn messages(&self, from: usize, to: usize) -> u64 {
        self.messages.get(self.at(from, to)).copied().unwrap_or(0)
    }

    /// All bytes and all messages from one rank to another one.
    pub fn total(&self) -> (u64, u64) {
        let mut sum = (0_u64, 0_u64);
        for from in 0..self.ranks {
            for to in (0..self.ranks).filter(|to| *to != from) {
                sum.0 = sum.0.saturating_add(self.bytes(from, to));
                sum.1 = sum.1.saturating_add(self.messages(from, to));
            }
        }
        sum
    }

    /// Reads either form: JSON where it begins with a brace, else comma-separated bytes.
    ///
    /// # Errors
    /// [`MatrixError`].
    pub fn parse(text: &str) -> Result<Self, MatrixError> {
        Self::read(text.as_bytes())
    }

    /// Reads either form of what may be long: no more than the counts is kept.
    ///
    /// # Errors
    /// [`MatrixError`]; what cannot be read is [`MatrixError::Form`].
    pub fn read(mut input: impl BufRead) -> Result<Self, MatrixError> {
        let cannot = |error: io::Error| MatrixError::Form(error.to_string());
        loop {
            let begun = input.fill_buf().map_err(cannot)?;
            let spaces = begun.iter().take_while(|byte| byte.is_ascii_whitespace());
            let (spaces, all) = (spaces.count(), begun.len());
            match begun.get(spaces) {
                Some(b'{') => return Self::of_json(input),
                None if all > 0 => input.consume(spaces),
                _ => return Self::of_csv(input),
            }
        }
    }

    fn of_json(input: impl BufRead) -> Result<Self, MatrixError> {
        let written: Written =
            serde_json::from_reader(input).map_err(|error| MatrixError::Form(error.to_string()))?;
        if written.schema != SCHEMA {
            return Err(MatrixError::Schema(written.schema));
        }
        let ranks = written.ranks;
        Self::is_possible(ranks)?;
        let bytes = written.bytes.square("bytes", ranks)?;
        let messages = written.messages.square("messages", ranks)?;
        let rows = bytes.chunks(ranks).zip(messages.chunks(ranks)).enumerate();
        for (row, (bytes, messages)) in rows {
            let mut cells = bytes.iter().zip(messages).enumerate();
            let bare = cells.find(|(_, (bytes, messages))| **bytes > 0 && **messages == 0);
            if let Some((column, (&bytes, _))) = bare {
                return Err(MatrixError::NoMessages { row, column, bytes });
            }
        }
        Ok(Self {
            ranks,
            bytes,
            messages,
            time_ns: written.time_ns,
        })
    }

    fn of_csv(mut input: impl BufRead) -> Result<Self, MatrixError> {
        let mut table = Table::default();
        let mut whole = String::new();
        loop {
            whole.clear();
            let mut row = input.by_ref().take(LINE_BYTES_MAX);
            let read = row.read_line(&mut whole);
            match read.map_err(|error| MatrixError::Form(error.to_string()))? as u64 {
                0 => break,
                LINE_BYTES_MAX => {
                    let text = format!("a line of it has {LINE_BYTES_MAX} bytes or more");
                    return Err(MatrixError::Form(text));
                }
                _ => {}
            }
            let line = whole.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            for (column, word) in line.split(',').map(str::trim).enumerate() {
                table.cell(column, word.parse().ok(), || word.into());
            }
            table.columns.push(line.split(',').count());
        }
        let ranks = table.columns.len();
        Self::is_possible(ranks)?;
        let bytes = table.square("bytes", ranks)?;
        let begun = bytes.iter().map(|bytes| bytes.div_ceil(MESSAGE_BYTES));
        Ok(Self {
            ranks,
            messages: begun.collect(),
            bytes,
            time_ns: None,
        })
    }

    fn is_possible(ranks: usize) -> Result<(), MatrixError> {
        match (1..=RANKS_MAX).contains(&ranks) {
            true => Ok(()),
            false => Err(MatrixError::Ranks(ranks)),
        }
    }

    /// The matrix as JSON, in one line.
    pub fn to_json(&self) -> String {
        let shown = MatrixDocument {
            schema: SCHEMA,
            ranks: self.ranks,
            bytes: self.bytes.chunks(self.ranks).collect(),
            messages: self.messages.chunks(self.ranks).collect(),
            time_ns: self.time_ns,
        };
        // Numbers and words can be written.
        serde_json::to_string(&shown).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_comes_back() {
        let mut matrix = Matrix::new(3).unwrap();
        matrix.add(0, 2, 1_000, 3);
        matrix.add(2, 2, 7, 1);
        matrix.time_ns = Some(5);
        let text = matrix.to_json();
        assert!(
            text.starts_with("{\"schema\":\"sonde-matrix/1\",\"ranks\":3,\"bytes\":[[0,0,1000],")
        );
        assert_eq!(Matrix::parse(&text).unwrap(), matrix);
        assert_eq!(
            matrix.total(),
            (1_000, 3),
            "what stays at a rank is not sent"
        );
    }

    #[test]
    fn a_table_of_bytes_is_read() {
        let matrix = Matrix::parse("# bytes\n0, 65537\n\n3,0\n").unwrap();
        assert_eq!(
            (matrix.ranks(), matrix.bytes(0, 1), matrix.bytes(1, 0)),
            (2, 65_537, 3)
        );
        assert_eq!(
            (
                matrix.messages(0, 1),
                matrix.messages(1, 0),
                matrix.messages(0, 0)
            ),
            (2, 1, 0)
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        let json = |ranks: &str, bytes: &str, messages: &str| {
            let text = format!(
                "{{\"schema\": \"sonde-matrix/1\", \"ranks\": {ranks}, \"bytes\": {bytes}, \"messages\": {messages}}}"
            );
            Matrix::parse(&text).unwrap_err().to_string()
        };
        let good = "[[0,1],[1,0]]";
        for (found, word) in [
            (
                json("2", "[[0,1]]", good),
                "has 1 rows for 2 ranks: it must be square",
            ),
            (
                json("2", good, "[[0,1],[1]]"),
                "row 1 of its table `messages` has 1 columns",
            ),
            (
                json("2", "[[0,-4],[1,0]]", good),
                "from rank 0 to rank 1 is `-4`, but a count",
            ),
            (json("2", "[[0,1.5],[1,0]]", good), "`1.5`"),
            (json("0", "[]", "[]"), "0 ranks, but 1 to 4096"),
            (
                json("2", good, "[[0,1],[0,0]]"),
                "rank 1 sends 1 bytes to rank 0 in no message",
            ),
            (json("2, \"rank\": 2", good, good), "unknown field `rank`"),
            (json("2", "[[0,1],7]", good), "a row of counts"),
            (
                json("2", &format!("[[0,{m}],[{m},0]]", m = u64::MAX), good),
                "more than 2^63",
            ),
            (
                Matrix::parse("{}").unwrap_err().to_string(),
                "missing field",
            ),
            (
                Matrix::parse(&"0".repeat(200_000)).unwrap_err().to_string(),
                "a line of it has 131072 bytes or more",
            ),
            (Matrix::parse("").unwrap_err().to_string(), "0 ranks"),
            (Matrix::parse("1,2\n3").unwrap_err().to_string(), "row 1"),
            (Matrix::parse("1,-2\n3,4").unwrap_err().to_string(), "`-2`"),
            (
                Matrix::parse(
                    "{\"schema\": \"x\", \"ranks\": 1, \"bytes\": [[0]], \"messages\": [[0]]}",
                )
                .unwrap_err()
                .to_string(),
                "its schema is `x`",
            ),
        ] {
            assert!(found.contains(word), "{found} | {word}");
        }
    }
}
