//! What an ATM network may have beside lines, a switch and circuits: discard, contracts, LAN emulation, configured circuits.
//!
//! Model:   the tables `[atm]` with its `[[atm.contract]]`, `[lane]` and `[[pvc]]` of a network file.
//! Units:   rates are of whole cells, 53 bytes each; buffers and bursts in cells; shares are exact ratios.
//! Checked: `tests/atm/tables.rs`.

use crate::{Encapsulation, Framing, Limit, NetworkSpec, SpecError, Topology};
use serde::{Deserialize, Serialize};
use sonde_units::{BitRate, Ratio, Span};

/// What an output does with cells when its buffer fills.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Discard {
    /// A cell that finds no room is dropped, no other.
    #[default]
    Tail,
    /// After it the rest of its frame too, but the last cell, which tells the receiver where the frame ends.
    Ppd,
    /// Frames whose first cell finds more than `threshold` cells are refused as a whole; PPD where that was too late.
    Epd,
    /// The same, but only for circuits that hold more than their share of what waits (per-VC accounting).
    Selective,
}

/// A service category, in the order in which outputs serve them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// Constant bit rate.
    Cbr,
    /// Variable bit rate, real time.
    RtVbr,
    /// Variable bit rate, not in real time.
    NrtVbr,
    /// Available bit rate: the network tells the sender its rate.
    Abr,
    /// Unspecified bit rate: what is left.
    #[default]
    Ubr,
}

/// How many categories there are.
pub(crate) const CATEGORIES: usize = 5;

/// How an ABR circuit learns its rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Feedback {
    /// Each output writes the share that a circuit may have.
    #[default]
    ExplicitRate,
    /// An output with more cells than its threshold marks; the sender goes down by RDF or up by RIF.
    Efci,
}

/// What the circuits of one class were promised, and must keep to.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contract {
    /// The class of the frames that it is about.
    pub class: u8,
    /// Its service category.
    pub category: Category,
    /// The peak cell rate of each circuit; needed but with UBR and ABR, where it is the line's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcr: Option<BitRate>,
    /// The sustainable cell rate (VBR).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scr: Option<BitRate>,
    /// Cells of a burst at the peak rate (VBR).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mbs: Option<u64>,
    /// The least rate of an ABR circuit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcr: Option<BitRate>,
    /// By how much a cell may be early: cell delay variation tolerance.
    #[serde(default = "Contract::usual_cdvt")]
    pub cdvt: Span,
    /// Whether the sending station keeps to it.
    #[serde(default = "yes")]
    pub shape: bool,
    /// Whether the switch drops the cells that do not.
    #[serde(default = "yes")]
    pub police: bool,
    /// How ABR learns its rate.
    #[serde(default)]
    pub feedback: Feedback,
    /// Rate increase factor of ABR, of the peak rate.
    #[serde(default = "sixteenth")]
    pub rif: Ratio,
    /// Rate decrease factor of ABR, of the present rate.
    #[serde(default = "sixteenth")]
    pub rdf: Ratio,
}

const fn yes() -> bool {
    true
}

const fn sixteenth() -> Ratio {
    Ratio::new(1, 16)
}

impl Contract {
    const fn usual_cdvt() -> Span {
        Span::micros(250)
    }
}

/// What outputs and stations do with cells.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AtmTraffic {
    /// What is dropped.
    pub discard: Discard,
    /// Cells in an output from which on EPD and selective drop refuse frames, and EFCI marks; half the buffer without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u64>,
    /// The share of its fair part of the waiting cells above which selective drop takes from a circuit.
    pub fair_share: Ratio,
    /// So many ports of the switch share the buffers of all of them, as on one module.
    pub module: u64,
    /// The probability that a cell is lost on the line to the switch.
    pub cell_loss: Ratio,
    /// The probability that the first switch sends a cell to another station than its own, which throws it away.
    pub misdelivery: Ratio,
    /// The peak rate at which stations send on each circuit, contract or not (host rate control); none: the line's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcr: Option<BitRate>,
    /// Ports whose stations are set to the other encapsulation: nothing that they send is understood, nor what they get.
    pub mismatched: Vec<u16>,
    /// Each cell is handled alone, also where a whole train of them gives the same outcome: to check one by the other.
    pub every_cell: bool,
    /// What classes were promised.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contract: Vec<Contract>,
}

impl Default for AtmTraffic {
    fn default() -> Self {
        Self {
            discard: Discard::Tail,
            threshold: None,
            fair_share: Ratio::new(4, 5),
            module: 1,
            cell_loss: Ratio::ZERO,
            misdelivery: Ratio::ZERO,
            pcr: None,
            mismatched: Vec::new(),
            every_cell: false,
            contract: Vec::new(),
        }
    }
}

impl AtmTraffic {
    /// Whether trains do not suffice: cells of one frame may fare differently, or not come at equal distances.
    pub(crate) fn needs_cells(&self) -> bool {
        self.discard != Discard::Tail
            || self.module > 1
            || !self.cell_loss.is_zero()
            || !self.misdelivery.is_zero()
            || self.pcr.is_some()
            || self.every_cell
            || !self.contract.is_empty()
    }
}

/// LAN emulation: how first frames and those to all travel.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Lane {
    /// Frames a second that a station may send to one unknown destination through the broadcast server.
    pub unknown_rate: u64,
    /// How long the broadcast server takes for a frame.
    pub bus_delay: Span,
    /// How long the emulation server takes to tell an address (LE_ARP), before the circuit is signalled.
    pub arp_delay: Span,
}

impl Default for Lane {
    fn default() -> Self {
        Self {
            unknown_rate: 1,
            bus_delay: Span::millis(1),
            arp_delay: Span::millis(1),
        }
    }
}

/// A permanent circuit that is configured. With one of them only those configured are there. Its trunk, where several join two
/// switches, is that of `[[assign]]`, else the switches take one.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pvc {
    /// The two stations that it joins.
    #[serde(deserialize_with = "sonde_units::two")]
    pub between: [u16; 2],
}

/// Which permanent circuits there are where none is configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PvcLayout {
    /// One between every two stations.
    #[default]
    Mesh,
    /// One between station 0 and each other.
    Star,
}

/// What happens to permanent circuits after the connection manager cleared them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restoration {
    /// They stay down until someone sets them up.
    #[default]
    Manual,
    /// The manager sets them up again, one after the other.
    Automatic,
}

fn refuse(key: &'static str, problem: String) -> Result<(), SpecError> {
    Err(SpecError { key, problem })
}

/// Checks the tables, and that they fit the rest of `spec`.
///
/// # Errors
/// The first key that is wrong.
pub(crate) fn check(spec: &NetworkSpec) -> Result<(), SpecError> {
    let is_lane = spec.line.framing() == Framing::Atm(Encapsulation::Lane);
    for (key, there) in [
        ("atm", spec.atm.is_some()),
        ("lane", spec.lane.is_some()),
        ("pvc", !spec.pvc.is_empty()),
    ] {
        if there && spec.circuits.is_none() {
            return refuse(
                key,
                "needs the table [circuits]; leave it out otherwise".into(),
            );
        }
    }
    if spec.lane.is_some() && !is_lane {
        return refuse("lane", "needs `encapsulation = \"lane\"`".into());
    }
    if is_lane && spec.topology == Topology::Line {
        return refuse(
            "line.encapsulation",
            "is \"lane\", whose servers are at a switch; use `topology = \"star\"`".into(),
        );
    }
    if is_lane && spec.mtu > 18_174 {
        return refuse(
            "mtu",
            format!(
                "is {}, but LAN emulation carries at most 18174 bytes",
                spec.mtu
            ),
        );
    }
    if let Some(lane) = spec.lane {
        if !(1..=1_000_000).contains(&lane.unknown_rate) {
            let problem = format!(
                "is {}, but 1 to 1000000 frames per second are possible",
                lane.unknown_rate
            );
            return refuse("lane.unknown_rate", problem);
        }
        for (key, span) in [
            ("lane.bus_delay", lane.bus_delay),
            ("lane.arp_delay", lane.arp_delay),
        ] {
            if span > Span::secs(60) {
                return refuse(key, format!("is {span}, but at most 60s is possible"));
            }
        }
    }
    for pvc in &spec.pvc {
        if pvc.between[0] == pvc.between[1] {
            let problem = format!(
                "joins station {} with itself; name two stations",
                pvc.between[0]
            );
            return refuse("pvc", problem);
        }
    }
    spec.atm
        .as_ref()
        .map_or(Ok(()), |traffic| check_traffic(traffic, spec))
}

fn check_traffic(traffic: &AtmTraffic, spec: &NetworkSpec) -> Result<(), SpecError> {
    for (key, share) in [
        ("atm.cell_loss", traffic.cell_loss),
        ("atm.misdelivery", traffic.misdelivery),
    ] {
        if share > Ratio::ONE {
            return refuse(key, format!("is {share}, but a probability is at most 1"));
        }
    }
    if !(1..=1_024).contains(&traffic.module) {
        return refuse(
            "atm.module",
            format!("is {}, but 1 to 1024 ports share a buffer", traffic.module),
        );
    }
    if let (Some(threshold), Some(Limit::Cells(buffer))) =
        (traffic.threshold, spec.switch.map(|switch| switch.buffer))
    {
        let room = buffer * traffic.module;
        if threshold == 0 || threshold > room {
            return refuse(
                "atm.threshold",
                format!("is {threshold}, but a buffer of {room} cells has one of 1 to {room}"),
            );
        }
    }
    check_rate("atm.pcr", traffic.pcr, spec)?;
    for (index, contract) in traffic.contract.iter().enumerate() {
        if traffic.contract[..index]
            .iter()
            .any(|other| other.class == contract.class)
        {
            let problem = format!("has class {} twice; keep one of them", contract.class);
            return refuse("atm.contract", problem);
        }
        check_contract(contract, spec)?;
    }
    Ok(())
}

fn check_rate(
    key: &'static str,
    rate: Option<BitRate>,
    spec: &NetworkSpec,
) -> Result<(), SpecError> {
    match (rate, spec.line.usable()) {
        (Some(rate), _) if rate.bps() < 424 => {
            refuse(key, format!("is {rate}, less than one cell per second"))
        }
        (Some(rate), Some(usable)) if rate > usable => refuse(
            key,
            format!("is {rate}, but the line carries {usable} of cells; ask for no more"),
        ),
        _ => Ok(()),
    }
}

fn check_contract(contract: &Contract, spec: &NetworkSpec) -> Result<(), SpecError> {
    let class = contract.class;
    for rate in [contract.pcr, contract.scr, contract.mcr] {
        check_rate("atm.contract", rate, spec)?;
    }
    let is_vbr = matches!(contract.category, Category::RtVbr | Category::NrtVbr);
    if contract.pcr.is_none() && (is_vbr || contract.category == Category::Cbr) {
        return refuse(
            "atm.contract",
            format!("of class {class} has no `pcr`; CBR and VBR need one"),
        );
    }
    if is_vbr != (contract.scr.is_some() && contract.mbs.is_some())
        || contract.scr.is_some() != contract.mbs.is_some()
    {
        let problem = format!(
            "of class {class} needs `scr` and `mbs` with rt-vbr and nrt-vbr, and only there"
        );
        return refuse("atm.contract", problem);
    }
    if contract.mcr.is_some() && contract.category != Category::Abr {
        return refuse(
            "atm.contract",
            format!("of class {class} has `mcr`, which only abr has"),
        );
    }
    let peak = contract.pcr.or(spec.line.usable());
    for (name, rate) in [("scr", contract.scr), ("mcr", contract.mcr)] {
        if rate > peak {
            let problem =
                format!("of class {class} has `{name}` above `pcr`; the peak is the highest rate");
            return refuse("atm.contract", problem);
        }
    }
    if contract
        .mbs
        .is_some_and(|cells| cells == 0 || cells > 1_000_000)
    {
        return refuse(
            "atm.contract",
            format!("of class {class} has `mbs` out of 1 to 1000000 cells"),
        );
    }
    if contract.cdvt > Span::secs(1) {
        return refuse(
            "atm.contract",
            format!("of class {class} has `cdvt` above 1s"),
        );
    }
    for (name, share) in [("rif", contract.rif), ("rdf", contract.rdf)] {
        if share.is_zero() || share > Ratio::ONE {
            return refuse(
                "atm.contract",
                format!(
                    "of class {class} has `{name}` = {share}; above 0 and at most 1 is possible"
                ),
            );
        }
    }
    Ok(())
}
