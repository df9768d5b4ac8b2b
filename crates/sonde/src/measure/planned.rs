//! What would be measured, before anything is started: `--dry-run` and `--print-plan`.
//!
//! Model:   networks as far as the plan tells them; what the hosts lack is found out when they are up.
//! Units:   seconds are guesses, as in [`crate::layout`].
//! Checked: `a_run_of_kernels_is_kept_and_goes_on`, `a_plan_makes_rows_of_kernels`.

use super::{LOOPBACK, LOOPBACK_MTU, REAL, Task, command_line};
use crate::document::{self, Command, Document};
use crate::failure::Failure;
use crate::flows::RoundRequest;
use crate::layout::{self, Block, TestNetwork};
use crate::library::Ranks;
use crate::model::Modelled;
use crate::output::{self, Print, say};
use crate::plan::{Kind, Mode, ProbeKind};
use schemars::JsonSchema;
use serde::Serialize;
use sonde_measure::Testbed;
use sonde_record::Judgement;
use sonde_report::{counted, sheet};
use sonde_units::plain;
use std::collections::BTreeSet;

/// What is launched as one.
#[derive(Debug, Serialize, JsonSchema)]
struct PlannedBlock<'a> {
    /// Its name, with its knobs.
    network: &'a str,
    /// `reference` where it is repeated among the others to see drift.
    probe: &'static str,
    /// Of throughput.
    mode: Option<&'static str>,
    /// Of ranks: what they run or replay.
    program: Option<String>,
    /// How bytes go.
    path: String,
    /// How they are handed over.
    method: &'static str,
    /// `block` or `poll`.
    wait: &'static str,
    /// Background traffic; null when idle.
    load: Option<String>,
    /// What else is set, as `KNOB=VALUE`.
    knobs: Vec<String>,
    /// User bytes in a message, a cell each; none of a program, whose messages have sizes of their own.
    sizes_bytes: Vec<u64>,
    /// How often.
    launches: u64,
    /// A guess at the time of a launch.
    launch_s: f64,
    /// Why it is left out, where that is known already.
    skipped: Option<&'a str>,
}

/// The columns of `--dry-run --csv`.
const CSV_COLUMNS: [&str; 12] = [
    "network",
    "probe",
    "mode",
    "program",
    "path",
    "method",
    "wait",
    "load",
    "sizes_bytes",
    "launches",
    "launch_s",
    "skipped",
];

/// What `--dry-run` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Planned<'a> {
    /// What is launched as one.
    blocks: Vec<PlannedBlock<'a>>,
    /// Cells of all.
    cells: usize,
    /// Launches of all.
    launches: u64,
    /// A guess at the time of all.
    all_s: f64,
}

impl<'a> Planned<'a> {
    fn of(nets: &'a [TestNetwork], blocks: &'a [Block]) -> Self {
        let all_ns: u64 = blocks
            .iter()
            .map(|block| block.estimate_ns * block.launches)
            .sum();
        Self {
            cells: blocks.iter().map(|block| block.cells.len()).sum(),
            launches: blocks.iter().map(|block| block.launches).sum(),
            all_s: all_ns as f64 / 1e9,
            blocks: blocks
                .iter()
                .flat_map(|block| PlannedBlock::all(&nets[block.net], block))
                .collect(),
        }
    }

    /// As JSON.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn print_document(&self) -> Result<(), Failure> {
        let verdict = Judgement::none("nothing was measured");
        let command = Command::DryRun(self);
        document::print(&Document::new(command, &command_line(), verdict))
    }

    fn print(&self) {
        const HEADS: [&str; 9] = [
            "network",
            "probe",
            "mode",
            "path",
            "completion",
            "load",
            "repetitions",
            "s each",
            "sizes B",
        ];
        let line = |block: &PlannedBlock<'_>| {
            let sizes: Vec<String> = block.sizes_bytes.iter().map(u64::to_string).collect();
            vec![
                block.network.into(),
                match &block.program {
                    Some(program) => format!("{} {program}", block.probe),
                    None => block.probe.into(),
                },
                block.mode.unwrap_or("-").into(),
                block.path.clone(),
                block.wait.into(),
                block.load.clone().unwrap_or_else(|| "-".into()),
                block.launches.to_string(),
                format!("{:.1}", block.launch_s),
                sizes.join(" "),
            ]
        };
        // A matrix has rounds by the hundred that look the same: these are one line.
        let mut lines: Vec<(Vec<String>, usize)> = Vec::new();
        for block in &self.blocks {
            let now = line(block);
            let is_round = block.probe == ProbeKind::Pattern.name();
            match lines
                .iter_mut()
                .find(|(known, _)| is_round && *known == now)
            {
                Some((_, count)) => *count += 1,
                None => lines.push((now, 1)),
            }
        }
        let lines = lines.into_iter().map(|(mut line, count)| {
            if count > 1 {
                line[1] = format!("{count} x {}", line[1]);
            }
            line
        });
        let sheet = sheet(&HEADS, lines).keyed(4).loose();
        say!("{}", sheet.text(output::width()));
        let reasons: BTreeSet<&str> = self.blocks.iter().filter_map(|one| one.skipped).collect();
        for reason in reasons {
            output::paragraph(&format!("left out: {}", plain(reason)));
        }
        say!(
            "{}, {}, about {:.0} s",
            counted(self.cells as u64, "cell"),
            counted(self.launches, "repetition"),
            self.all_s.ceil()
        );
    }
}

impl<'a> PlannedBlock<'a> {
    /// One, or of a pattern the rounds that a launch makes one after the other.
    fn all(net: &'a TestNetwork, block: &'a Block) -> Vec<Self> {
        match block.rounds() {
            None => block
                .parts()
                .iter()
                .map(|part| Self::of(net, part))
                .collect(),
            Some(rounds) => {
                let round = |asked| Self::of_round(&net.name, block.launches, asked);
                rounds.all.iter().map(round).collect()
            }
        }
    }

    fn of(net: &'a TestNetwork, block: &'a Block) -> Self {
        let sizes = block.cells.iter().map(|cell| cell.factors.size_bytes);
        let knobs = block.knobs.iter();
        let knobs = knobs.map(|(name, value)| format!("{name}={value}"));
        Self {
            network: &net.name,
            probe: match block.reference {
                true => "reference",
                false => block.kind().name(),
            },
            mode: block.mode().map(Mode::name),
            program: block.ranks().and_then(Ranks::program),
            path: block.path().name(),
            method: block.method().name(),
            wait: block.wait().name(),
            load: block
                .cells
                .first()
                .and_then(|cell| cell.factors.load.clone()),
            knobs: knobs.collect(),
            sizes_bytes: sizes.filter(|size| *size > 0).collect(),
            launches: block.launches,
            launch_s: block.estimate_ns as f64 / 1e9,
            skipped: block.skipped(),
        }
    }

    fn of_round(network: &'a str, launches: u64, asked: &RoundRequest) -> Self {
        let flows = asked.round.flows.iter();
        let sizes: BTreeSet<u64> = flows.map(|(_, _, what)| what.size_bytes).collect();
        let senders = asked.senders.map(|senders| format!("senders={senders}"));
        let pattern = format!("pattern={}", asked.pattern);
        Self {
            network,
            probe: ProbeKind::Pattern.name(),
            mode: Some(asked.mode),
            program: Some(format!("flows at once: {}", asked.flows())),
            path: asked.path().into(),
            method: "plain",
            wait: "block",
            load: None,
            knobs: [Some(pattern), senders].into_iter().flatten().collect(),
            sizes_bytes: sizes.into_iter().collect(),
            launches,
            launch_s: asked.estimate_ns() as f64 / 1e9,
            skipped: None,
        }
    }
}

impl Task {
    /// Whether nothing is to be started.
    pub fn is_only_printed(&self) -> bool {
        self.dry_run || self.print_plan
    }

    /// `--print-plan`: the plan; `--dry-run`: the blocks and their times. What is wrong with either is found as before a run.
    ///
    /// # Errors
    /// What is wrong with the plan, its networks or its hosts' file.
    pub fn print(&self) -> Result<i32, Failure> {
        self.plan.check()?;
        if self.print_plan {
            output::text(&self.plan.text()?);
            return Ok(0);
        }
        let (nets, blocks) = self.planned()?;
        let planned = Planned::of(&nets, &blocks);
        match self.print {
            Print::Json => planned.print_document()?,
            Print::Csv => output::csv(&CSV_COLUMNS, &planned.blocks)?,
            Print::Text => planned.print(),
        }
        Ok(0)
    }

    /// What would be measured, as far as it is known before anything is started.
    ///
    /// # Errors
    /// The plan has no cell, or one that cannot be named.
    pub fn planned(&self) -> Result<(Vec<TestNetwork>, Vec<Block>), Failure> {
        let nets = self.planned_networks()?;
        let mut blocks = layout::blocks(&self.plan, &nets)?;
        blocks.extend(layout::references(&self.plan, &nets, &blocks)?);
        Ok((nets, blocks))
    }

    /// The networks as far as they are known before anything is started.
    ///
    /// # Errors
    /// A network or a list of hosts that is not there.
    pub fn planned_networks(&self) -> Result<Vec<TestNetwork>, Failure> {
        let testbed = &self.plan.testbed;
        let mut nets = Vec::new();
        if testbed.kind == Kind::Local || testbed.floors {
            nets.push(TestNetwork {
                testbed: Testbed::Local,
                name: LOOPBACK.into(),
                mtu: Some(LOOPBACK_MTU),
                ..TestNetwork::unknown()
            });
        }
        if testbed.kind.is_real() {
            let hosts = testbed.host_names()?;
            let names = self
                .plan
                .networks
                .iter()
                .map(|network| network.name.as_str());
            let mut names: Vec<&str> = names.collect();
            if names.is_empty() {
                names.push(REAL);
            }
            nets.extend(names.into_iter().map(|name| TestNetwork {
                testbed: Testbed::Hosts,
                name: name.into(),
                mtu: Some(1_500),
                hosts: hosts.clone(),
                ..TestNetwork::unknown()
            }));
            return Ok(nets);
        }
        for network in &self.plan.networks {
            let config = self.lab_config(std::slice::from_ref(network))?;
            let hosts = config.site.names().into_iter().map(str::to_owned);
            let hosts = hosts.collect();
            let model = Modelled::of(network, config.site, testbed)?;
            nets.push(TestNetwork {
                hosts,
                ..TestNetwork::of_lab(model, config.profile)
            });
        }
        Ok(nets)
    }
}
