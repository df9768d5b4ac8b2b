//! What is said of hosts that are set otherwise than the others.
//!
//! Units:   settings as their hosts tell them; bytes.
//! Checked: the tests of `diagnosis::apart` and `matrix::odd`.

use sonde_measure::{Setting, SettingValue};

use super::Words;
use crate::format::count;

/// The line that changes a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    /// Of an interface: its name and the MTU.
    Mtu { device: String, bytes: String },
    /// Of an interface: its name, the offload and its value.
    Offload {
        device: String,
        offload: String,
        value: String,
    },
    /// Of the route by an interface: the metric and its value.
    Route {
        device: String,
        metric: String,
        value: String,
    },
    /// Of the kernel: the name and the value.
    Sysctl { name: String, value: String },
}

impl Line {
    fn words(&self) -> String {
        match self {
            Self::Mtu { device, bytes } => format!("`ip link set dev {device} mtu {bytes}`"),
            Self::Offload {
                device,
                offload,
                value,
            } => format!("`ethtool -K {device} {offload} {value}`"),
            Self::Route {
                device,
                metric,
                value,
            } => format!("`ip route change … dev {device}` with {metric} {value}"),
            Self::Sysctl { name, value } => format!("`sysctl -w {name}=\"{value}\"`"),
        }
    }
}

/// A host with a setting of its own.
pub(crate) struct Apart<'r> {
    pub host: &'r str,
    pub setting: Setting,
    pub value: &'r SettingValue,
    pub usual: &'r SettingValue,
    /// How many hosts have the usual value, of those that tell it.
    pub agree: usize,
    pub all: usize,
    pub line: Line,
}

impl Words for Apart<'_> {
    fn sentence(&self) -> String {
        format!(
            "{} has another setting than the others: {} is {} there and {} on {} of {} hosts.",
            self.host,
            self.setting.set_name(),
            self.value,
            self.usual,
            self.agree,
            self.all
        )
    }

    fn remedy(&self) -> Option<String> {
        Some(format!(
            "set it as on the other hosts: {}",
            self.line.words()
        ))
    }
}

/// MTUs that differ, of the hosts that have the largest and the smallest.
pub(crate) struct Mtus<'r> {
    pub high: (&'r str, u64),
    pub low: (&'r str, u64),
}

impl Words for Mtus<'_> {
    fn sentence(&self) -> String {
        let ((high_host, high), (low_host, low)) = (self.high, self.low);
        format!(
            "The MTUs of the hosts differ: {high_host} has {} bytes and {low_host} {}. Packets of the larger are lost at the \
             smaller unless a router between them says so.",
            count(high),
            count(low)
        )
    }

    fn remedy(&self) -> Option<String> {
        Some(
            "give all interfaces of one network one MTU: `ip link set dev DEVICE mtu BYTES`".into(),
        )
    }
}

/// A setting that a host does not have as the others do.
pub(crate) struct OddSetting<'r> {
    pub name: &'r str,
    pub own: &'r SettingValue,
    pub usual: &'r SettingValue,
    /// What gives it the usual value; `None` where there is no such line.
    pub line: Option<Line>,
}

/// A host of a matrix that is not set as the others.
pub(crate) struct Odd<'r> {
    pub host: &'r str,
    pub settings: Vec<OddSetting<'r>>,
    /// How many hosts agree at least, of all.
    pub agree: usize,
    pub all: usize,
}

impl Words for Odd<'_> {
    fn sentence(&self) -> String {
        let settings = self.settings.iter();
        let settings =
            settings.map(|one| format!("{} is {}, elsewhere {}", one.name, one.own, one.usual));
        format!(
            "{} has other settings than the others: {}.",
            self.host,
            settings.collect::<Vec<_>>().join("; ")
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(format!(
            "{} of {} hosts agree, as each reports itself",
            self.agree, self.all
        ))
    }

    fn remedy(&self) -> Option<String> {
        let lines = self.settings.iter().filter_map(|one| one.line.as_ref());
        let lines: Vec<String> = lines.map(Line::words).collect();
        let lines = match lines.is_empty() {
            true => String::new(),
            false => format!(": {}", lines.join(", ")),
        };
        Some(format!(
            "set {} as the others are, unless the difference is meant{lines}",
            self.host
        ))
    }
}
