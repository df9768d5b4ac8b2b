//! What applications take of a network: the rows of the HIPPI study's two tables, and those of a file of one's own.
//!
//! Model:   a row has the rates that are printed for each network, the user bytes of a datagram and how datagrams follow each other. It
//!          needs the greatest rate that is printed of it: what is enough for that is enough for all.
//! Source:  `data/applications.toml`, which cites the tables and says what is ours.
//! Units:   KB/s of 1000 bytes as printed; bits a second of user bytes.
//! Checked: `the_data_are_whole`, `a_file_is_read_strictly`.

use crate::failure::Failure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_link::Law;
use sonde_measure::Number;
use sonde_sys::file;
use sonde_units::{Bytes, excerpts};
use std::path::Path;

const DATA: &str = include_str!("../../data/applications.toml");
/// Bits of a printed unit: 1000 bytes.
const UNIT_BITS: f64 = 8_000.0;

/// All rows.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    cite: String,
    #[serde(rename = "application")]
    applications: Vec<Application>,
}

/// What an application takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Application {
    /// By which it is asked for.
    pub name: String,
    /// Other words for it.
    #[serde(default)]
    pub also: Vec<String>,
    /// In words.
    pub what: String,
    /// 1 of slow ones, 2 of fast ones, as the study divides them.
    pub class: u8,
    /// Where it is printed.
    pub table: String,
    /// User bytes of a datagram.
    #[schemars(with = "String")]
    pub datagram: Bytes,
    /// How its datagrams follow each other, as `sonde load --law` takes it.
    pub law: String,
    /// What is printed of it, by network.
    pub printed: Vec<Printed>,
    /// Networks whose cell the print does not show.
    #[serde(default)]
    pub unreadable: Vec<String>,
    /// What to know of the print.
    #[serde(default)]
    pub note: Option<String>,
}

/// A printed rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Printed {
    /// The column: `ethernet`, `fddi`, `hippi`.
    pub network: String,
    /// In KB/s: the rate, or the least of a range.
    pub from: Number,
    /// The greatest of a range; null of a single rate.
    #[serde(default)]
    pub to: Option<Number>,
    /// Whether the print is undamaged there.
    #[serde(default = "certain")]
    pub certain: bool,
}

const fn certain() -> bool {
    true
}

impl Application {
    /// The greatest rate that is printed, in bits a second.
    pub fn needs_bps(&self) -> u64 {
        let rates = self.printed.iter();
        let most = rates
            .map(|one| one.to.unwrap_or(one.from).0)
            .fold(0.0, f64::max);
        (most * UNIT_BITS).round() as u64
    }

    /// How its datagrams follow each other.
    ///
    /// # Errors
    /// It is not a law.
    pub fn law(&self) -> Result<Law, Failure> {
        let law = self.law.parse();
        law.map_err(|why| Failure::usage(format!("{}: {why}", self.name)))
    }

    fn check(&self) -> Result<(), Failure> {
        let refuse = |what: &str| Err(Failure::usage(format!("`{}`: {what}", self.name)));
        self.law()?;
        if self.needs_bps() == 0 {
            return refuse("no rate above 0 is printed of it: `printed` needs one");
        }
        if !(1..=65_507).contains(&self.datagram.0) {
            return refuse("`datagram` is 1 B to 65507 B, as 1KiB");
        }
        let is_range = |one: &Printed| one.to.is_none_or(|to| to > one.from);
        match self.printed.iter().all(is_range) {
            true => Ok(()),
            false => refuse("a range goes from the least to the greatest: `to` is above `from`"),
        }
    }
}

fn parse(text: &str) -> Result<File, Failure> {
    let file: File = toml::from_str(text).map_err(|e| Failure::usage(excerpts(&e.to_string())))?;
    file.applications.iter().try_for_each(Application::check)?;
    Ok(file)
}

/// The study's rows, and what is cited.
///
/// # Errors
/// The data of this program are damaged, which is a defect.
pub fn printed() -> Result<(String, Vec<Application>), Failure> {
    let file = parse(DATA)?;
    Ok((file.cite, file.applications))
}

/// The rows of a name, or of a file of one's own; and what is cited.
///
/// # Errors
/// There is no such row, or the file is not one; with its line.
pub fn found(word: &str) -> Result<(String, Vec<Application>), Failure> {
    if word.ends_with(".toml") || word.contains('/') {
        let text = file::text(Path::new(word))
            .map_err(|e| Failure::usage(format!("cannot read the applications of {word}: {e}")))?;
        let file = parse(&text)
            .map_err(|failure| Failure::usage(format!("the applications of {word}: {failure}")))?;
        return Ok((file.cite, file.applications));
    }
    let (cite, all) = printed()?;
    let wanted = word.to_lowercase().replace('_', "-");
    let one = all
        .iter()
        .find(|one| one.name == wanted || one.also.contains(&wanted));
    let Some(one) = one else {
        let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        return Err(Failure::usage(format!(
            "there is no application `{word}`: write {}, a FILE.toml, or --rate and --datagram; `sonde suits --list` prints them",
            names.join(", ")
        )));
    };
    Ok((cite, vec![one.clone()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_are_whole() {
        let (cite, all) = printed().unwrap();
        assert!(cite.contains("section 2"));
        let rows = |class: u8| -> Vec<&str> {
            let of = all.iter().filter(|one| one.class == class);
            of.map(|one| one.name.as_str()).collect()
        };
        assert_eq!(
            rows(1),
            [
                "email",
                "www",
                "terminal",
                "text-transfer",
                "wysiwyg",
                "char-input",
                "scrolling",
                "mouse",
                "tar",
                "nfs-read",
                "nfs-write",
                "nfs-enhanced"
            ]
        );
        assert_eq!(
            rows(2),
            [
                "ftp-binary",
                "ftp-ascii",
                "raid-ipi3",
                "tcp-mem",
                "mpeg1",
                "mpeg2",
                "framebuffer"
            ]
        );
        // Every cell of both tables, two of them unreadable.
        let cells = |class: u8| -> usize {
            let of = all.iter().filter(|one| one.class == class);
            of.map(|one| one.printed.len() + one.unreadable.len()).sum()
        };
        assert_eq!((cells(1), cells(2)), (30, 10));
        let rate = |name: &str, network: &str| {
            let of = all.iter().find(|one| one.name == name).unwrap();
            let cell = of
                .printed
                .iter()
                .find(|one| one.network == network)
                .unwrap();
            (cell.from.0, cell.to.map(|to| to.0))
        };
        assert_eq!(rate("www", "fddi"), (3.0, Some(10.0)));
        assert_eq!(rate("tar", "ethernet"), (200.0, None));
        assert_eq!(rate("tar", "hippi"), (1_000.0, None));
        assert_eq!(rate("ftp-ascii", "hippi"), (20_000.0, None));
        assert_eq!(rate("framebuffer", "hippi"), (95_000.0, None));
        for one in &all {
            let table = format!("Table {}", one.class);
            assert_eq!(one.table, table, "{}", one.name);
        }
        // The study calls class 1 slow: each of its rows fits an Ethernet of 10 Mb/s.
        let slow = all.iter().filter(|one| one.class == 1);
        assert!(slow.map(Application::needs_bps).all(|bps| bps < 10_000_000));
    }

    #[test]
    fn a_file_is_read_strictly() {
        assert_eq!(found("web").unwrap().1[0].name, "www");
        assert_eq!(found("Char_Input").unwrap().1[0].needs_bps(), 120_000);
        let error = found("doom").unwrap_err().to_string();
        assert!(
            error.contains("email, www") && error.contains("--list"),
            "{error}"
        );
        let row = "cite = \"mine\"\n[[application]]\nname = \"a\"\nwhat = \"b\"\nclass = 1\ntable = \"t\"\ndatagram = \"1KiB\"\n";
        let with = |rest: &str| parse(&format!("{row}{rest}"));
        let good = "law = \"on-off:4\"\nprinted = [{ network = \"x\", from = 2, to = 3.5 }]\n";
        assert_eq!(with(good).unwrap().applications[0].needs_bps(), 28_000);
        for (rest, word) in [
            (
                "law = \"gauss\"\nprinted = [{ network = \"x\", from = 2 }]\n",
                "self-similar",
            ),
            ("law = \"poisson\"\nprinted = []\n", "no rate above 0"),
            (
                "law = \"poisson\"\nprinted = [{ network = \"x\", from = 2, to = 1 }]\n",
                "above `from`",
            ),
            (
                "law = \"poisson\"\nprinted = [{ network = \"x\", form = 2 }]\n",
                "line 9",
            ),
        ] {
            let error = with(rest).unwrap_err().to_string();
            assert!(error.contains(word), "{word}: {error}");
        }
    }
}
