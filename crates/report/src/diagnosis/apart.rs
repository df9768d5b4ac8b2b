//! Hosts that are set otherwise than the others, and links that fail when both directions are busy.
//!
//! Model:   of each setting that decides how TCP fares the value of more than half of the hosts is the rule, and who has
//!          less is named: three hosts or more, since of two nobody is the odd one. MTUs that differ are told of any number,
//!          since packets of the larger are lost at the smaller. A link whose two directions share what one had alone, with
//!          loss that came with it, behaves as one of half duplex whose ends do not agree.
//! Source:  RFC 7323; IEEE 802.3 §28 for duplex that was not agreed (one end in full, the other in half duplex).
//! Checked: `the_odd_host_is_named`, `equal_hosts_are_not`, `a_duplex_that_is_not_agreed_is_told`.

use std::collections::BTreeMap;

use sonde_measure::HostRecord;

use super::{Cause, rules};
use crate::finding::{Finding, Severity};
use crate::words::{cause as words, hosts as said};

/// Settings that are numbers, of which less is worse: the last number counts.
const SIZES: [&str; 6] = [
    "ipv4.tcp_rmem",
    "ipv4.tcp_wmem",
    "core.rmem_max",
    "core.wmem_max",
    "route.window",
    "route.initcwnd",
];
/// Settings that are on or off, of which off is worse.
const FLAGS: [&str; 8] = [
    "ipv4.tcp_window_scaling",
    "ipv4.tcp_sack",
    "ipv4.tcp_timestamps",
    "ipv4.tcp_moderate_rcvbuf",
    "offload.tso",
    "offload.gso",
    "offload.gro",
    "offload.tx",
];
/// Of which the odd one is told, whichever it is.
const NAMES: [&str; 2] = ["ipv4.tcp_congestion_control", "route.congctl"];
/// What the largest packet of an interface is called among settings.
pub(crate) const MTU: &str = "MTU";

/// What of these hosts' settings is not as most have it: one finding a host and setting, and one of MTUs that differ.
pub fn apart(hosts: &[HostRecord]) -> Vec<Finding> {
    apart_but(hosts, &[])
}

/// The same without those (host, setting) of which another rule told; a host's MTU is the setting [`MTU`].
pub(crate) fn apart_but(hosts: &[HostRecord], told: &[(String, String)]) -> Vec<Finding> {
    let is_told = told.iter().any(|(_, name)| name == MTU);
    let mut all: Vec<Finding> = mtus(hosts).into_iter().filter(|_| !is_told).collect();
    for name in SIZES.iter().chain(&FLAGS).chain(&NAMES) {
        let is_new = |host: &HostRecord| {
            !told
                .iter()
                .any(|(one, setting)| *one == host.name && setting == name)
        };
        all.extend(odd(hosts, name, is_new));
    }
    all
}

/// The line that gives a host the setting that is usual with the others; none where there is no such line.
pub(crate) fn remedy(host: &HostRecord, name: &str, usual: &str) -> Option<said::Line> {
    if name == MTU {
        return Some(said::Line::Mtu {
            device: device(host),
            bytes: usual.into(),
        });
    }
    let known = SIZES.contains(&name) || FLAGS.contains(&name) || NAMES.contains(&name);
    known.then(|| line(host, name, &full(name), usual, &[]))
}

fn device(host: &HostRecord) -> String {
    host.facts.interface.as_deref().unwrap_or("DEVICE").into()
}

/// A setting as it counts: its last word; off where a bound is absent that others have.
fn value<'h>(host: &'h HostRecord, name: &str) -> Option<&'h str> {
    match host.facts.settings.get(name) {
        Some(value) => value.split_whitespace().last(),
        // A route without a bound has none; nothing else that is not told is known.
        None if name.starts_with("route.") => Some("none"),
        None => None,
    }
}

fn is_worse(name: &str, value: &str, usual: &str) -> bool {
    let number = |text: &str| match text {
        // No bound on the window, and the kernel's ten segments.
        "none" if name == "route.initcwnd" => Some(10),
        "none" => Some(u64::MAX),
        _ => text.parse().ok(),
    };
    if NAMES.contains(&name) {
        return value != usual;
    }
    if FLAGS.contains(&name) {
        let off = |text: &str| matches!(text, "0" | "off");
        return off(value) && !off(usual);
    }
    // Within a factor of two it is no fault.
    matches!((number(value), number(usual)), (Some(value), Some(usual)) if value <= usual / 2)
}

/// A setting as it is set: those of the kernel have their folder before them.
fn full(name: &str) -> String {
    if name.starts_with("ipv4.") || name.starts_with("core.") {
        format!("net.{name}")
    } else {
        name.to_owned()
    }
}

fn odd(hosts: &[HostRecord], name: &str, is_new: impl Fn(&HostRecord) -> bool) -> Vec<Finding> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let told: Vec<(&HostRecord, &str)> = hosts
        .iter()
        .filter_map(|host| Some((host, value(host, name)?)))
        .collect();
    for (_, value) in &told {
        *counts.entry(value).or_default() += 1;
    }
    let usual = counts.iter().max_by_key(|(_, times)| **times);
    let Some((usual, times)) =
        usual.filter(|(_, times)| **times * 2 > told.len() && told.len() > 2)
    else {
        return Vec::new();
    };
    let full = full(name);
    let found = told
        .iter()
        .filter(|(host, value)| is_worse(name, value, usual) && is_new(host));
    found
        .map(|(host, value)| {
            let found = said::Apart {
                host: &host.name,
                name: &full,
                value,
                usual,
                agree: *times,
                all: told.len(),
                line: line(host, name, &full, usual, hosts),
            };
            Finding::said("host-set-apart", Severity::Advice, &found)
        })
        .collect()
}

/// The line that sets it as a host has it that is as most are.
fn line(
    host: &HostRecord,
    name: &str,
    full: &str,
    usual: &str,
    hosts: &[HostRecord],
) -> said::Line {
    if let Some(offload) = name.strip_prefix("offload.") {
        return said::Line::Offload {
            device: device(host),
            offload: offload.into(),
            value: usual.into(),
        };
    }
    if let Some(metric) = name.strip_prefix("route.") {
        return said::Line::Route {
            device: device(host),
            metric: metric.into(),
            value: usual.into(),
        };
    }
    let whole = hosts
        .iter()
        .filter(|host| value(host, name) == Some(usual))
        .find_map(|host| host.facts.settings.get(name));
    said::Line::Sysctl {
        name: full.into(),
        value: whole.map_or(usual, String::as_str).into(),
    }
}

fn mtus(hosts: &[HostRecord]) -> Option<Finding> {
    let told: Vec<(&str, u64)> = hosts
        .iter()
        .filter_map(|host| Some((host.name.as_str(), host.facts.mtu_bytes?)))
        .collect();
    let found = said::Mtus {
        low: *told.iter().min_by_key(|(_, mtu)| *mtu)?,
        high: *told.iter().max_by_key(|(_, mtu)| *mtu)?,
    };
    let differ = found.low.1 < found.high.1;
    differ.then(|| Finding::said("mtu-apart", Severity::Warning, &found))
}

/// A link alone, and with its other direction busy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BothWays {
    /// Rate of one direction with the other idle.
    pub alone_bps: f64,
    /// Its rate with both busy.
    pub together_bps: f64,
    /// Segments or datagrams lost of it, with the other idle.
    pub lost_alone: f64,
    /// With both busy.
    pub lost_together: f64,
}

/// The cause `duplex`, where loss came with the other direction and took a third of the rate with it.
pub fn duplex(network: &str, host: Option<&str>, both: &BothWays) -> Option<Cause> {
    let lost = both.lost_together >= 0.001 && both.lost_together >= 5.0 * both.lost_alone;
    (lost && both.together_bps <= both.alone_bps * 2.0 / 3.0).then(|| {
        rules::duplex(&words::Duplex {
            network: network.into(),
            host: host.map(Into::into),
            alone_bps: both.alone_bps,
            together_bps: both.together_bps,
            lost_alone: both.lost_alone,
            lost_together: both.lost_together,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_measure::HostFacts;

    fn hosts(count: usize) -> Vec<HostRecord> {
        let host = |number| HostRecord {
            name: format!("n{number}"),
            facts: HostFacts {
                interface: Some("eth0".into()),
                mtu_bytes: Some(1_500),
                settings: [
                    ("ipv4.tcp_rmem", "4096 131072 6291456"),
                    ("ipv4.tcp_window_scaling", "1"),
                    ("offload.gro", "on"),
                    ("route.congctl", "cubic"),
                ]
                .map(|(name, value)| (name.into(), value.into()))
                .into(),
                ..HostFacts::default()
            },
            ..HostRecord::default()
        };
        (1..=count).map(host).collect()
    }

    #[test]
    fn the_odd_host_is_named() {
        for (name, value, words) in [
            (
                "ipv4.tcp_rmem",
                "4096 65536 65536",
                "sysctl -w net.ipv4.tcp_rmem=\"4096 131072 6291456\"",
            ),
            (
                "ipv4.tcp_window_scaling",
                "0",
                "sysctl -w net.ipv4.tcp_window_scaling=\"1\"",
            ),
            ("offload.gro", "off", "ethtool -K eth0 gro on"),
            ("route.window", "65535", "window none"),
            ("route.congctl", "reno", "congctl cubic"),
        ] {
            let mut all = hosts(4);
            all[2].facts.settings.insert(name.into(), value.into());
            let found = apart(&all);
            assert_eq!(found.len(), 1, "{name}: {found:?}");
            assert!(
                found[0].sentence.starts_with("n3 is set otherwise"),
                "{found:?}"
            );
            let remedy = found[0].remedy.as_deref().unwrap();
            assert!(remedy.contains(words), "{remedy}");
        }
        let mut all = hosts(2);
        all[1].facts.mtu_bytes = Some(9_000);
        let found = apart(&all);
        assert_eq!((found.len(), found[0].rule.as_str()), (1, "mtu-apart"));
        let sentence = &found[0].sentence;
        assert!(
            sentence.contains("n2 has 9000 bytes and n1 1500"),
            "{sentence}"
        );
    }

    #[test]
    fn equal_hosts_are_not() {
        assert_eq!(apart(&hosts(16)), []);
        assert_eq!(apart(&[]), []);
        // More memory gives a host larger buffers; that is no fault of the others.
        let mut all = hosts(4);
        let settings = &mut all[0].facts.settings;
        settings.insert("ipv4.tcp_rmem".into(), "4096 131072 33554432".into());
        assert_eq!(apart(&all), []);
        // Of two that differ nobody is the odd one.
        let mut two = hosts(2);
        two[0]
            .facts
            .settings
            .insert("offload.gro".into(), "off".into());
        assert_eq!(apart(&two), []);
    }

    #[test]
    fn a_duplex_that_is_not_agreed_is_told() {
        let collapsed = BothWays {
            alone_bps: 94e6,
            together_bps: 12e6,
            lost_alone: 0.0,
            lost_together: 0.03,
        };
        let found = duplex("lan", Some("n3"), &collapsed).unwrap();
        assert!(
            found.rule == "duplex" && found.sentence.contains("n3"),
            "{found:?}"
        );
        for healthy in [
            BothWays {
                together_bps: 91e6,
                lost_together: 0.0,
                ..collapsed
            },
            // A shared medium divides its rate without losing.
            BothWays {
                together_bps: 47e6,
                lost_together: 0.0,
                ..collapsed
            },
            // A lossy link loses either way.
            BothWays {
                lost_alone: 0.02,
                ..collapsed
            },
        ] {
            assert_eq!(duplex("lan", None, &healthy), None);
        }
    }
}
