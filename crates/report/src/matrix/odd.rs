//! Hosts that are not set as the others are.
//!
//! Model:   of four hosts or more, three quarters at least have the same MTU, interface, line rate, kernel, offloads and settings
//!          of TCP; who has another is named, with both values and the lines that set it. Congestion control is what is used:
//!          the route's, or the host's where the route names none. Where there is no such majority nobody is odd. What is told
//!          here is not told again by `diagnosis::apart`.
//! Checked: `the_odd_one_is_named`, `without_a_majority_nobody_is`, `what_is_odd_is_told_once`,
//!          `a_route_that_says_nothing_is_not_odd`, `what_is_measured_anew_is_not_odd`.

use std::collections::BTreeMap;

use sonde_measure::{HostRecord, Run};

use crate::diagnosis::{MTU, remedy};
use crate::finding::{Finding, Severity};
use crate::words::hosts as words;

const HOSTS_MIN: usize = 4;

/// A setting of which a host has another value than the others.
pub(crate) struct Odd {
    /// The host's number.
    host: usize,
    /// The setting.
    name: String,
    own: String,
    usual: String,
    /// How many hosts have the usual value.
    agree: usize,
}

impl Odd {
    /// Whose setting it is.
    pub fn of(&self, run: &Run) -> (String, String) {
        (run.hosts[self.host].name.clone(), self.setting().to_owned())
    }

    /// What sets it.
    fn setting(&self) -> &str {
        match self.name.as_str() {
            CONGESTION_USED => CONGESTION,
            name => name,
        }
    }
}

/// What is odd of a run's hosts.
pub(crate) fn odd(run: &Run) -> Vec<Odd> {
    let facts: Vec<(&str, BTreeMap<String, String>)> = run
        .hosts
        .iter()
        .map(|host| (host.name.as_str(), facts(host)))
        .collect();
    let mut all = Vec::new();
    let mut names: Vec<&String> = facts.iter().flat_map(|(_, facts)| facts.keys()).collect();
    // The interface first, since it explains others.
    names.sort_by_key(|name| (*name != INTERFACE, *name));
    names.dedup();
    for name in names {
        let values: Vec<Option<&String>> = facts.iter().map(|(_, of)| of.get(name)).collect();
        let Some((usual, agree)) = majority(&values) else {
            continue;
        };
        for (host, value) in values.iter().enumerate() {
            // By another interface the route is another, and so is what it sets.
            let explained = name == CONGESTION_USED
                && all
                    .iter()
                    .any(|of: &Odd| of.host == host && of.name == INTERFACE);
            if *value != Some(usual) && !explained {
                all.push(Odd {
                    host,
                    name: name.clone(),
                    own: value.map_or("none", String::as_str).to_owned(),
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
                        name: &one.name,
                        own: &one.own,
                        usual: &one.usual,
                        line: remedy(record, one.setting(), &one.usual),
                    })
                    .collect(),
            };
            Finding::said("host-odd", Severity::Warning, &found)
        })
        .collect()
}

fn majority<'a>(values: &[Option<&'a String>]) -> Option<(&'a String, usize)> {
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    values
        .iter()
        .flatten()
        .for_each(|value| *counts.entry(value).or_default() += 1);
    let (value, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    (values.len() >= HOSTS_MIN && 4 * count >= 3 * values.len()).then_some((value, count))
}

const INTERFACE: &str = "interface";
const CONGESTION_USED: &str = "congestion control";
const ROUTE_CONGESTION: &str = "route.congctl";
const CONGESTION: &str = "ipv4.tcp_congestion_control";

/// What is used: the route's, or the host's where the route has none.
fn congestion(settings: &BTreeMap<String, String>) -> Option<String> {
    let of_route = settings
        .get(ROUTE_CONGESTION)
        .filter(|name| *name != "none");
    of_route.or_else(|| settings.get(CONGESTION)).cloned()
}

fn facts(host: &HostRecord) -> BTreeMap<String, String> {
    let facts = &host.facts;
    let own = [
        (MTU, facts.mtu_bytes.map(|bytes| bytes.to_string())),
        (INTERFACE, facts.interface.clone()),
        ("line rate", facts.line_bps.map(|bps| bps.to_string())),
        ("kernel", Some(facts.kernel.clone())),
        (CONGESTION_USED, congestion(&facts.settings)),
    ];
    let own = own
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    // Memory decides the first, and what goes on there the others: hosts differ rightly. Congestion control is told above.
    const OWN: [&str; 6] = [
        "ipv4.udp_mem",
        "sockets.established",
        "interrupts.cpus",
        "copy_bps",
        ROUTE_CONGESTION,
        CONGESTION,
    ];
    let set = facts
        .settings
        .iter()
        // What a clock costs is measured anew on each, and never twice the same.
        .filter(|(name, _)| !OWN.contains(&name.as_str()) && !name.starts_with("clock."))
        .map(|(name, value)| (name.clone(), value.clone()));
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
                host.facts
                    .settings
                    .insert("ipv4.tcp_rmem".into(), (*window).into());
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
                "h3 is not set as the others are: MTU is 9000, with the others 1500.",
                "h4 is not set as the others are: ipv4.tcp_rmem is b, with the others a."
            ]
        );
    }

    #[test]
    fn what_is_odd_is_told_once() {
        let run = run(
            &[1_500, 1_500, 9_000, 1_500],
            &["4 8 8000", "4 8 8000", "4 8 8000", "4 8 1000"],
        );
        let told: Vec<(String, String)> = odd(&run).iter().map(|one| one.of(&run)).collect();
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
            let settings = &mut host.facts.settings;
            settings.insert("clock.tsc_read_ns".into(), cost.into());
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
            settings.insert(ROUTE_CONGESTION.into(), route.into());
            settings.insert(CONGESTION.into(), own.into());
        }
        assert_eq!(hosts(&run), []);
        let settings = &mut run.hosts[2].facts.settings;
        settings.insert(CONGESTION.into(), "reno".into());
        let found = hosts(&run);
        assert!(
            found[0]
                .sentence
                .contains("congestion control is reno, with the others cubic")
        );
    }

    #[test]
    fn without_a_majority_nobody_is() {
        assert_eq!(hosts(&run(&[1, 1, 2, 2], &["a"; 4])), []);
        assert_eq!(hosts(&run(&[1, 1, 2], &["a"; 3])), []);
        assert_eq!(hosts(&run(&[1; 16], &["a"; 16])), []);
    }
}
