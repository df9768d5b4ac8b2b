//! `sonde suits`: which of the networks that a stored run measured carries an application, and how many of it at once.
//!
//! Model:   an application needs a rate of user bytes in datagrams of a length. What a network gives at that length lies between what
//!          streams of shorter and of longer datagrams reached: its lower bound is the low end of the interval of the longest that is not
//!          longer, its upper bound the high end of the shortest that is not shorter. Over TCP, whose segments have a length of their
//!          own, every stream is both. No datagram is faster than the line. Of several paths the one that carries most counts. Below six
//!          repetitions, which have no interval, half of the least and twice the greatest sample stand for it.
//! Source:  requirement H21 of the HIPPI study.
//! Units:   bits a second of user bytes.
//! Checked: `a_planted_store_is_classified`; `tests/lab_suits.rs`.

pub mod applications;

use crate::document::{self, Command, Document};
use crate::failure::Failure;
use crate::measure::command_line;
use crate::output::{self, Print, say};
use applications::Application;
use schemars::JsonSchema;
use serde::Serialize;
use sonde_measure::{NetworkRow, Number, Quantity, ResultRow, Run};
use sonde_record::{Judgement, Store, StoreError};
use sonde_report::{bytes, rate, sheet};
use sonde_units::{BitRate, Bytes};
use std::path::PathBuf;

/// What is asked.
#[derive(Debug, Clone)]
pub enum Asked {
    /// The study's rows, as they are.
    List,
    /// A row of this name, or those of a file.
    Named(String),
    /// This rate of datagrams of this length.
    Own(BitRate, Bytes),
}

/// What to do.
pub struct Task {
    /// What is asked.
    pub asked: Asked,
    /// The folder of the store.
    pub out: PathBuf,
    /// The run.
    pub run: String,
    /// In which form.
    pub print: Print,
}

/// Whether a network carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// What it gives is not less.
    Yes,
    /// What it gives is less.
    No,
    /// It cannot be told.
    Inconclusive,
    /// The run has no stream of this network.
    NotMeasured,
}

/// A network and an application.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Suit {
    /// The application.
    pub application: String,
    /// What it needs, in bits a second of user bytes.
    pub needs_bps: u64,
    /// User bytes of its datagrams.
    pub datagram_bytes: u64,
    /// The network, with its knobs.
    pub network: String,
    /// By which path what it gives was measured.
    pub path: Option<String>,
    /// What it gives at least; null where that is not known.
    pub least_bps: Option<Number>,
    /// What it gives at most.
    pub most_bps: Option<Number>,
    /// Whether it carries it.
    pub answer: Answer,
    /// How many at once, at least; null unless it carries one.
    pub at_once: Option<u64>,
    /// Why it is inconclusive or not measured.
    pub why: Option<String>,
}

/// What a run says.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Suits {
    /// What is cited; null of an application of one's own.
    pub cite: Option<String>,
    /// The applications that were asked for.
    pub applications: Vec<Application>,
    /// Each of them on each network.
    pub suits: Vec<Suit>,
}

/// What a path of a network gives at a length of datagrams.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Bounds {
    least: Option<f64>,
    most: Option<f64>,
}

/// The ends of a row's interval, or what stands for it.
fn ends(row: &ResultRow) -> Option<(f64, f64)> {
    match (row.ci95_low, row.ci95_high) {
        (Some(low), Some(high)) => Some((low.0, high.0)),
        _ => Some((row.min?.0 / 2.0, row.max?.0 * 2.0)),
    }
}

/// The idle streams of a network by a path.
fn streams<'a>(
    rows: &'a [ResultRow],
    network: &'a str,
    path: &'a str,
) -> impl Iterator<Item = &'a ResultRow> {
    rows.iter().filter(move |row| {
        row.network == network
            && row.path == path
            && row.mode.as_deref() == Some("stream")
            && row.quantity == Quantity::ThroughputBps
            && row.load.is_none()
    })
}

fn bounds(rows: &[ResultRow], network: &NetworkRow, path: &str, datagram: u64) -> Bounds {
    let is_any = path == "tcp";
    let size = |row: &ResultRow| row.size_bytes.unwrap_or(0);
    let found =
        || streams(rows, &network.name, path).filter_map(|row| Some((size(row), ends(row)?)));
    let below = found().filter(|(size, _)| is_any || *size <= datagram);
    let above = found().filter(|(size, _)| is_any || *size >= datagram);
    let (least, most) = match is_any {
        true => (
            below.map(|(_, (low, _))| low).reduce(f64::max),
            above.map(|(_, (_, high))| high).reduce(f64::max),
        ),
        false => (
            below.max_by_key(|(size, _)| *size).map(|(_, (low, _))| low),
            above
                .min_by_key(|(size, _)| *size)
                .map(|(_, (_, high))| high),
        ),
    };
    if least.or(most).is_none() {
        return Bounds::default();
    }
    // No datagram is faster than the line.
    let line = network.line_bps.map(|bps| bps as f64);
    let most = match (most, line) {
        (Some(most), Some(line)) => Some(most.min(line)),
        (most, line) => most.or(line),
    };
    Bounds { least, most }
}

/// Paths whose streams are what an application could have.
const PATHS: [&str; 2] = ["udp", "tcp"];

fn suit(rows: &[ResultRow], at: &NetworkRow, application: &Application) -> Suit {
    let network = at.name.as_str();
    let (needs_bps, datagram) = (application.needs_bps(), application.datagram.0);
    let needs = needs_bps as f64;
    let all = PATHS.map(|path| (path, bounds(rows, at, path, datagram)));
    let is_known = |one: &&(&str, Bounds)| one.1 != Bounds::default();
    let known: Vec<&(&str, Bounds)> = all.iter().filter(is_known).collect();
    let carries = |one: &&&(&str, Bounds)| one.1.least.is_some_and(|least| least >= needs);
    let most = |one: &&(&str, Bounds)| one.1.least.unwrap_or(0.0);
    let by_most = |a: &&&(&str, Bounds), b: &&&(&str, Bounds)| most(a).total_cmp(&most(b));
    let best = known.iter().filter(carries).max_by(by_most);
    let best = best.or_else(|| known.iter().max_by(by_most)).copied();
    let is_short = |one: &&(&str, Bounds)| one.1.most.is_some_and(|most| most < needs);
    let (answer, why) = match best {
        None => (
            Answer::NotMeasured,
            Some(format!(
                "the run has no idle stream over {network}: `sonde probe throughput --path tcp,udp --network {network}` measures one"
            )),
        ),
        Some((_, of)) if of.least.is_some_and(|least| least >= needs) => (Answer::Yes, None),
        Some(_) if known.iter().all(is_short) => (Answer::No, None),
        Some((path, of)) => (
            Answer::Inconclusive,
            Some(open(path, *of, needs, network, datagram)),
        ),
    };
    let bounds = best.map_or_else(Bounds::default, |one| one.1);
    let at_once = bounds.least.filter(|_| answer == Answer::Yes);
    Suit {
        application: application.name.clone(),
        needs_bps,
        datagram_bytes: datagram,
        network: network.into(),
        path: best.map(|one| one.0.into()),
        least_bps: bounds.least.map(Number),
        most_bps: bounds.most.map(Number),
        answer,
        at_once: at_once.map(|least| (least / needs) as u64),
        why,
    }
}

/// Why it cannot be told.
fn open(path: &str, of: Bounds, needs: f64, network: &str, datagram: u64) -> String {
    let measure = format!(
        "`sonde probe throughput --path {path} --size {datagram} --network {network}` measures it"
    );
    match (of.least, of.most) {
        (Some(least), Some(most)) => format!(
            "it gives {} to {}, which holds {}: more repetitions narrow it",
            rate(least),
            rate(most),
            rate(needs)
        ),
        (Some(least), None) => format!(
            "shorter datagrams give {}, and none as long were measured: {measure}",
            rate(least)
        ),
        _ => format!("longer datagrams alone were measured: {measure}"),
    }
}

impl Suits {
    fn of(run: &Run, cite: Option<String>, applications: Vec<Application>) -> Self {
        let rows = run.rows();
        let networks: Vec<&NetworkRow> = run.networks.iter().map(|one| &one.row).collect();
        let suits = applications.iter().flat_map(|application| {
            let all = networks.iter();
            all.map(|network| suit(&rows, network, application))
                .collect::<Vec<_>>()
        });
        Self {
            suits: suits.collect(),
            cite,
            applications,
        }
    }

    fn print(&self) {
        let heads = [
            "application",
            "network",
            "needs",
            "datagram",
            "carried",
            "at once",
            "given",
            "by",
        ];
        let given = |one: &Suit| match (one.least_bps, one.most_bps) {
            (Some(least), Some(most)) => format!("{} to {}", rate(least.0), rate(most.0)),
            (Some(least), None) => format!("{} or more", rate(least.0)),
            (None, Some(most)) => format!("{} or less", rate(most.0)),
            (None, None) => "-".into(),
        };
        let lines = self.suits.iter().map(|one| {
            vec![
                one.application.clone(),
                one.network.clone(),
                rate(one.needs_bps as f64),
                bytes(one.datagram_bytes),
                one.answer.word().into(),
                one.at_once
                    .map_or_else(|| "-".into(), |count| count.to_string()),
                given(one),
                one.path.clone().unwrap_or_else(|| "-".into()),
            ]
        });
        say!("{}", sheet(&heads, lines).keyed(2).text(output::width()));
        for one in &self.suits {
            if let Some(why) = &one.why {
                output::paragraph(&format!(
                    "{} on {}: {}: {why}",
                    one.application,
                    one.network,
                    one.answer.word()
                ));
            }
        }
        self.cited();
    }

    /// The rows as they are printed.
    fn list(&self) {
        let heads = [
            "application",
            "class",
            "ethernet",
            "fddi",
            "hippi",
            "datagram",
            "law",
            "what",
        ];
        let cell = |one: &Application, network: &str| {
            let found = one.printed.iter().find(|cell| cell.network == network);
            match found {
                Some(cell) => {
                    let to = cell.to.map_or_else(String::new, |to| format!("-{to}"));
                    let doubt = if cell.certain { "" } else { "?" };
                    format!("{}{to}{doubt}", cell.from)
                }
                None if one.unreadable.iter().any(|name| name == network) => "unreadable".into(),
                None => "-".into(),
            }
        };
        let lines = self.applications.iter().map(|one| {
            let rates = ["ethernet", "fddi", "hippi"].map(|network| cell(one, network));
            let [ethernet, fddi, hippi] = rates;
            let (class, datagram) = (one.class.to_string(), one.datagram.to_string());
            vec![
                one.name.clone(),
                class,
                ethernet,
                fddi,
                hippi,
                datagram,
                one.law.clone(),
                one.what.clone(),
            ]
        });
        say!("{}", sheet(&heads, lines).loose().text(output::width()));
        output::paragraph(
            "Rates in KB/s as printed; lengths of datagrams and laws are not in the tables.",
        );
        self.cited();
    }

    fn cited(&self) {
        if let Some(cite) = &self.cite {
            output::paragraph(cite);
        }
    }
}

impl Answer {
    const fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Inconclusive => "inconclusive",
            Self::NotMeasured => "not measured",
        }
    }
}

/// An application of one's own.
fn own(bps: BitRate, datagram: Bytes) -> Application {
    Application {
        name: "own".into(),
        also: Vec::new(),
        what: "what was asked for".into(),
        class: 2,
        table: String::new(),
        datagram,
        law: "poisson".into(),
        printed: vec![applications::Printed {
            network: "any".into(),
            from: Number(bps.bps() as f64 / 8_000.0),
            to: None,
            certain: true,
        }],
        unreadable: Vec::new(),
        note: None,
    }
}

impl Task {
    /// Does it; the exit code.
    ///
    /// # Errors
    /// There is no such application, no store, or no such run.
    pub fn run(self) -> Result<i32, Failure> {
        let (cite, applications) = match &self.asked {
            Asked::List => {
                let (cite, all) = applications::printed()?;
                let list = Suits {
                    cite: Some(cite),
                    applications: all,
                    suits: Vec::new(),
                };
                return self.print(&list, Suits::list);
            }
            Asked::Named(word) => {
                let (cite, all) = applications::found(word)?;
                (Some(cite), all)
            }
            Asked::Own(rate, datagram) => (None, vec![own(*rate, *datagram)]),
        };
        let run = self.stored()?;
        let found = Suits::of(&run, cite, applications);
        self.print(&found, Suits::print)
    }

    /// The run that is asked.
    fn stored(&self) -> Result<Run, Failure> {
        let none = |why: StoreError| {
            Failure::cannot(format!(
                "{why}: `sonde suits` judges by what was measured: run `sonde assess --network NAME` or \
                 `sonde probe throughput --path tcp,udp --network NAME` first"
            ))
        };
        let store = Store::read(&self.out).map_err(none)?;
        let id = store.find(&self.run).map_err(none)?;
        store.load(&id).map_err(Failure::cannot)
    }

    fn print(&self, found: &Suits, text: impl Fn(&Suits)) -> Result<i32, Failure> {
        match self.print {
            Print::Json => {
                let verdict = Judgement::none("nothing is required of it");
                let command = Command::Suits(found);
                document::print(&Document::new(command, &command_line(), verdict))?;
            }
            Print::Csv if found.suits.is_empty() => {
                output::csv(&CELL_COLUMNS, &found.cells().collect::<Vec<_>>())?;
            }
            Print::Csv => output::csv(&CSV_COLUMNS, &found.suits)?,
            Print::Text => text(found),
        }
        Ok(0)
    }
}

/// A printed cell, as `--list --csv` has it.
#[derive(Debug, Serialize)]
struct Cell<'a> {
    application: &'a str,
    class: u8,
    network: &'a str,
    from_kb_per_s: Number,
    to_kb_per_s: Option<Number>,
    certain: bool,
    datagram_bytes: u64,
    law: &'a str,
}

const CELL_COLUMNS: [&str; 8] = [
    "application",
    "class",
    "network",
    "from_kb_per_s",
    "to_kb_per_s",
    "certain",
    "datagram_bytes",
    "law",
];

impl Suits {
    fn cells(&self) -> impl Iterator<Item = Cell<'_>> {
        self.applications.iter().flat_map(|one| {
            one.printed.iter().map(|cell| Cell {
                application: &one.name,
                class: one.class,
                network: &cell.network,
                from_kb_per_s: cell.from,
                to_kb_per_s: cell.to,
                certain: cell.certain,
                datagram_bytes: one.datagram.0,
                law: &one.law,
            })
        })
    }
}

/// The columns of `--csv`.
const CSV_COLUMNS: [&str; 10] = [
    "application",
    "needs_bps",
    "datagram_bytes",
    "network",
    "path",
    "least_bps",
    "most_bps",
    "answer",
    "at_once",
    "why",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{blocks, tests::net};
    use crate::model;
    use crate::plan::Plan;
    use sonde_measure::{CellRecord, CellResult, LaunchRecord, Measurement, Phase};

    /// Streams of datagrams of 64 B and 1,472 B, and over TCP, with six launches around these rates.
    const GIVEN: [(&str, u64, u64); 3] = [
        ("udp", 64, 2_000_000),
        ("udp", 1_472, 9_000_000),
        ("tcp", 1 << 20, 8_000_000),
    ];

    /// A stored run: `ethernet-10` has what is given, `fddi` nothing.
    fn store(folder: &std::path::Path, launches: u64) -> Task {
        let text = "[testbed]\nkind = \"lab\"\n[[network]]\nname = \"ethernet-10\"\n[[network]]\nname = \"fddi\"\n\
                    [[probe]]\nkind = \"throughput\"\npath = [\"udp\"]\nsize = [\"64\", \"1472\"]\n[[probe]]\n\
                    kind = \"throughput\"\n";
        let nets = [net("ethernet-10"), net("fddi")];
        let blocks = blocks(&Plan::parse(text).unwrap(), &nets[..1]).unwrap();
        let cells: Vec<CellRecord> = blocks
            .iter()
            .flat_map(|block| block.cells.clone())
            .collect();
        let run = Run {
            head: crate::measure::begun(text.into(), 1).unwrap(),
            hosts: Vec::new(),
            networks: nets
                .iter()
                .map(|net| model::real(&net.name, "", 1_500, None))
                .collect(),
            cells: cells.clone(),
            launches: Vec::new(),
            events: Vec::new(),
            warnings: Vec::new(),
        };
        let store = Store::open(folder).unwrap();
        store.begin(&run).unwrap();
        let mut all = Vec::new();
        for cell in &cells {
            let of = |one: &&(&str, u64, u64)| {
                one.0 == cell.factors.path && one.1 == cell.factors.size_bytes
            };
            let (_, _, bps) = GIVEN.iter().find(of).unwrap();
            all.extend((0..launches).map(|index| LaunchRecord {
                results: vec![CellResult {
                    cell: cell.id.clone(),
                    index,
                    failure: None,
                    series: vec![Measurement {
                        touched: None,
                        quantity: Quantity::ThroughputBps,
                        phase: Phase::Warm,
                        step: None,
                        series: std::iter::once(bps + index * 10_000).collect(),
                        reason: None,
                    }],
                }],
                ..LaunchRecord::default()
            }));
        }
        store.launches(&run.head.id, &all).unwrap();
        Task {
            asked: Asked::List,
            out: folder.into(),
            run: "latest".into(),
            print: Print::Text,
        }
    }

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("sonde-suits-{name}-{}", std::process::id());
            Self(std::env::temp_dir().join(name))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            drop(std::fs::remove_dir_all(&self.0));
        }
    }

    #[test]
    fn a_planted_store_is_classified() {
        let folder = Folder::new("planted");
        let run = store(&folder.0, 6).stored().unwrap();
        let asked = |kbit: u64, datagram: u64| {
            let bps = BitRate::new(kbit * 1_000).unwrap();
            Suits::of(&run, None, vec![own(bps, Bytes(datagram))]).suits
        };
        let of = |kbit: u64, datagram: u64| {
            let suits = asked(kbit, datagram);
            assert_eq!(suits[1].answer, Answer::NotMeasured, "{suits:?}");
            assert!(suits[1].why.as_deref().unwrap().contains("--network fddi"));
            (suits[0].answer, suits[0].at_once, suits[0].why.clone())
        };
        // Full datagrams bring 9 Mb/s, and those of 64 B 2 Mb/s, where TCP has 8 Mb/s.
        assert_eq!(of(3_000, 1_472), (Answer::Yes, Some(3), None));
        assert_eq!(
            of(3_000, 64),
            (Answer::Yes, Some(2), None),
            "TCP carries them"
        );
        assert_eq!(of(9_900, 1_472), (Answer::No, None, None));
        let (answer, at_once, why) = of(9_020, 1_472);
        assert_eq!((answer, at_once), (Answer::Inconclusive, None));
        assert!(why.unwrap().contains("which holds 9.020 Mb/s"));
        // Longer ones than any that was measured may bring more.
        let (answer, _, why) = of(9_900, 9_000);
        assert_eq!(answer, Answer::Inconclusive);
        assert!(why.unwrap().contains("--size 9000"));
    }

    #[test]
    fn few_repetitions_leave_room_around_them() {
        let folder = Folder::new("few");
        let run = store(&folder.0, 2).stored().unwrap();
        let of = |kbit: u64| {
            let bps = BitRate::new(kbit * 1_000).unwrap();
            Suits::of(&run, None, vec![own(bps, Bytes(1_472))]).suits[0].answer
        };
        assert_eq!(
            [of(4_000), of(9_000), of(19_000)],
            [Answer::Yes, Answer::Inconclusive, Answer::No]
        );
    }

    #[test]
    fn without_a_run_the_command_is_named() {
        let folder = Folder::new("none");
        let task = Task {
            asked: Asked::Named("web".into()),
            out: folder.0.clone(),
            run: "latest".into(),
            print: Print::Text,
        };
        let error = task.run().unwrap_err().to_string();
        assert!(
            error.contains("sonde probe throughput") && error.contains("sonde assess"),
            "{error}"
        );
    }
}
