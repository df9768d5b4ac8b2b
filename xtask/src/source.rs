//! Rust source with comments and literals blanked out, so that rules see only code.
//!
//! Model:   one pass over the characters; what lies in a comment, a string or a character literal becomes spaces,
//!          newlines stay, so that every offset and line number holds. Macros are not expanded.
//! Checked: `comments_and_strings_are_blank`, `lifetimes_are_not_characters`, `raw_strings_end_at_their_own_hashes`,
//!          `strings_are_found_and_comments_are_not`.

use std::ops::Range;

/// The code of a file alone, of the same length in bytes as the file.
pub fn code_of(text: &str) -> String {
    let mut code = text.as_bytes().to_vec();
    for (span, _) in spans(text) {
        for byte in &mut code[span] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
    // Outside of comments and literals a character beyond ASCII stays whole; inside, every byte became a space.
    String::from_utf8(code).expect("whole characters are blanked")
}

/// Where strings stand, their quotes included.
pub fn strings_of(text: &str) -> Vec<Range<usize>> {
    let all = spans(text).into_iter();
    all.filter(|(_, is_string)| *is_string)
        .map(|(span, _)| span)
        .collect()
}

/// Comments and literals in their order, and whether each is a string.
fn spans(text: &str) -> Vec<(Range<usize>, bool)> {
    let bytes = text.as_bytes();
    let mut all = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let (end, is_string) = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => (line_end(bytes, at), false),
            b'/' if bytes[at..].starts_with(b"/*") => (block_comment_end(bytes, at), false),
            b'"' => (string_end(bytes, at), true),
            b'r' if starts_raw_string(bytes, at) => (raw_string_end(bytes, at), true),
            b'\'' => match character_end(bytes, at) {
                Some(end) => (end, false),
                None => {
                    at += 1;
                    continue;
                }
            },
            _ => {
                at += 1;
                continue;
            }
        };
        all.push((at..end, is_string));
        at = end;
    }
    all
}

fn line_end(bytes: &[u8], from: usize) -> usize {
    bytes[from..]
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(bytes.len(), |length| from + length)
}

/// Block comments nest in Rust.
fn block_comment_end(bytes: &[u8], from: usize) -> usize {
    let mut depth = 0;
    let mut at = from;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// `r"`, `r#"`, and so on, not the end of a longer name (`br` and `cr` apart) nor a raw name such as `r#type`.
fn starts_raw_string(bytes: &[u8], at: usize) -> bool {
    let hashes = bytes[at + 1..]
        .iter()
        .take_while(|byte| **byte == b'#')
        .count();
    if bytes.get(at + 1 + hashes) != Some(&b'"') {
        return false;
    }
    let before = |back: usize| at.checked_sub(back).map(|place| bytes[place]);
    match before(1) {
        Some(b'b' | b'c') => !before(2).is_some_and(is_name_byte),
        Some(byte) => !is_name_byte(byte),
        None => true,
    }
}

fn raw_string_end(bytes: &[u8], from: usize) -> usize {
    let hashes = bytes[from + 1..]
        .iter()
        .take_while(|byte| **byte == b'#')
        .count();
    let mut closing = vec![b'"'];
    closing.resize(1 + hashes, b'#');
    let body = from + 2 + hashes;
    bytes[body..]
        .windows(closing.len())
        .position(|window| window == closing)
        .map_or(bytes.len(), |length| body + length + closing.len())
}

/// The end of a character literal, or `None` when the quote begins a lifetime.
fn character_end(bytes: &[u8], from: usize) -> Option<usize> {
    if bytes.get(from + 1) == Some(&b'\\') {
        let closing = bytes[from + 3..].iter().position(|byte| *byte == b'\'')?;
        return Some(from + 3 + closing + 1);
    }
    let text = std::str::from_utf8(&bytes[from + 1..]).ok()?;
    let length = text.chars().next()?.len_utf8();
    (bytes.get(from + 1 + length) == Some(&b'\'')).then_some(from + length + 2)
}

/// Whether a byte can be part of a name.
pub fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Offsets at which `word` stands in `code` as a whole name.
pub fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    code.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |at| {
            let before = at.checked_sub(1).map(|place| bytes[place]);
            let after = bytes.get(at + word.len()).copied();
            !before.is_some_and(is_name_byte) && !after.is_some_and(is_name_byte)
        })
}

/// The line of an offset, counted from 1.
pub fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        + 1
}

/// The span from `from` to the end of the next item's body: its closing brace, or its semicolon when it has none.
pub fn item_span(code: &str, from: usize) -> Range<usize> {
    let mut braces = 0_usize;
    let mut others = 0_usize;
    for (offset, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'{' => braces += 1,
            b'}' => {
                braces = braces.saturating_sub(1);
                if braces == 0 {
                    return from..offset + 1;
                }
            }
            b'(' | b'[' => others += 1,
            b')' | b']' => others = others.saturating_sub(1),
            b';' if braces == 0 && others == 0 => return from..offset + 1,
            _ => {}
        }
    }
    from..code.len()
}

/// The spans of items marked `#[cfg(test)]`.
pub fn test_spans(code: &str) -> Vec<Range<usize>> {
    code.match_indices("#[cfg(test)]")
        .map(|(at, _)| item_span(code, at))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_blank() {
        let text =
            "let a = \"unsafe \\\" {\"; // unsafe\n/* unsafe /* nested */ unsafe */ let b = 'x';\n";
        let code = code_of(text);
        assert_eq!(code.len(), text.len());
        assert_eq!(words(&code, "unsafe").count(), 0);
        assert!(!code.contains('{') && !code.contains('x'));
        assert_eq!(
            words(&code, "let")
                .map(|at| line_of(&code, at))
                .collect::<Vec<_>>(),
            [1, 2]
        );
    }

    #[test]
    fn strings_are_found_and_comments_are_not() {
        let text = "let a = \"one\"; // \"two\"\nlet b = r#\"three\"#; let c = '\"';";
        let found: Vec<&str> = strings_of(text)
            .into_iter()
            .map(|span| &text[span])
            .collect();
        assert_eq!(found, ["\"one\"", "r#\"three\"#"]);
    }

    #[test]
    fn lifetimes_are_not_characters() {
        let code = code_of(
            "fn f<'a>(x: &'a str) -> &'a str { unsafe { x } } const Q: char = '\\''; const U: char = 'é';",
        );
        assert_eq!(words(&code, "unsafe").count(), 1);
        assert_eq!(words(&code, "const").count(), 2);
        assert!(!code.contains('é'));
    }

    #[test]
    fn raw_strings_end_at_their_own_hashes() {
        let code =
            code_of("let a = r#\"unsafe \" unsafe\"#; let r = br\"unsafe\"; let var\n= \"f32\";");
        assert_eq!(words(&code, "unsafe").count(), 0);
        assert_eq!(words(&code, "f32").count(), 0);
        assert_eq!(words(&code, "let").count(), 3);
    }

    #[test]
    fn words_are_whole() {
        assert_eq!(
            words("unsafe_op unsafe my_unsafe unsafe", "unsafe").collect::<Vec<_>>(),
            [10, 27]
        );
    }

    #[test]
    fn an_item_ends_with_its_brace_or_semicolon() {
        let code = "#[cfg(test)]\nmod tests { fn a() { [0; 3]; } }\nfn b() {}\n#[cfg(test)] use x::{y, z};\nfn c() {}";
        let spans: Vec<_> = test_spans(code)
            .into_iter()
            .map(|span| &code[span])
            .collect();
        assert!(spans[0].ends_with("} }"), "{spans:?}");
        assert!(
            spans[1].ends_with('}') && !spans[1].contains("fn c"),
            "{spans:?}"
        );
    }
}
