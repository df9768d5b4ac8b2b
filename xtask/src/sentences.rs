//! Sentences of findings stand in their own module: rules find evidence and say nothing.
//!
//! Model:   in the folders of rules a string of four words or more is a sentence, or a part of one. Names in braces, what stands in back quotes and what is
//!          no word of letters do not count. Items under `#[cfg(test)]`, files of tests, and lines marked `// text: why` are let through.
//! Checked: `a_sentence_in_a_rule_is_found`, `names_settings_and_tests_are_not`.

use crate::finding::Finding;
use crate::source::{code_of, line_of, strings_of, test_spans};
use crate::tree::Tree;

/// Where rules stand.
const RULES: [&str; 4] = [
    "crates/report/src/finding",
    "crates/report/src/diagnosis",
    "crates/report/src/matrix",
    "crates/report/src/finding.rs",
];

/// So many words are a sentence.
const WORDS: usize = 4;

/// What lets one line through; a reason must follow.
const MARK: &str = "// text: ";

/// Finds sentences in rules.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let rules = tree
        .sources()
        .filter(|(path, _)| RULES.iter().any(|folder| path.starts_with(folder)))
        .filter(|(path, _)| !path.ends_with("tests.rs") && !path.ends_with("testing.rs"));
    rules
        .flat_map(|(path, text)| {
            let remedy = "put typed evidence there and its words into crates/report/src/words";
            let say = move |line| Finding::new(path, line, "a sentence in a rule", remedy);
            sentences(text).into_iter().map(say)
        })
        .collect()
}

/// The lines on which sentences begin.
fn sentences(text: &str) -> Vec<usize> {
    let code = code_of(text);
    let tests = test_spans(&code);
    let lines: Vec<&str> = text.lines().collect();
    let strings = strings_of(text).into_iter();
    let strings = strings.filter(|span| !tests.iter().any(|test| test.contains(&span.start)));
    let said = strings.filter(|span| words(&text[span.clone()]) >= WORDS);
    let mut numbers: Vec<usize> = said.map(|span| line_of(text, span.start)).collect();
    numbers.dedup();
    numbers.retain(|number| !lines[number - 1].contains(MARK));
    numbers
}

/// Words of letters alone.
fn words(string: &str) -> usize {
    let mut plain = String::new();
    let (mut braces, mut quoted) = (0_usize, false);
    for letter in string.chars() {
        match letter {
            '{' => braces += 1,
            '}' => braces = braces.saturating_sub(1),
            '`' => quoted = !quoted,
            _ if braces == 0 && !quoted => plain.push(letter),
            _ => {}
        }
    }
    let is_word = |word: &&str| {
        let word = word.trim_matches(|letter: char| letter.is_ascii_punctuation());
        word.chars().count() > 1 && word.chars().all(char::is_alphabetic)
    };
    plain.split_whitespace().filter(is_word).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<usize> {
        let found = check(&Tree::of(&[(path, text)]));
        found.iter().map(Finding::line).collect()
    }

    #[test]
    fn a_sentence_in_a_rule_is_found() {
        let text = "fn a() {\n    format!(\"the {} stream is slow by {by}\")\n}\n";
        for path in [
            "crates/report/src/finding/cold.rs",
            "crates/report/src/diagnosis/rules.rs",
            "crates/report/src/finding.rs",
        ] {
            assert_eq!(found(path, text), [2], "{path}");
        }
        assert_eq!(found("crates/report/src/words/cold.rs", text), [0; 0]);
        assert_eq!(found("crates/report/src/table.rs", text), [0; 0]);
    }

    #[test]
    fn names_settings_and_tests_are_not() {
        for text in [
            "const A: &str = \"4096 131072 {room}\";",
            "// a word or two of why it is so\nconst A: &str = \"host-loss\";",
            "format!(\"{a} {b} {c} {d} {e}\");",
            "let a = \"in the words of others\"; // text: what a launch says",
            "#[cfg(test)]\nmod tests { const A: &str = \"this is said by a test\"; }",
        ] {
            let found = found("crates/report/src/finding/cold.rs", text);
            assert_eq!(found, [0; 0], "{text}");
        }
        let tests = "const A: &str = \"this is said by a test\";";
        assert_eq!(
            found("crates/report/src/finding/kernels/tests.rs", tests),
            [0; 0]
        );
    }
}
