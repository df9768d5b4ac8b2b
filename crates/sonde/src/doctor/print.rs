//! The checks as text for people, and the sentence at its end.
//!
//! Checked: `lines_are_aligned_and_remedies_below`, `the_verdict_names_what_stands_in_the_way`.

use super::{Check, Status};
use sonde_units::plain;
use std::fmt::Write;

/// The checks without which `sonde assess` cannot measure on the lab, or cannot keep what it measured.
const NEEDED: [&str; 2] = [super::trial::NAME, super::store::NAME];

/// The first check that stands in the way of `sonde assess` on the lab.
pub fn blocking(checks: &[Check]) -> Option<&Check> {
    checks
        .iter()
        .find(|check| check.status == Status::Missing && NEEDED.contains(&check.name.as_str()))
}

/// All of it: a title a group, a line a check, remedies below, the verdict last.
pub fn text(checks: &[Check]) -> String {
    lines(checks) + &verdict(checks) + "\n"
}

/// The same without the verdict.
pub fn lines(checks: &[Check]) -> String {
    let width = checks.iter().map(|check| check.name.chars().count()).max();
    let width = width.unwrap_or(0);
    let mut text = String::new();
    for group in checks.chunk_by(|a, b| a.group == b.group) {
        text.push_str(group[0].group.title());
        text.push('\n');
        group.iter().for_each(|check| line(&mut text, check, width));
        text.push('\n');
    }
    text
}

fn line(text: &mut String, check: &Check, width: usize) {
    // Writing to a String does not fail.
    let _ = writeln!(
        text,
        "  {:<7}  {:<width$}  {}",
        check.status.word(),
        check.name,
        plain(&check.value)
    );
    if let Some(remedy) = &check.remedy {
        let _ = writeln!(text, "           for: {}", check.needed_for);
        let _ = writeln!(text, "           do:  {}", plain(remedy));
    }
}

/// One sentence: whether the lab can be measured on, and how much else there is to look at.
fn verdict(checks: &[Check]) -> String {
    let count = |status| checks.iter().filter(|check| check.status == status).count();
    match blocking(checks) {
        Some(check) => format!(
            "`sonde assess` cannot run on the lab of this machine: {}: {}.",
            check.name, check.value
        ),
        None => format!(
            "`sonde assess` can measure on the lab of this machine; of the other facilities, {} limited and {} missing.",
            are(count(Status::Limited)),
            are(count(Status::Missing))
        ),
    }
}

fn are(count: usize) -> String {
    match count {
        0 => "none is".into(),
        1 => "1 is".into(),
        count => format!("{count} are"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{Group, topic};

    #[test]
    fn lines_are_aligned_and_remedies_below() {
        let checks = [
            topic(Group::Lab, "memory", "hosts").ok("2 GiB"),
            topic(Group::Lab, "processors", "streams").limited("one", "give it more"),
            topic(Group::Peers, "iperf3", "comparing")
                .missing("not there", "apt-get install iperf3"),
        ];
        assert_eq!(
            text(&checks),
            "\
Lab: an emulated cluster on this machine
  ok       memory      2 GiB
  limited  processors  one
           for: streams
           do:  give it more

Peers: other tools, to compare with
  missing  iperf3      not there
           for: comparing
           do:  apt-get install iperf3

`sonde assess` can measure on the lab of this machine; of the other facilities, 1 is limited and 1 is missing.
"
        );
    }

    #[test]
    fn the_verdict_names_what_stands_in_the_way() {
        let lab = topic(Group::Lab, NEEDED[0], "the lab").missing("no namespaces", "sysctl");
        let store = topic(Group::Store, NEEDED[1], "keeping").missing("read-only", "--out DIR");
        assert!(verdict(std::slice::from_ref(&lab)).contains("start of a lab: no namespaces"));
        assert_eq!(blocking(&[store.clone(), lab]).unwrap().value, "read-only");
        let limited = topic(Group::Store, NEEDED[1], "keeping").limited("nfs4", "--out DIR");
        assert_eq!(blocking(&[limited]), None);
    }
}
