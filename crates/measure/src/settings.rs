//! Settings of a host: which there are, and their values.
//!
//! Model:   a [`Setting`] has one name, its kernel's, and values of one form. In JSON the [`Settings`] of a host are an object of
//!          these names and of the texts that the kernel has for the values, in stores of all versions alike. A name that is
//!          not in the table is an error: sonde asks for no other, so that another is of another version, or damage. A text
//!          that is not of its setting's form is kept as it came ([`SettingValue::Other`]), since a newer kernel may write more.
//! Source:  Linux: Documentation/networking/ip-sysctl.rst, admin-guide/sysctl/net.rst; ip-route(8); ethtool(8).
//! Units:   with each setting.
//! Checked: `values_come_back_as_they_came`, `unknown_names_are_refused`, `values_have_types`, `names_are_in_their_order`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::text::{Name, Names, SampleClock, Text, Words};

/// The forms of values.
#[derive(Debug, Clone, Copy)]
enum Form {
    Number,
    Triple,
    Switch,
    Name,
    Names,
    Numbers,
    Node,
    Clock,
    /// A number, or `none`.
    Metric,
    /// A name, or `none`.
    MetricName,
}

macro_rules! settings {
    ($($(#[$doc:meta])* $variant:ident = $name:literal: $form:ident,)*) => {
        /// A setting of a host that sonde reads, or a figure of it that is kept beside them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Setting {
            $($(#[$doc])* $variant,)*
        }

        impl Setting {
            /// All, in the order of their names.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Its name: of a sysctl that below `net.`, of an offload and of a metric with `offload.` and `route.` before it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            const fn form(self) -> Form {
                match self {
                    $(Self::$variant => Form::$form,)*
                }
            }
        }
    };
}

settings! {
    /// What times single samples.
    ClockSamples = "clock.samples": Clock,
    /// What a reading of the time stamp counter costs, nanoseconds.
    ClockTscRead = "clock.tsc_read_ns": Number,
    /// The smallest difference of two of its readings that is not zero, nanoseconds.
    ClockTscResolution = "clock.tsc_resolution_ns": Number,
    /// How fast the kernel copies from one program to another, bits a second.
    CopyRate = "copy_bps": Number,
    /// How long poll and select look at a device's queue, microseconds.
    BusyPoll = "core.busy_poll": Number,
    /// How long a receive does, microseconds.
    BusyRead = "core.busy_read": Number,
    /// The queueing discipline of new interfaces.
    DefaultQdisc = "core.default_qdisc": Name,
    /// A socket's receive buffer where none is asked for, bytes.
    RmemDefault = "core.rmem_default": Number,
    /// The largest that can be asked for, bytes.
    RmemMax = "core.rmem_max": Number,
    /// A socket's send buffer where none is asked for, bytes.
    WmemDefault = "core.wmem_default": Number,
    /// The largest that can be asked for, bytes.
    WmemMax = "core.wmem_max": Number,
    /// The driver of the interface.
    InterfaceDriver = "interface.driver": Name,
    /// Its version, of those that come with the kernel often the kernel's.
    DriverVersion = "interface.driver_version": Name,
    /// The version of the card's firmware.
    Firmware = "interface.firmware": Name,
    /// The memory node that the network card is next to; -1 where there is one only.
    NumaNode = "interface.numa_node": Node,
    /// The CPUs that may serve the interface's interrupts.
    InterruptCpus = "interrupts.cpus": Numbers,
    /// Whether small segments wait for those under way: 0 or 1.
    TcpAutocorking = "ipv4.tcp_autocorking": Number,
    /// The congestion controls that the kernel has loaded.
    TcpAvailableCongestionControl = "ipv4.tcp_available_congestion_control": Names,
    /// The congestion control of new connections.
    TcpCongestionControl = "ipv4.tcp_congestion_control": Name,
    /// Explicit congestion notification: 0 off, 1 asked for, 2 granted.
    TcpEcn = "ipv4.tcp_ecn": Number,
    /// Whether the kernel grows receive buffers: 0 or 1.
    TcpModerateRcvbuf = "ipv4.tcp_moderate_rcvbuf": Number,
    /// Probing for the path's MTU: 0 never, 1 after a black hole, 2 always.
    TcpMtuProbing = "ipv4.tcp_mtu_probing": Number,
    /// Whether nothing is kept of ended connections for later ones: 0 or 1.
    TcpNoMetricsSave = "ipv4.tcp_no_metrics_save": Number,
    /// A receive buffer at the least, at first and at the most, bytes; part of it is the kernel's own.
    TcpRmem = "ipv4.tcp_rmem": Triple,
    /// Selective acknowledgements: 0 or 1.
    TcpSack = "ipv4.tcp_sack": Number,
    /// Whether the window begins anew after a pause: 0 or 1.
    TcpSlowStartAfterIdle = "ipv4.tcp_slow_start_after_idle": Number,
    /// Time stamps: 0 off, 1 on, 2 without a random offset.
    TcpTimestamps = "ipv4.tcp_timestamps": Number,
    /// Window scaling: 0 or 1.
    TcpWindowScaling = "ipv4.tcp_window_scaling": Number,
    /// A send buffer at the least, at first and at the most, bytes.
    TcpWmem = "ipv4.tcp_wmem": Triple,
    /// UDP's memory of the whole host: below it is free, from there it presses, at the most; pages.
    UdpMem = "ipv4.udp_mem": Triple,
    /// Merging of received segments.
    OffloadGro = "offload.gro": Switch,
    /// Segmentation in software.
    OffloadGso = "offload.gso": Switch,
    /// Segmentation by the device.
    OffloadTso = "offload.tso": Switch,
    /// Checksums by the device.
    OffloadTx = "offload.tx": Switch,
    /// The route's largest segment to be told, bytes.
    RouteAdvmss = "route.advmss": Metric,
    /// Its congestion control.
    RouteCongctl = "route.congctl": MetricName,
    /// Segments that a connection begins with.
    RouteInitcwnd = "route.initcwnd": Metric,
    /// Segments that its receiver does.
    RouteInitrwnd = "route.initrwnd": Metric,
    /// The route's MTU, bytes.
    RouteMtu = "route.mtu": Metric,
    /// Whether acknowledgements go at once: 0 or 1.
    RouteQuickack = "route.quickack": Metric,
    /// The shortest wait for an acknowledgement, milliseconds.
    RouteRtoMin = "route.rto_min": Metric,
    /// The largest window, bytes.
    RouteWindow = "route.window": Metric,
    /// TCP connections that are established.
    SocketsEstablished = "sockets.established": Number,
}

/// What a setting is set by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetBy {
    /// sysctl(8), by its name behind `net.`.
    Sysctl,
    /// ethtool(8): an offload of the interface, by this name.
    Offload(&'static str),
    /// ip-route(8): a metric of the route, by this name.
    Route(&'static str),
}

impl Setting {
    /// What sets it; `None` of what is only looked at.
    pub fn set_by(self) -> Option<SetBy> {
        match self.name().split_once('.')? {
            ("core" | "ipv4", _) => Some(SetBy::Sysctl),
            ("offload", own) => Some(SetBy::Offload(own)),
            ("route", own) => Some(SetBy::Route(own)),
            _ => None,
        }
    }

    /// The name by which it is set: that of a sysctl has `net.` before it.
    pub fn set_name(self) -> String {
        match self.set_by() {
            Some(SetBy::Sysctl) => format!("net.{}", self.name()),
            _ => self.name().into(),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Setting {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let known = Self::ALL.iter().find(|setting| setting.name() == text);
        known.copied().ok_or_else(|| {
            D::Error::custom(format!(
                "the setting of a host `{text}` is not known: it was written by another version of sonde, or is damaged; \
                 read it with that version"
            ))
        })
    }
}

/// The value of a setting, in the setting's unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingValue {
    /// A number.
    Number(u64),
    /// At the least, usually, at the most.
    Triple([u64; 3]),
    /// On or off.
    Switch(bool),
    /// A name.
    Name(Name),
    /// Names, in the kernel's order.
    Names(Names<' '>),
    /// CPUs.
    Numbers(Vec<usize>),
    /// A memory node; -1 is none.
    Node(i32),
    /// A clock.
    Clock(SampleClock),
    /// A metric that the route does not have: `none`.
    Absent,
    /// A text that is not of the setting's form, as it came.
    Other(Words),
}

const ABSENT: &str = "none";

impl SettingValue {
    /// What the kernel's text says of a setting.
    pub fn read(setting: Setting, text: &str) -> Self {
        let number = || text.parse().ok().map(Self::Number);
        let name = || (!text.is_empty()).then(|| Self::Name(text.into()));
        let absent = || (text == ABSENT).then_some(Self::Absent);
        let read = match setting.form() {
            Form::Number => number(),
            Form::Triple => numbers(text)
                .and_then(|all| all.try_into().ok())
                .map(Self::Triple),
            Form::Switch => match text {
                "on" => Some(Self::Switch(true)),
                "off" => Some(Self::Switch(false)),
                _ => None,
            },
            Form::Name => name(),
            Form::Names => Names::read(text).map(Self::Names),
            Form::Numbers => numbers(text).map(Self::Numbers),
            Form::Node => text.parse().ok().map(Self::Node),
            Form::Clock => SampleClock::read(text).map(Self::Clock),
            Form::Metric => absent().or_else(number),
            Form::MetricName => absent().or_else(name),
        };
        read.filter(|read| read.to_string() == text)
            .unwrap_or_else(|| Self::Other(text.into()))
    }

    /// The number; of three the largest.
    pub fn number(&self) -> Option<u64> {
        match self {
            Self::Number(number) | Self::Triple([_, _, number]) => Some(*number),
            _ => None,
        }
    }

    /// Whether a flag is set: a number other than 0, or `on`.
    pub fn is_on(&self) -> Option<bool> {
        match self {
            Self::Number(number) => Some(*number != 0),
            Self::Switch(on) => Some(*on),
            _ => None,
        }
    }
}

fn numbers<T: std::str::FromStr>(text: &str) -> Option<Vec<T>> {
    text.split(' ').map(|one| one.parse().ok()).collect()
}

fn joined(all: &[impl ToString]) -> String {
    let all: Vec<String> = all.iter().map(ToString::to_string).collect();
    all.join(" ")
}

/// As the kernel writes it, with one space between parts.
impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Triple(three) => f.write_str(&joined(three)),
            Self::Switch(on) => f.write_str(if *on { "on" } else { "off" }),
            Self::Name(name) => name.fmt(f),
            Self::Names(names) => f.write_str(&names.write()),
            Self::Numbers(all) => f.write_str(&joined(all)),
            Self::Node(node) => node.fmt(f),
            Self::Clock(clock) => f.write_str(&clock.write()),
            Self::Absent => f.write_str(ABSENT),
            Self::Other(text) => text.fmt(f),
        }
    }
}

/// What is known of a host's settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings(BTreeMap<Setting, SettingValue>);

impl Settings {
    /// The value of a setting; `None` where it is not known.
    pub fn get(&self, setting: Setting) -> Option<&SettingValue> {
        self.0.get(&setting)
    }

    /// Its number; of three the largest.
    pub fn number(&self, setting: Setting) -> Option<u64> {
        self.get(setting)?.number()
    }

    /// Whether it is on.
    pub fn is_on(&self, setting: Setting) -> Option<bool> {
        self.get(setting)?.is_on()
    }

    /// The congestion control of a new connection on the way to the peer: the route's, or the host's where the route has none.
    pub fn congestion(&self) -> Option<&Name> {
        let name = |setting| match self.get(setting)? {
            SettingValue::Name(name) => Some(name),
            _ => None,
        };
        name(Setting::RouteCongctl).or_else(|| name(Setting::TcpCongestionControl))
    }

    /// Whether the kernel has a congestion control loaded.
    pub fn has_congestion(&self, control: &str) -> bool {
        match self.get(Setting::TcpAvailableCongestionControl) {
            Some(SettingValue::Names(names)) => names.0.iter().any(|name| **name == *control),
            _ => false,
        }
    }

    /// The receive buffer of a TCP connection that no program asked for, bytes: at the most, or at first where the kernel does
    /// not grow it.
    pub fn receive_buffer_bytes(&self) -> Option<u64> {
        match self.get(Setting::TcpRmem)? {
            SettingValue::Triple([_, first, most]) => {
                let grows = self.is_on(Setting::TcpModerateRcvbuf) != Some(false);
                Some(if grows { *most } else { *first })
            }
            _ => None,
        }
    }

    /// All that are known, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (Setting, &SettingValue)> {
        self.0.iter().map(|(setting, value)| (*setting, value))
    }

    /// Keeps a value.
    pub fn insert(&mut self, setting: Setting, value: SettingValue) {
        self.0.insert(setting, value);
    }

    /// Keeps what the kernel's text says.
    pub fn read(&mut self, setting: Setting, text: &str) {
        self.insert(setting, SettingValue::read(setting, text));
    }

    /// Forgets a value.
    pub fn remove(&mut self, setting: Setting) {
        self.0.remove(&setting);
    }
}

impl<'t> FromIterator<(Setting, &'t str)> for Settings {
    fn from_iter<I: IntoIterator<Item = (Setting, &'t str)>>(texts: I) -> Self {
        let value = |(setting, text)| (setting, SettingValue::read(setting, text));
        Self(texts.into_iter().map(value).collect())
    }
}

impl Serialize for Settings {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(
            self.iter()
                .map(|(one, value)| (one.name(), value.to_string())),
        )
    }
}

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let texts = BTreeMap::<Setting, Words>::deserialize(from)?;
        Ok(texts.iter().map(|(one, text)| (*one, &**text)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value of each setting, as a host writes it.
    const TEXTS: &str = r#"{
        "clock.samples": "tsc, 2499997 kHz",
        "clock.tsc_read_ns": "18",
        "clock.tsc_resolution_ns": "14",
        "copy_bps": "24530905296",
        "core.busy_poll": "0",
        "core.busy_read": "0",
        "core.default_qdisc": "pfifo_fast",
        "core.rmem_default": "212992",
        "core.rmem_max": "4194304",
        "core.wmem_default": "212992",
        "core.wmem_max": "4194304",
        "interface.driver": "ixgbe",
        "interface.driver_version": "6.1.0-13-amd64",
        "interface.firmware": "0x800007a5",
        "interface.numa_node": "-1",
        "interrupts.cpus": "0 3 11",
        "ipv4.tcp_autocorking": "1",
        "ipv4.tcp_available_congestion_control": "reno bbr cubic",
        "ipv4.tcp_congestion_control": "bbr",
        "ipv4.tcp_ecn": "2",
        "ipv4.tcp_moderate_rcvbuf": "1",
        "ipv4.tcp_mtu_probing": "0",
        "ipv4.tcp_no_metrics_save": "0",
        "ipv4.tcp_rmem": "4096 131072 6291456",
        "ipv4.tcp_sack": "1",
        "ipv4.tcp_slow_start_after_idle": "1",
        "ipv4.tcp_timestamps": "1",
        "ipv4.tcp_window_scaling": "1",
        "ipv4.tcp_wmem": "4096 16384 4194304",
        "ipv4.udp_mem": "575802 767738 1151604",
        "offload.gro": "on",
        "offload.gso": "off",
        "offload.tso": "on",
        "offload.tx": "on",
        "route.advmss": "1448",
        "route.congctl": "cubic",
        "route.initcwnd": "10",
        "route.initrwnd": "none",
        "route.mtu": "1500",
        "route.quickack": "1",
        "route.rto_min": "200",
        "route.window": "65535",
        "sockets.established": "2"
    }"#;

    fn read(json: &str) -> Settings {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn values_come_back_as_they_came() {
        let all = read(TEXTS);
        assert_eq!(all.iter().count(), Setting::ALL.len());
        let other = |(setting, value): (_, &_)| match value {
            SettingValue::Other(_) => Some(setting),
            _ => None,
        };
        assert_eq!(all.iter().find_map(other), None::<Setting>);
        let packed: String = TEXTS.split('\n').map(str::trim).collect();
        let written = serde_json::to_string(&all).unwrap();
        assert_eq!(written, packed.replace("\": \"", "\":\""));
        // What is not of its form is not lost.
        for text in ["4096 131072", "4096 131072 -1", "04096 1 2", "a", ""] {
            let json = format!(r#"{{"ipv4.tcp_rmem":"{text}"}}"#);
            let found = read(&json);
            let kept = SettingValue::Other(text.into());
            assert_eq!(found.get(Setting::TcpRmem), Some(&kept));
            assert_eq!(serde_json::to_string(&found).unwrap(), json);
        }
    }

    #[test]
    fn unknown_names_are_refused() {
        let error = serde_json::from_str::<Settings>(r#"{"ipv4.tcp_pace":"1"}"#).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("`ipv4.tcp_pace` is not known") && text.contains("another version"),
            "{text}"
        );
    }

    #[test]
    fn values_have_types() {
        let mut all = read(TEXTS);
        assert_eq!(all.number(Setting::TcpRmem), Some(6_291_456));
        assert_eq!(all.receive_buffer_bytes(), Some(6_291_456));
        all.read(Setting::TcpModerateRcvbuf, "0");
        assert_eq!(all.receive_buffer_bytes(), Some(131_072));
        let flags = [Setting::OffloadGro, Setting::OffloadGso, Setting::TcpEcn];
        assert_eq!(
            flags.map(|flag| all.is_on(flag)),
            [Some(true), Some(false), Some(true)]
        );
        assert_eq!(all.is_on(Setting::DefaultQdisc), None);
        assert_eq!(all.number(Setting::RouteInitrwnd), None);
        assert!(all.has_congestion("bbr") && !all.has_congestion("vegas"));
        assert_eq!(all.congestion().map(|name| &**name), Some("cubic"));
        all.read(Setting::RouteCongctl, "none");
        assert_eq!(all.congestion().map(|name| &**name), Some("bbr"));
        all.remove(Setting::TcpCongestionControl);
        assert_eq!(all.congestion(), None);
    }

    #[test]
    fn names_are_in_their_order() {
        assert!(Setting::ALL.is_sorted_by_key(|setting| setting.name()));
        assert!(Setting::ALL.is_sorted());
        assert_eq!(Setting::TcpRmem.set_name(), "net.ipv4.tcp_rmem");
        assert_eq!(Setting::OffloadTx.set_name(), "offload.tx");
        assert_eq!(Setting::RouteMtu.set_by(), Some(SetBy::Route("mtu")));
        assert_eq!(Setting::CopyRate.set_by(), None);
        assert_eq!(Setting::SocketsEstablished.set_by(), None);
    }
}
