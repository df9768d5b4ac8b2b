//! The networks of testbeds that a plan is laid out on, and what cannot be measured on them.
//!
//! Checked: here; `a_network_without_a_rate_takes_no_load`, `blocks_are_the_product`.

use super::Block;
use crate::failure::Failure;
use crate::library::Ranks;
use crate::model::Modelled;
use crate::plan::{Plan, ProbeKind};
use sonde_lab::Profile;
use sonde_link::Law;
use sonde_measure::Testbed;

/// One network of one testbed, with what a cell needs to know of it.
#[derive(Debug, Clone)]
pub struct TestNetwork {
    /// What the hosts are.
    pub testbed: Testbed,
    /// Its name in all rows.
    pub name: String,
    /// The model; none where it is real.
    pub model: Option<Modelled>,
    /// The largest IP packet, where it is known.
    pub mtu: Option<u64>,
    /// The hosts' names.
    pub hosts: Vec<String>,
    /// The hosts' settings.
    pub profile: Option<Profile>,
    /// How they are attached.
    pub attachment: Option<String>,
}

impl TestNetwork {
    /// The hosts that all launches are between, by their index: of a site those of the path that its model is of, else what the plan says. A plan with
    /// sites names hosts of these.
    pub(super) fn pair(&self, plan: &Plan) -> Result<Option<(usize, usize)>, Failure> {
        let of_site = self.model.as_ref().and_then(|model| model.pair);
        if of_site.is_some() || plan.networks.iter().any(|network| network.site) {
            return Ok(of_site);
        }
        plan.testbed.between(&self.hosts)
    }

    /// The hosts that a cell of this block is measured among.
    pub(super) fn hosts_of(&self, block: &Block) -> Vec<String> {
        let of_path = self.model.as_ref().and_then(|model| model.pair);
        let pair = block
            .pair
            .filter(|_| of_path.is_some() && block.is_of_two());
        match pair {
            Some((src, dst)) => [src, dst].map(|host| self.hosts[host].clone()).to_vec(),
            None => self.hosts.clone(),
        }
    }
}

/// Why a path cannot be had between these hosts, with the remedy.
pub(super) fn machines_apart(net: &TestNetwork, block: &Block) -> Option<String> {
    let path = block.path();
    if block.ranks().is_some_and(Ranks::is_on_one_host) {
        return None;
    }
    let hosts = match net.testbed {
        Testbed::Local => return None,
        Testbed::Lab => "the lab's hosts are apart like machines",
        _ => "these are different machines",
    };
    path.is_within_machine().then(|| {
        format!("{path} joins processes of one machine, and {hosts}: use `--testbed local`")
    })
}

/// Why the best of several networks is not measured on this one: there are no others, or the first of them has its figure.
pub(super) fn best_elsewhere(nets: &[TestNetwork], index: usize, block: &Block) -> Option<String> {
    let (path, net) = (block.path(), &nets[index]);
    if !path.is_over_all_networks() {
        return None;
    }
    let of_hosts = || nets.iter().filter(|one| one.testbed == Testbed::Hosts);
    let (networks, remedy) = match net.testbed {
        Testbed::Hosts => (
            of_hosts().count(),
            "name them, as in `--network a=eth0 --network b=eth1`",
        ),
        _ => (
            net.model.as_ref().map_or(1, Modelled::networks_in_common),
            "take a site whose hosts are on several segments, by `--site`",
        ),
    };
    if networks < 2 {
        return Some(format!(
            "{path} chooses among several networks, and these hosts have one: {remedy}"
        ));
    }
    let first = of_hosts().next()?;
    if block.load.is_some() {
        return Some(format!(
            "background traffic goes over one network, and {path} takes all: measure it idle, or under load over one of them"
        ));
    }
    let name = &first.name;
    if *name == net.name {
        return None;
    }
    Some(format!(
        "{path} takes all networks at once: its figure stands at {name}, the first of them"
    ))
}

/// Why a start cannot be cold: of the circuits over several segments none is between the two hosts, and only such are taken down.
pub(super) fn kept_circuits(net: &TestNetwork, block: &Block) -> Option<String> {
    let keeps = net.model.as_ref()?.keeps_circuits() && block.kind() == ProbeKind::Startup;
    keeps.then(|| {
        format!(
            "the circuits of {} between hosts and routers stay up: a cold start is measured on one of its networks alone",
            net.name
        )
    })
}

/// Why background traffic cannot be on an emulated network.
pub(super) fn without_rate(net: &TestNetwork, block: &Block) -> Option<String> {
    let load = block.load.as_ref()?;
    let has_none = net.model.as_ref()?.line().is_none() && load.law != Law::Replay;
    has_none.then(|| {
        format!(
            "{} has no rate of which background traffic could take a share",
            net.name
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::blocks;

    #[test]
    fn the_best_of_several_has_one_row_and_no_load() {
        let real = |name: &str| TestNetwork {
            testbed: Testbed::Hosts,
            name: name.into(),
            mtu: Some(1_500),
            hosts: ["a", "b"].map(String::from).to_vec(),
            ..TestNetwork::unknown()
        };
        let plan = "[testbed]\nkind = \"hosts\"\nnames = \"a,b\"\n[[probe]]\nkind = \"latency\"\npath = [\"native:best\"]\nsize = [\"1\"]\n\
            [[load]]\nlevel = \"0\"\n[[load]]\nlevel = \"0.6\"\n[[network]]\nname = \"eth\"\ninterface = \"eth0\"\n[[network]]\nname = \"ib\"\ninterface = \"ib0\"\n";
        let plan = Plan::parse(plan).unwrap();
        let said = |nets: &[TestNetwork]| {
            let blocks = blocks(&plan, nets).unwrap();
            let reasons = blocks
                .iter()
                .map(|block| block.skipped().unwrap_or_default().to_owned());
            reasons.collect::<Vec<_>>()
        };
        let [first, loaded, other, _] = &said(&[real("eth"), real("ib")])[..] else {
            panic!("{:?}", said(&[real("eth"), real("ib")]));
        };
        assert_eq!(first, "");
        assert!(loaded.contains("measure it idle"), "{loaded}");
        assert!(other.contains("stands at eth"), "{other}");
        assert!(said(&[real("eth")])[0].contains("these hosts have one"));
    }
}
