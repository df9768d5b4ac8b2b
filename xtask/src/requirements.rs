//! What published studies ask for: the rows of plans/papers/requirements.md.
//!
//! Model:   a row is `- **ID — name** rest`, on one line; its id is the study's letter and a number. Other lines are prose.
//! Checked: the tests below: rows are read whole, and what looks like one and is none is a fault.

use std::path::Path;

use crate::finding::Finding;

/// Where the rows lie.
pub const FILE: &str = "plans/papers/requirements.md";

/// The first letter of an identifier names its study; X is of several.
pub const STUDIES: &str = "NSUCHX";

/// One thing that a study asks for.
#[derive(Debug, PartialEq)]
pub struct Requirement<'a> {
    /// The study's letter and a number.
    pub id: &'a str,
    /// What it is called, without the full stop at its end.
    pub name: &'a str,
    /// All that the row says after the name.
    pub rest: &'a str,
    /// Its line, counted from 1.
    pub line: usize,
}

/// Reads the rows in their order, and what begins as one and is none.
pub fn read(text: &str) -> (Vec<Requirement<'_>>, Vec<Finding>) {
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    for (line, row) in (1..).zip(text.lines()) {
        let Some(words) = row.strip_prefix("- **") else {
            continue;
        };
        match parsed(words, line) {
            Some(row) => rows.push(row),
            None => faults.push(Finding::new(
                Path::new(FILE),
                line,
                "not a requirement",
                "write it as `- **N1 — name** rest`, on one line",
            )),
        }
    }
    (rows, faults)
}

fn parsed(words: &str, line: usize) -> Option<Requirement<'_>> {
    let (head, rest) = words.split_once("**")?;
    let (id, name) = head.split_once(" — ")?;
    let name = name.trim_end_matches('.');
    (is_id(id) && !name.is_empty()).then_some(Requirement {
        id,
        name,
        rest,
        line,
    })
}

fn is_id(text: &str) -> bool {
    let number = text.strip_prefix(|study| STUDIES.contains(study));
    number.is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_whole() {
        let text =
            "# Head\n- **N1 — A testbed** · six hosts. T\n- **X12 — Peak.** R\n- a list, no row\n";
        let (rows, faults) = read(text);
        assert_eq!(faults, []);
        let [first, second] = &rows[..] else {
            panic!("{rows:?}");
        };
        let wanted = Requirement {
            id: "N1",
            name: "A testbed",
            rest: " · six hosts. T",
            line: 2,
        };
        assert_eq!(first, &wanted);
        assert_eq!((second.id, second.name, second.line), ("X12", "Peak", 3));
    }

    #[test]
    fn what_looks_like_a_row_and_is_none_is_a_fault() {
        for id in ["A1", "N", "N1b", "1", ""] {
            let row = format!("- **{id} — name** rest");
            assert_eq!(read(&row).1.len(), 1, "{id}");
        }
        for row in ["- **N1 - name** rest", "- **N1 — name", "- **N1 — .**"] {
            assert_eq!(read(row).1.len(), 1, "{row}");
        }
    }
}
