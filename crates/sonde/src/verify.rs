//! `sonde probe files --verify`: whether what a finding names is what holds a service, by changing that one setting.
//!
//! Model:   when all that was asked for is measured, each finding of files has its cell measured again with the change that
//!          [`sonde_report::verifiable`] names: the same repetitions, by the same agents in the same lab. The cells of these say by the knob `verify` of
//!          which rule they are. The two are compared as `sonde report compare` compares two runs: a finding is confirmed where the changed cell is
//!          better, not confirmed where it is the same or worse, and inconclusive where there are too few repetitions to tell. What comes next
//!          follows from the run alone, so that one that was cut off goes on where it was.
//! Source:  [`sonde_report::compare`].
//! Units:   those of the quantity; ratios.
//! Checked: `what_became_of_a_finding`; `tests/lab_verify.rs`.

use crate::campaign::End;
use crate::failure::Failure;
use crate::layout::{self, Block};
use crate::source::{Seen, Source};
use schemars::JsonSchema;
use serde::Serialize;
use sonde_measure::{Number, Quantity};
use sonde_report::{
    Change, Chronicle, CompareRow, Limits, SettingChange, VERIFY, Verifiable, compare, figure,
    sheet, significant, verifiable, wrapped,
};

/// What became of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// With the change it is better.
    Confirmed,
    /// With the change it is the same, or worse.
    NotConfirmed,
    /// There are too few repetitions, or some are missing.
    Inconclusive,
    /// There is nothing to change.
    NotTried,
}

impl Verdict {
    const fn words(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::NotConfirmed => "not confirmed",
            Self::Inconclusive => "inconclusive",
            Self::NotTried => "not tried",
        }
    }
}

/// A finding that was looked into.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Verification {
    /// Its rule.
    pub rule: String,
    /// What it says.
    pub sentence: String,
    /// The cell that it is of.
    pub cell_before: String,
    /// The cell with the change; null where nothing could be changed.
    pub cell_after: Option<String>,
    /// What was changed, the setting that the finding names first.
    pub changed: Vec<SettingChange>,
    /// What is compared; null where nothing was measured with the change.
    pub quantity: Option<Quantity>,
    /// The median of the repetitions' medians without the change, in the quantity's unit.
    pub before: Option<Number>,
    /// The same with it.
    pub after: Option<Number>,
    /// The second over the first; null below six repetitions.
    pub ratio: Option<Number>,
    /// Lower end of its interval at 95 %.
    pub ratio_low: Option<Number>,
    /// Upper end.
    pub ratio_high: Option<Number>,
    /// What follows.
    pub verdict: Verdict,
    /// Why it was not tried, or is inconclusive; null otherwise.
    pub reason: Option<String>,
    /// Repetitions of each that would find a change of 5 % nine times in ten, where there are fewer.
    pub repetitions_wanted: Option<u64>,
}

/// All findings that were looked into.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Verified {
    /// In the order of the run's cells.
    pub verifications: Vec<Verification>,
}

/// The source of a run whose findings are looked into.
#[derive(Debug, Default)]
pub struct Verifier {
    verified: Verified,
}

impl Source for Verifier {
    fn command(&self) -> &'static str {
        "sonde probe files --verify"
    }

    fn follow(&mut self, seen: Seen<'_>) -> Result<Vec<Block>, Failure> {
        let is_base = |block: &&Block| !block.knobs.contains_key(VERIFY);
        if !seen
            .blocks
            .iter()
            .filter(is_base)
            .all(|block| seen.is_made(block))
        {
            return Ok(Vec::new());
        }
        let trials = trials(seen)?.into_iter();
        Ok(trials
            .filter_map(|(_, trial)| trial)
            .map(|[_, with]| with)
            .collect())
    }

    fn ended(&mut self, seen: Seen<'_>, _end: &End) -> Result<(), Failure> {
        let trials = trials(seen)?.into_iter();
        let verifications = trials.map(|(one, blocks)| verification(seen, one, blocks));
        self.verified.verifications = verifications.collect();
        Ok(())
    }

    fn verified(&self) -> Option<&Verified> {
        Some(&self.verified)
    }
}

/// The cell of a finding as it is, and with the change.
type Trial = [Block; 2];

/// Each finding with its trial, where something can be changed.
fn trials(seen: Seen<'_>) -> Result<Vec<(Verifiable, Option<Trial>)>, Failure> {
    let mut all = Vec::new();
    for one in verifiable(seen.run) {
        let has = |block: &&Block| block.cells.iter().any(|cell| cell.id == one.cell);
        let block = seen.blocks.iter().find(has);
        let trial = match (&one.change, block) {
            (Ok(changes), Some(block)) => Some(trial(seen, block, &one, changes)?),
            _ => None,
        };
        all.push((one, trial));
    }
    Ok(all)
}

/// The cell of a finding alone, as it is and with the change.
fn trial(
    seen: Seen<'_>,
    block: &Block,
    one: &Verifiable,
    changes: &[SettingChange],
) -> Result<Trial, Failure> {
    let mut without = block.clone();
    without.cells.retain(|cell| cell.id == one.cell);
    let mut with = without.clone();
    if let (Some(cell), Some(spec)) = (without.cells.first(), with.channel_mut()) {
        spec.sizes_bytes
            .retain(|size| *size == cell.factors.size_bytes || cell.factors.size_bytes == 0);
    }
    for change in changes {
        match &change.to {
            Some(value) => with.knobs.insert(change.name.clone(), value.clone()),
            None => with.knobs.remove(&change.name),
        };
    }
    with.take_knobs()?;
    with.knobs.insert(VERIFY.into(), one.rule.into());
    with.cells = layout::cells(&seen.live[with.net].net, &with, &[])?;
    Ok([without, with])
}

fn verification(seen: Seen<'_>, one: Verifiable, blocks: Option<Trial>) -> Verification {
    let (changed, reason) = match one.change {
        Ok(changed) => (changed, None),
        Err(why) => (Vec::new(), Some(why.words().to_owned())),
    };
    let mut this = Verification {
        rule: one.rule.into(),
        sentence: one.sentence,
        cell_before: one.cell,
        cell_after: None,
        changed,
        quantity: None,
        before: None,
        after: None,
        ratio: None,
        ratio_low: None,
        ratio_high: None,
        verdict: Verdict::NotTried,
        reason,
        repetitions_wanted: None,
    };
    let Some([without, with]) = blocks else {
        return this;
    };
    this.cell_after = with.cells.first().map(|cell| cell.id.clone());
    let [before, after] = [&without, &with].map(|block| seen.only(std::slice::from_ref(block)));
    let names = this.changed.iter().map(|change| change.name.clone());
    let limits = Limits {
        ignore: names.chain([VERIFY.to_owned()]).collect(),
        ..Limits::default()
    };
    let compared = compare(&before, &after, &Chronicle::default(), &limits);
    let row = compared.ok().and_then(|mut compared| compared.rows.pop());
    this.take(row.as_ref());
    this
}

impl Verification {
    /// Takes over what the comparison says.
    fn take(&mut self, row: Option<&CompareRow>) {
        let Some(row) = row else {
            self.verdict = Verdict::Inconclusive;
            self.reason = Some("no repetition with the change succeeded".into());
            return;
        };
        self.quantity = Some(row.quantity);
        (self.before, self.after) = (Some(row.p50_a), Some(row.p50_b));
        (self.ratio, self.ratio_low, self.ratio_high) = (row.ratio, row.ratio_low, row.ratio_high);
        self.repetitions_wanted = row.launches_wanted;
        (self.verdict, self.reason) = match row.change {
            Change::Better => (Verdict::Confirmed, None),
            Change::Same | Change::Worse => (Verdict::NotConfirmed, None),
            Change::Unsure => (
                Verdict::Inconclusive,
                Some(format!(
                    "{} repetitions without and {} with the change are too few: six of each are the least",
                    row.launches_a, row.launches_b
                )),
            ),
        };
    }

    fn changes(&self) -> String {
        let one = |change: &SettingChange| {
            let [from, to] = [&change.from, &change.to]
                .map(|value| value.as_deref().unwrap_or("none").to_owned());
            format!("{} {from} -> {to}", change.name)
        };
        let all: Vec<String> = self.changed.iter().map(one).collect();
        if all.is_empty() {
            "-".into()
        } else {
            all.join(", ")
        }
    }
}

impl Verified {
    /// For people.
    pub fn text(&self, width: usize) -> String {
        if self.verifications.is_empty() {
            return "Nothing to verify: no finding names a setting.".into();
        }
        let heads = [
            "verified", "changed", "before", "after", "ratio", "95 %", "verdict",
        ];
        let lines = self.verifications.iter().map(|one| {
            let value = |number: Option<Number>| match (number, one.quantity) {
                (Some(number), Some(quantity)) => figure(quantity, number.0),
                _ => "-".into(),
            };
            let ratio = |number: Option<Number>| {
                number.map_or_else(|| "-".into(), |number| significant(number.0, 3))
            };
            let interval = match (one.ratio_low, one.ratio_high) {
                (Some(low), Some(high)) => format!("{} to {}", ratio(Some(low)), ratio(Some(high))),
                _ => "-".into(),
            };
            vec![
                one.rule.clone(),
                one.changes(),
                value(one.before),
                value(one.after),
                ratio(one.ratio),
                interval,
                one.verdict.words().into(),
            ]
        });
        let mut text = sheet(&heads, lines).loose().text(width);
        for one in &self.verifications {
            text += &format!("\n{}", wrapped(&one.sentence, width, ""));
            if let Some(reason) = &one.reason {
                let line = format!("{}: {reason}", one.verdict.words());
                text += &format!("\n{}", wrapped(&line, width, "    "));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked_into(row: Option<&CompareRow>) -> Verification {
        let mut one = Verification {
            rule: "service-bound".into(),
            sentence: "READ waits for the server.".into(),
            cell_before: "a".into(),
            cell_after: Some("b".into()),
            changed: vec![SettingChange {
                name: "outstanding".into(),
                from: Some("1".into()),
                to: Some("2".into()),
            }],
            quantity: None,
            before: None,
            after: None,
            ratio: None,
            ratio_low: None,
            ratio_high: None,
            verdict: Verdict::NotTried,
            reason: None,
            repetitions_wanted: None,
        };
        one.take(row);
        one
    }

    #[test]
    fn what_became_of_a_finding() {
        let mut row: CompareRow = serde_json::from_value(serde_json::json!({
            "cell_a": "a", "cell_b": "b", "quantity": "throughput_bps", "probe": "files", "mode": null, "network": "wire",
            "path": "nfs2:udp", "load": null, "size_bytes": 65_536, "knobs": {}, "launches_a": 6, "launches_b": 6,
            "p50_a": 10e6, "p50_b": 19e6, "ratio": 1.9, "ratio_low": 1.8, "ratio_high": 2.0, "p": 0.002,
            "change": "better", "launches_wanted": null,
        }))
        .unwrap();
        for (change, verdict) in [
            (Change::Better, Verdict::Confirmed),
            (Change::Same, Verdict::NotConfirmed),
            (Change::Worse, Verdict::NotConfirmed),
        ] {
            row.change = change;
            let one = looked_into(Some(&row));
            assert_eq!((one.verdict, &one.reason), (verdict, &None), "{change:?}");
        }
        let verified = Verified {
            verifications: vec![looked_into(Some(&row))],
        };
        let text = verified.text(120);
        for words in [
            "outstanding 1 -> 2",
            "10.00 Mb/s",
            "19.00 Mb/s",
            "1.90",
            "1.80 to 2.00",
            "not confirmed",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        (row.change, row.launches_b) = (Change::Unsure, 5);
        let one = looked_into(Some(&row));
        assert_eq!(one.verdict, Verdict::Inconclusive);
        assert!(one.reason.unwrap().contains("5 with the change"));
        let one = looked_into(None);
        assert_eq!(one.verdict, Verdict::Inconclusive);
        assert!(one.reason.unwrap().contains("no repetition"));
        assert!(Verified::default().text(80).contains("Nothing to verify"));
    }
}
