//! Where on its testbed a plan measures: the networks of each probe, and the two hosts that all launches are between.
//!
//! Model:   a probe names networks as their [[network]] does. Hosts are named as they are called when they are up; before that their
//!          names are taken as they come.
//! Checked: `probes_are_on_their_networks`, `launches_are_between_two_hosts`.

use super::{Kind, NetworkPlan, Plan, TestbedPlan};
use crate::failure::Failure;

/// The names of hosts; of many the first ones, and how many there are.
pub fn listed(hosts: &[String]) -> String {
    const FEW: usize = 16;
    match hosts.get(..FEW) {
        Some(first) if hosts.len() > FEW => {
            format!("{} and more, {} in all", first.join(", "), hosts.len())
        }
        _ => hosts.join(", "),
    }
}

impl TestbedPlan {
    /// The two hosts that all launches are between, where it says them.
    fn pair(&self) -> Result<Option<(String, String)>, Failure> {
        let pair = self.between.as_deref().map(sonde_fleet::flow);
        pair.transpose().map_err(Failure::usage)
    }

    /// The same as places among `hosts`; none of fewer than two, which are not up.
    ///
    /// # Errors
    /// One is not among them.
    pub fn between(&self, hosts: &[String]) -> Result<Option<(usize, usize)>, Failure> {
        let Some((src, dst)) = self.pair()?.filter(|_| hosts.len() > 1) else {
            return Ok(None);
        };
        let number = |name: &String| {
            let at = hosts.iter().position(|host| host == name);
            at.ok_or_else(|| {
                Failure::usage(format!(
                    "the plan is between {src} and {dst}, and there is no host {name}: there are {}",
                    listed(hosts)
                ))
            })
        };
        Ok(Some((number(&src)?, number(&dst)?)))
    }
}

impl Plan {
    /// How many hosts the lab of a network has, or that of the first where none is named.
    pub(super) fn lab_hosts(&self, name: Option<&String>) -> u16 {
        let is_it = |network: &&NetworkPlan| name.is_none_or(|name| network.name == *name);
        let network = self.networks.iter().find(is_it);
        let site = network.filter(|network| network.site);
        // One that is not there is refused where it is read.
        let site = site.and_then(|network| crate::testbed::site(&network.name).ok());
        site.map_or(self.testbed.hosts, |site| site.count())
    }

    /// Refuses probes on networks that the plan has not, and hosts that are no two.
    pub(super) fn check_places(&self) -> Result<(), Failure> {
        self.testbed.pair()?;
        if let Some(site) = self.networks.iter().find(|network| network.site) {
            let name = &site.name;
            let refuse = |why: &str| Err(Failure::usage(format!("`{name}` is a site, {why}")));
            if self.testbed.kind != Kind::Lab {
                return refuse("which only a lab emulates: use `--testbed lab`, or leave it out");
            }
            if self.testbed.joined && self.networks.len() > 1 || !self.testbed.beside.is_empty() {
                return refuse(
                    "whose file says which networks its hosts are on: name no other network of the same hosts",
                );
            }
        }
        let has = |name: &String| self.networks.iter().any(|network| network.name == *name);
        for probe in &self.probes {
            if let Some(name) = probe.networks.iter().find(|name| !has(name)) {
                return Err(Failure::usage(format!(
                    "the [[probe]] of kind {} is on the network {name}, which no [[network]] names: add it, or leave `network` out",
                    probe.kind.name()
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(between: &str, network: &str) -> Result<Plan, Failure> {
        Plan::parse(&format!(
            "[testbed]\nkind = \"lab\"\nbetween = \"{between}\"\n[[network]]\nname = \"fddi\"\n[[probe]]\nkind = \"latency\"\n\
             network = [\"{network}\"]\n"
        ))
    }

    #[test]
    fn probes_are_on_their_networks() {
        let text = plan("h1>h2", "fddi").unwrap().text().unwrap();
        assert!(text.contains("network = [\"fddi\"]"), "{text}");
        let refused = plan("h1>h2", "wire").unwrap_err().to_string();
        assert!(refused.contains("which no [[network]] names"), "{refused}");
    }

    #[test]
    fn launches_are_between_two_hosts() {
        let between = |text: &str, hosts: &[&str]| {
            let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
            plan(text, "fddi").and_then(|plan| plan.testbed.between(&hosts))
        };
        assert_eq!(between("h3>h1", &["h1", "h2", "h3"]).unwrap(), Some((2, 0)));
        assert_eq!(between("h3>h1", &[]).unwrap(), None);
        let refused = between("h1>h9", &["h1", "h2"]).unwrap_err().to_string();
        assert!(refused.contains("there is no host h9"), "{refused}");
        assert!(between("h1", &["h1", "h2"]).is_err());
    }
}
