//! What `sonde tune` prints: causes with one remedy together, and where none was found what was looked at.
//!
//! Checked: `causes_with_one_remedy_are_merged`.

use super::{Recommendation, Report};
use sonde_report::diagnosis::Diagnosis;
use sonde_report::{rate, share, sheet, significant, time, wrapped};

fn state(diagnosis: &Diagnosis) -> String {
    let way = diagnosis
        .way
        .as_ref()
        .map_or_else(String::new, |[src, dst]| {
            format!(" from {src} to {dst} (the slower direction, or the only one measured)")
        });
    let Some(bps) = diagnosis.rate_bps else {
        return format!("no stream came through on {}", diagnosis.network);
    };
    let of = diagnosis.reach_bps.map_or_else(
        || "; what the network allows is not known".into(),
        |reach| {
            format!(
                ", {} of the {} that it allows",
                share(bps / reach),
                rate(reach)
            )
        },
    );
    let trip = diagnosis.rtt_ns.map_or(String::new(), |ns| {
        format!("; a round trip takes {}", time(ns))
    });
    format!("{}{way} on {}{of}{trip}", rate(bps), diagnosis.network)
}

/// Recommendations with one remedy, together: the same lines, or none and the same words.
fn merged(all: &[Recommendation]) -> Vec<Vec<&Recommendation>> {
    let mut groups: Vec<Vec<&Recommendation>> = Vec::new();
    for one in all {
        let is_same = |group: &&mut Vec<&Recommendation>| {
            let first = group[0];
            first.steps == one.steps
                && first.refused == one.refused
                && (!one.steps.is_empty() || first.cause.remedy == one.cause.remedy)
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups
}

/// The causes of a group, then what is done about all of them, once.
fn group_lines(group: &[&Recommendation], add: &mut impl FnMut(String)) {
    for (at, one) in group.iter().enumerate() {
        let cause = &one.cause;
        let gap = if at == 0 { "\n" } else { "" };
        add(format!("{gap}{}  {}", cause.rule, cause.sentence));
        add(format!("    figures    {}", cause.arithmetic));
        add(format!(
            "    rule       {} ({})",
            cause.threshold, cause.source
        ));
    }
    let mut remedies: Vec<&str> = group.iter().map(|one| one.cause.remedy.as_str()).collect();
    remedies.dedup();
    for remedy in remedies.into_iter().filter(|remedy| !remedy.is_empty()) {
        add(format!("    remedy     {remedy}"));
    }
    if let Some(why) = &group[0].refused {
        add(format!("    not here   {why}"));
    }
    let mut host = "";
    for step in &group[0].steps {
        if step.host != host {
            add(format!("    on {}", step.host));
            host = &step.host;
        }
        add(format!("        {}", step.line));
    }
    let expected = group
        .iter()
        .filter_map(|one| one.cause.expected_bps.zip(one.expected_gain));
    if let Some((bps, gain)) = expected.max_by(|one, other| one.0.total_cmp(&other.0)) {
        add(format!(
            "    expected   {}, {} times as much",
            rate(bps),
            significant(gain, 3)
        ));
    }
}

/// The report for people; `remarks` say what else may have held the stream back.
pub fn text(report: &Report, remarks: &[String], width: usize) -> String {
    let mut lines = vec![format!("before  {}", state(&report.before))];
    let mut add = |line: String| lines.push(line);
    if report.recommendations.is_empty() {
        add(match (report.before.rate_bps, report.before.is_full()) {
            (None, _) => {
                "        no rule explains it: `sonde report show` lists the failed repetitions"
                    .into()
            }
            (_, true) => "        nothing to recommend: the stream fills its path".into(),
            (_, false) => {
                "        nothing to recommend: no rule explains this rate by its own limit. What they looked at:".into()
            }
        });
        if !report.before.is_full() {
            let heads = ["rule", "found"];
            let looked = report.before.looked.iter();
            let lines = looked.map(|one| vec![one.rule.clone(), one.found.clone()]);
            add(sheet(&heads, lines).loose().text(width));
            for remark in remarks {
                add(wrapped(remark, width, ""));
            }
        }
    }
    for group in merged(&report.recommendations) {
        group_lines(&group, &mut add);
    }
    if report.trials.is_empty()
        && report
            .recommendations
            .iter()
            .any(|one| one.cause.change.is_some())
    {
        add(
            "\n`--apply` does this, measures again, and keeps what is significantly better.".into(),
        );
    }
    for trial in &report.trials {
        let verdict = match (trial.kept, trial.p) {
            (true, _) => "kept",
            (false, Some(p)) if p < super::APART => "restored: it is slower",
            (false, _) => "restored: no significant difference",
        };
        let middle =
            |rates: &[u64]| super::middle(rates).map_or_else(|| "-".into(), |bps| rate(bps as f64));
        let gain = |gain: Option<f64>| gain.map_or_else(|| "-".into(), |gain| significant(gain, 3));
        let missed =
            trial
                .gain
                .zip(trial.expected_gain)
                .map_or(String::new(), |(gain, expected)| {
                    format!(
                        ", predicted within {}",
                        share((gain / expected - 1.0).abs())
                    )
                });
        add(format!(
            "\ntried   {}: {} without, {} with ({} repetitions each, p = {}): {} times, expected {}{missed}; {verdict}",
            trial.rule,
            middle(&trial.without_bps),
            middle(&trial.with_bps),
            trial.with_bps.len(),
            trial.p.map_or_else(|| "-".into(), |p| significant(p, 2)),
            gain(trial.gain),
            gain(trial.expected_gain),
        ));
    }
    if let Some(after) = &report.after {
        add(format!("\nafter   {}", state(after)));
    }
    if !report.undo.is_empty() {
        add("\nto undo what was kept (a restart does too; to keep it across restarts, write it to /etc/sysctl.d and the network's \
            configuration)".into());
        for step in &report.undo {
            add(format!("    {}: {}", step.host, step.undo));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::Step;
    use super::*;
    use sonde_report::diagnosis::Cause;

    fn one(rule: &str, remedy: &str, lines: &[&str]) -> Recommendation {
        let step = |line: &&str| Step {
            host: "h1".into(),
            line: (*line).into(),
            undo: "undo".into(),
        };
        Recommendation {
            cause: Cause {
                rule: rule.into(),
                host: None,
                sentence: format!("{rule} holds it"),
                arithmetic: "1 = 1".into(),
                threshold: "half".into(),
                source: "RFC 1".into(),
                remedy: remedy.into(),
                change: None,
                expected_bps: Some(1e9),
            },
            steps: lines.iter().map(step).collect(),
            expected_gain: Some(2.0),
            refused: None,
        }
    }

    #[test]
    fn causes_with_one_remedy_are_merged() {
        let all = [
            one(
                "receive-window",
                "a larger window",
                &["sysctl a", "sysctl b"],
            ),
            one("cpu", "less work", &[]),
            one("send-buffer", "a larger buffer", &["sysctl a", "sysctl b"]),
            one("offload", "less work", &[]),
        ];
        let groups = merged(&all);
        let rules: Vec<Vec<&str>> = groups
            .iter()
            .map(|group| group.iter().map(|one| one.cause.rule.as_str()).collect())
            .collect();
        assert_eq!(
            rules,
            [["receive-window", "send-buffer"], ["cpu", "offload"]]
        );
        let mut lines = Vec::new();
        groups
            .iter()
            .for_each(|group| group_lines(group, &mut |line| lines.push(line)));
        let text = lines.join("\n");
        for (words, count) in [
            ("sysctl a", 1),
            ("less work", 1),
            ("expected   1.000 Gb/s", 2),
            ("holds it", 4),
        ] {
            assert_eq!(text.matches(words).count(), count, "{words}:\n{text}");
        }
    }
}
