//! Differences that may be: `corpus/differences.toml`, each with its reason.
//!
//! Model:   an entry is of a run (or `*`) and a file (or `*`), and allows lines of one change: `before` and `after` together
//!          one pair of lines, exactly; `before` alone a line that is gone, `after` alone one that is new; `pattern`, in which
//!          `*` stands for anything, every such line that is gone or new.
//! Checked: `entries_allow_their_lines_alone`, `an_entry_that_allows_everything_or_nothing_is_refused`.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::diff::Hunk;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    difference: Vec<Difference>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Difference {
    run: String,
    file: String,
    reason: String,
    before: Option<String>,
    after: Option<String>,
    pattern: Option<String>,
}

/// The list, and which of its entries matched something.
#[derive(Debug, Default)]
pub struct Allowed {
    all: Vec<(Difference, bool)>,
}

impl Allowed {
    /// Of a file; without one nothing may differ.
    ///
    /// # Errors
    /// It is no such list, or an entry has no reason, or allows nothing or everything.
    pub fn read(path: &Path) -> Result<Self> {
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = std::fs::read_to_string(path)?;
        Self::parse(&text).with_context(|| format!("in {}", path.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let list: List = toml::from_str(text)?;
        for one in &list.difference {
            ensure!(
                !one.reason.trim().is_empty(),
                "{}: an entry wants a reason",
                one.file
            );
            let is_pair = one.before.is_some() || one.after.is_some();
            ensure!(
                is_pair != one.pattern.is_some(),
                "{}: write either before and after, or a pattern",
                one.file
            );
            ensure!(
                one.pattern
                    .as_ref()
                    .is_none_or(|pattern| pattern.chars().any(|c| c != '*')),
                "{}: a pattern of stars allows everything",
                one.file
            );
        }
        Ok(Self {
            all: list
                .difference
                .into_iter()
                .map(|one| (one, false))
                .collect(),
        })
    }

    /// What is left of changes when those that may be are taken away.
    pub fn without(&mut self, run: &str, file: &str, hunks: Vec<Hunk>) -> Vec<Hunk> {
        let mut left = Vec::new();
        for mut hunk in hunks {
            for (one, used) in &mut self.all {
                if matches(&one.run, run) && matches(&one.file, file) {
                    *used |= one.take(&mut hunk);
                }
            }
            if !hunk.removed.is_empty() || !hunk.added.is_empty() {
                left.push(hunk);
            }
        }
        left
    }

    /// Entries that matched nothing.
    pub fn unused(&self) -> impl Iterator<Item = String> {
        let unused = self.all.iter().filter(|(_, used)| !used);
        unused.map(|(one, _)| format!("{} {}: {}", one.run, one.file, one.reason))
    }
}

impl Difference {
    /// Takes what it allows out of the change; whether there was any.
    fn take(&self, hunk: &mut Hunk) -> bool {
        let before = hunk.removed.len() + hunk.added.len();
        if let Some(pattern) = &self.pattern {
            hunk.removed.retain(|line| !matches(pattern, line));
            hunk.added.retain(|line| !matches(pattern, line));
        }
        loop {
            let at = |lines: &[String], wanted: &Option<String>| match wanted {
                Some(wanted) => lines.iter().position(|line| line == wanted).map(Some),
                None => Some(None),
            };
            let (Some(old), Some(new)) = (
                at(&hunk.removed, &self.before),
                at(&hunk.added, &self.after),
            ) else {
                break;
            };
            if old.is_none() && new.is_none() {
                break;
            }
            old.map(|at| hunk.removed.remove(at));
            new.map(|at| hunk.added.remove(at));
        }
        hunk.removed.len() + hunk.added.len() < before
    }
}

/// Whether the text is what the pattern says, in which `*` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(head) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let tail = parts.pop().unwrap_or_default();
    for part in parts {
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    text.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::diff::hunks;

    fn list(entry: &str) -> Allowed {
        let text =
            format!("[[difference]]\nrun = \"*\"\nfile = \"show.txt\"\nreason = \"r\"\n{entry}");
        Allowed::parse(&text).unwrap()
    }

    #[test]
    fn entries_allow_their_lines_alone() {
        let left = |entry: &str, old: &str, new: &str| {
            let mut allowed = list(entry);
            let left = allowed.without("one", "show.txt", hunks(old, new)).len();
            (left, allowed.unused().count())
        };
        let pair = "before = \"rate 10\"\nafter = \"rate 11\"";
        assert_eq!(left(pair, "a\nrate 10\nb", "a\nrate 11\nb"), (0, 0));
        assert_eq!(left(pair, "a\nrate 10\nb", "a\nrate 12\nb"), (1, 1));
        assert_eq!(left(pair, "a\nrate 10\nb", "a\nb"), (1, 1));
        assert_eq!(left("before = \"x\"", "a\nx", "a"), (0, 0));
        assert_eq!(left("after = \"x\"", "a", "a\nx"), (0, 0));
        let any = "pattern = \"*: * ns\"";
        assert_eq!(left(any, "a\nx: 1 ns", "a\ny: 2 ns"), (0, 0));
        assert_eq!(left(any, "a\nx: 1 ns", "a\ny: 2 us"), (1, 0));
        assert_eq!(left(any, "a", "a"), (0, 1));
        let mut other = list(any);
        assert_eq!(
            other.without("one", "rows.csv", hunks("x: 1 ns", "")).len(),
            1
        );
    }

    #[test]
    fn an_entry_that_allows_everything_or_nothing_is_refused() {
        let head = "[[difference]]\nrun = \"*\"\nfile = \"*\"\n";
        for bad in [
            "reason = \"r\"",
            "reason = \"r\"\npattern = \"**\"",
            "reason = \" \"\npattern = \"a\"",
            "reason = \"r\"\npattern = \"a\"\nbefore = \"b\"",
            "pattern = \"a\"",
            "reason = \"r\"\npattern = \"a\"\nother = 1",
        ] {
            assert!(Allowed::parse(&format!("{head}{bad}")).is_err(), "{bad}");
        }
    }

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text, is) in [
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "a", false),
            ("a*b*c", "axbxc", true),
            ("a*b*c", "axcxb", false),
            ("abc", "abcd", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, text), is, "{pattern} {text}");
        }
    }
}
