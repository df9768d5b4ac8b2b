//! The key of a row apart from its size: what one curve on a plot is of.
//!
//! Model:   a line is one (network, path, method, wait, load, knobs) of a run. Testbed, hosts, profile and attachment follow
//!          from the network within a run, and are no fields of their own. Flow and stage of a pattern are places of one line,
//!          not settings.
//! Source:  none.
//! Units:   none; all fields are names.
//! Checked: `flow_and_stage_of_a_pattern_are_no_settings`, `each_field_tells_lines_apart`,
//!          `a_path_is_named_with_what_was_set`, `a_row_is_of_the_line_of_its_cell`.

use crate::KnobValues;

use crate::{Factors, ResultRow};

/// What rows, curves and fits are of, apart from the size of messages. The order is that of the fields.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line {
    /// The network's name with its knobs.
    pub network: String,
    /// The path, as `tcp` or `native:tcp`.
    pub path: String,
    /// How bytes are handed over, as `zerocopy`.
    pub method: Option<String>,
    /// `block` or `poll`.
    pub wait: Option<String>,
    /// Traffic of others in the network, as `0.6`; `None` where it was idle.
    pub load: Option<String>,
    /// What else was set, by name.
    pub knobs: KnobValues,
}

/// A field of a [`Line`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineField {
    /// The network.
    Network,
    /// The path.
    Path,
    /// The method.
    Method,
    /// The wait.
    Wait,
    /// The load.
    Load,
    /// The knobs, all of them.
    Knobs,
}

impl Line {
    /// Whether the other has the same value in every field that `but` does not name.
    pub fn is_same_but(&self, other: &Self, but: &[LineField]) -> bool {
        let same = [
            (LineField::Network, self.network == other.network),
            (LineField::Path, self.path == other.path),
            (LineField::Method, self.method == other.method),
            (LineField::Wait, self.wait == other.wait),
            (LineField::Load, self.load == other.load),
            (LineField::Knobs, self.knobs == other.knobs),
        ];
        same.iter().all(|(field, is)| *is || but.contains(field))
    }

    /// The key of all lines that differ in `fields` alone: these are empty in it.
    #[must_use]
    pub fn without(mut self, fields: &[LineField]) -> Self {
        for field in fields {
            match field {
                LineField::Network => self.network.clear(),
                LineField::Path => self.path.clear(),
                LineField::Method => self.method = None,
                LineField::Wait => self.wait = None,
                LineField::Load => self.load = None,
                LineField::Knobs => self.knobs.clear(),
            }
        }
        self
    }

    /// How many knobs do not have the same value in both: a knob of another value counts twice, one that only one of them
    /// has once.
    pub fn knobs_apart(&self, other: &Self) -> usize {
        let differ = |one: &Self, other: &Self| {
            let knobs = one.knobs.iter();
            knobs
                .filter(|(name, value)| other.knobs.get(*name) != Some(value))
                .count()
        };
        differ(self, other) + differ(other, self)
    }

    /// Whether nothing but the measurement was on the network.
    pub const fn is_idle(&self) -> bool {
        self.load.is_none()
    }

    /// Whether its threads ask again and again instead of sleeping.
    pub fn polls(&self) -> bool {
        self.wait.as_deref() == Some("poll")
    }

    /// The path with what was set otherwise than it is by itself: `tcp`, or `tcp (zerocopy, poll, sndbuf=64KiB)`.
    pub fn by(&self) -> String {
        let method = self.method.iter().filter(|name| *name != "plain").cloned();
        let wait = self.wait.iter().filter(|name| *name == "poll").cloned();
        let set: Vec<String> = method.chain(wait).chain(self.knobs.words()).collect();
        if set.is_empty() {
            return self.path.clone();
        }
        format!("{} ({})", self.path, set.join(", "))
    }
}

impl Factors {
    /// The line that rows of a cell with these factors are of.
    pub fn line(&self) -> Line {
        Line {
            network: self.network.clone(),
            path: self.path.clone(),
            method: self.method.clone(),
            wait: self.wait.clone(),
            load: self.load.clone(),
            knobs: settings(&self.probe, &self.knobs),
        }
    }
}

impl ResultRow {
    /// The line that it is of: that of its cell's factors.
    pub fn line(&self) -> Line {
        Line {
            network: self.network.clone(),
            path: self.path.clone(),
            method: self.method.clone(),
            wait: self.wait.clone(),
            load: self.load.clone(),
            knobs: settings(&self.probe, &self.knobs),
        }
    }
}

/// What names a flow of a pattern and when it was measured, and is no setting.
const PLACES: [&str; 2] = ["flow", "stage"];

/// The settings among the knobs of this probe.
fn settings(probe: &str, knobs: &KnobValues) -> KnobValues {
    let mut settings = knobs.clone();
    if probe == "pattern" {
        settings.retain(|name, _| !PLACES.contains(&name.as_str()));
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CellRecord, Layer, Run, RunHead, RunState, Testbed};

    fn factors(probe: &str, knobs: &[(&str, &str)]) -> Factors {
        Factors {
            probe: probe.into(),
            mode: None,
            layer: Layer::Transport,
            path: "tcp".into(),
            method: Some("plain".into()),
            knobs: knobs
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect(),
            wait: Some("block".into()),
            network: "lan".into(),
            testbed: Testbed::Lab,
            hosts: vec!["h1".into(), "h2".into()],
            profile: Some("modern".into()),
            attachment: Some("tap".into()),
            load: None,
            size_bytes: 64,
        }
    }

    fn line() -> Line {
        factors("latency", &[("sndbuf", "64KiB")]).line()
    }

    #[test]
    fn flow_and_stage_of_a_pattern_are_no_settings() {
        let knobs = [
            ("flow", "h1>h2"),
            ("pattern", "all-pairs"),
            ("stage", "again"),
        ];
        let names = |probe| {
            let line = factors(probe, &knobs).line();
            line.knobs.keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(names("pattern"), ["pattern"]);
        assert_eq!(names("latency"), ["flow", "pattern", "stage"]);
        let large = Factors {
            size_bytes: 1_024,
            ..factors("latency", &[("sndbuf", "64KiB")])
        };
        assert_eq!(large.line(), line());
    }

    #[test]
    fn each_field_tells_lines_apart() {
        let changed = |change: fn(&mut Line)| {
            let mut changed = line();
            change(&mut changed);
            changed
        };
        let all = [
            (LineField::Network, changed(|line| line.network.push('2'))),
            (LineField::Path, changed(|line| line.path.push('2'))),
            (LineField::Method, changed(|line| line.method = None)),
            (LineField::Wait, changed(|line| line.wait = None)),
            (
                LineField::Load,
                changed(|line| line.load = Some("0.6".into())),
            ),
            (LineField::Knobs, changed(|line| line.knobs.clear())),
        ];
        for (field, other) in &all {
            assert!(!line().is_same_but(other, &[]), "{field:?}");
            assert!(line().is_same_but(other, &[*field]), "{field:?}");
            let without = |line: Line| line.without(&[*field]);
            assert_eq!(without(line()), without(other.clone()), "{field:?}");
            for (another, _) in all.iter().filter(|(another, _)| another != field) {
                assert!(!line().is_same_but(other, &[*another]), "{field:?}");
            }
        }
        let larger = changed(|line| {
            line.knobs.insert("sndbuf".into(), "1MiB".into());
        });
        assert_eq!(line().knobs_apart(&larger), 2);
        assert_eq!(line().knobs_apart(&changed(|line| line.knobs.clear())), 1);
        assert_eq!(line().knobs_apart(&line()), 0);
    }

    #[test]
    fn a_path_is_named_with_what_was_set() {
        let plain = factors("latency", &[]).line();
        assert_eq!((plain.by().as_str(), plain.polls()), ("tcp", false));
        let set = Line {
            method: Some("zerocopy".into()),
            wait: Some("poll".into()),
            ..line()
        };
        assert!(set.polls() && set.is_idle());
        assert_eq!(set.by(), "tcp (zerocopy, poll, sndbuf=64KiB)");
    }
    #[test]
    fn a_row_is_of_the_line_of_its_cell() {
        let knobs = [("flow", "h1>h2"), ("pattern", "all-pairs")];
        let factors = Factors {
            load: Some("0.6".into()),
            ..factors("pattern", &knobs)
        };
        let run = Run {
            head: RunHead {
                id: String::new(),
                command: String::new(),
                plan: String::new(),
                seed: 1,
                version: String::new(),
                began_unix_ns: 0,
                ended_unix_ns: None,
                state: RunState::Complete,
            },
            hosts: Vec::new(),
            networks: Vec::new(),
            cells: vec![CellRecord {
                id: factors.cell().unwrap(),
                factors: factors.clone(),
                launches: 6,
                skipped: Some("udp is not there".into()),
            }],
            launches: Vec::new(),
            events: Vec::new(),
            warnings: Vec::new(),
        };
        assert_eq!(run.rows()[0].line(), factors.line());
    }
}
