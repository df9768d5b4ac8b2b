//! The first message, the second one and the median, each a row of its own; and what a switched circuit's set-up costs.
//!
//! Model:   `sonde probe startup` and `latency` of 8 bytes by UDP and TCP. `vc` is what the first datagram costs more than the
//!          second once the address is known; on a switched circuit that is the set-up.
//! Units:   microseconds.

use anyhow::Result;

use crate::prove::own::{Rows, Sought, probe, sonde};
use crate::prove::table::{Table, verdict};
use crate::prove::{ATTACHMENTS, Ground, Proof, median};

const NETWORKS: [&str; 6] = [
    "wire",
    "ethernet-100",
    "ethernet-1g",
    "atm-oc3c",
    "atm-oc3c:vc=svc",
    "wan-100m-20ms",
];
const SWITCHED: &str = "atm-oc3c:vc=svc";
/// The catalogue's set-up time of a circuit.
const SETUP_US: f64 = 21_000.0;
const BOUND_US: f64 = 1_000.0;
const LAUNCHES_MAX: usize = 6;
const COLUMNS: usize = 6;

pub fn measure(ground: &Ground) -> Result<Proof> {
    let mut table = Table::new(&[
        "network",
        "attachment",
        "path",
        "whole start-up, µs",
        "neighbour",
        "vc",
        "first",
        "second",
        "median round trip",
        "verdict",
    ]);
    let mut unmet = Vec::new();
    for attachment in ATTACHMENTS {
        for network in NETWORKS {
            for path in ["tcp", "udp"] {
                if let Err(error) = row(ground, network, attachment, path, &mut table, &mut unmet) {
                    table.broken(&[network, attachment, path], &error);
                    unmet.push(format!("{network}, {attachment}, {path}: {error:#}"));
                }
            }
        }
    }
    Ok(Proof {
        command: Ground::retry("cold"),
        note: format!(
            "Messages of 8 bytes; each figure is the median of {} launches. *First* and *second* are the first two messages after the address, the circuit and the connection are there. On `{SWITCHED}` the step `vc` is to be the configured set-up of {:.0} ms within {:.0} ms; elsewhere there is none.",
            ground.runs.min(LAUNCHES_MAX),
            SETUP_US / 1e3,
            BOUND_US / 1e3
        ),
        tables: vec![table],
        unmet,
    })
}

fn row(
    ground: &Ground,
    network: &str,
    attachment: &str,
    path: &str,
    table: &mut Table,
    unmet: &mut Vec<String>,
) -> Result<()> {
    let mut columns = [const { Vec::new() }; COLUMNS];
    let launches = ground.runs.min(LAUNCHES_MAX);
    for launch in 1..=launches {
        eprintln!("prove cold: {launch}/{launches} {network} {attachment} {path}");
        let rest = ["--path", path, "--size", "8"];
        let cold = sonde(ground, &probe("startup", network, attachment, &rest))?;
        let warm = sonde(ground, &probe("latency", network, attachment, &rest))?;
        let step = |name| cold.p50(Sought::cold(Some(name)));
        columns[0].push(cold.p50(Sought::cold(None))?);
        columns[1].push(step("neighbour")?);
        if network == SWITCHED {
            columns[2].push(step("vc")?);
        } else {
            anyhow::ensure!(
                is_absent(&cold, "vc"),
                "there is a step vc where there is no switched circuit"
            );
        }
        columns[3].push(step("first")?);
        columns[4].push(step("second")?);
        columns[5].push(2.0 * warm.p50(Sought::warm("latency", "latency_ns"))?);
    }
    let setup_us = (network == SWITCHED).then(|| median(columns[2].clone()) / 1e3);
    let is_met = setup_us.is_none_or(|us| (us - SETUP_US).abs() <= BOUND_US);
    let shown = columns.map(|column| {
        if column.is_empty() {
            "–".into()
        } else {
            format!("{:.1}", median(column) / 1e3)
        }
    });
    let mut cells = vec![network.to_owned(), attachment.to_owned(), path.to_owned()];
    cells.extend(shown);
    cells.push(verdict(is_met));
    table.row(cells);
    if !is_met {
        unmet.push(format!(
            "{network}, {attachment}, {path}: the step vc is {:.1} us",
            setup_us.unwrap_or_default()
        ));
    }
    Ok(())
}

/// Whether a step has no figure, and says why.
fn is_absent(rows: &Rows, step: &str) -> bool {
    rows.row(Sought::cold(Some(step)))
        .is_none_or(|row| row["p50"].is_null() && row["reason"].is_string())
}
