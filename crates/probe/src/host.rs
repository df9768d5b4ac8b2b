//! Settings of a host, changed for a while: sysctls below `net.`, the MTU and the offloads of an interface, the metrics of a
//! route, and programs that compute meanwhile.
//!
//! Model:   a setting is a name and a value; those of interface and route are of the way to a peer. What is set is read
//!          back, and what it was before is kept. Each request is a layer on those before it; the last layer is put back by
//!          [`Changes::put_back`], all of them, last first, when the agent's input ends, so that a killed orchestrator leaves
//!          nothing changed; how an agent that is killed leaves nothing either is in `host/journal.rs`. A request that fails half way leaves nothing of itself. Metrics are those of a route to the peer
//!          alone, beside the one that leads to its network: the peer's traffic is changed, and nobody else's; the route goes
//!          when it is put back.
//! Source:  ip-sysctl.rst; ip-route(8); ethtool(8).
//! Checked: `names_are_checked`, `lines_say_what_is_done`, `a_look_changes_nothing`, `knobs_become_settings`,
//!          `what_can_be_set_is_described`;
//!          `lab_tune` of the command in hosts of a lab.

mod busy;
mod changes;
mod journal;

use std::net::{IpAddr, Ipv4Addr};

use serde::{Deserialize, Serialize};
use sonde_measure::{SetBy, Setting as Known, SettingValue};
use sonde_sys::ethtool::{self, Offload};
use sonde_sys::netlink::{Link, LinkChange, Netlink, Route, RouteMetrics};
use sonde_sys::sysctl;
use sonde_units::Bytes;

use crate::{Error, Result};
pub(crate) use changes::Changes;
use changes::{RouteText, Undo};
pub(crate) use journal::recover;
pub use journal::{GUARD, Unrestored, guard, put_back, unrestored};

/// A setting of a host, by name: `net.ipv4.tcp_rmem`, `mtu`, `offload.tso`, `route.window`, `busy`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value as the kernel writes it; offloads are `on` or `off`; a metric that is to be absent is `none`.
    pub value: String,
}

impl Setting {
    /// This setting to this value.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
        }
    }
}

/// The knobs of a host, with what they take, for help texts.
pub const KNOBS: [(&str, &str); 10] = [
    ("mtu", "the interfaces' MTU, as 1500"),
    (
        "window",
        "the largest window of the routes, as 64KiB; buffers are made large enough",
    ),
    ("scaling", "window scaling (RFC 7323), on or off"),
    ("rmem", "the last value of tcp_rmem, as 64KiB"),
    ("wmem", "the last value of tcp_wmem, as 64KiB"),
    ("offloads", "tso, gso and gro of the interfaces, on or off"),
    ("tso", "on or off"),
    ("gso", "on or off"),
    ("gro", "on or off"),
    (busy::BUSY, "programs that compute meanwhile, 0 to 1024"),
];

/// The settings that a knob of a host stands for, at both ends; `None` where it is not a knob of a host.
///
/// # Errors
/// A value that it does not take, in words.
pub fn knob(name: &str, value: &str) -> Option<std::result::Result<Vec<Setting>, String>> {
    KNOBS.iter().any(|(known, _)| *known == name).then(|| {
        let why = |why: &str| format!("`{name}={value}` cannot be set: {why}");
        let size = || {
            let bytes = value.parse::<u64>().ok();
            bytes
                .or_else(|| value.parse::<Bytes>().ok().map(|bytes| bytes.0))
                .filter(|bytes| (2_048..=1 << 29).contains(bytes))
                .ok_or_else(|| why("write 2048 to 536870912 bytes, or as 64KiB"))
        };
        let flag = || match value {
            "on" | "off" => Ok(value == "on"),
            _ => Err(why("write on or off")),
        };
        let buffer = |sysctl: &str, usual: u64, most: u64| {
            let text = format!("4096 {} {most}", usual.min(most));
            Setting::new(format!("net.ipv4.{sysctl}"), text)
        };
        Ok(match name {
            "mtu" => vec![Setting::new("mtu", value)],
            busy::BUSY => {
                busy::count(value).map_err(|must| why(&must))?;
                vec![Setting::new(busy::BUSY, value)]
            }
            // Neither the route's bound nor a buffer of two windows holds it: Linux 6.18 forgets the bound as soon as it has
            // measured what segments take of the buffer, and then offers that part of the buffer, 0.66 of it where segments
            // are full (seen as 1.15 and 2.3 windows with buffers of two and four). The receiver holds it: the knob is one of
            // sockets too. A buffer of four windows is never what binds.
            "window" => {
                let bytes = size()?;
                let room = 4 * bytes;
                vec![
                    buffer("tcp_rmem", room, room),
                    Setting::new("route.window", bytes.to_string()),
                ]
            }
            "scaling" => {
                let on = u8::from(flag()?).to_string();
                vec![Setting::new("net.ipv4.tcp_window_scaling", on)]
            }
            "rmem" => vec![buffer("tcp_rmem", 131_072, size()?)],
            "wmem" => vec![buffer("tcp_wmem", 65_536, size()?)],
            "offloads" => {
                flag()?;
                let each = |name: &str| Setting::new(format!("offload.{name}"), value);
                ["tso", "gso", "gro"].map(each).to_vec()
            }
            _ => {
                flag()?;
                vec![Setting::new(format!("offload.{name}"), value)]
            }
        })
    })
}

/// What a setting became, or would become.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The setting.
    pub name: String,
    /// Its value before.
    pub before: String,
    /// What was asked for.
    pub asked: String,
    /// Its value afterwards, read back; of what was only looked at, the value before.
    pub after: String,
    /// The line of a shell that does it.
    pub line: String,
    /// The line that puts it back.
    pub undo: String,
}

/// What to do about settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Interface and route are those that lead there.
    pub peer: IpAddr,
    /// The settings, and the values that they get.
    pub set: Vec<Setting>,
    /// Only say what they are, and the lines that would change them.
    pub look: bool,
}

/// The metrics of a route that can be set, as ip-route(8) names them.
const METRICS: [&str; 8] = [
    "window", "mtu", "initcwnd", "initrwnd", "advmss", "rto_min", "congctl", "quickack",
];
/// A metric that is not there.
pub const NONE: &str = "none";
const PERMISSION: &str =
    "run sonde on that host as root, or give these lines to who may (CAP_NET_ADMIN)";

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name<'a> {
    Sysctl(&'a str),
    Mtu,
    Offload(Offload, &'static str),
    Metric(&'a str),
    Busy,
}

fn named(name: &str) -> Result<Name<'_>> {
    let refuse = || {
        Error::Setting {
        what: format!("`{name}` is not a setting that can be changed"),
        remedy: "write net.… of sysctl, mtu, offload.tso, offload.gso, offload.gro, offload.tx, or route.window, \
                 route.mtu, route.initcwnd, route.initrwnd, route.advmss, route.rto_min, route.congctl, route.quickack, or busy"
            .into(),
    }
    };
    let plain = |rest: &str| {
        !rest.is_empty()
            && rest
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
            && !rest.contains("..")
    };
    match name.split_once('.') {
        None if name == "mtu" => Ok(Name::Mtu),
        None if name == busy::BUSY => Ok(Name::Busy),
        Some(("net", rest)) if plain(rest) => Ok(Name::Sysctl(rest)),
        Some(("offload", rest)) => Offload::NAMES
            .iter()
            .find(|(known, _)| *known == rest)
            .map(|(known, which)| Name::Offload(*which, known))
            .ok_or_else(refuse),
        Some(("route", rest)) if METRICS.contains(&rest) => Ok(Name::Metric(rest)),
        _ => Err(refuse()),
    }
}

/// Interface and route that lead to a peer.
#[derive(Debug)]
struct RouteTo {
    link: Link,
    /// The route that is used now; none to this host itself.
    used: Option<Route>,
    /// The route to the peer alone, with what would be changed.
    peer: Ipv4Addr,
}

impl RouteTo {
    fn to(peer: IpAddr) -> Result<Self> {
        let mut netlink = Netlink::open()?;
        let way = netlink.way_to(peer)?;
        let link = netlink.link(way.ifindex)?;
        let (IpAddr::V4(peer), false) = (peer, way.local) else {
            let peer = Ipv4Addr::UNSPECIFIED;
            return Ok(Self {
                link,
                used: None,
                peer,
            });
        };
        let leads = |route: &Route| {
            let bits = u32::MAX
                .checked_shl(32 - u32::from(route.prefix_len))
                .unwrap_or(0);
            route.ifindex == way.ifindex
                && u32::from(route.destination) & bits == u32::from(peer) & bits
        };
        let routes = netlink.routes()?;
        let used = routes
            .into_iter()
            .filter(leads)
            .max_by_key(|route| route.prefix_len);
        Ok(Self { link, used, peer })
    }

    fn make(&self, asked: &Settings, undo: &mut Changes) -> Result<Vec<Change>> {
        let mut changes = Vec::new();
        let mut metrics = Vec::new();
        for setting in &asked.set {
            let value = setting.value.as_str();
            let step = match named(&setting.name)? {
                Name::Sysctl(rest) => sysctl_step(setting, rest)?,
                Name::Mtu => self.mtu_step(value)?,
                Name::Offload(which, name) => self.offload_step(which, name, value)?,
                Name::Metric(name) => {
                    metrics.push((name, value));
                    continue;
                }
                Name::Busy => {
                    let loops = (!asked.look).then(|| undo.loops());
                    changes.push(busy::change(value, loops)?);
                    continue;
                }
            };
            changes.push(step.take(asked.look, undo)?);
        }
        if !metrics.is_empty() {
            changes.extend(self.metrics(&metrics, asked.look, undo)?);
        }
        Ok(changes)
    }

    fn mtu_step(&self, value: &str) -> Result<Step> {
        let bytes = number(value).filter(|bytes| (68..=65_535).contains(bytes));
        let bytes = bytes.ok_or_else(|| wrong("mtu", value, "write 68 to 65535 bytes"))?;
        let (name, index) = (self.link.name.clone(), self.link.index);
        let before = self.link.mtu_bytes;
        let line = |bytes: u32| format!("ip link set dev {name} mtu {bytes}");
        Ok(Step {
            change: Change {
                name: "mtu".into(),
                before: before.to_string(),
                asked: value.into(),
                after: before.to_string(),
                line: line(bytes),
                undo: line(before),
            },
            undo: Undo::Mtu {
                index,
                before,
                set: bytes,
            },
            set: Box::new(move || {
                let mut netlink = Netlink::open()?;
                set_mtu(&mut netlink, index, bytes)?;
                Ok(netlink.link(index)?.mtu_bytes.to_string())
            }),
        })
    }

    fn offload_step(&self, which: Offload, name: &str, value: &str) -> Result<Step> {
        let on = match value {
            "on" => true,
            "off" => false,
            _ => return Err(wrong(&format!("offload.{name}"), value, "write on or off")),
        };
        let interface = self.link.name.clone();
        let before = ethtool::is_on(&interface, which)?;
        let word = |on: bool| if on { "on" } else { "off" };
        let line = |on: bool| format!("ethtool -K {interface} {name} {}", word(on));
        Ok(Step {
            change: Change {
                name: format!("offload.{name}"),
                before: word(before).into(),
                asked: value.into(),
                after: word(before).into(),
                line: line(on),
                undo: line(before),
            },
            undo: Undo::Offload {
                interface: interface.clone(),
                name: name.into(),
                before,
            },
            set: Box::new(move || {
                ethtool::set(&interface, which, on)?;
                Ok(word(on).into())
            }),
        })
    }

    /// All metrics at once, by a route to the peer alone.
    fn metrics(
        &self,
        asked: &[(&str, &str)],
        look: bool,
        undo: &mut Changes,
    ) -> Result<Vec<Change>> {
        let used = self.used.as_ref().ok_or_else(|| Error::Setting {
            what: "the path to the peer has no IPv4 route of its own: its metrics cannot be set"
                .into(),
            remedy: "leave route settings (`window`) out here; between two hosts they can be set"
                .into(),
        })?;
        let alone = used.prefix_len == 32 && used.destination == self.peer;
        let mut route = Route {
            destination: self.peer,
            prefix_len: 32,
            ..used.clone()
        };
        for (name, value) in asked {
            set_metric(&mut route.metrics, name, value)?;
        }
        let line = format!("ip route replace {}", words(&route, &self.link.name));
        let back = if alone {
            format!("ip route replace {}", words(used, &self.link.name))
        } else {
            format!("ip route del {}", self.peer)
        };
        let mut after = &used.metrics;
        if !look {
            let mut netlink = Netlink::open()?;
            undo.note(Undo::Route {
                set: RouteText::from(&route),
                before: alone.then(|| RouteText::from(used)),
            })?;
            netlink.set_route(&route).map_err(permission)?;
            after = &route.metrics;
        }
        let change = |(name, value): &(&str, &str)| Change {
            name: format!("route.{name}"),
            before: metric(&used.metrics, name),
            asked: (*value).into(),
            after: metric(after, name),
            line: line.clone(),
            undo: back.clone(),
        };
        Ok(asked.iter().map(change).collect())
    }
}

/// One change, not made yet.
struct Step {
    change: Change,
    undo: Undo,
    /// Makes it; the value read back.
    set: Box<dyn FnOnce() -> sonde_sys::Result<String>>,
}

impl Step {
    fn take(mut self, look: bool, undo: &mut Changes) -> Result<Change> {
        if !look {
            // What is as asked for needs no right to be set.
            if self.change.before != self.change.asked {
                undo.note(self.undo)?;
                self.change.after = (self.set)().map_err(permission)?;
            }
        }
        Ok(self.change)
    }
}

fn sysctl_step(setting: &Setting, rest: &str) -> Result<Step> {
    let path = format!("net/{}", rest.replace('.', "/"));
    let before = sysctl::read(&path)?;
    let name = setting.name.clone();
    let line = |value: &str| format!("sysctl -w {name}=\"{value}\"");
    let (to, value) = (path.clone(), setting.value.clone());
    Ok(Step {
        change: Change {
            name: setting.name.clone(),
            before: before.clone(),
            asked: setting.value.clone(),
            after: before.clone(),
            line: line(&setting.value),
            undo: line(&before),
        },
        undo: Undo::Sysctl {
            path,
            before,
            set: setting.value.clone(),
        },
        set: Box::new(move || {
            sysctl::write(&to, &value)?;
            sysctl::read(&to)
        }),
    })
}

fn set_mtu(netlink: &mut Netlink, index: u32, bytes: u32) -> sonde_sys::Result<()> {
    netlink.set_link(
        index,
        &LinkChange {
            mtu_bytes: Some(bytes),
            ..LinkChange::default()
        },
    )?;
    let found = netlink.link(index)?.mtu_bytes;
    if found == bytes {
        return Ok(());
    }
    Err(sonde_sys::Error::NotTaken {
        name: format!("the MTU of interface {index}"),
        asked: bytes.to_string(),
        found: found.to_string(),
    })
}

fn number(value: &str) -> Option<u32> {
    value.parse().ok()
}

fn wrong(name: &str, value: &str, remedy: &str) -> Error {
    Error::Setting {
        what: format!("`{name}` cannot be set to `{value}`"),
        remedy: remedy.into(),
    }
}

/// What the kernel refuses, with who may.
fn permission(error: sonde_sys::Error) -> Error {
    let text = error.to_string();
    let refused = ["ermission denied", "not permitted", "Read-only"];
    if refused.iter().any(|part| text.contains(part)) {
        return Error::Setting {
            what: text,
            remedy: PERMISSION.into(),
        };
    }
    error.into()
}

fn set_metric(metrics: &mut RouteMetrics, name: &str, value: &str) -> Result<()> {
    if name == "congctl" {
        metrics.congctl = (value != NONE).then(|| value.into());
        return Ok(());
    }
    let number = match value {
        NONE => None,
        _ => Some(number(value).ok_or_else(|| {
            wrong(
                &format!("route.{name}"),
                value,
                "write a whole number, or none",
            )
        })?),
    };
    match name {
        "window" => metrics.window_bytes = number,
        "mtu" => metrics.mtu_bytes = number,
        "initcwnd" => metrics.initcwnd = number,
        "initrwnd" => metrics.initrwnd = number,
        "advmss" => metrics.advmss_bytes = number,
        "rto_min" => metrics.rto_min_ms = number,
        _ => metrics.quickack = number.map(|number| number != 0),
    }
    Ok(())
}

fn metric(metrics: &RouteMetrics, name: &str) -> String {
    let number = match name {
        "congctl" => return metrics.congctl.clone().unwrap_or_else(|| NONE.into()),
        "window" => metrics.window_bytes,
        "mtu" => metrics.mtu_bytes,
        "initcwnd" => metrics.initcwnd,
        "initrwnd" => metrics.initrwnd,
        "advmss" => metrics.advmss_bytes,
        "rto_min" => metrics.rto_min_ms,
        _ => metrics.quickack.map(u32::from),
    };
    number.map_or_else(|| NONE.into(), |number| number.to_string())
}

/// A route as ip-route(8) takes it.
fn words(route: &Route, interface: &str) -> String {
    let mut text = match route.prefix_len {
        32 => route.destination.to_string(),
        bits => format!("{}/{bits}", route.destination),
    };
    if let Some(gateway) = route.gateway {
        text.push_str(&format!(" via {gateway}"));
    }
    text.push_str(&format!(" dev {interface}"));
    if let Some(source) = route.source {
        text.push_str(&format!(" src {source}"));
    }
    for name in METRICS {
        let value = metric(&route.metrics, name);
        if value != NONE {
            let unit = if name == "rto_min" { "ms" } else { "" };
            text.push_str(&format!(" {name} {value}{unit}"));
        }
    }
    text
}

/// What a host says of its way to a peer beside its sysctls: offloads, metrics, and who serves its interrupts.
pub(crate) fn facts(peer: IpAddr, all: &mut sonde_measure::Settings) {
    let Ok(way) = RouteTo::to(peer) else {
        return;
    };
    for known in Known::ALL {
        match known.set_by() {
            Some(SetBy::Offload(name)) => {
                let offload = Offload::NAMES.iter().find(|(own, _)| *own == name);
                let on = offload.and_then(|(_, which)| ethtool::is_on(&way.link.name, *which).ok());
                if let Some(on) = on {
                    all.insert(*known, SettingValue::Switch(on));
                }
            }
            Some(SetBy::Route(name)) => {
                let value = way.used.as_ref().map(|route| metric(&route.metrics, name));
                if let Some(value) = value.filter(|value| value != NONE) {
                    all.read(*known, &value);
                }
            }
            Some(SetBy::Sysctl) | None => {}
        }
    }
    if let Some(count) = sonde_sys::host::established() {
        all.insert(
            Known::SocketsEstablished,
            SettingValue::Number(count as u64),
        );
    }
    let cpus = sonde_sys::host::interrupt_cpus(&way.link.name);
    if !cpus.is_empty() {
        all.insert(Known::InterruptCpus, SettingValue::Numbers(cpus));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        assert_eq!(named("mtu").unwrap(), Name::Mtu);
        assert_eq!(
            named("net.ipv4.tcp_rmem").unwrap(),
            Name::Sysctl("ipv4.tcp_rmem")
        );
        assert_eq!(named("route.window").unwrap(), Name::Metric("window"));
        assert!(matches!(
            named("offload.tso").unwrap(),
            Name::Offload(Offload::Tso, "tso")
        ));
        for name in [
            "",
            "net",
            "net.",
            "net.../kernel",
            "net.ipv4/../../kernel",
            "kernel.hostname",
            "route.via",
            "offload.all",
            "mtu.x",
        ] {
            let error = named(name).unwrap_err();
            assert!(
                error.to_string().contains("not a setting"),
                "{name}: {error}"
            );
            assert!(error.remedy().contains("route.window"));
        }
    }

    #[test]
    fn what_can_be_set_is_described() {
        let known = |name: &str| Known::ALL.iter().any(|one| one.set_name() == name);
        for (name, _) in Offload::NAMES {
            assert!(known(&format!("offload.{name}")), "{name}");
        }
        for name in METRICS {
            assert!(known(&format!("route.{name}")), "{name}");
        }
        let set_by_name = |one: &&Known| one.set_by().is_some();
        for known in Known::ALL.iter().filter(set_by_name) {
            assert!(named(&known.set_name()).is_ok(), "{known}");
        }
    }

    #[test]
    fn lines_say_what_is_done() {
        let mut route = Route {
            gateway: Some([10, 0, 0, 1].into()),
            source: Some([10, 0, 0, 7].into()),
            ..Route::on_link([10, 9, 0, 2].into(), 32, 3)
        };
        set_metric(&mut route.metrics, "window", "65536").unwrap();
        set_metric(&mut route.metrics, "congctl", "bbr").unwrap();
        set_metric(&mut route.metrics, "rto_min", "200").unwrap();
        assert_eq!(
            words(&route, "eth0"),
            "10.9.0.2 via 10.0.0.1 dev eth0 src 10.0.0.7 window 65536 rto_min 200ms congctl bbr"
        );
        set_metric(&mut route.metrics, "window", NONE).unwrap();
        assert_eq!(metric(&route.metrics, "window"), NONE);
        let error = set_metric(&mut route.metrics, "window", "64KiB").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("`route.window` cannot be set to `64KiB`")
        );
    }

    #[test]
    fn knobs_become_settings() {
        let settings = |name, value| {
            let all = knob(name, value).unwrap().unwrap();
            let text = |one: &Setting| format!("{}={}", one.name, one.value);
            all.iter().map(text).collect::<Vec<_>>()
        };
        assert_eq!(
            settings("window", "64KiB"),
            ["net.ipv4.tcp_rmem=4096 262144 262144", "route.window=65536"]
        );
        assert_eq!(
            settings("rmem", "64KiB"),
            ["net.ipv4.tcp_rmem=4096 65536 65536"]
        );
        assert_eq!(
            settings("scaling", "off"),
            ["net.ipv4.tcp_window_scaling=0"]
        );
        assert_eq!(settings("busy", "4"), ["busy=4"]);
        assert_eq!(settings("offloads", "off").len(), 3);
        assert_eq!(knob("rcvbuf", "64KiB"), None);
        for (name, value) in [
            ("window", "1"),
            ("scaling", "1"),
            ("offloads", "yes"),
            ("busy", "-1"),
        ] {
            let error = knob(name, value).unwrap().unwrap_err();
            assert!(error.contains("write") && error.contains(name), "{error}");
        }
    }

    #[test]
    fn a_look_changes_nothing() {
        let peer = "127.0.0.1".parse().unwrap();
        let before = sysctl::read("net/ipv4/tcp_rmem").unwrap();
        let mut changes = Changes::default();
        let set = vec![
            Setting::new("net.ipv4.tcp_rmem", "4096 8192 16384"),
            Setting::new("mtu", "9000"),
        ];
        let seen = changes
            .make(&Settings {
                peer,
                set,
                look: true,
            })
            .unwrap();
        assert_eq!(seen[0].before, before);
        assert_eq!(
            seen[0].line,
            "sysctl -w net.ipv4.tcp_rmem=\"4096 8192 16384\""
        );
        assert_eq!(seen[1].line, "ip link set dev lo mtu 9000");
        assert_eq!(sysctl::read("net/ipv4/tcp_rmem").unwrap(), before);
        assert!(changes.is_empty());
        let set = vec![Setting::new("route.window", "65536")];
        let error = changes
            .make(&Settings {
                peer,
                set,
                look: true,
            })
            .unwrap_err();
        assert!(error.to_string().contains("no IPv4 route"), "{error}");
        let set = vec![Setting::new("mtu", "1")];
        let error = changes
            .make(&Settings {
                peer,
                set,
                look: true,
            })
            .unwrap_err();
        assert_eq!(error.remedy(), "write 68 to 65535 bytes");
    }
}
