//! What papers print of the kernels: times, and statistics of messages.
//!
//! Model:   a study has kernels of a size, columns of what it compares, and times by kernel, column and level of load. A column
//!          of ours is named by ranks, hosts and path; others are of machines that nobody has here. A study's time is that of
//!          a row of ours with the same kernel, size, column and level, on a network of the study's technology.
//! Source:  `data/papers.toml`, which cites table and figure.
//! Units:   seconds as printed; lengths in bytes.
//! Checked: `the_data_are_whole`, `a_row_finds_what_is_printed_of_it`, `other_machines_are_told`,
//!          `other_rows_find_nothing`, `sequential_times_are_those_of_the_table`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_measure::Number;

const DATA: &str = include_str!("../../data/papers.toml");

/// All studies.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Published {
    #[serde(rename = "study")]
    studies: Vec<Study>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Study {
    /// By which it is asked for.
    name: String,
    cite: String,
    times_in: String,
    #[serde(default)]
    messages_in: String,
    suite: String,
    /// Of its network, as records have it.
    technology: String,
    /// The column that it divides by.
    #[serde(default)]
    reference: Option<String>,
    #[serde(default)]
    columns: Vec<Column>,
    #[serde(default)]
    kernels: Vec<Problem>,
    #[serde(default)]
    times: Vec<Time>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Column {
    name: String,
    what: String,
    ranks: Option<u64>,
    hosts: Option<u64>,
    /// None: any.
    path: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Problem {
    kernel: String,
    size: String,
    /// Classes of ours that are of this size.
    classes: Vec<String>,
    messages: Option<f64>,
    mean_bytes: Option<f64>,
    median_bytes: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Time {
    kernel: String,
    load: String,
    column: String,
    seconds: f64,
    to: Option<f64>,
    note: Option<String>,
}

/// A time that a paper prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrintedTime {
    /// The study, with the table.
    pub cite: String,
    /// What was measured there.
    pub what: String,
    /// Its size, as printed.
    pub size: String,
    /// The time.
    pub seconds: Number,
    /// The greatest reading, where the print is damaged.
    pub seconds_to: Option<Number>,
    /// The time over that of the study's reference, idle; null where it has none.
    pub of_reference: Option<Number>,
    /// What to know of it.
    pub note: Option<String>,
}

/// A time that a paper prints of a machine that sonde has none of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrintedElsewhere {
    /// The kernel.
    pub kernel: String,
    /// The study, with the table.
    pub cite: String,
    /// The machine.
    pub what: String,
    /// The time.
    pub seconds: Number,
    /// The time over that of the study's reference; null where it has none.
    pub of_reference: Option<Number>,
}

/// What a paper prints of a kernel's messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrintedMessages {
    /// The study, with the table.
    pub cite: String,
    /// How many, of all ranks.
    pub messages: Number,
    /// Their mean length.
    pub mean_bytes: Number,
    /// The median of their lengths.
    pub median_bytes: Number,
}

/// What is looked up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sought<'a> {
    pub kernel: &'a str,
    pub class: &'a str,
    pub ranks: u64,
    pub hosts: u64,
    pub path: &'a str,
    /// `0` for idle, else the level alone, as `0.6`.
    pub level: &'a str,
}

impl Published {
    /// All that this build has.
    ///
    /// # Panics
    /// The data are not what they must be; a test reads them.
    pub fn all() -> Self {
        toml::from_str(DATA).expect("the data of papers are read by a test")
    }

    /// The time of the same, where a study prints one; `technologies` are those of the run's networks.
    pub fn time(&self, of: &Sought<'_>, technologies: &[&str]) -> Option<PrintedTime> {
        let studies = self.studies.iter();
        let mut studies = studies.filter(|study| technologies.contains(&study.technology.as_str()));
        studies.find_map(|study| study.time(of))
    }

    /// Idle times of a kernel of this class on machines of other kinds.
    pub fn elsewhere(
        &self,
        kernel: &str,
        class: &str,
        technologies: &[&str],
    ) -> Vec<PrintedElsewhere> {
        let studies = self.studies.iter();
        let studies = studies.filter(|study| technologies.contains(&study.technology.as_str()));
        studies
            .flat_map(|study| study.elsewhere(kernel, class))
            .collect()
    }

    /// The messages of the same kernel among as many ranks as a study runs on several hosts.
    pub fn messages(&self, of: &Sought<'_>) -> Option<PrintedMessages> {
        self.studies.iter().find_map(|study| study.messages(of))
    }
}

/// Seconds of a sequential run of a kernel, as a study prints them of its workstation, idle.
///
/// # Errors
/// There is no such study, or it prints none of this kernel and size; what there is.
pub fn sequential_time(study: &str, kernel: &str, class: &str) -> std::result::Result<f64, String> {
    let published = Published::all();
    let Some(found) = published.studies.iter().find(|one| one.name == study) else {
        let names = published.studies.iter().map(|one| one.name.as_str());
        return Err(format!(
            "there is no study `{study}`: there is {}",
            names.collect::<Vec<_>>().join(", ")
        ));
    };
    found.sequential(kernel, class).ok_or_else(|| {
        let problem = found.kernels.iter().find(|one| one.kernel == kernel);
        let classes = problem.map_or_else(|| "none".into(), |one| one.classes.join(", "));
        format!(
            "{study} prints no time of a sequential run of {kernel} {class}: of {kernel} it does of these sizes: {classes}; or \
             give the time itself, as in 16.66s"
        )
    })
}

impl Study {
    /// Seconds of one rank on one host, idle.
    fn sequential(&self, kernel: &str, class: &str) -> Option<f64> {
        self.kernel(kernel, class)?;
        let is = |one: &&Column| (one.ranks, one.hosts) == (Some(1), Some(1));
        let column = self.columns.iter().find(is)?;
        Some(self.at(kernel, &column.name, "0")?.seconds)
    }

    fn kernel(&self, name: &str, size: &str) -> Option<&Problem> {
        let is =
            |one: &&Problem| one.kernel == name && one.classes.iter().any(|class| class == size);
        self.kernels.iter().find(is)
    }

    fn at(&self, kernel: &str, column: &str, level: &str) -> Option<&Time> {
        let mut times = self.times.iter();
        times.find(|time| time.kernel == kernel && time.column == column && time.load == level)
    }

    /// A time over that of the reference, idle.
    fn of_reference(&self, time: &Time) -> Option<Number> {
        let reference = self.at(&time.kernel, self.reference.as_deref()?, "0")?;
        Some(Number(time.seconds / reference.seconds))
    }

    fn elsewhere(&self, kernel: &str, class: &str) -> Vec<PrintedElsewhere> {
        let known = self.kernel(kernel, class).is_some();
        let columns = self
            .columns
            .iter()
            .filter(|one| known && one.ranks.is_none());
        let of = |column: &Column| {
            let time = self.at(kernel, &column.name, "0")?;
            Some(PrintedElsewhere {
                kernel: kernel.into(),
                cite: format!("{}, {}", self.cite, self.times_in),
                what: column.what.clone(),
                seconds: Number(time.seconds),
                of_reference: self.of_reference(time),
            })
        };
        columns.filter_map(of).collect()
    }

    fn time(&self, of: &Sought<'_>) -> Option<PrintedTime> {
        let size = self.kernel(of.kernel, of.class)?.size.clone();
        let is = |one: &&Column| {
            one.ranks == Some(of.ranks)
                && one.hosts == Some(of.hosts)
                && one.path.as_ref().is_none_or(|path| path == of.path)
        };
        let column = self.columns.iter().find(is)?;
        let time = self.at(of.kernel, &column.name, of.level)?;
        Some(PrintedTime {
            cite: format!("{}, {}", self.cite, self.times_in),
            what: format!("{} ({})", column.what, self.suite),
            size,
            seconds: Number(time.seconds),
            seconds_to: time.to.map(Number),
            of_reference: self.of_reference(time),
            note: time.note.clone(),
        })
    }

    fn messages(&self, of: &Sought<'_>) -> Option<PrintedMessages> {
        let kernel = self.kernel(of.kernel, of.class)?;
        let mut columns = self.columns.iter();
        columns.find(|column| column.ranks == Some(of.ranks) && column.hosts > Some(1))?;
        Some(PrintedMessages {
            cite: format!("{}, {}", self.cite, self.messages_in),
            messages: Number(kernel.messages?),
            mean_bytes: Number(kernel.mean_bytes?),
            median_bytes: Number(kernel.median_bytes?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const SOUGHT: Sought<'_> = Sought {
        kernel: "is",
        class: "upc",
        ranks: 4,
        hosts: 4,
        path: "pvm:direct",
        level: "0.6",
    };

    #[test]
    fn the_data_are_whole() {
        let all = Published::all();
        assert!(!all.studies.is_empty());
        for study in &all.studies {
            assert!(
                !study.cite.is_empty() && !study.times_in.is_empty(),
                "{}",
                study.cite
            );
            let columns: BTreeSet<&str> =
                study.columns.iter().map(|one| one.name.as_str()).collect();
            let kernels: BTreeSet<&str> = study
                .kernels
                .iter()
                .map(|one| one.kernel.as_str())
                .collect();
            assert!(
                study
                    .reference
                    .as_deref()
                    .is_none_or(|name| columns.contains(name)),
                "{}",
                study.cite
            );
            let mut seen = BTreeSet::new();
            for time in &study.times {
                let key = (&time.kernel, &time.load, &time.column);
                assert!(seen.insert(key), "{key:?} twice");
                assert!(columns.contains(time.column.as_str()), "{key:?}");
                assert!(kernels.contains(time.kernel.as_str()), "{key:?}");
                assert!(["0", "0.6", "0.9"].contains(&time.load.as_str()), "{key:?}");
                assert!(
                    time.seconds > 0.0 && time.to.is_none_or(|to| to > time.seconds),
                    "{key:?}"
                );
            }
            for kernel in &study.kernels {
                let stated = [kernel.messages, kernel.mean_bytes, kernel.median_bytes];
                let count = stated.iter().flatten().count();
                assert!(count == 0 || count == 3, "{}", kernel.kernel);
            }
        }
    }

    #[test]
    fn a_row_finds_what_is_printed_of_it() {
        let all = Published::all();
        let found = all.time(&SOUGHT, &["wire", "atm"]).unwrap();
        assert_eq!(found.seconds, Number(36.3));
        assert!(found.cite.contains("Table 2") && found.what.contains("RouteDirect"));
        // Over four processors of the supercomputer, idle.
        let over = found.of_reference.unwrap().0;
        assert!((over - 36.3 / 4.99).abs() < 1e-9, "{over}");
        let alone = Sought {
            ranks: 1,
            hosts: 1,
            path: "native:tcp",
            level: "0",
            ..SOUGHT
        };
        assert_eq!(all.time(&alone, &["atm"]).unwrap().seconds, Number(30.89));
        let damaged = Sought {
            kernel: "bt",
            hosts: 1,
            level: "0.9",
            ..SOUGHT
        };
        let damaged = all.time(&damaged, &["atm"]).unwrap();
        assert_eq!(damaged.seconds_to, Some(Number(1499.99)));
        assert!(damaged.note.unwrap().contains("damaged"));
        let messages = all.messages(&SOUGHT).unwrap();
        assert_eq!(
            (messages.messages, messages.median_bytes),
            (Number(599.0), Number(130_016.0))
        );
    }

    #[test]
    fn other_machines_are_told() {
        let all = Published::all();
        let found = all.elsewhere("is", "upc", &["atm"]);
        let seconds: Vec<f64> = found.iter().map(|one| one.seconds.0).collect();
        assert_eq!(seconds, [4.99, 3.6]);
        assert_eq!(found[0].of_reference, Some(Number(1.0)));
        assert!(found[1].what.contains("simulated"), "{found:?}");
        // The cluster was simulated for five kernels.
        assert_eq!(all.elsewhere("lu", "upc", &["atm"]).len(), 1);
        assert_eq!(all.elsewhere("is", "A", &["atm"]), []);
        assert_eq!(all.elsewhere("is", "upc", &["token-ring"]), []);
    }

    #[test]
    fn other_rows_find_nothing() {
        let all = Published::all();
        for other in [
            Sought {
                class: "A",
                ..SOUGHT
            },
            Sought {
                kernel: "dt",
                ..SOUGHT
            },
            Sought {
                level: "0.5",
                ..SOUGHT
            },
            Sought {
                path: "openmpi:tcp",
                ..SOUGHT
            },
            Sought {
                ranks: 2,
                hosts: 2,
                ..SOUGHT
            },
            // Not among the cells that can be read.
            Sought {
                kernel: "cg",
                ..SOUGHT
            },
        ] {
            assert_eq!(all.time(&other, &["atm"]), None, "{other:?}");
        }
        assert_eq!(all.time(&SOUGHT, &["ethernet"]), None);
        assert_eq!(
            all.messages(&Sought {
                kernel: "ep",
                ..SOUGHT
            }),
            None
        );
        assert_eq!(all.messages(&Sought { ranks: 2, ..SOUGHT }), None);
    }

    #[test]
    fn sequential_times_are_those_of_the_table() {
        for (kernel, class, seconds) in [
            ("cg", "S", 16.66),
            ("bt", "upc", 677.0),
            ("ep", "upc", 79.8),
        ] {
            let found = sequential_time("upc", kernel, class).unwrap();
            assert!((found - seconds).abs() < 1e-9, "{kernel}: {found}");
        }
        let error = sequential_time("ucp", "cg", "S").unwrap_err();
        assert!(error.contains("there is upc"), "{error}");
        let error = sequential_time("upc", "is", "S").unwrap_err();
        assert!(
            error.contains("is S") && error.contains("sizes: upc;"),
            "{error}"
        );
    }
}
