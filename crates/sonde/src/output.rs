//! What the command prints: the one way to standard output, or to the file of `--to`, which never panics and never ends what is done.
//!
//! Model:   a text is written whole and at once. The first write that fails is kept: of a reader that has ended nothing is said, of
//!          another cause one sentence. What is printed after it is lost, and what is done goes on: a measurement measures to its
//!          end and is stored. In place of what it would have ended with, the command ends with 141 or 74 ([`code`]).
//!          On a terminal that has colours the word that says how a figure is to be taken is coloured, where it is a cell of a table.
//! Source:  https://no-color.org for NO_COLOR.
//! Units:   columns of a terminal.
//! Checked: the tests below; `what_is_printed_to_nobody_is_told`, `a_measurement_outlives_its_reader` of the end-to-end tests.

use crate::exit::{self, Ending};
use crate::failure::Failure;
use crate::measure::write_page;
use serde::Serialize;
use sonde_measure::Run;
use sonde_report::{PageError, View};
use sonde_sys::tell;
use std::fmt::Arguments;
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Columns of a file or a pipe: as many as the widest table wants.
const FILE_COLUMNS: usize = 200;

/// Prints a line, formatted as by `println!`, which it stands for: it never panics.
macro_rules! say {
    () => { $crate::output::line(format_args!("")) };
    ($($text:tt)+) => { $crate::output::line(format_args!($($text)+)) };
}
pub(crate) use say;

/// The form of results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Print {
    /// For people.
    #[default]
    Text,
    /// The document.
    Json,
    /// The rows, as comma-separated values.
    Csv,
}

/// What is done with the page of a run, beside the one that is written in the store's folder.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// It is written to this file.
    pub file: Option<PathBuf>,
    /// It is shown by the browser.
    pub open: bool,
}

/// Where results go, and what became of them.
struct Output {
    /// In place of standard output.
    file: Option<(PathBuf, File)>,
    /// Whether nothing was written to the file yet, which may have had other content.
    is_fresh: bool,
    /// How the command ends since a write failed.
    ending: Option<Ending>,
}

static OUTPUT: Mutex<Output> = Mutex::new(Output {
    file: None,
    is_fresh: true,
    ending: None,
});

impl Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.file {
            None => {
                let mut to = io::stdout().lock();
                to.write_all(bytes)?;
                to.flush()
            }
            Some((_, file)) => {
                if std::mem::take(&mut self.is_fresh) && file.metadata()?.is_file() {
                    file.set_len(0)?;
                }
                file.write_all(bytes)
            }
        }
    }

    /// Writes, unless a write failed before.
    fn print(&mut self, bytes: &[u8]) {
        if self.ending.is_some() {
            return;
        }
        if let Err(error) = self.write(bytes) {
            self.ending = Some(self.failed(&error));
        }
    }

    /// Says why a write failed, where somebody is there to care.
    fn failed(&self, error: &io::Error) -> Ending {
        match (&self.file, error.kind()) {
            (None, ErrorKind::BrokenPipe) => return Ending::Unread,
            (None, _) => tell!("sonde: cannot write to standard output: {error}"),
            (Some((path, _)), _) => tell!("sonde: cannot write {}: {error}", path.display()),
        }
        Ending::Unwritten
    }
}

fn with<T>(does: impl FnOnce(&mut Output) -> T) -> T {
    does(&mut OUTPUT.lock().unwrap_or_else(PoisonError::into_inner))
}

/// From now on what is printed goes to this file, which keeps what it has until the first of it comes.
///
/// # Errors
/// It cannot be opened for writing.
pub fn to_file(path: &Path) -> io::Result<()> {
    let opened = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    with(|output| output.file = Some((path.to_owned(), opened)));
    Ok(())
}

/// Prints a text as it is.
pub fn text(text: &str) {
    with(|output| output.print(text.as_bytes()));
}

/// Prints a text for people.
pub fn shown(shown: &str) {
    match is_coloured() {
        true => text(&painted(shown)),
        false => text(shown),
    }
}

/// Prints a line for people.
pub fn line(line: Arguments<'_>) {
    shown(&format!("{line}\n"));
}

/// Prints a paragraph for people, in lines that fit the terminal.
pub fn paragraph(text: &str) {
    line(format_args!("{}", sonde_report::wrapped(text, width(), "")));
}

const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const YELLOW: &str = "\u{1b}[33m";
const NO_MORE: &str = "\u{1b}[0m";

/// Cells that are coloured: results and verdicts.
const COLOURS: [(&str, &[&str]); 3] = [
    (
        RED,
        &[
            "worse", "missed", "MISSED", "FAIL", "FAILED", "WRONG", "NO", "LOW", "missing",
            "outside",
        ],
    ),
    (
        YELLOW,
        &["INCONCLUSIVE", "MEDIUM", "limited", "partial", "open"],
    ),
    (
        GREEN,
        &[
            "better", "reached", "kept", "PASS", "passed", "right", "HIGH", "ok", "sound",
            "complete", "within",
        ],
    ),
];

/// The colour of a cell.
fn colour(cell: &str) -> Option<&'static str> {
    let is_counted = cell.starts_with(|first: char| first.is_ascii_digit());
    if is_counted && cell.ends_with(" uncertain") || cell.starts_with("too few repetitions") {
        return Some(YELLOW);
    }
    let mut all = COLOURS.iter();
    all.find(|(_, cells)| cells.contains(&cell))
        .map(|(colour, _)| *colour)
}

/// The text with its cells coloured. A cell has two blanks or an end of the line on either side.
fn painted(text: &str) -> String {
    let of = |line: &str| {
        let cells = line.split("  ").map(|cell| {
            let word = cell.trim();
            match colour(word) {
                Some(colour) => cell.replacen(word, &format!("{colour}{word}{NO_MORE}"), 1),
                None => cell.to_owned(),
            }
        });
        cells.collect::<Vec<_>>().join("  ")
    };
    text.split('\n').map(of).collect::<Vec<_>>().join("\n")
}

/// Prints rows as comma-separated values: these of their members.
///
/// # Errors
/// A row that is no JSON.
pub fn csv<T: Serialize>(columns: &[&str], rows: &[T]) -> Result<(), Failure> {
    text(&sonde_record::csv(columns, rows).map_err(Failure::cannot)?);
    Ok(())
}

/// Prints the rows of a run as comma-separated values.
///
/// # Errors
/// A row that is no JSON.
pub fn rows(run: &Run) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    sonde_record::export_csv(run, &mut bytes).map_err(Failure::cannot)?;
    with(|output| output.print(&bytes));
    Ok(())
}

/// For who writes piece by piece: a failed write is an error there, so that it can end early, and is kept here.
pub struct Writer;

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        with(|output| {
            output.print(bytes);
            match output.ending {
                None => Ok(bytes.len()),
                Some(_) => Err(ErrorKind::BrokenPipe.into()),
            }
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The exit code of a command that would end with this one: that of a failed write takes the place of what it says of results.
pub fn code(code: i32) -> i32 {
    with(|output| match &output.ending {
        Some(ending) if [0, 1, 3].contains(&code) => exit::code(ending),
        _ => code,
    })
}

/// Whether what is printed is seen on a terminal.
pub fn is_terminal() -> bool {
    with(|output| output.file.is_none()) && io::stdout().is_terminal()
}

/// Whether what is printed may have colours: a terminal that knows them, and nobody who wants none.
pub fn is_coloured() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    is_terminal() && !is_dumb && !is_set("NO_COLOR")
}

/// Columns of the terminal; of a file or a pipe, as many as the widest table wants.
pub fn width() -> usize {
    if !is_terminal() {
        return FILE_COLUMNS;
    }
    let size = sonde_sys::pty::window_size(io::stdout());
    // A terminal that was never told its size has none.
    let columns = size.map_or(0, |size| usize::from(size.columns));
    if columns == 0 { FILE_COLUMNS } else { columns }
}

impl Page {
    /// Writes the page of a run, and opens it; the store's folder has it where no file is named.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn serve(&self, run: &Run, out: &Path) -> Result<(), Failure> {
        let usual = out.join(format!("{}.html", run.head.id));
        self.write(&usual, || sonde_report::html(&View::of(run)))
    }

    /// Writes a page, and opens it; it is the `usual` file where none is named.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(
        &self,
        usual: &Path,
        page: impl FnOnce() -> Result<String, PageError>,
    ) -> Result<(), Failure> {
        if self.file.is_none() && !self.open {
            return Ok(());
        }
        let path = self.file.as_deref().unwrap_or(usual);
        write_page(page(), path).map_err(Failure::unwritten)?;
        tell!("sonde: the report is {}", path.display());
        if self.open {
            open(path);
        }
        Ok(())
    }
}

/// Shows a file or an address by the user's browser, and does not wait for its end.
pub fn open(path: &Path) {
    let own = std::env::var_os("BROWSER").filter(|browser| !browser.is_empty());
    let known = ["xdg-open", "open", "wslview"].map(Into::into);
    let is_started = own.into_iter().chain(known).any(|browser| {
        let mut command = Command::new(browser);
        command.arg(path).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().is_ok()
    });
    if !is_started {
        tell!(
            "sonde: no program opens the report here: set BROWSER, or open {} yourself",
            path.display()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(path: &str) -> Output {
        let file = File::options().write(true).open(path).unwrap();
        Output {
            file: Some((path.into(), file)),
            is_fresh: true,
            ending: None,
        }
    }

    #[test]
    fn the_first_failed_write_is_the_last() {
        let mut full = to("/dev/full");
        full.print(b"lost\n");
        assert_eq!(full.ending, Some(Ending::Unwritten));
        let mut null = to("/dev/null");
        null.print(b"gone\n");
        assert_eq!(null.ending, None);
        let broken = ErrorKind::BrokenPipe.into();
        assert_eq!(
            null.failed(&broken),
            Ending::Unwritten,
            "a file has no reader"
        );
        null.file = None;
        assert_eq!(null.failed(&broken), Ending::Unread);
    }

    #[test]
    fn a_cell_that_says_how_it_went_is_coloured() {
        let plain = "wire  tcp  94.15  1/5 uncertain\nfddi  tcp  97.99          sound\nthe stream is worse than it was\n";
        let wanted = format!(
            "wire  tcp  94.15  {YELLOW}1/5 uncertain{NO_MORE}\nfddi  tcp  97.99          {GREEN}sound{NO_MORE}\nthe stream is worse than it \
             was\n"
        );
        assert_eq!(painted(plain), wanted);
        assert_eq!(
            painted("a   worse\n"),
            format!("a   {RED}worse{NO_MORE}\n"),
            "an odd number of blanks"
        );
        assert_eq!(
            painted("FAIL          throughput"),
            format!("{RED}FAIL{NO_MORE}          throughput")
        );
    }

    #[test]
    fn a_file_keeps_its_content_until_the_first_text() {
        let path = std::env::temp_dir().join(format!("sonde-output-{}", std::process::id()));
        std::fs::write(&path, "what was there before").unwrap();
        let mut output = to(path.to_str().unwrap());
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "what was there before"
        );
        output.print(b"a\n");
        output.print(b"b\n");
        let found = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(found, "a\nb\n");
    }
}
