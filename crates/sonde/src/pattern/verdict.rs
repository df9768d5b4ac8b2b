//! The verdict on all pairs in three states, with its sentences.
//!
//! Model:   what is blamed fails, and so do flows that failed. It is inconclusive where the blame is a busy host or an unsteady network; where what is blamed is
//!          slow and the emulation was behind schedule in a quarter of the cells, since late frames look like that; and, with nothing
//!          blamed, where so many cells were behind schedule, behind which a slow host can hide. Hosts that are
//!          set otherwise are noted.
//! Source:  the share of late cells is that from which on an assessment's trust is low. Deviations: none.
//! Checked: `lab_accept.rs`, of planted faults and a healthy network; `slowness_is_not_told_from_lateness`.

use super::print;
use crate::exit::Outcome;
use schemars::JsonSchema;
use serde::Serialize;
use sonde_measure::{ResultRow, Run, Status};
use sonde_record::Judged;
use sonde_report::{Finding, counted, findings_of, is_verdict, matrix};

/// From this share of late cells on slowness is not told from lateness.
const LATE: f64 = 0.25;
/// Rules that say why nothing can be said.
const OPEN: [&str; 2] = ["host-busy", "unsteady"];
/// Rules of slowness.
const SLOW: [&str; 4] = ["host-slow", "direction-slow", "link-slow", "fabric"];
/// Rules of settings.
const NOTED: [&str; 1] = ["host-odd"];

/// What a matrix of all pairs says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AllPairs {
    /// Whether no host, link or direction stands out.
    pub state: Judged,
    /// What stands out, with its remedy, or why it is inconclusive; one sentence where nothing does.
    pub reasons: Vec<String>,
    /// Hosts that are set otherwise than the others.
    pub notes: Vec<String>,
    /// The smallest faults that would have been found four times of five; null where that is not known.
    pub detectable: Option<String>,
}

impl AllPairs {
    /// Of a run; none where it has no matrix.
    pub fn of(run: &Run) -> Option<Self> {
        let view = matrix::matrix(run)?;
        let rows: Vec<ResultRow> = run.rows().into_iter().filter(is_of_matrix).collect();
        let failed = rows
            .iter()
            .filter(|row| row.status == Status::Failed)
            .count();
        let judged = rows.iter().filter_map(|row| row.verdict.as_ref());
        let late = judged
            .clone()
            .filter(|verdict| !verdict.kept_times())
            .count();
        let found = findings_of(run).into_iter();
        let found: Vec<Finding> = found.filter(|one| is_verdict(&one.rule)).collect();
        let cells = Cells {
            all: judged.count(),
            late,
            failed,
        };
        let (state, mut reasons) = judge(&found, cells);
        if reasons.is_empty() {
            let (hosts, pairs) = (view.hosts.len() as u64, view.pairs.len() as u64);
            reasons.push(format!(
                "of {} and {} none stands out",
                counted(hosts, "host"),
                counted(pairs, "ordered pair")
            ));
        }
        let noted = found.iter().filter(|one| NOTED.contains(&&*one.rule));
        Some(Self {
            state,
            reasons,
            notes: noted.map(|one| one.sentence.clone()).collect(),
            detectable: print::could_have_seen(run),
        })
    }
}

impl AllPairs {
    /// Puts the result into an outcome.
    pub fn judge(&self, outcome: &mut Outcome) {
        outcome.is_judged = true;
        match self.state {
            Judged::Fail => outcome.failed.extend(self.reasons.clone()),
            Judged::Inconclusive => outcome.inconclusive.extend(self.reasons.clone()),
            Judged::Pass => {}
        }
    }
}

fn is_of_matrix(row: &ResultRow) -> bool {
    row.knobs.get("pattern").map(String::as_str) == Some(matrix::ALL_PAIRS)
}

/// Cells of a matrix that an emulation judged, those of them in which it was behind schedule, and rows that failed.
#[derive(Debug, Clone, Copy)]
struct Cells {
    all: usize,
    late: usize,
    failed: usize,
}

/// The state, and the sentences for it.
fn judge(found: &[Finding], cells: Cells) -> (Judged, Vec<String>) {
    let is_late = cells.all > 0 && cells.late as f64 >= LATE * cells.all as f64;
    let behind = format!(
        "the emulation was behind schedule in {} of {} cells",
        cells.late, cells.all
    );
    let (mut failed, mut open) = (Vec::new(), Vec::new());
    for one in found {
        let rule = &*one.rule;
        let sentence = one.sentence.trim_end_matches('.');
        let text = match &one.remedy {
            Some(remedy) => format!("{sentence}; {remedy}"),
            None => sentence.to_owned(),
        };
        if NOTED.contains(&rule) {
            continue;
        }
        if OPEN.contains(&rule) {
            open.push(text);
        } else if SLOW.contains(&rule) && is_late {
            open.push(format!("{sentence}; but {behind}"));
        } else {
            failed.push(text);
        }
    }
    if failed.is_empty() && cells.failed > 0 {
        // What stands out, even if for another reason, says more than how many flows failed.
        failed.append(&mut open);
        failed.push(format!("{} failed", counted(cells.failed as u64, "flow")));
    }
    if !failed.is_empty() {
        failed.extend(open);
        return (Judged::Fail, failed);
    }
    if open.is_empty() && is_late {
        open.push(format!(
            "nothing stands out, but {behind}: a slow host can be hidden"
        ));
    }
    match open.is_empty() {
        true => (Judged::Pass, open),
        false => (Judged::Inconclusive, open),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_report::Severity;

    fn found(rule: &str) -> Finding {
        Finding {
            rule: rule.into(),
            severity: Severity::Warning,
            network: None,
            path: None,
            sentence: format!("{rule} of h3"),
            arithmetic: None,
            remedy: Some("look".into()),
            lost: None,
        }
    }

    #[test]
    fn slowness_is_not_told_from_lateness() {
        let of = |rules: &[&str], late: usize, failed: usize| {
            let found: Vec<Finding> = rules.iter().map(|rule| found(rule)).collect();
            let all = 100;
            judge(&found, Cells { all, late, failed })
        };
        for (rules, late, failed, state) in [
            (&[][..], 0, 0, Judged::Pass),
            (&[], 24, 0, Judged::Pass),
            (&[], 25, 0, Judged::Inconclusive),
            (&[], 0, 1, Judged::Fail),
            (&["host-odd"], 0, 0, Judged::Pass),
            (&["host-slow"], 0, 0, Judged::Fail),
            (&["host-slow"], 90, 0, Judged::Inconclusive),
            (&["host-loss"], 90, 0, Judged::Fail),
            (&["host-busy"], 0, 0, Judged::Inconclusive),
            (&["host-busy", "host-loss"], 0, 0, Judged::Fail),
        ] {
            let (is, reasons) = of(rules, late, failed);
            assert_eq!(is, state, "{rules:?} {late} {failed}");
            assert_eq!(reasons.is_empty(), is == Judged::Pass, "{reasons:?}");
        }
        assert_eq!(of(&["host-loss"], 0, 0).1, ["host-loss of h3; look"]);
    }
}
