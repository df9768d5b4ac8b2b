//! Module heads and the fence around `unsafe`: what the top of every file and crate must say.
//!
//! Checked: `a_file_without_a_head_is_found`, `a_placeholder_is_no_head`, `unsafe_is_found_outside_its_rooms`,
//!          `a_crate_root_forbids_unsafe`.

use std::path::Path;

use crate::finding::Finding;
use crate::source::{code_of, line_of, words};
use crate::tree::{Tree, place};

/// Rooms that may use `unsafe`, each block with its `// SAFETY:` (clippy's undocumented_unsafe_blocks).
const UNSAFE_ROOMS: [&str; 3] = ["sys", "channel", "adapter"];

/// The attribute that closes every other crate to `unsafe`.
const FORBID: &str = "#![forbid(unsafe_code)]";

/// A head of fewer words says nothing.
const HEAD_WORDS_MIN: usize = 3;

/// Words of a head that was meant to be written later.
const PLACEHOLDERS: [&str; 6] = ["todo", "fixme", "tbd", "xxx", "placeholder", "stub"];

/// Finds missing and empty module heads, `unsafe` where it may not be, and crate roots that do not forbid it.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.sources() {
        findings.extend(check_head(path, text));
        let room = place(path).map_or("", |(room, _)| room);
        if !UNSAFE_ROOMS.contains(&room) {
            findings.extend(check_unsafe(path, text));
        }
    }
    findings
}

/// The first line must be `//! What this is.`
fn check_head(path: &Path, text: &str) -> Option<Finding> {
    let remedy = "begin the file with `//! What this is, in one sentence.`";
    let Some(head) = text
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("//!"))
    else {
        return Some(Finding::new(path, 1, "no module head", remedy));
    };
    let said: Vec<String> = head.split_whitespace().map(str::to_lowercase).collect();
    let placeholder = said.iter().any(|word| {
        PLACEHOLDERS.contains(&word.trim_matches(|letter: char| !letter.is_alphanumeric()))
    });
    if said.len() < HEAD_WORDS_MIN || placeholder {
        let what = format!(
            "the module head `{}` does not say what this is",
            head.trim()
        );
        return Some(Finding::new(path, 1, what, remedy));
    }
    None
}

/// `unsafe` as code, and a crate root that does not forbid it.
fn check_unsafe(path: &Path, text: &str) -> Vec<Finding> {
    let code = code_of(text);
    let remedy = "move what needs it into `sys` or `channel`, which offer it as a safe function";
    let mut findings: Vec<Finding> = words(&code, "unsafe")
        .map(|at| {
            Finding::new(
                path,
                line_of(&code, at),
                "`unsafe` outside of sys, channel and adapter",
                remedy,
            )
        })
        .collect();
    if is_crate_root(path) && !code.replace(' ', "").contains(FORBID) {
        let what = "the crate root does not forbid `unsafe`";
        findings.push(Finding::new(
            path,
            1,
            what,
            format!("write `{FORBID}` below its head"),
        ));
    }
    findings
}

/// `src/lib.rs`, `src/main.rs` and `src/bin/NAME.rs` are each compiled on their own.
fn is_crate_root(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    let parent = path.parent().and_then(Path::file_name).unwrap_or_default();
    (parent == "src" && (name == "lib.rs" || name == "main.rs")) || parent == "bin"
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "//! The models of links.\n#![forbid(unsafe_code)]\n";

    fn found(path: &str, text: &str) -> Vec<(usize, String)> {
        check(&Tree::of(&[(path, text)]))
            .iter()
            .map(|finding| (finding.line(), finding.what().to_string()))
            .collect()
    }

    #[test]
    fn a_file_without_a_head_is_found() {
        assert_eq!(
            found("crates/link/src/atm.rs", "use x;\n"),
            [(1, "no module head".into())]
        );
        assert_eq!(
            found("crates/link/src/atm.rs", "\n//! ATM links and cells.\n"),
            [(1, "no module head".into())]
        );
        assert_eq!(
            found("crates/link/src/atm.rs", "//! ATM links and cells.\n"),
            []
        );
        assert_eq!(found("crates/link/tests/atm.rs", "use x;\n"), []);
    }

    #[test]
    fn a_placeholder_is_no_head() {
        for head in [
            "//!",
            "//! ATM.",
            "//! TODO: describe this module.",
            "//! A stub for later.",
        ] {
            assert_eq!(found("crates/link/src/atm.rs", head).len(), 1, "{head}");
        }
    }

    #[test]
    fn unsafe_is_found_outside_its_rooms() {
        let text = format!("{ROOT}\n// unsafe in words is fine\nfn f() {{ unsafe {{ g() }} }}\n");
        let what = String::from("`unsafe` outside of sys, channel and adapter");
        assert_eq!(found("crates/link/src/lib.rs", &text), [(5, what)]);
        assert_eq!(found("crates/sys/src/lib.rs", &text), []);
    }

    #[test]
    fn a_crate_root_forbids_unsafe() {
        let open = "//! The models of links.\n// #![forbid(unsafe_code)]\n";
        for root in [
            "crates/link/src/lib.rs",
            "crates/sonde/src/main.rs",
            "crates/sonde/src/bin/rank.rs",
            "xtask/src/main.rs",
        ] {
            assert_eq!(found(root, open).len(), 1, "{root}");
            assert_eq!(found(root, ROOT), [], "{root}");
        }
        assert_eq!(found("crates/link/src/atm.rs", open), []);
        assert_eq!(found("crates/channel/src/lib.rs", open), []);
    }
}
