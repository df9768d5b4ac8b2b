//! A network of a plan.
//!
//! Checked: `the_usual_plans_are_read_back`, `probes_are_on_their_networks`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use super::Kind;
use crate::failure::Failure;
use serde::{Deserialize, Serialize};
use sonde_fleet::Choice;

/// One network: of the lab, or of real hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkPlan {
    /// Lab: the selector, a name with knobs or a file. Real hosts: what it is called in all rows.
    pub name: String,
    /// Real hosts: its interface: one name for all (`ib0`), one for each host (`h1/ib0,h2/ib1`), or its subnet
    /// (`10.9.1.0/24`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Lab: the name is that of a site, or a site's file: segments that bridges and routers join, with hosts of its own. Launches of two hosts are
    /// between those that `between` of [testbed] names, else from the first to the last.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub site: bool,
}

impl NetworkPlan {
    /// One of the lab.
    pub fn lab(selector: &str) -> Self {
        Self {
            name: selector.into(),
            interface: None,
            site: false,
        }
    }

    /// A site.
    pub fn site(selector: &str) -> Self {
        Self {
            site: true,
            ..Self::lab(selector)
        }
    }

    /// As it is written on the command line for hosts of this kind; what is wrong with it is found by the plan's check.
    pub fn of(kind: Kind, text: &str) -> Self {
        match text.split_once('=').filter(|_| kind.is_real()) {
            None => Self::lab(text),
            Some((name, interface)) => Self {
                interface: Some(interface.into()),
                ..Self::lab(name)
            },
        }
    }

    /// The interfaces of real hosts.
    ///
    /// # Errors
    /// It names none.
    pub fn choice(&self) -> Result<Choice, Failure> {
        let text = match &self.interface {
            Some(interface) => format!("{}={interface}", self.name),
            None => self.name.clone(),
        };
        text.parse().map_err(Failure::usage)
    }
}
