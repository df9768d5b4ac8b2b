//! Text from outside as it is shown to a person: nothing in it moves a terminal's cursor, and a message repeats little of it.
//!
//! Model:   control characters, C1 among them, and the marks that turn the direction of text are written as escapes,
//!          `\u{1b}`. What is repeated in a message is one line of at most [`EXCERPT_BYTES`], and `…` where it was longer.
//! Checked: the tests below; `hostile_words_reach_no_terminal` of the end-to-end tests.

use std::fmt;

/// What a message repeats of a text from outside, in bytes of it.
pub const EXCERPT_BYTES: usize = 200;
/// What is shown of the last line of a parser's message.
const LAST_BYTES: usize = 1_200;

/// The text in one line, whole: line ends are escapes too.
pub fn plain(text: &str) -> String {
    escaped(text, |_| false)
}

/// The text with its line ends and tabs, whole. Every line after the first is indented, so that none of it looks like a message of
/// its own.
pub fn lines(text: &str) -> String {
    let shown = escaped(text, |c| matches!(c, '\n' | '\t'));
    if !shown.contains('\n') {
        return shown;
    }
    let mut indented = String::with_capacity(shown.len() + 64);
    for (number, line) in shown.split('\n').enumerate() {
        if number > 0 {
            indented.push('\n');
            indented.push_str(if line.is_empty() { "" } else { "  " });
        }
        indented.push_str(line);
    }
    indented
}

/// The text in one line, of which `{}` shows the begin.
pub const fn excerpt(text: &str) -> Excerpt<'_> {
    Excerpt(text)
}

/// See [`excerpt`].
#[derive(Clone, Copy, Debug)]
pub struct Excerpt<'a>(&'a str);

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let begin = begin(self.0, EXCERPT_BYTES);
        f.write_str(&plain(begin))?;
        f.write_str(if begin.len() < self.0.len() {
            "…"
        } else {
            ""
        })
    }
}

/// The text with its line ends and tabs, of each line the begin: for parsers that repeat lines of what they read. The last line is
/// their own, which may list what they expect.
pub fn excerpts(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let short = |(at, line): (usize, &&str)| {
        let is_last = at + 1 == lines.len();
        let begin = begin(line, if is_last { LAST_BYTES } else { EXCERPT_BYTES });
        escaped(begin, |c| c == '\t') + if begin.len() < line.len() { "…" } else { "" }
    };
    let shown = lines.iter().enumerate().map(short);
    shown.collect::<Vec<_>>().join("\n")
}

/// At most so many bytes of a text, of whole characters.
pub fn begin(text: &str, bytes_max: usize) -> &str {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn escaped(text: &str, stays: fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        // The marks that turn the direction of text are no control characters.
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if (c.is_control() || turns) && !stays(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown() {
        assert_eq!(plain("h1"), "h1");
        assert_eq!(plain("\u{1b}[31mred\n"), "\\u{1b}[31mred\\u{a}");
        assert_eq!(plain("a\u{202e}b µ"), "a\\u{202e}b µ");
        assert_eq!(plain("\u{9b}2J\r\u{7}"), "\\u{9b}2J\\u{d}\\u{7}");
    }

    #[test]
    fn a_line_of_another_looks_like_none_of_ours() {
        assert_eq!(lines("one"), "one");
        assert_eq!(
            lines("oops\nsonde: all is well\n\n\tx\u{1b}c"),
            "oops\n  sonde: all is well\n\n  \tx\\u{1b}c"
        );
    }

    #[test]
    fn an_excerpt_is_short_and_of_whole_characters() {
        assert_eq!(excerpt("a\nb").to_string(), "a\\u{a}b");
        let exact = "x".repeat(EXCERPT_BYTES);
        assert_eq!(excerpt(&exact).to_string(), exact);
        let long = "µ".repeat(1_000_000) + "x";
        let shown = excerpt(&long).to_string();
        assert_eq!(shown, "µ".repeat(EXCERPT_BYTES / 2) + "…");
        assert_eq!(begin("xµ", 2), "x");
        assert_eq!(
            excerpts(&format!("\ta\r\n{long}\n{long}")),
            format!("\ta\n{shown}\n{}…", "µ".repeat(LAST_BYTES / 2))
        );
    }
}
