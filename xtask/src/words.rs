//! The words of the field: where users read, words of the house dialect are refused, with what to write instead.
//!
//! Model:   what is read is cut into words: strings and doc comments of the command line's options, strings of the report's sentences, tables
//!          and screen, and the prose of README and docs/. A phrase is refused where its words follow each other with nothing but blanks
//!          between them, whatever their case. Code between back quotes, blocks of code, options (`--launches`), names with a hyphen, a colon
//!          or an underscore, and tests are not prose; neither is a string of one word, except in a table, where it is a head.
//!          `// word: why` lets a line through, in Markdown `<!-- word: why -->`: on the line, on the one before, or where the string begins or ends.
//! Checked: `words_that_went_are_found`, `what_is_no_prose_is_let_through`, `a_right_use_is_let_through`, `a_reason_lets_one_line_through`,
//!          `every_phrase_is_found`.

use std::path::Path;

use crate::finding::Finding;
use crate::source::{code_of, line_of, strings_of, test_spans};
use crate::tree::Tree;

/// Where strings and doc comments are the help of the command.
const HELP: [&str; 3] = [
    "crates/sonde/src/cli",
    "crates/sonde/src/report.rs",
    "crates/sonde/src/testbed.rs",
];

/// Where strings are sentences, tables and the screen.
const SENTENCES: [&str; 6] = [
    "crates/report/src/words",
    "crates/report/src/words.rs",
    "crates/report/src/screen",
    "crates/report/src/screen.rs",
    "crates/report/src/table",
    "crates/report/src/table.rs",
];

/// Where a string of one word is the head of a column.
const HEADS: [&str; 2] = ["crates/report/src/table", "crates/report/src/table.rs"];

/// A record of what was printed when it was measured.
const RECORD: &str = "docs/performance.md";

/// What lets one line through; a reason must follow.
const MARK: &str = "word: ";

/// A phrase that went.
struct Gone {
    /// Its words; `a|b` is either, `a*` what begins with it, `{}` what is filled in.
    words: &'static str,
    instead: &'static str,
    /// Words before and after it with which it is right.
    after: &'static [&'static str],
    before: &'static [&'static str],
}

const fn gone(words: &'static str, instead: &'static str) -> Gone {
    Gone {
        words,
        instead,
        after: &[],
        before: &[],
    }
}

const OVER: &str = "over tcp, over udp";
const PER: &str = "per second, per byte, per frame";
const PATH: &str = "path, route or direction, whichever it is";
const SCHEDULE: &str = "on schedule, behind schedule, and what it means for the figure";
const ONE_WAY: &str = "one-way latency (RTT/2)";

/// What went, and what is written instead.
#[rustfmt::skip]
const GONE: &[Gone] = &[
    gone("launch|launches", "repetition, repetitions"),
    gone("told|tells", "reported, printed or known; of `told apart` distinct or distinguishable"),
    gone("patience", "timeout"),
    gone("volley|volleys", "burst or batch"),
    gone("catch|catches of", "batch of"),
    gone("on the way", "in transit, in flight"),
    gone("the|one|a way back|between|from", PATH),
    gone("both|each|these|equal|single ways|way", PATH),
    gone("the other way", PATH),
    gone("keep|keeps|kept its|their times", SCHEDULE),
    gone("true to the model", SCHEDULE),
    gone("emulation was late", SCHEDULE),
    gone("late emulation", SCHEDULE),
    gone("in time", SCHEDULE).right(&["come", "connection", "spread", "ends", "apart"], &[]),
    gone("put aside", "preempted"),
    gone("sent again", "retransmitted"),
    gone("bed|beds", "testbed"),
    gone("ground", "testbed"),
    gone("nonsense", "protocol violation"),
    gone("by tcp|udp|xdp|shm|pvm|pvm:*|openmpi:*|mpich:*|native:*|ucx:*|ofi:*", OVER),
    gone("stream|streams|datagram|datagrams|message|messages|kernels|ranks by {}", OVER),
    gone("messages|datagrams|frames|segments|packets|cells|windows|connections|samples|calls a second", PER),
    gone("bits|bytes|operations|times|preemptions a second", PER),
    gone("time|ns|us|µs a byte|message|frame", PER),
    gone("neighbour's address", "address resolution (ARP)"),
    gone("forget|forgets its|the|their neighbours", "flush the ARP cache"),
    gone("1st|2nd", "first message, second message"),
    gone("goes at once", "eager"),
    gone("half a|the round trip", ONE_WAY),
    gone("half a warm round trip", ONE_WAY),
    gone("half round trip|trips", ONE_WAY),
    gone("is|are no", "is not a ..., are not ...").right(
        &["there", "what", "which", "it", "that"],
        &["more", "longer", "less", "other", "better", "different", "and", "or"],
    ),
    gone("cannot|can|to be had", "cannot be measured, obtained; is (not) available"),
    gone("what was measured is|stands|follows", "the results are ..."),
    gone("what was wanted", "the requested ..."),
    gone("what came", "what was delivered or arrived"),
    gone("another age", "historical hosts"),
    gone("collapsed machine", "all ranks on one host"),
    gone("do not trust them", "what it means for the figure, and the remedy"),
    gone("no cpu left", "CPU was saturated"),
    gone("intervals apart", "significantly, or that the intervals do not overlap"),
    gone("at equal wait", "at equal completion"),
    gone("how both sides wait", "receive by blocking or by busy polling"),
    gone("by which|these path|paths", "transport or library"),
    gone("random draws", "random seed"),
    gone("with all that is paid once", "including ARP and connect"),
    gone("would have been seen", "detectable here (80 % power)"),
    gone("four times of five", "80 % power"),
    gone("let this flow in", "accept the connection in time"),
    gone("find them known", "excludes address resolution"),
    gone("required and not met", "FAIL ... required ..."),
    gone("stands right of", "columns to the right"),
    gone("crowd does", "incast"),
    gone("fare|fares over", "measure, compare"),
    gone("stranger|strangers", "unauthenticated peer"),
    gone("guest|guests", "peer, or virtual machine"),
];

impl Gone {
    /// With words before and after it with which it is right.
    const fn right(self, after: &'static [&'static str], before: &'static [&'static str]) -> Gone {
        Gone {
            after,
            before,
            ..self
        }
    }

    /// Whether the phrase begins with this word.
    fn begins(&self, words: &[Word], at: usize) -> bool {
        let wanted = self.words.split(' ');
        let length = wanted.clone().count();
        let Some(found) = words.get(at..at + length) else {
            return false;
        };
        let joined = found[1..].iter().all(|word| word.joined);
        let alike = wanted
            .zip(found)
            .all(|(wanted, found)| wanted.split('|').any(|one| is_like(one, &found.text)));
        let next = words.get(at + length).filter(|word| word.joined);
        let last = at.checked_sub(1).filter(|_| words[at].joined);
        let is_right = next.is_some_and(|word| self.before.contains(&&*word.text))
            || last.is_some_and(|last| self.after.contains(&&*words[last].text));
        joined && alike && !is_right
    }
}

fn is_like(wanted: &str, found: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(begin) => found.starts_with(begin),
        None => wanted == found,
    }
}

/// A word of prose, in small letters.
#[derive(Debug)]
struct Word {
    text: String,
    /// Where it begins.
    at: usize,
    /// Whether nothing but blanks is between it and the word before.
    joined: bool,
}

/// Finds words that went where users read.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let is_in = |path: &Path, places: &[&str]| places.iter().any(|place| path.starts_with(place));
    let sources = tree
        .sources()
        .filter(|(path, _)| !path.ends_with("tests.rs") && !path.ends_with("testing.rs"));
    let sources = sources.flat_map(|(path, text)| {
        let has_docs = is_in(path, &HELP);
        match has_docs || is_in(path, &SENTENCES) {
            true => of_source(path, text, has_docs, is_in(path, &HEADS)),
            false => Vec::new(),
        }
    });
    let documents = tree
        .with_extension("md")
        .filter(|(path, _)| *path == Path::new("README.md") || path.starts_with("docs"))
        .filter(|(path, _)| *path != Path::new(RECORD))
        .flat_map(|(path, text)| of_document(path, text));
    sources.chain(documents).collect()
}

/// What is said by strings and, where that is help, by doc comments.
fn of_source(path: &Path, text: &str, has_docs: bool, has_heads: bool) -> Vec<Finding> {
    let tests = test_spans(&code_of(text));
    let mut found = Vec::new();
    let mut look = |from: usize, until: usize, is_string: bool| {
        if tests.iter().any(|test| test.contains(&from)) {
            return;
        }
        let words = words(text, from, until);
        if is_string && words.len() == 1 && !has_heads {
            return;
        }
        let ends = [from, until].map(|at| line_of(text, at));
        found.extend(refused(path, text, &words, &ends));
    };
    let strings = strings_of(text);
    for span in &strings {
        look(span.start + 1, span.end - 1, true);
    }
    if has_docs {
        for (from, until) in doc_comments(text) {
            look(from, until, false);
        }
    }
    found
}

/// Doc comments of several lines as one, as the help prints them.
fn doc_comments(text: &str) -> Vec<(usize, usize)> {
    let mut all: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("///") {
            match all.last_mut().filter(|(_, until)| *until == at) {
                Some((_, until)) => *until += line.len(),
                None => all.push((at, at + line.len())),
            }
        }
        at += line.len();
    }
    all
}

/// What is said by prose outside of blocks of code.
fn of_document(path: &Path, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    let (mut at, mut from, mut is_code) = (0, 0, false);
    for line in text.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```");
        if is_fence || line.trim().is_empty() {
            if !is_code {
                found.extend(refused(path, text, &words(text, from, at), &[]));
            }
            is_code ^= is_fence;
            from = at + line.len();
        }
        at += line.len();
    }
    if !is_code {
        found.extend(refused(path, text, &words(text, from, at), &[]));
    }
    found
}

/// The phrases of a text that went, less those with a reason; `ends` are the lines where the string begins and ends.
fn refused(path: &Path, text: &str, words: &[Word], ends: &[usize]) -> Vec<Finding> {
    let lines: Vec<&str> = text.lines().collect();
    let has_reason = |line: usize| {
        let marked = |number: usize| {
            lines.get(number.wrapping_sub(1)).is_some_and(|line| {
                ["// ", "<!-- "]
                    .iter()
                    .any(|open| line.contains(&format!("{open}{MARK}")))
            })
        };
        marked(line) || marked(line - 1) || ends.iter().any(|end| marked(*end) || marked(end - 1))
    };
    let mut found = Vec::new();
    for at in 0..words.len() {
        let Some(gone) = GONE.iter().find(|gone| gone.begins(words, at)) else {
            continue;
        };
        let line = line_of(text, words[at].at);
        if has_reason(line) {
            continue;
        }
        let length = gone.words.split(' ').count();
        let phrase: Vec<&str> = words[at..at + length]
            .iter()
            .map(|word| &*word.text)
            .collect();
        found.push(Finding::new(
            path,
            line,
            format!("`{}` is not a word of the field here", phrase.join(" ")),
            format!("write {}, or `word: why` in a comment", gone.instead),
        ));
    }
    found
}

/// The words of a part of a text.
fn words(text: &str, from: usize, until: usize) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let (mut joined, mut at) = (false, from);
    while at < until {
        let rest = &text[at..until];
        let letter = rest.chars().next().unwrap_or(' ');
        let length = match letter {
            '`' => rest[1..].find('`').map_or(rest.len(), |end| end + 2),
            '{' => rest.find('}').map_or(rest.len(), |end| end + 1),
            // A string goes on in the next line.
            '\\' if rest[1..].starts_with('\n') => 1,
            '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            '/' if rest.starts_with("///") => 3,
            _ if is_of_word(letter) => rest
                .find(|letter: char| !is_of_word(letter))
                .unwrap_or(rest.len()),
            _ => letter.len_utf8(),
        };
        match letter {
            '{' => words.push(Word {
                text: "{}".into(),
                at,
                joined: std::mem::replace(&mut joined, true),
            }),
            _ if is_of_word(letter) => {
                let word = &rest[..length];
                let bare = word.trim_matches(|letter| matches!(letter, '\'' | ':' | '’'));
                words.push(Word {
                    text: bare.to_lowercase().replace('’', "'"),
                    at,
                    joined: std::mem::replace(&mut joined, word.ends_with(bare)),
                });
            }
            _ if letter.is_whitespace() || rest.starts_with("///") || rest.starts_with("\\\n") => {}
            _ => joined = false,
        }
        at += length;
    }
    words
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '-' | '_' | '\'' | '’' | ':')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<usize> {
        let found = check(&Tree::of(&[(path, text)]));
        found.iter().map(Finding::line).collect()
    }

    const CLI: &str = "crates/sonde/src/cli/options.rs";
    const WORDS: &str = "crates/report/src/words/cold.rs";
    const TABLE: &str = "crates/report/src/table/flows.rs";
    const DOCS: &str = "docs/measuring.md";

    #[test]
    fn words_that_went_are_found() {
        assert_eq!(
            found(CLI, "    /// Launches of each cell.\n    launches: u64,\n"),
            [1]
        );
        assert_eq!(found(CLI, "/// Half a\n/// round trip.\n"), [1]);
        assert_eq!(
            found(
                CLI,
                "const A: &str = \"Exit 1 where\n a launch failed.\";\n"
            ),
            [2]
        );
        assert_eq!(
            found(WORDS, "format!(\"The stream by {} reaches\");\n"),
            [1]
        );
        assert_eq!(
            found(
                WORDS,
                "format!(\"a\");\nformat!(\"lost on the \\\n    way to {}\");\n"
            ),
            [2]
        );
        assert_eq!(
            found(
                TABLE,
                "let heads = [\n    \"launches\",\n    \"1st\\nµs\",\n];\n"
            ),
            [2, 3]
        );
        assert_eq!(
            found(
                "crates/report/src/screen.rs",
                "\"a neighbour’s address\";\n"
            ),
            [1]
        );
        assert_eq!(found(DOCS, "A text.\n\nIt is\ntold by TCP.\n"), [4, 4]);
        assert_eq!(found("README.md", "| a | 500 messages a second |\n"), [1]);
    }

    #[test]
    fn what_is_no_prose_is_let_through() {
        for (path, text) in [
            (CLI, "#[arg(conflicts_with = \"launches\")]\n"),
            (
                CLI,
                "/// As `--launches 6`, or --launches 6; see few-launches.\n",
            ),
            (CLI, "// A launch of its own.\n"),
            (CLI, "//! One launch.\n"),
            (
                WORDS,
                "#[cfg(test)]\nmod tests { const A: &str = \"a launch by tcp\"; }\n",
            ),
            (
                "crates/report/src/table/tests.rs",
                "const A: &str = \"a launch by tcp\";\n",
            ),
            (
                "crates/probe/src/talk.rs",
                "const A: &str = \"a launch by tcp\";\n",
            ),
            (
                DOCS,
                "The member `launches`.\n```sh\n# ten launches\n```\nRepetitions.\n",
            ),
            ("docs/performance.md", "600 launches\n"),
            ("plans/papers/a.md", "600 launches\n"),
        ] {
            assert_eq!(found(path, text), [0; 0], "{text}");
        }
    }

    #[test]
    fn a_right_use_is_let_through() {
        for text in [
            "There is no store.",
            "It is no longer there, and is no more than that.",
            "Either way it is one-way, and under way.",
            "The launcher starts them; nothing takes a second.",
            "It is slower by {by}; divided by: tcp",
            "A neighbour of a rank. The background of the testbed.",
            "It did not come in time.",
        ] {
            assert_eq!(found(DOCS, text), [0; 0], "{text}");
        }
    }

    #[test]
    fn a_reason_lets_one_line_through() {
        let text = "\"a launch by\"; // word: a name\n\"a launch by\";\n\n\"a launch of\";\n";
        assert_eq!(found(WORDS, text), [4]);
        let text = "// word: the file's own name\n\"a b \\\n    launch\";\n";
        assert_eq!(found(WORDS, text), [0; 0]);
        let text = "A launch. <!-- word: said once -->\n\nA launch.\n";
        assert_eq!(found(DOCS, text), [3]);
    }

    #[test]
    fn every_phrase_is_found() {
        for gone in GONE {
            let one = |word: &str| word.split('|').next().unwrap().replace('*', "a");
            let words: Vec<String> = gone.words.split(' ').map(one).collect();
            let text = format!("format!(\"so {} at last\");\n", words.join(" "));
            assert_eq!(found(WORDS, &text), [1], "{text}");
        }
    }
}
