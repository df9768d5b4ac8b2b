//! Doors for the fuzz targets: plans, and documents that are read as messages.
//!
//! Checked: the fuzz targets `plan`, `documents` and `words`.

use crate::any_path::AnyPath;
use crate::messages;
use crate::plan::{Plan, size_text};

/// A plan: what is taken can be laid out as text and read back.
pub fn plan(text: &str) {
    if let Ok(plan) = Plan::parse(text) {
        let again = plan.text().expect("what was read can be written");
        assert_eq!(Plan::parse(&again).expect("and read back"), plan, "{again}");
    }
}

/// What `sonde npb --json` or a matrix tells of messages.
pub fn messages(text: &str) {
    let _ = messages::is_of_messages(text);
}

/// Short words of options, and the knobs of messages, one a line.
pub fn words(text: &str) {
    if let Ok(path) = text.parse::<AnyPath>() {
        assert_eq!(path.to_string().parse().ok(), Some(path));
    }
    let _ = size_text(text);
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    let mut knobs = pairs
        // A file of its own is not what is tried.
        .filter(|(name, _)| *name != "of")
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    if let Ok((request, _)) = messages::take(&mut knobs, 1) {
        let _ = request.estimate_ns(u64::MAX, Some(1));
        let _ = request.too_large(0, usize::MAX);
    }
}
