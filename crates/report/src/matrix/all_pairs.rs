//! The verdict on all pairs in three states, with its sentences.
//!
//! Model:   what is blamed fails, and so do flows that failed; where nothing is blamed the one host that all of them share is. It is
//!          inconclusive where the blame is a busy host or an unsteady network; where what is blamed is slow and the undisturbed
//!          figures may be such that it is not; and, with nothing blamed, where they may be such that somebody is. Where it is not
//!          known which samples met a disturbance, the same goes for an emulation that was behind schedule in a quarter of the
//!          cells; flows fail in such a one, too. Hosts that are set otherwise are noted. Of many hosts not all pairs are measured:
//!          both numbers stand in it.
//! Source:  the share of late cells is that from which on an assessment's trust is low. Deviations: none.
//! Checked: `slowness_is_not_told_from_lateness`, `what_disturbed_samples_leave_open_is_inconclusive`, `the_host_that_failures_share_is_named`, `a_matrix_counts_its_pairs`;
//!          `lab_accept.rs`, of planted faults and a healthy network.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_measure::{Judged, ResultRow, Run, Status};

use super::blame::{Blame, blames, finding};
use super::possible::{hidden, is_sure};
use super::{Matrix, ODD, Pair, RETEST, Whom, is_of_matrix, is_row_of_matrix, sensitivity};
use crate::finding::{Finding, findings};
use crate::index::{Index, is_main};
use crate::words::all_pairs as words;

/// From this share of late cells on slowness is not told from lateness.
const LATE: f64 = 0.25;
/// Rules that say why nothing can be said.
pub(super) const OPEN: [&str; 2] = ["host-busy", "unsteady"];
/// Rules of slowness.
const SLOW: [&str; 4] = ["host-slow", "direction-slow", "link-slow", "fabric"];

/// What a matrix of all pairs says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AllPairs {
    /// Whether no host, link or direction stands out.
    pub state: Judged,
    /// The network on which they were measured.
    pub network: String,
    /// Ordered pairs of hosts that gave a figure.
    pub pairs: u64,
    /// Ordered pairs that there are.
    pub pairs_all: u64,
    /// Hosts that are bad; empty where none is, and where that is inconclusive.
    pub hosts: Vec<String>,
    /// Directions that are bad between good hosts, as `a>b`; of a link both.
    pub directions: Vec<String>,
    /// What stands out, with its figures and its remedy, or why it is inconclusive; one sentence where nothing does.
    pub reasons: Vec<String>,
    /// Hosts that are set otherwise than the others.
    pub notes: Vec<String>,
    /// The smallest faults that would have been found four times of five; null where that is not known.
    pub detectable: Option<String>,
}

impl AllPairs {
    /// Of a run; none where it has no matrix.
    pub fn of(run: &Run) -> Option<Self> {
        // What it costs to look at a run is saved where there is none.
        let is_any = run.cells.iter().any(|cell| is_of_matrix(&cell.factors));
        let index = is_any.then(|| Index::new(run))?;
        Self::of_index(&index, &findings(&index))
    }

    /// The same, with the findings of the run.
    pub(crate) fn of_index(index: &Index<'_>, findings: &[Finding]) -> Option<Self> {
        let matrix = Matrix::of(index.run)?;
        let rows: Vec<&ResultRow> = (index.rows.iter())
            .filter(|row| is_row_of_matrix(row) && is_main(row))
            .collect();
        let is_failed = |row: &&&ResultRow| row.status == Status::Failed;
        let count = |of: &dyn Fn(&ResultRow) -> bool| {
            let cells = rows.iter().filter(|row| of(row));
            let cells: BTreeSet<&str> = cells.map(|row| row.cell.as_str()).collect();
            cells.len()
        };
        let is_seen = |row: &ResultRow| row.touched_share.is_some();
        let cells = Cells {
            all: count(&|row| row.verdict.is_some()),
            late: count(&ResultRow::is_disturbed),
            unseen: count(&|row| row.is_disturbed() && !is_seen(row)),
            failed: rows.iter().filter(is_failed).count(),
        };
        let shared = shared(&matrix);
        let name = shared.map(|host| matrix.name(host).to_owned());
        let blamed: Vec<(Blame, Sure)> = (blames(&matrix).into_iter())
            .map(|blame| {
                let holds = || is_sure(&matrix, &blame);
                let sure = Sure::of(blame.rule, cells, holds);
                (blame, sure)
            })
            .collect();
        let told: Vec<(Finding, Sure)> = (blamed.iter())
            .map(|(blame, sure)| (finding(blame, &matrix), *sure))
            .collect();
        let may_be = match blamed.is_empty() {
            true => hidden(&matrix),
            false => Vec::new(),
        };
        let may_be: Vec<String> = may_be.iter().map(|whom| name_of(whom, &matrix)).collect();
        let (state, mut reasons) = judge(&told, cells, name.as_deref(), &may_be);
        let hosts = matrix.hosts.len() as u64;
        let pairs = matrix.pairs() as u64;
        let pairs_all = hosts * hosts.saturating_sub(1);
        if reasons.is_empty() {
            reasons.push(words::none_stands_out(hosts, pairs, pairs_all));
        }
        let sure = blamed.iter().filter(|(_, sure)| *sure == Sure::Yes);
        let way = |(src, dst): Pair| format!("{}>{}", matrix.name(src), matrix.name(dst));
        let (mut bad, mut directions) = (Vec::new(), Vec::new());
        for (blame, _) in sure {
            match blame.whom {
                Whom::Host(host) => {
                    let host = matrix.name(host).to_owned();
                    // For two reasons, perhaps.
                    if !bad.contains(&host) {
                        bad.push(host);
                    }
                }
                Whom::Direction(pair) => directions.push(way(pair)),
                Whom::Link((a, b)) => directions.extend([way((a, b)), way((b, a))]),
                Whom::Fabric => {}
            }
        }
        if bad.is_empty() && directions.is_empty() {
            bad.extend(name);
        }
        let noted = findings.iter().filter(|one| one.rule == ODD);
        Some(Self {
            state,
            pairs,
            pairs_all,
            hosts: bad,
            directions,
            reasons,
            notes: noted.map(|one| one.sentence.clone()).collect(),
            detectable: sensitivity(index.run, &RETEST).and_then(|seen| words::detectable(&seen)),
            network: matrix.network,
        })
    }
}

/// The host that all flows that failed share, of two pairs or more.
fn shared(matrix: &Matrix) -> Option<usize> {
    let pairs: BTreeSet<Pair> = matrix.failed.keys().map(|(.., pair)| *pair).collect();
    let is_of_all = |host: &usize| pairs.iter().all(|(a, b)| a == host || b == host);
    let (a, b) = *pairs.first()?;
    let mut shared = [a, b].into_iter().filter(is_of_all);
    // Both share those of the two alone.
    shared.next().filter(|_| shared.next().is_none())
}

/// Of whom a sentence is.
pub(super) fn name_of(whom: &Whom, matrix: &Matrix) -> String {
    match *whom {
        Whom::Host(host) => matrix.name(host).to_owned(),
        Whom::Link((a, b)) | Whom::Direction((a, b)) => {
            format!("{} to {}", matrix.name(a), matrix.name(b))
        }
        Whom::Fabric => matrix.network.clone(),
    }
}

/// Cells of a matrix that an emulation judged, those of them in which it was behind schedule, those of these of which it is not known
/// which samples met that, and rows that failed.
#[derive(Debug, Clone, Copy)]
struct Cells {
    all: usize,
    late: usize,
    unseen: usize,
    failed: usize,
}

impl Cells {
    fn are_many(self, cells: usize) -> bool {
        self.all > 0 && cells as f64 >= LATE * self.all as f64
    }

    /// Whether so many are late that a flow may have failed by that.
    fn is_late(self) -> bool {
        self.are_many(self.late)
    }

    /// Whether so many are, unseen, that slowness tells nothing.
    fn is_unseen(self) -> bool {
        self.are_many(self.unseen)
    }
}

/// Whether what is blamed is bad beyond doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sure {
    Yes,
    /// The rule says why nothing can be said.
    No,
    /// Late frames look like slowness.
    Late,
    /// With other values of the disturbed samples it is not slow.
    Disturbed,
}

impl Sure {
    /// Of what a rule says; whether it `holds` whatever the disturbed samples were.
    fn of(rule: &str, cells: Cells, holds: impl FnOnce() -> bool) -> Self {
        match SLOW.contains(&rule) {
            _ if OPEN.contains(&rule) => Self::No,
            true if cells.is_unseen() => Self::Late,
            true if !holds() => Self::Disturbed,
            _ => Self::Yes,
        }
    }
}

/// The state, and the sentences for it; who `may_be` slow without being blamed.
fn judge(
    found: &[(Finding, Sure)],
    cells: Cells,
    shared: Option<&str>,
    may_be: &[String],
) -> (Judged, Vec<String>) {
    let behind = |cells_behind| words::behind(cells_behind, cells.all);
    let (mut failed, mut open) = (Vec::new(), Vec::new());
    for (one, sure) in found {
        let blamed = words::blamed(&one.sentence, one.remedy.as_deref());
        match sure {
            Sure::Yes => failed.push(blamed),
            Sure::No => open.push(blamed),
            Sure::Late => open.push(words::but(&one.sentence, &behind(cells.unseen))),
            Sure::Disturbed => open.push(words::but(&one.sentence, words::DISTURBED)),
        }
    }
    if failed.is_empty() && cells.failed > 0 {
        let flows = words::failed(cells.failed as u64, shared);
        // What stands out, even if for another reason, says more than how many flows failed; where they share a host, they say most.
        match shared {
            Some(_) => failed.push(flows),
            // Those of an emulation that does not keep up fail, too.
            None if cells.is_late() => open.push(words::but(&flows, &behind(cells.late))),
            None => {
                failed.append(&mut open);
                failed.push(flows);
            }
        }
    }
    if !failed.is_empty() {
        failed.extend(open);
        return (Judged::Fail, failed);
    }
    if open.is_empty() && cells.is_unseen() {
        open.push(words::hidden(&behind(cells.unseen)));
    } else if open.is_empty() && !may_be.is_empty() {
        open.push(words::may_be_slow(may_be));
    }
    match open.is_empty() {
        true => (Judged::Pass, open),
        false => (Judged::Inconclusive, open),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Severity;
    use crate::matrix::{Kind, Stage};
    use crate::testing::{Runs, all_pairs, net};
    use sonde_measure::CellRecord;

    fn found(rule: &str) -> Finding {
        Finding {
            rule: rule.into(),
            severity: Severity::Warning,
            network: None,
            path: None,
            sentence: format!("{rule} of h3."),
            arithmetic: None,
            remedy: Some("look".into()),
            lost: None,
        }
    }

    #[test]
    fn slowness_is_not_told_from_lateness() {
        let of = |rules: &[&str], late: usize, failed: usize| {
            let cells = Cells {
                all: 100,
                late,
                unseen: late,
                failed,
            };
            let sure = |rule: &&str| (found(rule), Sure::of(rule, cells, || true));
            let found: Vec<(Finding, Sure)> = rules.iter().map(sure).collect();
            judge(&found, cells, None, &[])
        };
        for (rules, late, failed, state) in [
            (&[][..], 0, 0, Judged::Pass),
            (&[], 24, 0, Judged::Pass),
            (&[], 25, 0, Judged::Inconclusive),
            (&[], 0, 1, Judged::Fail),
            (&[], 25, 1, Judged::Inconclusive),
            (&["host-slow"], 0, 0, Judged::Fail),
            (&["host-slow"], 90, 0, Judged::Inconclusive),
            (&["host-loss"], 90, 0, Judged::Fail),
            (&["host-busy"], 0, 0, Judged::Inconclusive),
            (&["host-busy"], 0, 1, Judged::Fail),
            (&["host-busy", "host-loss"], 0, 0, Judged::Fail),
        ] {
            let (is, reasons) = of(rules, late, failed);
            assert_eq!(is, state, "{rules:?} {late} {failed}");
            assert_eq!(reasons.is_empty(), is == Judged::Pass, "{reasons:?}");
        }
        assert_eq!(of(&["host-loss"], 0, 0).1, ["host-loss of h3; look"]);
        let none = Cells {
            all: 0,
            late: 0,
            unseen: 0,
            failed: 3,
        };
        let (state, reasons) = judge(&[], none, Some("h3"), &[]);
        assert_eq!(state, Judged::Fail);
        assert!(
            reasons[0].starts_with("h3 is bad: 3 flows failed, all of them to or from it; "),
            "{reasons:?}"
        );
    }

    #[test]
    fn what_disturbed_samples_leave_open_is_inconclusive() {
        let cells = Cells {
            all: 100,
            late: 90,
            unseen: 0,
            failed: 0,
        };
        let of = |rule: &str, holds: bool, may_be: &[&str]| {
            let sure = Sure::of(rule, cells, || holds);
            let may_be: Vec<String> = may_be.iter().map(|name| (*name).into()).collect();
            let found: Vec<(Finding, Sure)> = match rule {
                "" => Vec::new(),
                _ => vec![(found(rule), sure)],
            };
            let (state, reasons) = judge(&found, cells, None, &may_be);
            (state, reasons.join("; "))
        };
        // Late, but it is known which samples met that.
        assert_eq!(of("", true, &[]).0, Judged::Pass);
        assert_eq!(of("host-slow", true, &[]).0, Judged::Fail);
        assert_eq!(of("host-loss", false, &[]).0, Judged::Fail);
        let (state, why) = of("link-slow", false, &[]);
        assert_eq!(state, Judged::Inconclusive);
        assert!(
            why.starts_with("link-slow of h3; but disturbed samples"),
            "{why}"
        );
        let (state, why) = of("", true, &["h1", "h2 to h3"]);
        assert_eq!(state, Judged::Inconclusive);
        assert!(
            why.ends_with("leave open whether h1, h2 to h3 are slow"),
            "{why}"
        );
        let (_, why) = of("", true, &["h1", "h2", "h3", "h4", "h5"]);
        assert!(why.ends_with("h4 and 1 more are slow"), "{why}");
    }

    #[test]
    fn the_host_that_failures_share_is_named() {
        let of = |pairs: &[Pair]| {
            let key = |pair: &Pair| ((Stage::Together, Kind::Stream, *pair), "why".to_owned());
            shared(&Matrix {
                failed: pairs.iter().map(key).collect(),
                ..Matrix::default()
            })
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(2, 3)]), None, "it is of both");
        assert_eq!(of(&[(2, 3), (3, 2)]), None, "it still is");
        assert_eq!(of(&[(2, 3), (0, 2), (2, 1)]), Some(2));
        assert_eq!(of(&[(2, 3), (0, 1)]), None);
    }

    #[test]
    fn a_matrix_counts_its_pairs() {
        let mut run = all_pairs(4);
        let none: Vec<String> = Vec::new();
        let all = AllPairs::of(&run).unwrap();
        assert_eq!((all.pairs, all.pairs_all), (12, 12));
        assert_eq!(all.state, Judged::Pass, "{all:?}");
        assert_eq!((&all.hosts, &all.directions), (&none, &none));
        assert_eq!(
            all.reasons,
            ["of 4 hosts and 12 ordered pairs none stands out"]
        );
        // This machine, measured on its loopback, is none of them.
        let mut beside = run.clone();
        let mut machine = beside.hosts[0].clone();
        machine.name = "local-1".into();
        beside.hosts.insert(0, machine);
        let (mut cell, mut launch) = (beside.cells[0].clone(), beside.launches[0].clone());
        cell.id = "loopback".into();
        cell.factors.probe = "latency".into();
        (launch.src, launch.dst) = ("local-1".into(), "local-1".into());
        launch.results[0].cell.clone_from(&cell.id);
        beside.cells.push(cell);
        beside.launches.push(launch);
        assert_eq!(AllPairs::of(&beside).unwrap(), all);
        // The plan left one host out.
        let is_of_last = |cell: &CellRecord| cell.factors.knobs["flow"].contains("node0003");
        run.cells.retain(|cell| !is_of_last(cell));
        let is_last = |name: &str| name == "node0003";
        let is_of = |name: &str| name == "node0001";
        run.launches
            .retain(|launch| !is_last(&launch.src) && !is_last(&launch.dst));
        let some = AllPairs::of(&run).unwrap();
        assert_eq!((some.pairs, some.pairs_all), (6, 12));
        assert!(
            some.reasons[0].starts_with("of 4 hosts and 6 of 12 ordered pairs"),
            "{some:?}"
        );
        // What fails is all of one host.
        for launch in &mut run.launches {
            if is_of(&launch.src) || is_of(&launch.dst) {
                launch.results[0].series.clear();
                launch.results[0].failure = Some("it did not accept the connection in time".into());
            }
        }
        let failed = AllPairs::of(&run).unwrap();
        assert_eq!(
            (failed.state, &*failed.hosts),
            (Judged::Fail, &["node0001".to_owned()][..])
        );
        assert!(
            failed.reasons[0].starts_with("node0001 is bad: "),
            "{failed:?}"
        );
        let other = Runs::new()
            .network(net("lan"))
            .latency("lan", "tcp", 8, 43_000);
        assert_eq!(AllPairs::of(&other.done()), None);
    }
}
