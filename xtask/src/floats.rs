//! No floating point in the rooms whose results must be exact and equal on every machine.
//!
//! Model:   tokens of the code: the names `f32` and `f64`, and literals with a fraction, an exponent or a float
//!          suffix. Items under `#[cfg(test)]`, files named tests.rs, and lines marked `// float: why` are let through.
//! Checked: `float_types_and_literals_are_found`, `integers_tuples_and_ranges_are_not`, `tests_and_marked_lines_may`.

use std::path::Path;

use crate::finding::Finding;
use crate::source::{code_of, is_name_byte, line_of, test_spans, words};
use crate::tree::{Tree, place};

/// Rooms of exact ratios and integer picoseconds.
const EXACT_ROOMS: [&str; 3] = ["units", "link", "virtual"];

/// What lets one line through; a reason must follow.
const MARK: &str = "// float: ";

/// Finds floating point in the exact rooms.
pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.sources()
        .filter(|(path, _)| place(path).is_some_and(|(room, _)| EXACT_ROOMS.contains(&room)))
        .filter(|(path, _)| !path.ends_with("tests.rs"))
        .flat_map(|(path, text)| check_file(path, text))
        .collect()
}

fn check_file(path: &Path, text: &str) -> Vec<Finding> {
    let code = code_of(text);
    let tests = test_spans(&code);
    let lines: Vec<&str> = text.lines().collect();
    let mut places: Vec<usize> = words(&code, "f32")
        .chain(words(&code, "f64"))
        .chain(float_literals(&code))
        .collect();
    places.retain(|at| !tests.iter().any(|span| span.contains(at)));
    let mut numbers: Vec<usize> = places.into_iter().map(|at| line_of(&code, at)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.retain(|number| !is_marked(lines[number - 1]));
    let remedy = "count in integers or a Ratio, or mark the line `// float: why`";
    numbers
        .into_iter()
        .map(|number| Finding::new(path, number, "floating point in an exact room", remedy))
        .collect()
}

fn is_marked(line: &str) -> bool {
    line.split_once(MARK)
        .is_some_and(|(_, reason)| !reason.trim().is_empty())
}

/// Offsets of literals such as `1.5`, `2e9` and `3f64`; not `0x1e5`, `pair.0.1` or `0..5`.
fn float_literals(code: &str) -> Vec<usize> {
    let bytes = code.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if !is_name_byte(bytes[at]) {
            at += 1;
            continue;
        }
        let end = at
            + bytes[at..]
                .iter()
                .take_while(|byte| is_name_byte(**byte))
                .count();
        let token = &code[at..end];
        let field = at.checked_sub(1).is_some_and(|place| bytes[place] == b'.')
            && at.checked_sub(2).is_none_or(|place| bytes[place] != b'.');
        if bytes[at].is_ascii_digit() && !field && is_float(token, &bytes[end..]) {
            found.push(at);
        }
        at = end;
    }
    found
}

/// Whether a token that begins with a digit, and what follows it, is a floating-point literal.
fn is_float(token: &str, rest: &[u8]) -> bool {
    if ["0x", "0b", "0o"]
        .iter()
        .any(|radix| token.starts_with(radix))
    {
        return false;
    }
    let suffix = token.ends_with("f32") || token.ends_with("f64");
    let digits = token.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '_');
    let exponent = digits.strip_prefix(['e', 'E']).is_some_and(|power| {
        power.starts_with(|letter: char| letter.is_ascii_digit())
            || (power.is_empty() && matches!(rest.first(), Some(b'-' | b'+')))
    });
    let fraction = digits.is_empty()
        && rest.first() == Some(&b'.')
        && rest.get(1).is_some_and(u8::is_ascii_digit);
    suffix || exponent || fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(room: &str, text: &str) -> Vec<usize> {
        let path = format!("crates/{room}/src/lib.rs");
        check(&Tree::of(&[(&path, text)]))
            .iter()
            .map(Finding::line)
            .collect()
    }

    #[test]
    fn float_types_and_literals_are_found() {
        let text = "fn f(x: f64) {}\nlet a = 1.5;\nlet b = 2e9;\nlet c = 3e-2;\nlet d = 1_f32;\nlet e = x as f32;\nlet g = 0..1.5;\n";
        assert_eq!(lines("link", text), [1, 2, 3, 4, 5, 6, 7]);
        assert!(lines("stats", text).is_empty());
    }

    #[test]
    fn integers_tuples_and_ranges_are_not() {
        let text = "let a = pair.0.1 + 0x1e5 + 1_000u64;\nfor i in 0..5 {}\nlet b = 1.max(2);\n// f64 1.5\nlet c = \"1.5 f64\";\nlet e2 = of64;\n";
        assert!(lines("units", text).is_empty());
    }

    #[test]
    fn tests_and_marked_lines_may() {
        let text = "let a = x as f64; // float: shown to people only\nlet b = y as f64; // float: \n#[cfg(test)]\nmod tests {\n    const A: f64 = 1.5;\n}\n";
        assert_eq!(lines("virtual", text), [2]);
    }
}
