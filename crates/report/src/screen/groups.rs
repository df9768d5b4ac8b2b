//! All findings of a run, one entry a rule: on which networks, from how little to how much, and the weightiest of them.
//!
//! Checked: `each_rule_is_one_entry` of `screen`.

use std::fmt::Write;

use sonde_measure::Run;

use crate::finding::{Finding, Severity, findings_of};
use crate::index::grouped;
use crate::lost::Lost;
use crate::table::{INDENT, wrapped};
use crate::words::lost::extent;
use sonde_units::plain;

/// The findings by rule, warnings first. Every sentence stands in `sonde report show --table`.
pub fn findings_by_rule(run: &Run, width: usize) -> String {
    let findings = findings_of(run);
    if findings.is_empty() {
        return "No findings.".into();
    }
    let groups = grouped(findings.iter(), |finding| finding.rule.as_str());
    let mut text = String::new();
    for (rule, group) in groups {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", entry(rule, &group, width));
    }
    text.trim_end().to_owned()
}

fn entry(rule: &str, group: &[&Finding], width: usize) -> String {
    let severity = match group[0].severity {
        Severity::Note => "note",
        Severity::Advice => "advice",
        Severity::Warning => "warning",
    };
    let mut networks: Vec<&str> = Vec::new();
    for network in group.iter().filter_map(|one| one.network.as_deref()) {
        if !networks.contains(&network) {
            networks.push(network);
        }
    }
    let count = match group.len() {
        1 => String::new(),
        many => format!(" ({many})"),
    };
    let on = match networks.is_empty() {
        true => String::new(),
        false => format!(" on {}", networks.join(", ")),
    };
    let lost: Vec<&Lost> = group.iter().filter_map(|one| one.lost.as_ref()).collect();
    let extent = extent(&lost).filter(|_| group.len() > 1);
    let extent = extent.map_or(String::new(), |extent| format!(": {extent}"));
    let rank = |finding: &Finding| finding.lost.as_ref().map_or(0.0, Lost::rank);
    let worst = group.iter().copied();
    // The first of equal ones.
    let worst = worst.reduce(|worst, one| match rank(one) > rank(worst) {
        true => one,
        false => worst,
    });
    let worst = worst.unwrap_or(group[0]);
    let head = format!("[{rule}]{count}{on}{extent}");
    let lines = [
        Some(plain(&head)),
        Some(plain(&worst.sentence)),
        worst
            .arithmetic
            .as_deref()
            .map(|text| format!("= {}", plain(text))),
        worst
            .remedy
            .as_deref()
            .map(|text| format!("→ {}", plain(text))),
    ];
    let lines = lines.into_iter().flatten();
    let text: Vec<String> = lines.map(|line| wrapped(&line, width, INDENT)).collect();
    format!("{severity:<9}{}", text.join("\n").trim_start())
}
