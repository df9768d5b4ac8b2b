//! Hosts that are set otherwise than the others, and links that fail when both directions are busy.
//!
//! Model:   of each setting that decides how TCP fares the value of more than half of the hosts is the rule, and who has
//!          less is named: three hosts or more, since of two nobody is the odd one. MTUs that differ are told of any number,
//!          since packets of the larger are lost at the smaller. A link whose two directions share what one had alone, with
//!          loss that came with it, behaves as one of half duplex whose ends do not agree.
//! Source:  RFC 7323; IEEE 802.3 §28 for duplex that was not agreed (one end in full, the other in half duplex).
//! Checked: `the_odd_host_is_named`, `equal_hosts_are_not`, `a_duplex_that_is_not_agreed_is_told`.

use sonde_measure::{HostRecord, SetBy, Setting, SettingValue};

use super::{Cause, rules};
use crate::finding::{Finding, Severity};
use crate::words::{cause as words, hosts as said};

/// Settings that are numbers, of which less is worse: of three the last counts.
const SIZES: [Setting; 6] = [
    Setting::TcpRmem,
    Setting::TcpWmem,
    Setting::RmemMax,
    Setting::WmemMax,
    Setting::RouteWindow,
    Setting::RouteInitcwnd,
];
/// Settings that are on or off, of which off is worse.
const FLAGS: [Setting; 8] = [
    Setting::TcpWindowScaling,
    Setting::TcpSack,
    Setting::TcpTimestamps,
    Setting::TcpModerateRcvbuf,
    Setting::OffloadTso,
    Setting::OffloadGso,
    Setting::OffloadGro,
    Setting::OffloadTx,
];
/// Of which the odd one is told, whichever it is.
const NAMES: [Setting; 2] = [Setting::TcpCongestionControl, Setting::RouteCongctl];
/// Segments that the kernel begins with where the route does not say.
const SEGMENTS_AT_FIRST: u64 = 10;

/// What is compared among hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HostTrait {
    Interface,
    Mtu,
    LineRate,
    Kernel,
    /// The congestion control that is used, of the route or the host.
    Congestion,
    Setting(Setting),
}

impl HostTrait {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interface => "interface",
            Self::Mtu => "MTU",
            Self::LineRate => "line rate",
            Self::Kernel => "kernel",
            Self::Congestion => "congestion control",
            Self::Setting(setting) => setting.name(),
        }
    }
}

/// What of these hosts' settings is not as most have it: one finding a host and setting, and one of MTUs that differ.
pub fn apart(hosts: &[HostRecord]) -> Vec<Finding> {
    apart_but(hosts, &[])
}

/// The same without those of which another rule told, each with the host's name.
pub(crate) fn apart_but(hosts: &[HostRecord], told: &[(String, HostTrait)]) -> Vec<Finding> {
    let is_told = told.iter().any(|(_, of)| *of == HostTrait::Mtu);
    let mut all: Vec<Finding> = mtus(hosts).into_iter().filter(|_| !is_told).collect();
    for setting in SIZES.into_iter().chain(FLAGS).chain(NAMES) {
        let is_new = |host: &HostRecord| {
            let mut told = told.iter();
            !told.any(|(name, of)| *name == host.name && *of == HostTrait::Setting(setting))
        };
        all.extend(odd(hosts, setting, is_new));
    }
    all
}

/// The line that gives a host what is usual with the others; none where there is no such line.
pub(crate) fn remedy(host: &HostRecord, of: HostTrait, usual: &SettingValue) -> Option<said::Line> {
    match of {
        HostTrait::Mtu => Some(said::Line::Mtu {
            device: device(host),
            bytes: usual.to_string(),
        }),
        HostTrait::Setting(setting) => {
            let mut known = SIZES.into_iter().chain(FLAGS).chain(NAMES);
            known
                .any(|one| one == setting)
                .then(|| line(host, setting, usual, &[]))
        }
        _ => None,
    }
}

/// The value that most have of those that are known, and how many.
pub(crate) fn majority<'v>(
    values: impl Iterator<Item = &'v SettingValue> + Clone,
) -> Option<(&'v SettingValue, usize)> {
    let times = |one: &SettingValue| values.clone().filter(|other| *other == one).count();
    let counted = values.clone().map(|one| (one, times(one)));
    counted.max_by_key(|(_, times)| *times)
}

fn device(host: &HostRecord) -> String {
    host.facts.interface.as_deref().unwrap_or("DEVICE").into()
}

/// A setting as it counts: of three the last; `none` where a route has no bound that others have.
fn value(host: &HostRecord, setting: Setting) -> Option<SettingValue> {
    match host.facts.settings.get(setting) {
        Some(SettingValue::Triple([_, _, most])) => Some(SettingValue::Number(*most)),
        Some(value) => Some(value.clone()),
        // Nothing else that is not told is known.
        None => matches!(setting.set_by(), Some(SetBy::Route(_))).then_some(SettingValue::Absent),
    }
}

fn is_worse(setting: Setting, value: &SettingValue, usual: &SettingValue) -> bool {
    if NAMES.contains(&setting) {
        return value != usual;
    }
    if FLAGS.contains(&setting) {
        return value.is_on() == Some(false) && usual.is_on() != Some(false);
    }
    let number = |value: &SettingValue| match value {
        SettingValue::Absent if setting == Setting::RouteInitcwnd => Some(SEGMENTS_AT_FIRST),
        SettingValue::Absent => Some(u64::MAX),
        value => value.number(),
    };
    // Within a factor of two it is no fault.
    matches!((number(value), number(usual)), (Some(value), Some(usual)) if value <= usual / 2)
}

fn odd(
    hosts: &[HostRecord],
    setting: Setting,
    is_new: impl Fn(&HostRecord) -> bool,
) -> Vec<Finding> {
    let told: Vec<(&HostRecord, SettingValue)> = hosts
        .iter()
        .filter_map(|host| Some((host, value(host, setting)?)))
        .collect();
    let usual = majority(told.iter().map(|(_, value)| value));
    let Some((usual, times)) = usual.filter(|(_, times)| *times * 2 > told.len() && told.len() > 2)
    else {
        return Vec::new();
    };
    let found = told
        .iter()
        .filter(|(host, value)| is_worse(setting, value, usual) && is_new(host));
    found
        .map(|(host, value)| {
            let found = said::Apart {
                host: &host.name,
                setting,
                value,
                usual,
                agree: times,
                all: told.len(),
                line: line(host, setting, usual, hosts),
            };
            Finding::said("host-set-apart", Severity::Advice, &found)
        })
        .collect()
}

/// The line that sets it as a host has it that is as most are.
fn line(
    host: &HostRecord,
    setting: Setting,
    usual: &SettingValue,
    hosts: &[HostRecord],
) -> said::Line {
    match setting.set_by() {
        Some(SetBy::Offload(offload)) => said::Line::Offload {
            device: device(host),
            offload: offload.into(),
            value: usual.to_string(),
        },
        Some(SetBy::Route(metric)) => said::Line::Route {
            device: device(host),
            metric: metric.into(),
            value: usual.to_string(),
        },
        _ => {
            let whole = hosts
                .iter()
                .filter(|host| value(host, setting).as_ref() == Some(usual))
                .find_map(|host| host.facts.settings.get(setting));
            said::Line::Sysctl {
                name: setting.set_name(),
                value: whole.unwrap_or(usual).to_string(),
            }
        }
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
    use sonde_measure::{HostFacts, Settings};

    fn hosts(count: usize) -> Vec<HostRecord> {
        let host = |number| HostRecord {
            name: format!("n{number}"),
            facts: HostFacts {
                interface: Some("eth0".into()),
                mtu_bytes: Some(1_500),
                settings: Settings::from_iter([
                    (Setting::TcpRmem, "4096 131072 6291456"),
                    (Setting::TcpWindowScaling, "1"),
                    (Setting::OffloadGro, "on"),
                    (Setting::RouteCongctl, "cubic"),
                ]),
                ..HostFacts::default()
            },
            ..HostRecord::default()
        };
        (1..=count).map(host).collect()
    }

    #[test]
    fn the_odd_host_is_named() {
        for (setting, value, words) in [
            (
                Setting::TcpRmem,
                "4096 65536 65536",
                "sysctl -w net.ipv4.tcp_rmem=\"4096 131072 6291456\"",
            ),
            (
                Setting::TcpWindowScaling,
                "0",
                "sysctl -w net.ipv4.tcp_window_scaling=\"1\"",
            ),
            (Setting::OffloadGro, "off", "ethtool -K eth0 gro on"),
            (Setting::RouteWindow, "65535", "window none"),
            (Setting::RouteCongctl, "reno", "congctl cubic"),
        ] {
            let mut all = hosts(4);
            all[2].facts.settings.read(setting, value);
            let found = apart(&all);
            assert_eq!(found.len(), 1, "{setting}: {found:?}");
            assert!(
                found[0].sentence.starts_with("n3 has another setting"),
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
        settings.read(Setting::TcpRmem, "4096 131072 33554432");
        assert_eq!(apart(&all), []);
        // Nor is a buffer that is more than half as large.
        let settings = &mut all[0].facts.settings;
        settings.read(Setting::TcpRmem, "4096 131072 4194304");
        assert_eq!(apart(&all), []);
        // Of two that differ nobody is the odd one.
        let mut two = hosts(2);
        two[0].facts.settings.read(Setting::OffloadGro, "off");
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
