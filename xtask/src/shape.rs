//! How large and how named a file may be, and that every crate introduces itself.

use std::path::Path;

use crate::finding::Finding;
use crate::tree::{Tree, place};

/// The style asks for about 600 lines; here it ends.
const LINES_MAX: usize = 800;

/// Names that say nothing of what is inside.
const EMPTY_NAMES: [&str; 9] = [
    "util", "utils", "helper", "helpers", "common", "misc", "manager", "types", "stuff",
];

/// Finds files too long, files with an empty name, and crates without a README.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree
        .with_extension("rs")
        .filter(|(path, _)| place(path).is_some())
    {
        let lines = text.lines().count();
        if lines > LINES_MAX {
            let what = format!("{lines} lines, more than {LINES_MAX}");
            findings.push(Finding::new(
                path,
                LINES_MAX + 1,
                what,
                "split it where a part deserves a name",
            ));
        }
        findings.extend(empty_name(path));
    }
    for dir in tree.crates() {
        let readme = dir.join("README.md");
        if tree.text(&readme).is_none_or(|text| text.trim().is_empty()) {
            let remedy = "write ten lines: its job, its invariant, where to start";
            findings.push(Finding::new(
                &readme,
                1,
                "the crate has no README.md",
                remedy,
            ));
        }
    }
    findings
}

/// A module is named by its file, or by its directory when the file is mod.rs. Below tests/, cargo's custom of
/// `tests/common/mod.rs` stands.
fn empty_name(path: &Path) -> Option<Finding> {
    let (_, part) = place(path)?;
    let named = if path.ends_with("mod.rs") {
        path.parent()?
    } else {
        path
    };
    let name = named.file_stem()?.to_str()?;
    (part == "src" && EMPTY_NAMES.contains(&name)).then(|| {
        let what = format!("`{name}` does not say what is inside");
        Finding::new(
            path,
            1,
            what,
            "name it for what it holds, as the field would",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files))
            .iter()
            .map(|finding| finding.what().to_string())
            .collect()
    }

    #[test]
    fn a_long_file_is_found() {
        assert_eq!(
            found(&[("crates/link/src/atm.rs", &"\n".repeat(801))]),
            ["801 lines, more than 800"]
        );
        assert!(found(&[("crates/link/src/atm.rs", &"\n".repeat(800))]).is_empty());
    }

    #[test]
    fn an_empty_name_is_found() {
        for path in [
            "crates/link/src/util.rs",
            "crates/link/src/common/mod.rs",
            "xtask/src/helpers.rs",
        ] {
            assert_eq!(found(&[(path, "")]).len(), 1, "{path}");
        }
        assert!(found(&[("crates/sonde/tests/common/mod.rs", "")]).is_empty());
    }

    #[test]
    fn a_crate_without_a_readme_is_found() {
        let manifest = ("crates/link/Cargo.toml", "");
        assert_eq!(found(&[manifest]), ["the crate has no README.md"]);
        assert_eq!(found(&[manifest, ("crates/link/README.md", "\n")]).len(), 1);
        assert!(found(&[manifest, ("crates/link/README.md", "# link")]).is_empty());
    }
}
