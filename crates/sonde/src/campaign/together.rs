//! One launch of a pattern: all hosts at once, kept as a record for each flow.
//!
//! Checked: `tests/lab_pattern.rs`, `tests/lab_verdict.rs`.

use super::{Block, Campaign, CellRecord, CellResult, LaunchRecord, seen, unix_ns};
use crate::defect;
use crate::flows::Rounds;
use crate::pattern::Cells;
use sonde_fleet::PatternAsk;
use sonde_record::StoreError;
use sonde_sys::tell;
use std::time::Duration;

/// The longest that a flow's connection may take.
const CONNECT: Duration = Duration::from_secs(5);

impl Campaign<'_> {
    /// Launches all rounds of a pattern, and keeps what they gave together.
    pub(super) fn launch_rounds(
        &mut self,
        block: &Block,
        rounds: &Rounds,
        index: u64,
    ) -> Result<(), StoreError> {
        let net = self.live[block.net].net.clone();
        let now = format!(
            "{} repetition {} of {}: {} rounds of flows among {} hosts",
            net.name,
            index + 1,
            block.launches,
            rounds.all.len(),
            net.hosts.len()
        );
        self.progress.begins(&now);
        self.progress.suspend(|| tell!("sonde: {now}"));
        defect::doing(format!("in {now}"));
        let began_unix_ns = unix_ns();
        let order = rounds.in_order(index);
        let launched = {
            let mut fleet = self.live[block.net].fleet.borrow_mut();
            fleet.take_network(self.live[block.net].nth);
            fleet.pattern(&PatternAsk {
                rounds: order.iter().map(|asked| asked.round.clone()).collect(),
                knobs: rounds.knobs.clone(),
                timeout: CONNECT,
            })
        };
        let cells = Cells { net: &net, block };
        let mut made = Vec::new();
        match launched {
            Err(error) => {
                self.progress
                    .suspend(|| tell!("sonde: {now} failed: {error}"));
                made.push(failed(block, index, &error.to_string()));
            }
            Ok(launched) => {
                let behind = seen::behind(launched.report.as_ref());
                for (asked, outcome) in order.iter().zip(&launched.rounds) {
                    made.extend(cells.records(asked, outcome, (&launched, &behind), index));
                }
                for (host, why) in &launched.lost {
                    let text = format!("{} did not finish: {why}", net.hosts[*host]);
                    self.progress.suspend(|| tell!("sonde: {text}"));
                    self.warn(text)?;
                }
                if launched.refused > 0 {
                    self.warn(format!(
                        "{} repetition {}: connections by unauthenticated peers to the data ports, refused: {}",
                        net.name,
                        index + 1,
                        launched.refused
                    ))?;
                }
            }
        }
        for record in &mut made {
            record.began_unix_ns = began_unix_ns;
        }
        let flows = made.len();
        self.keep(made)?;
        self.progress.saw(&net.name, block, &self.run, flows);
        self.progress.ended(block.estimate_ns);
        Ok(())
    }
}

/// A launch that gave nothing for any of the cells.
fn failed(block: &Block, index: u64, why: &str) -> LaunchRecord {
    let result = |cell: &CellRecord| CellResult {
        cell: cell.id.clone(),
        index,
        failure: Some(why.to_owned()),
        series: Vec::new(),
    };
    LaunchRecord {
        results: block.cells.iter().map(result).collect(),
        ..LaunchRecord::default()
    }
}
