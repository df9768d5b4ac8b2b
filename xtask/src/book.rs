//! The book: docs/SUMMARY.md, by which mdBook lays out the documents, has each of them once.
//!
//! Model:   each file docs/*.md but the summary itself is the target of exactly one link of the summary, and each link leads to such a file.
//!          mdBook leaves out a file that the summary does not name, and makes an empty one of a link to nothing.
//! Source:  mdBook's format of SUMMARY.md. Deviations: none of its links may be without a target, as drafts have them.
//! Checked: `each_document_stands_in_the_summary_once`, `a_link_leads_to_a_document`.

use std::path::{Path, PathBuf};

use crate::finding::Finding;
use crate::links;
use crate::tree::Tree;

/// Where mdBook looks for it.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Finds documents that the summary lacks or repeats, and links that lead to no document.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let summary = Path::new(SUMMARY);
    let linked: Vec<(usize, PathBuf)> = links::targets(tree.text(summary).unwrap_or_default())
        .into_iter()
        .map(|(line, target)| (line, Path::new("docs").join(target)))
        .collect();
    let is_document = |path: &Path| path.parent() == summary.parent() && path != summary;
    let documents: Vec<&Path> = tree
        .with_extension("md")
        .map(|(path, _)| path)
        .filter(|path| is_document(path))
        .collect();
    let finding =
        |line: usize, what: String, remedy: &str| Finding::new(summary, line, what, remedy);
    let mut findings = Vec::new();
    for path in &documents {
        let mut lines = linked.iter().filter(|(_, to)| to == path).skip(1);
        if let Some((line, _)) = lines.next() {
            let what = format!("`{}` stands in the book twice", path.display());
            findings.push(finding(*line, what, "remove one of the links"));
        } else if !linked.iter().any(|(_, to)| to == path) {
            let what = format!("`{}` is not in the book", path.display());
            findings.push(finding(
                1,
                what,
                "link it under the heading that it belongs to",
            ));
        }
    }
    for (line, to) in linked
        .iter()
        .filter(|(_, to)| !documents.contains(&to.as_path()))
    {
        let what = format!("`{}` is not a document of the book", to.display());
        findings.push(finding(*line, what, "link a file docs/*.md"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(summary: &str) -> Vec<(usize, String)> {
        let tree = Tree::of(&[
            (SUMMARY, summary),
            ("docs/README.md", "x"),
            ("docs/lab.md", "x"),
            ("README.md", "x"),
        ]);
        check(&tree)
            .iter()
            .map(|finding| (finding.line(), finding.what().to_string()))
            .collect()
    }

    #[test]
    fn each_document_stands_in_the_summary_once() {
        let whole = "# Summary\n\n[Begin](README.md)\n\n- [Lab](lab.md)\n";
        assert_eq!(found(whole), []);
        let absent = (1, "`docs/lab.md` is not in the book".to_string());
        assert_eq!(found("[Begin](README.md)\n"), [absent]);
        let twice = (6, "`docs/lab.md` stands in the book twice".to_string());
        assert_eq!(found(&format!("{whole}- [Again](lab.md)\n")), [twice]);
        assert_eq!(found("").len(), 2);
    }

    #[test]
    fn a_link_leads_to_a_document() {
        let text =
            "[Begin](README.md)\n- [Lab](lab.md)\n- [Root](../README.md)\n- [None](none.md)\n";
        let none = ["docs/../README.md", "docs/none.md"];
        let none = none.map(|path| format!("`{path}` is not a document of the book"));
        let [root, absent] = none;
        assert_eq!(found(text), [(3, root), (4, absent)]);
    }
}
