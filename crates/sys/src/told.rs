//! What is told on standard error: the one way there, which never fails.
//!
//! Model:   a message is formatted whole, made harmless for a terminal (`sonde_units::lines`), and written at once; what is longer than
//!          [`MESSAGE_BYTES`] ends with `…`. Where it cannot be written, on a full disk or to a reader that has
//!          ended, it is lost and what was to be done goes on: `eprintln!` would panic.
//! Checked: the tests below; `a_full_standard_error_ends_nothing` of the end-to-end tests.

use std::fmt::Arguments;
use std::io::Write;

use sonde_units::{begin, lines};

/// The most that is shown of a message. What it repeats of an input is bounded by who repeats it (`sonde_units::excerpt`).
const MESSAGE_BYTES: usize = 8_192;

/// Tells a message, formatted as by `eprintln!`, which it stands for: it never panics.
#[macro_export]
macro_rules! tell {
    ($($message:tt)+) => {
        $crate::told::message(::std::format_args!($($message)+))
    };
}

/// Tells a message, and ends its line.
pub fn message(text: Arguments<'_>) {
    write(&mut std::io::stderr(), &(shown(text) + "\n"));
}

/// Asks on the terminal: the answer is typed on the same line.
pub fn question(text: Arguments<'_>) {
    write(&mut std::io::stderr(), &(shown(text) + " "));
}

/// Shows how far something is, over what was shown of it before; the terminal's cursor stays on the line.
pub fn progress(text: Arguments<'_>) {
    write(
        &mut std::io::stderr(),
        &format!("\r{}\u{1b}[K", shown(text)),
    );
}

fn shown(text: Arguments<'_>) -> String {
    let text = text.to_string();
    let part = begin(&text, MESSAGE_BYTES);
    lines(part) + if part.len() < text.len() { "…" } else { "" }
}

/// What cannot be written is lost: nobody is there to tell it to.
fn write(to: &mut impl Write, text: &str) {
    drop(to.write_all(text.as_bytes()).and_then(|()| to.flush()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_message_is_one_line_and_one_write() {
        struct Writes(Vec<String>);
        impl Write for Writes {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0.push(String::from_utf8_lossy(bytes).into_owned());
                Ok(bytes.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let mut to = Writes(Vec::new());
        write(&mut to, "sonde: h2 is gone\n");
        assert_eq!(to.0, ["sonde: h2 is gone\n"]);
    }

    #[test]
    fn words_from_outside_are_escaped_and_bounded() {
        assert_eq!(
            shown(format_args!("agent {}: oops", "\u{1b}[31m")),
            "agent \\u{1b}[31m: oops"
        );
        let long = shown(format_args!("{}", "x".repeat(1_000_000)));
        assert_eq!(long, "x".repeat(MESSAGE_BYTES) + "…");
    }

    #[test]
    fn what_cannot_be_written_is_lost() {
        let mut full = File::options().write(true).open("/dev/full").unwrap();
        write(&mut full, "lost\n");
        let (reader, mut writer) = std::os::unix::net::UnixStream::pair().unwrap();
        drop(reader);
        write(&mut writer, "lost\n");
    }
}
