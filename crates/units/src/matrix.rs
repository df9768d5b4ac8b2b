//! Who sends how much to whom: the communication matrix of a program.
//!
//! Model:   bytes and messages from each rank (row) to each (column). What a rank sends to itself crosses nothing and is
//!          kept, but costs nothing.
//! Source:  the form `sonde-matrix/1`, which the counting decorator and the library for MPI programs write. As
//!          comma-separated values only bytes are given; there a message begins every 64 KiB.
//! Units:   bytes, messages; ranks from 0.
//! Checked: `json_comes_back`, `what_is_wrong_is_said`, `a_table_of_bytes_is_read`.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The most ranks of a matrix: its two tables then take 256 MiB.
pub const RANKS_MAX: usize = 4_096;
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
        "it is not a communication matrix: {0}; write {{\"schema\": \"{SCHEMA}\", \"ranks\": N, \"bytes\": [[...]], \"messages\": [[...]]}}, or a table of bytes as comma-separated values"
    )]
    Form(String),
    /// It is of another form.
    #[error("its schema is `{0}`, not `{SCHEMA}`")]
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
        "`{table}` from rank {row} to rank {column} is `{value}`, but a count is a whole number from 0 on"
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
    /// The sum does not fit.
    #[error("its `{0}` add up to more than 2^63")]
    Sum(&'static str),
}

#[derive(Deserialize)]
struct Written {
    schema: String,
    ranks: usize,
    bytes: Vec<Vec<serde_json::Value>>,
    messages: Vec<Vec<serde_json::Value>>,
    #[serde(default)]
    time_ns: Option<u64>,
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
        if !(1..=RANKS_MAX).contains(&ranks) {
            return Err(MatrixError::Ranks(ranks));
        }
        Ok(Self {
            ranks,
            bytes: vec![0; ranks * ranks],
            messages: vec![0; ranks * ranks],
            time_ns: None,
        })
    }

    /// Adds what one rank sends to another.
    ///
    /// # Panics
    /// One of the ranks is not there, or a count overflows.
    pub fn add(&mut self, from: usize, to: usize, bytes: u64, messages: u64) {
        assert!(from.max(to) < self.ranks, "a rank of the matrix");
        let at = from * self.ranks + to;
        self.bytes[at] += bytes;
        self.messages[at] += messages;
    }

    /// How many ranks.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// What one rank sends to another, in bytes.
    pub fn bytes(&self, from: usize, to: usize) -> u64 {
        self.bytes[from * self.ranks + to]
    }

    /// In how many messages.
    pub fn messages(&self, from: usize, to: usize) -> u64 {
        self.messages[from * self.ranks + to]
    }

    /// All bytes and all messages from one rank to another one.
    pub fn total(&self) -> (u64, u64) {
        let mut sum = (0, 0);
        for from in 0..self.ranks {
            for to in (0..self.ranks).filter(|to| *to != from) {
                sum.0 += self.bytes(from, to);
                sum.1 += self.messages(from, to);
            }
        }
        sum
    }

    /// Reads either form: JSON where it begins with a brace, else comma-separated bytes.
    ///
    /// # Errors
    /// [`MatrixError`].
    pub fn parse(text: &str) -> Result<Self, MatrixError> {
        if text.trim_start().starts_with('{') {
            Self::from_json(text)
        } else {
            Self::from_csv(text)
        }
    }

    fn from_json(text: &str) -> Result<Self, MatrixError> {
        let written: Written =
            serde_json::from_str(text).map_err(|error| MatrixError::Form(error.to_string()))?;
        if written.schema != SCHEMA {
            return Err(MatrixError::Schema(written.schema));
        }
        let count = |value: &serde_json::Value| value.as_u64();
        let mut matrix = Self::new(written.ranks)?;
        matrix.bytes = table("bytes", written.ranks, &written.bytes, count)?;
        matrix.messages = table("messages", written.ranks, &written.messages, count)?;
        matrix.time_ns = written.time_ns;
        Ok(matrix)
    }

    fn from_csv(text: &str) -> Result<Self, MatrixError> {
        let lines = text.lines().map(str::trim);
        let rows: Vec<Vec<&str>> = lines
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(|line| line.split(',').map(str::trim).collect())
            .collect();
        let mut matrix = Self::new(rows.len())?;
        matrix.bytes = table("bytes", rows.len(), &rows, |word| word.parse().ok())?;
        let begun = matrix
            .bytes
            .iter()
            .map(|bytes| bytes.div_ceil(MESSAGE_BYTES));
        matrix.messages = begun.collect();
        Ok(matrix)
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
        serde_json::to_string(&shown).expect("numbers and words can be written")
    }
}

/// A square table of counts, row after row.
fn table<V: std::fmt::Display>(
    name: &'static str,
    ranks: usize,
    rows: &[Vec<V>],
    count: impl Fn(&V) -> Option<u64>,
) -> Result<Vec<u64>, MatrixError> {
    if rows.len() != ranks {
        return Err(MatrixError::Rows {
            table: name,
            rows: rows.len(),
            ranks,
        });
    }
    let mut all = Vec::with_capacity(ranks * ranks);
    let mut sum = 0u64;
    for (row, columns) in rows.iter().enumerate() {
        if columns.len() != ranks {
            return Err(MatrixError::Columns {
                table: name,
                row,
                columns: columns.len(),
                ranks,
            });
        }
        for (column, value) in columns.iter().enumerate() {
            let counted = count(value).ok_or_else(|| MatrixError::Count {
                table: name,
                row,
                column,
                value: value.to_string(),
            })?;
            sum = sum
                .checked_add(counted)
                .filter(|sum| *sum <= 1 << 63)
                .ok_or(MatrixError::Sum(name))?;
            all.push(counted);
        }
    }
    Ok(all)
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
                json("2", &format!("[[0,{m}],[{m},0]]", m = u64::MAX), good),
                "more than 2^63",
            ),
            (
                Matrix::parse("{}").unwrap_err().to_string(),
                "missing field",
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
