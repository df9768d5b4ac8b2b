//! Hosts that are not set as the others are.
//!
//! Model:   of four hosts or more, three quarters at least have the same MTU, interface, line rate, kernel, offloads and settings
//!          of TCP; who has another is named, with both values and the lines that set it. Congestion control is what is used:
//!          the route's, or the host's where the route names none. Where there is no such majority nobody is odd. What is told
//!          here is not told again by `diagnosis::apart`.
//! Checked: `the_odd_one_is_named`, `without_a_majority_nobody_is`, `what_is_odd_is_told_once`,
//!          `a_route_that_says_nothing_is_not_odd`, `what_is_measured_anew_is_not_odd`.

use std::collections::BTreeMap;

use sonde_measure::{HostRecord, Run, Setting, SettingValue};

use super::ODD;
use crate::diagnosis::{HostTrait, majority, remedy};
use crate::finding::{Finding, Severity};
use crate::words::hosts as words;

const HOSTS_MIN: usize = 4;

/// What a host has otherwise than the others.
pub(crate) struct Odd {
    /// The host's number.
    host: usize,
    of: HostTrait,
    own: SettingValue,
    usual: SettingValue,
    /// How many hosts have the usual value.
    agree: usize,
}

impl Odd {
    /// Whose it is, and what is set for it.
    pub fn of(&self, run: &Run) -> (String, HostTrait) {
        (run.hosts[self.host].name.clone(), self.set_of())
    }

    fn set_of(&self) -> HostTrait {
        match self.of {
            HostTrait::Congestion => HostTrait::Setting(Setting::TcpCongestionControl),
            of => of,
        }
    }
}

/// What is odd of a run's hosts.
pub(crate) fn odd(run: &Run) -> Vec<Odd> {
    let hosts: Vec<_> = run.hosts.iter().map(facts).collect();
    let mut all = Vec::new();
    let mut traits: Vec<HostTrait> = hosts.iter().flat_map(BTreeMap::keys).copied().collect();
    // The interface first, since it explains others.
    traits.sort_by_key(|of| (*of != HostTrait::Interface, of.name()));
    traits.dedup();
    for of in traits {
        let values = hosts.iter().map(|facts| facts.get(&of));
        let usual = majority(values.clone().flatten());
        let Some((usual, agree)) =
            usual.filter(|(_, agree)| hosts.len() >= HOSTS_MIN && 4 * agree >= 3 * hosts.len())
        else {
            continue;
        };
        for (host, value) in values.enumerate() {
            // By another interface the route is another, and so is what it sets.
            let explained = of == HostTrait::Congestion
                && all
                    .iter()
                    .any(|odd: &Odd| odd.host == host && odd.of == HostTrait::Interface);
            if value != Some(usual) && !explained {
                all.push(Odd {
                    host,
                    of,
                    own: value.cloned().unwrap_or(SettingValue::Absent),
                    usual: usual.clone(),
                    agree,
                });
            }
        }
    }
    all
}

/// `host-odd`, one for each host that is.
pub(super) fn hosts(run: &Run) -> Vec<Finding> {
    let mut hosts: BTreeMap<usize, Vec<Odd>> = BTreeMap::new();
    for one in odd(run) {
        hosts.entry(one.host).or_default().push(one);
    }
    let all = run.hosts.len();
    hosts
        .into_iter()
        .map(|(host, odd)| {
            let record = &run.hosts[host];
            let of = |one: &'_ Odd| one.agree;
            let found = words::Odd {
                host: &record.name,
                agree: odd.iter().map(of).min().unwrap_or(0),
                all,
                settings: odd
                    .iter()
                    .map(|one| words::OddSetting {
                        name: one.of.name(),
                        own: &one.own,
                        usual: &one.usual,
                        line: remedy(record, one.set_of(), &one.usual),
                    })
                    .collect(),
            };
            Finding::said(ODD, Severity::Warning, &found)
        })
        .collect()
}

/// What is compared of a host.
fn facts(host: &HostRecord) -> BTreeMap<HostTrait, SettingValue> {
    let facts = &host.facts;
    let name = |name: &str| SettingValue::Name(name.into());
    let own = [
        (HostTrait::Mtu, facts.mtu_bytes.map(SettingValue::Number)),
        (HostTrait::Interface, facts.interface.as_deref().map(name)),
        (
            HostTrait::LineRate,
            facts.line_bps.map(SettingValue::Number),
        ),
        (HostTrait::Kernel, Some(name(&facts.kernel))),
        (
            HostTrait::Congestion,
            facts.settings.congestion().map(|control| name(control)),
        ),
    ];
    let own = own.into_iter().filter_map(|(of, value)| Some((of, value?)));
    let is_compared = |setting| match setting {
        // Memory decides the first, and what goes on there the others: hosts differ rightly.
        Setting::UdpMem
        | Setting::SocketsEstablished
        | Setting::InterruptCpus
        | Setting::CopyRate => false,
        // What a clock costs is measured anew on each, and never twice the same.
        Setting::ClockSamples | Setting::ClockTscRead | Setting::ClockTscResolution => false,
        // What is used of both is compared above.
        Setting::RouteCongctl | Setting::TcpCongestionControl => false,
        _ => true,
    };
    let set = facts
        .settings
        .iter()
        .filter(|(setting, _)| is_compared(*setting))
        .map(|(setting, value)| (HostTrait::Setting(setting), value.clone()));
    own.chain(set).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Runs;

    fn run(mtu: &[u64], window: &[&str]) -> Run {
        let mut run = Runs::new().done();
        run.hosts = mtu
            .iter()
            .zip(window)
            .enumerate()
            .map(|(number, (mtu, window))| {
                let mut host = HostRecord {
                    name: format!("h{}", number + 1),
                    ..HostRecord::default()
                };
                host.facts.mtu_bytes = Some(*mtu);
                host.facts.settings.read(Setting::TcpRmem, window);
                host
            })
            .collect();
        run
    }

    #[test]
    fn the_odd_one_is_named() {
        let found = hosts(&run(&[1_500, 1_500, 9_000, 1_500], &["a", "a", "a", "b"]));
        let sentences: Vec<&str> = found.iter().map(|one| one.sentence.as_str()).collect();
        assert_eq!(
            sentences,
            [
                "h3 has other settings than the others: MTU is 9000, elsewhere 1500.",
                "h4 has other settings than the others: ipv4.tcp_rmem is b, elsewhere a."
            ]
        );
    }

    #[test]
    fn what_is_odd_is_told_once() {
        let run = run(
            &[1_500, 1_500, 9_000, 1_500],
            &["4 8 8000", "4 8 8000", "4 8 8000", "4 8 1000"],
        );
        let told: Vec<_> = odd(&run).iter().map(|one| one.of(&run)).collect();
        assert_eq!(told.len(), 2, "{told:?}");
        // Each of them is known to the other rule too.
        assert_eq!(crate::diagnosis::apart(&run.hosts).len(), 2);
        assert_eq!(crate::diagnosis::apart_but(&run.hosts, &told), []);
        let found = hosts(&run);
        let remedy = |at: usize| found[at].remedy.as_deref().unwrap();
        assert!(
            remedy(0).ends_with("`ip link set dev DEVICE mtu 1500`"),
            "{found:?}"
        );
        assert!(
            remedy(1).ends_with("`sysctl -w net.ipv4.tcp_rmem=\"4 8 8000\"`"),
            "{found:?}"
        );
    }

    #[test]
    fn what_is_measured_anew_is_not_odd() {
        let mut run = run(&[1_500; 4], &["a"; 4]);
        for (number, host) in run.hosts.iter_mut().enumerate() {
            let cost = if number == 1 { "18" } else { "17" };
            host.facts.settings.read(Setting::ClockTscRead, cost);
        }
        assert_eq!(hosts(&run), []);
    }

    #[test]
    fn a_route_that_says_nothing_is_not_odd() {
        let mut run = run(&[1_500; 4], &["a"; 4]);
        for (number, host) in run.hosts.iter_mut().enumerate() {
            let (route, own) = if number == 2 {
                ("none", "cubic")
            } else {
                ("cubic", "bbr")
            };
            let settings = &mut host.facts.settings;
            settings.read(Setting::RouteCongctl, route);
            settings.read(Setting::TcpCongestionControl, own);
        }
        assert_eq!(hosts(&run), []);
        let settings = &mut run.hosts[2].facts.settings;
        settings.read(Setting::TcpCongestionControl, "reno");
        let found = hosts(&run);
        assert!(
            found[0]
                .sentence
                .contains("congestion control is reno, elsewhere cubic")
        );
    }

    #[test]
    fn without_a_majority_nobody_is() {
        assert_eq!(hosts(&run(&[1, 1, 2, 2], &["a"; 4])), []);
        assert_eq!(hosts(&run(&[1, 1, 2], &["a"; 3])), []);
        assert_eq!(hosts(&run(&[1; 16], &["a"; 16])), []);
    }
}
