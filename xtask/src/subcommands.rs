//! The subcommands of sonde, read from its source: what evidence may call.
//!
//! Model:   the variants of the enums in crates/sonde/src that derive clap's Subcommand, at any depth, in clap's spelling.
//! Checked: the test below; by `coverage`, whose evidence names them.

use std::collections::BTreeSet;

use crate::source::{code_of, item_span, words};
use crate::tree::Tree;

/// The subcommands of sonde: the variants of its enums that derive clap's Subcommand, in clap's spelling.
pub fn of(tree: &Tree) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, text) in tree
        .sources()
        .filter(|(path, _)| path.starts_with("crates/sonde/src"))
    {
        let code = code_of(text);
        for at in words(&code, "Subcommand") {
            let derive = code[..at]
                .rfind('#')
                .is_some_and(|open| code[open..at].starts_with("#[derive("));
            if !derive {
                continue;
            }
            let Some(close) = code[at..].find(']') else {
                continue;
            };
            let span = item_span(&code, at + close + 1);
            if code[span.clone()].contains("enum ") {
                found.extend(variants(&code[span.clone()], &text[span]));
            }
        }
    }
    found
}

/// The variants of one enum, as clap spells them: `#[command(name = "x")]` when given, else kebab case.
fn variants(code: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut given = None;
    let mut depth = 0_usize;
    // Variants and their attributes begin lines at depth one (rustfmt is checked).
    for (line, written) in code.lines().zip(text.lines()) {
        let trimmed = line.trim();
        if depth == 1 {
            if trimmed.starts_with("#[") {
                given = written
                    .split_once("name = \"")
                    .and_then(|(_, rest)| rest.split('"').next())
                    .map(String::from)
                    .or(given);
            } else if trimmed.starts_with(|letter: char| letter.is_ascii_uppercase()) {
                let name: String = trimmed
                    .chars()
                    .take_while(|letter| letter.is_alphanumeric())
                    .collect();
                found.push(given.take().unwrap_or_else(|| kebab(&name)));
            }
        }
        for byte in line.bytes() {
            match byte {
                b'{' | b'(' | b'[' => depth += 1,
                b'}' | b')' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
    }
    found
}

fn kebab(name: &str) -> String {
    let mut spelled = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !spelled.is_empty() {
            spelled.push('-');
        }
        spelled.push(letter.to_ascii_lowercase());
    }
    spelled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_are_read_as_clap_spells_them() {
        let main = "//! The command.\n#[derive(Debug, clap::Subcommand)]\nenum Command {\n    /// One measurement.\n    \
            Probe(ProbeArgs),\n    #[command(name = \"lab\", about)]\n    Laboratory {\n        Inner: u8,\n    },\n    \
            ReportAll,\n}\nenum Other {\n    No,\n}\n";
        let tree = Tree::of(&[("crates/sonde/src/main.rs", main)]);
        let wanted = ["lab", "probe", "report-all"].map(String::from);
        assert_eq!(of(&tree), wanted.into());
    }
}
