//! Relative links in the documents: each must lead to a file that exists.
//!
//! Model:   inline links and images, `[words](target)`, outside of code. A target with a scheme or only an anchor is
//!          not followed; an anchor behind a file is not checked.

use std::path::{Component, Path, PathBuf};

use crate::finding::Finding;
use crate::tree::Tree;

/// Finds links that lead nowhere.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree
        .with_extension("md")
        .filter(|(path, _)| is_document(path))
    {
        for (line, target) in targets(text) {
            let lands = landing(path, &target);
            if !lands.as_deref().is_some_and(|file| tree.exists(file)) {
                let what = format!("the link to `{target}` leads nowhere");
                findings.push(Finding::new(
                    path,
                    line,
                    what,
                    "correct the path or write the file",
                ));
            }
        }
    }
    findings
}

/// Documents at the root, below docs/ and plans/, and of crates.
fn is_document(path: &Path) -> bool {
    let root = path.components().count() == 1;
    root || ["docs", "plans", "crates", "xtask"]
        .iter()
        .any(|dir| path.starts_with(dir))
}

/// Relative link targets with their line numbers.
pub fn targets(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            found.extend(
                line_targets(line)
                    .into_iter()
                    .map(|target| (index + 1, target)),
            );
        }
    }
    found
}

fn line_targets(line: &str) -> Vec<String> {
    // What stands between backquotes is code: the odd pieces.
    let prose: String = line
        .split('`')
        .enumerate()
        .map(|(piece, text)| if piece % 2 == 0 { text } else { "x" })
        .collect();
    prose
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter_map(|inside| inside.split_whitespace().next())
        .map(|target| target.trim_matches(['<', '>']))
        .filter(|target| {
            !target.starts_with('#') && !target.contains("://") && !target.starts_with("mailto:")
        })
        .map(|target| target.split('#').next().unwrap_or(target).to_string())
        .collect()
}

/// The file that a target names, relative to the root; none when it leaves the workspace.
fn landing(document: &Path, target: &str) -> Option<PathBuf> {
    let mut file = PathBuf::new();
    let from = document.parent().unwrap_or(Path::new(""));
    for component in from.join(target).components() {
        match component {
            Component::Normal(name) => file.push(name),
            Component::ParentDir => {
                if !file.pop() {
                    return None;
                }
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(usize, String)> {
        let tree = Tree::of(&[
            (path, text),
            ("docs/manual.md", "x"),
            ("crates/link/src/lib.rs", "x"),
        ]);
        check(&tree)
            .iter()
            .map(|finding| (finding.line(), finding.what().to_string()))
            .collect()
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let text = "see\n[a](docs/manual.md) and [b](docs/absent.md#there)\n![c](shot.png)\n";
        let expected = [
            (2, "the link to `docs/absent.md` leads nowhere"),
            (3, "the link to `shot.png` leads nowhere"),
        ];
        assert_eq!(
            found("README.md", text),
            expected.map(|(line, what)| (line, what.to_string()))
        );
        assert_eq!(found("docs/guide.md", "[a](../../elsewhere.md)").len(), 1);
        assert_eq!(found("README.md", "[a](/docs/manual.md)").len(), 1);
    }

    #[test]
    fn links_that_lead_somewhere_or_outside_are_not() {
        let text = "[a](docs/manual.md \"title\") [b](https://example.org) [c](#here) [d](crates/link)\n```\n[e](absent.md)\n```\n`[f](absent.md)`\n";
        assert_eq!(found("README.md", text), []);
        assert_eq!(
            found(
                "docs/guide.md",
                "[a](manual.md) [b](../crates/link/src/lib.rs)"
            ),
            []
        );
    }
}
