//! What PVM's console prints.
//!
//! Model:   a table of hosts has a head, and lines of a name, a number in hexadecimal and more; the last table is what holds.
//! Checked: the tests of the module above; the fuzz target `launchers`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

/// The names in the last table of hosts that the console printed.
pub(crate) fn configuration(said: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut in_table = false;
    for line in said.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.starts_with(&["HOST", "DTID", "ARCH"]) {
            (in_table, names) = (true, Vec::new());
            continue;
        }
        match words[..] {
            [name, dtid, _, _, _, ..] if in_table && u32::from_str_radix(dtid, 16).is_ok() => {
                names.push(name.to_owned());
            }
            _ => in_table = false,
        }
    }
    names
}

pub(crate) fn one_line(text: &str) -> String {
    let lines: Vec<_> = text
        .lines()
        .map(|line| line.trim().trim_start_matches("pvm>").trim())
        .filter(|line| !line.is_empty())
        .collect();
    lines.join(" / ")
}
