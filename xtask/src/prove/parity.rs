//! Mixed traffic with a ledger, and the ledger replayed under the virtual clock.
//!
//! Model:   iperf3 both ways, a stream from a third host into the same output, datagrams and pings, together, over networks that lose,
//!          reorder, overflow, set up circuits, or do none of it. The replay must admit, deliver and lose the same frames in the
//!          same order at the same model times; what the real clock added is the lateness.
//! Units:   microseconds.

use std::fs::File;
use std::io::BufReader;

use anyhow::{Context, Result};
use sonde_link::ledger::Reader;
use sonde_units::Span;
use sonde_virtual::{Parity, replay};

use crate::prove::lab::Lab;
use crate::prove::table::{Table, verdict};
use crate::prove::{ATTACHMENTS, Ground, Proof};

const NETWORKS: [&str; 5] = [
    "ethernet-100:loss=1%:reorder=2%:reorder_by=300us",
    "ethernet-100:buffer=16KiB",
    "wan-100m-20ms:loss=0.1%",
    "atm-oc3c:vc=svc:buffer=400cells",
    "ethernet-1g",
];
/// Later than this is counted apart.
const TOLERANCE: Span = Span::micros(50);
const SCRIPT: &str = "for port in 5201 5202 5203 5204; do sonde lab exec --detach h2 -- iperf3 -s -1 -p $port >/dev/null 2>&1; done; sleep 0.4
iperf3 -c 10.9.0.2 -p 5201 -t 1 & iperf3 -c 10.9.0.2 -R -p 5202 -t 1 & iperf3 -c 10.9.0.2 -u -b 20M -p 5203 -t 1 &
sonde lab exec h3 -- iperf3 -c 10.9.0.2 -p 5204 -t 1 & ping -c 10 -i 0.1 10.9.0.2 & wait; true";

pub fn measure(ground: &Ground) -> Result<Proof> {
    let mut table = Table::new(&[
        "network",
        "attachment",
        "offers",
        "deliveries",
        "losses",
        "mean lateness, µs",
        "most, µs",
        "later than 50 µs",
        "early",
        "same order and losses",
    ]);
    let mut unmet = Vec::new();
    for run in 0..ground.runs {
        let (network, attachment) = (
            NETWORKS[run % NETWORKS.len()],
            ATTACHMENTS[run % ATTACHMENTS.len()],
        );
        eprintln!(
            "prove parity: {}/{} {network} {attachment}",
            run + 1,
            ground.runs
        );
        match one(ground, network, attachment) {
            Ok(parity) => judge(&mut table, &mut unmet, network, attachment, &parity),
            Err(error) => {
                table.broken(&[network, attachment], &error);
                unmet.push(format!("{network}, {attachment}: {error:#}"));
            }
        }
    }
    Ok(Proof {
        command: format!("{} --runs {}", Ground::retry("parity"), ground.runs),
        note: "iperf3 both ways, from a third host and with datagrams, and ping, all together, with `--ledger`; what entered the network is offered again under the virtual clock, which must say the same of every frame.".into(),
        tables: vec![table],
        unmet,
    })
}

fn one(ground: &Ground, network: &str, attachment: &str) -> Result<Parity> {
    let path = ground.scratch.join("ledger");
    let lab = Lab {
        hosts: 3,
        ledger: Some(path.clone()),
        ..Lab::new(network, attachment)
    };
    lab.sh(ground, SCRIPT)?;
    let reader = Reader::new(BufReader::new(
        File::open(&path).context("opening the ledger")?,
    ))?;
    let header = reader.header().clone();
    let parity = replay(&header, reader, TOLERANCE)?;
    std::fs::remove_file(&path).context("removing the ledger")?;
    Ok(parity)
}

fn judge(
    table: &mut Table,
    unmet: &mut Vec<String>,
    network: &str,
    attachment: &str,
    parity: &Parity,
) {
    let late = parity.lateness;
    let micros = |span: Span| span.as_nanos() as f64 / 1e3;
    let is_met = parity.first_difference.is_none()
        && parity.whole
        && late.early == 0
        && parity.deliveries > 0;
    let share = 100.0 * late.beyond as f64 / late.deliveries.max(1) as f64;
    table.row(vec![
        network.to_owned(),
        attachment.to_owned(),
        parity.offers.to_string(),
        parity.deliveries.to_string(),
        parity.losses.to_string(),
        format!("{:.1}", micros(late.mean)),
        format!("{:.0}", micros(late.max)),
        format!("{share:.2} %"),
        late.early.to_string(),
        verdict(is_met),
    ]);
    if !is_met {
        let why = match parity.first_difference {
            Some(difference) => difference.to_string(),
            None if !parity.whole => "the ledger was not ended".to_owned(),
            None => format!(
                "{} deliveries, {} of them early",
                parity.deliveries, late.early
            ),
        };
        unmet.push(format!("{network}, {attachment}: {why}"));
    }
}
