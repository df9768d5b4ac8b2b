//! What differs between two texts, line by line.
//!
//! Model:   the shortest script of removed and added lines, between what both begin and end with. Beyond so many changes the
//!          rest is one change: whoever reads it looks at the whole anyway.
//! Source:  Myers 1986, An O(ND) Difference Algorithm, §4.
//! Checked: `changes_are_found_where_they_are`, `two_texts_without_anything_in_common`.

use std::fmt::Write;

/// The most changes that are looked for.
const CHANGES_MAX: usize = 2_000;
/// Lines before a change that are shown with it.
const CONTEXT: usize = 2;

/// Lines that were replaced by others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The line before which it stands in the old text, from 0.
    pub at: usize,
    /// Lines of the old text.
    pub removed: Vec<String>,
    /// Lines of the new text.
    pub added: Vec<String>,
}

/// What differs, in the order of the lines.
pub fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let most = old.len().min(new.len()) - head;
    let ends = old.iter().rev().zip(new.iter().rev());
    let tail = ends.take(most).take_while(|(a, b)| a == b).count();
    let (a, b) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut all: Vec<Hunk> = Vec::new();
    // Both ends of the last run of equal lines.
    let (mut x, mut y) = (0, 0);
    let mut change = |x0: usize, x1: usize, y0: usize, y1: usize| {
        if x0 < x1 || y0 < y1 {
            let own = |lines: &[&str]| lines.iter().map(|line| (*line).to_string()).collect();
            all.push(Hunk {
                at: head + x0,
                removed: own(&a[x0..x1]),
                added: own(&b[y0..y1]),
            });
        }
    };
    for (from_x, from_y, len) in common(a, b) {
        change(x, from_x, y, from_y);
        (x, y) = (from_x + len, from_y + len);
    }
    change(x, a.len(), y, b.len());
    all
}

/// Runs of equal lines: where in both, and how long.
fn common(a: &[&str], b: &[&str]) -> Vec<(usize, usize, usize)> {
    let most = (a.len() + b.len()).min(CHANGES_MAX);
    let offset = most + 1;
    let mut furthest = vec![0_usize; 2 * most + 3];
    let mut trace = Vec::new();
    for changes in 0..=most {
        trace.push(furthest[offset - changes..=offset + changes].to_vec());
        let mut diagonal = -(changes as isize);
        while diagonal <= changes as isize {
            let at = |step: isize| (offset as isize + diagonal + step) as usize;
            let is_down = diagonal == -(changes as isize)
                || (diagonal != changes as isize && furthest[at(-1)] < furthest[at(1)]);
            let mut x = if is_down {
                furthest[at(1)]
            } else {
                furthest[at(-1)] + 1
            };
            let mut y = (x as isize - diagonal) as usize;
            while x < a.len() && y < b.len() && a[x] == b[y] {
                (x, y) = (x + 1, y + 1);
            }
            furthest[at(0)] = x;
            if x >= a.len() && y >= b.len() {
                return back(&trace, a.len(), b.len());
            }
            diagonal += 2;
        }
    }
    Vec::new()
}

/// From the end to the begin; `trace` has what was reached before each step, from the lowest diagonal on.
fn back(trace: &[Vec<usize>], mut x: usize, mut y: usize) -> Vec<(usize, usize, usize)> {
    let mut runs = Vec::new();
    for (changes, reached) in trace.iter().enumerate().rev() {
        let diagonal = x as isize - y as isize;
        let reach = |diagonal: isize| reached[(diagonal + changes as isize) as usize];
        let (from_x, next) = if changes == 0 {
            (0, (0, 0))
        } else if diagonal == -(changes as isize)
            || (diagonal != changes as isize && reach(diagonal - 1) < reach(diagonal + 1))
        {
            let from_x = reach(diagonal + 1);
            (from_x, (from_x, (from_x as isize - diagonal - 1) as usize))
        } else {
            let before_x = reach(diagonal - 1);
            (
                before_x + 1,
                (before_x, (before_x as isize - diagonal + 1) as usize),
            )
        };
        if x > from_x {
            runs.push((from_x, (from_x as isize - diagonal) as usize, x - from_x));
        }
        (x, y) = next;
    }
    runs.reverse();
    runs
}

/// For people: each change behind the lines before it.
pub fn text(old: &str, hunks: &[Hunk]) -> String {
    let lines: Vec<&str> = old.lines().collect();
    let mut text = String::new();
    for hunk in hunks {
        // A String takes everything.
        let _ = writeln!(text, "@@ line {}", hunk.at + 1);
        for line in &lines[hunk.at.saturating_sub(CONTEXT)..hunk.at] {
            let _ = writeln!(text, "  {line}");
        }
        for (sign, lines) in [('-', &hunk.removed), ('+', &hunk.added)] {
            for line in lines {
                let _ = writeln!(text, "{sign} {line}");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The new text, from the old one and the changes.
    fn patched(old: &str, hunks: &[Hunk]) -> String {
        let old: Vec<&str> = old.lines().collect();
        let (mut out, mut at) = (Vec::new(), 0);
        for hunk in hunks {
            out.extend(old[at..hunk.at].iter().map(|line| (*line).to_string()));
            assert_eq!(old[hunk.at..hunk.at + hunk.removed.len()], hunk.removed);
            out.extend(hunk.added.clone());
            at = hunk.at + hunk.removed.len();
        }
        out.extend(old[at..].iter().map(|line| (*line).to_string()));
        out.join("\n")
    }

    #[test]
    fn changes_are_found_where_they_are() {
        let old = "a\nb\nc\nd\ne\nf";
        for (new, changed) in [
            (old, 0),
            ("a\nb\nc\nd\ne\nf\ng", 1),
            ("a\nB\nc\nd\ne\nF", 4),
            ("b\nc\nd\ne\nf", 1),
            ("a\nb\nx\ny\nd\nf\n", 4),
            ("z\na\nc\nb\nd\ne\nf", 3),
        ] {
            let found = hunks(old, new);
            assert_eq!(patched(old, &found), new.trim_end(), "{found:?}");
            let lines: usize = found
                .iter()
                .map(|one| one.removed.len() + one.added.len())
                .sum();
            assert_eq!(lines, changed, "{new:?}: {found:?}");
        }
        let found = hunks(old, "a\nB\nc\nd\ne\nf");
        assert_eq!(text(old, &found), "@@ line 2\n  a\n- b\n+ B\n");
    }

    #[test]
    fn drawn_texts_are_patched_into_each_other() {
        let mut state = 7_u64;
        let mut draw = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..300 {
            let mut lines = |most: u64| -> Vec<String> {
                let count = draw(most);
                (0..count).map(|_| draw(4).to_string()).collect()
            };
            let (old, new) = (lines(30).join("\n"), lines(30).join("\n"));
            assert_eq!(patched(&old, &hunks(&old, &new)), new, "{old:?}");
        }
    }

    #[test]
    fn two_texts_without_anything_in_common() {
        let lines = |sign: char| {
            (0..3_000)
                .map(|n| format!("{sign}{n}\n"))
                .collect::<String>()
        };
        let found = hunks(&lines('a'), &lines('b'));
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].removed.len(), found[0].added.len()),
            (3_000, 3_000)
        );
        assert_eq!(hunks("", "a\n")[0].added, ["a"]);
        assert_eq!(hunks("a\n", "")[0].removed, ["a"]);
    }
}
