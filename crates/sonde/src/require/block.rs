//! The results of the requirements, in lines for a terminal.
//!
//! Model:   a requirement is one entry: its state, itself, the figure with the smallest margin and where it is, how many rows have
//!          which state, and the worst that fail. Of many requirements those that pass are counted.
//! Units:   as [`sonde_report::figure`] chooses them; margins in per cent of the bound.
//! Checked: `a_requirement_is_an_entry`.

use super::judge::{Judgements, RequirementJudgement, RowJudgement};
use sonde_measure::Judged;
use sonde_report::{counted, share, wrapped};

/// From so many requirements on those that pass are counted.
const MANY: usize = 12;
/// The indentation after a state.
const INDENT: &str = "              ";
/// The most rows that are named beside the worst.
const NAMED: usize = 3;

/// The entries of all requirements.
pub fn lines(judgements: &Judgements, width: usize) -> Vec<String> {
    let all = &judgements.all;
    let is_shown = |one: &&RequirementJudgement| all.len() < MANY || one.state() != Judged::Pass;
    let mut lines: Vec<String> = Vec::new();
    for one in all.iter().filter(is_shown) {
        lines.extend(entry(one.state().word(), &one.words(), width));
    }
    let counted_only = all.iter().filter(|one| !is_shown(one)).count() as u64;
    if counted_only > 0 {
        let text = format!("{} are met", counted(counted_only, "more requirement"));
        let text = text.replace("1 more requirement are", "1 more requirement is");
        lines.extend(entry(Judged::Pass.word(), &text, width));
    }
    lines
}

/// A text behind a word in capitals, wrapped.
pub fn entry(head: &str, text: &str, width: usize) -> Vec<String> {
    let text = wrapped(text, width, INDENT);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if let Some(first) = lines.first_mut() {
        *first = format!("{head:<room$}{}", first.trim_start(), room = INDENT.len());
    }
    lines
}

impl RequirementJudgement {
    /// All of it but its state.
    fn words(&self) -> String {
        let requirement = &self.requirement;
        let head = format!("{} {}", requirement.subject(), requirement.bounds());
        let Some(worst) = self.rows.first() else {
            return format!("{head}: no row has this quantity");
        };
        let all = self.rows.len();
        let (failed, open) = (self.count(Judged::Fail), self.count(Judged::Inconclusive));
        let counts = match (failed, open) {
            (0, 0) => vec![match all {
                1 => String::new(),
                _ => format!("all {all} pass"),
            }],
            _ => [
                (failed, "fail"),
                (open, "inconclusive"),
                (self.count(Judged::Pass), "pass"),
            ]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} of {all} {what}"))
            .collect(),
        };
        let mut parts = vec![self.named(worst, true)];
        parts.extend(
            counts
                .into_iter()
                .filter(|words| !words.is_empty() && all > 1),
        );
        let hosts = self.common_hosts();
        if !hosts.is_empty() {
            parts.push(format!("all of these at {}", hosts.join(", ")));
        }
        let is_like = |row: &&RowJudgement| worst.state != Judged::Pass && row.state == worst.state;
        let others: Vec<String> = (self.rows.iter().skip(1).filter(is_like).take(NAMED))
            .map(|row| self.named(row, false))
            .collect();
        if !others.is_empty() {
            parts.push(format!("then {}", others.join(", ")));
        }
        parts.extend(worst.why.clone().filter(|_| worst.figure.is_some()));
        format!("{head}: {}", parts.join("; "))
    }

    /// A row by its figure, how far that is from the bound, and where it is.
    fn named(&self, row: &RowJudgement, with_margin: bool) -> String {
        let mut words = match row.figure {
            Some(value) => self.figure(value, row.bound),
            // Why it is not stands with the worst alone.
            None if !with_margin => "not measured".into(),
            None => row.why.clone().unwrap_or_else(|| "not measured".into()),
        };
        if let (Some(value), Some(bound), true) = (row.figure, row.bound, with_margin)
            && let Some(margin) = row.margin.filter(|_| bound > 0.0)
        {
            let side = if value < bound { "below" } else { "above" };
            words += &format!(", {} {side}", share(margin.abs()));
        }
        match row.pair().filter(|_| row.row.probe == "pattern") {
            Some(pair) => words + &format!(" ({pair})"),
            None if self.requirement.network.is_none() => {
                words + &format!(" ({})", row.row.network)
            }
            None => words,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::requirement;
    use super::super::testing::{row, run};
    use super::*;
    use sonde_measure::{Quantity, ResultRow, Status};

    fn said(text: &str, rows: &[ResultRow]) -> String {
        let all = vec![requirement(text).unwrap().judged(&run(Vec::new()), rows)];
        lines(&Judgements { all }, 80).join("\n")
    }

    #[test]
    fn a_requirement_is_an_entry() {
        let of = |pair, bps| row(Quantity::ThroughputBps, bps, pair);
        let rows = [
            of(("a", "b"), 9e6),
            of(("a", "c"), 2e6),
            of(("c", "b"), 3e6),
        ];
        assert_eq!(
            said("throughput>=5Mbit", &rows),
            "FAIL          throughput >= 5.000 Mb/s: 2.000 Mb/s, 60.0 % below (a>c); 2 of 3\n              \
             fail; 1 of 3 pass; all of these at c; then 3.000 Mb/s (c>b)"
        );
        assert_eq!(
            said("throughput>=1Mbit", &rows),
            "PASS          throughput >= 1.000 Mb/s: 2.000 Mb/s, 100.0 % above (a>c); all 3\n              pass"
        );
        assert_eq!(
            said("latency<=1ms", &rows),
            "FAIL          latency <= 1.000 ms: no row has this quantity"
        );
        let mut missing = rows[0].clone();
        (missing.status, missing.p50) = (Status::Failed, None);
        missing.reason = Some("1 failed: refused".into());
        assert_eq!(
            said("throughput>=1Mbit", &[missing]),
            "FAIL          throughput >= 1.000 Mb/s: not measured: 1 failed: refused (a>b)"
        );
        let many = vec![
            requirement("throughput>=1Mbit")
                .unwrap()
                .judged(&run(Vec::new()), &rows);
            MANY
        ];
        assert_eq!(
            lines(&Judgements { all: many }, 80),
            ["PASS          12 more requirements are met"]
        );
    }
}
