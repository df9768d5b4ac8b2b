//! What `sonde tune` prints.

use super::Report;
use sonde_report::diagnosis::Diagnosis;
use sonde_report::{rate, share, significant, time};

fn state(diagnosis: &Diagnosis) -> String {
    let way = diagnosis
        .way
        .as_ref()
        .map_or_else(String::new, |[src, dst]| {
            format!(" from {src} to {dst}, the slower direction,")
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

/// The report for people.
pub fn text(report: &Report) -> String {
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
                "        nothing to recommend: no window, buffer, loss, CPU or reader explains this rate by its own limit"
                    .into()
            }
        });
    }
    for (at, one) in report.recommendations.iter().enumerate() {
        let cause = &one.cause;
        let mut before = report.recommendations.iter().take(at);
        let same = before.find(|other| !one.steps.is_empty() && other.steps == one.steps);
        add(format!("\n{}  {}", cause.rule, cause.sentence));
        add(format!("    figures    {}", cause.arithmetic));
        add(format!(
            "    rule       {} ({})",
            cause.threshold, cause.source
        ));
        if !cause.remedy.is_empty() {
            add(format!("    remedy     {}", cause.remedy));
        }
        if let Some(why) = &one.refused {
            add(format!("    not here   {why}"));
        }
        let mut host = "";
        if let Some(same) = same {
            add(format!("    the lines are those of {}", same.cause.rule));
        }
        for step in one.steps.iter().filter(|_| same.is_none()) {
            if step.host != host {
                add(format!("    on {}", step.host));
                host = &step.host;
            }
            add(format!("        {}", step.line));
        }
        if let (Some(expected), Some(gain)) = (cause.expected_bps, one.expected_gain) {
            add(format!(
                "    expected   {}, {} times as much",
                rate(expected),
                significant(gain, 3)
            ));
        }
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
