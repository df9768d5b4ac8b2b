//! Doors for the fuzz targets: plans, documents that are read as messages, and requests to `sonde report serve`.
//!
//! Checked: the fuzz targets `plan`, `documents`, `requests` and `words`.

use crate::any_path::AnyPath;
use crate::messages;
use crate::plan::{Plan, size_text};
use crate::serve::{HEAD_BYTES_MAX, Hosts, parse};
use std::net::{Ipv4Addr, SocketAddr};

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

/// A request: a head that is whole is the same whatever follows it.
pub fn request(bytes: &[u8]) {
    let hosts = Hosts::of(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 8_080));
    let head = &bytes[..bytes.len().min(HEAD_BYTES_MAX)];
    if let Ok(Some(request)) = parse(head, &hosts) {
        let more = [head, b"more"].concat();
        assert_eq!(parse(&more, &hosts), Ok(Some(request)));
    }
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
