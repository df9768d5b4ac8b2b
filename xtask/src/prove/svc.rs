//! The first and the second ping over a switched and over a permanent circuit.
//!
//! Model:   in a fresh lab the first packet waits for the address server, and on a switched circuit for its set-up; the second
//!          for nothing. What the first takes more on the switched one is the set-up.
//! Units:   milliseconds.
//! Checked: `times_are_read`.

use anyhow::Result;
use sonde_units::Bytes;
use sonde_virtual::{first_one_way, one_way};

use crate::prove::lab::{Lab, spec};
use crate::prove::table::{Table, verdict};
use crate::prove::{ATTACHMENTS, Ground, Proof, median};

const SWITCHED: &str = "atm-oc3c:vc=svc";
const PERMANENT: &str = "atm-oc3c";
/// An echo of ping: 56 bytes, ICMP, IPv4.
const PACKET: Bytes = Bytes(56 + 8 + 20);
const BOUND_SHARE: f64 = 0.03;
const LABS_MAX: usize = 5;

pub fn measure(ground: &Ground) -> Result<Proof> {
    let mut table = Table::new(&[
        "attachment",
        "labs",
        "SVC first, ms",
        "SVC second, ms",
        "PVC first, ms",
        "PVC second, ms",
        "set-up, ms",
        "model, ms",
        "verdict",
    ]);
    let mut unmet = Vec::new();
    let switched = spec(SWITCHED)?;
    let model = first_one_way(&switched, PACKET)?
        .0
        .saturating_sub(one_way(&switched, PACKET)?.0);
    let model_ms = model.as_nanos() as f64 / 1e6;
    for attachment in ATTACHMENTS {
        if let Err(error) = row(ground, attachment, model_ms, &mut table, &mut unmet) {
            table.broken(&[attachment], &error);
            unmet.push(format!("{attachment}: {error:#}"));
        }
    }
    Ok(Proof {
        command: Ground::retry("svc"),
        note: format!(
            "`ping` in fresh labs on `{SWITCHED}` and `{PERMANENT}`, medians. The set-up is the difference of the first ones less that of the second ones; it is to be within {:.0} % of the model's.",
            100.0 * BOUND_SHARE
        ),
        tables: vec![table],
        unmet,
    })
}

fn row(
    ground: &Ground,
    attachment: &str,
    model_ms: f64,
    table: &mut Table,
    unmet: &mut Vec<String>,
) -> Result<()> {
    let labs = ground.runs.min(LABS_MAX);
    let mut columns = [const { Vec::new() }; 4];
    for lab in 1..=labs {
        eprintln!("prove svc: {lab}/{labs} {attachment}");
        for (index, network) in [SWITCHED, PERMANENT].into_iter().enumerate() {
            let (first, second) = first_and_second(ground, network, attachment)?;
            columns[2 * index].push(first);
            columns[2 * index + 1].push(second);
        }
    }
    let [a, b, c, d] = columns.map(median);
    let setup_ms = (a - c) - (b - d);
    let is_met = (setup_ms - model_ms).abs() <= BOUND_SHARE * model_ms;
    let figures = [a, b, c, d, setup_ms, model_ms].map(|ms| format!("{ms:.3}"));
    let mut cells = vec![attachment.to_owned(), labs.to_string()];
    cells.extend(figures);
    cells.push(verdict(is_met));
    table.row(cells);
    if !is_met {
        unmet.push(format!(
            "{attachment}: the set-up took {setup_ms:.3} ms, the model says {model_ms:.3} ms"
        ));
    }
    Ok(())
}

fn first_and_second(ground: &Ground, network: &str, attachment: &str) -> Result<(f64, f64)> {
    let lab = Lab {
        cpus: "one",
        ..Lab::new(network, attachment)
    };
    let times = times(&lab.sh(ground, "ping -c 2 -i 0.3 10.9.0.2")?.output);
    let [first, second] = times[..] else {
        return Err(anyhow::anyhow!("ping printed {} times, not 2", times.len()));
    };
    Ok((first, second))
}

/// The times that ping prints, in order.
fn times(text: &str) -> Vec<f64> {
    let time = |line: &str| {
        line.split_once("time=")?
            .1
            .split_whitespace()
            .next()?
            .parse()
            .ok()
    };
    text.lines().filter_map(time).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        let text = "PING h2\n64 bytes from h2: icmp_seq=1 ttl=64 time=23.2 ms\n64 bytes: icmp_seq=2 ttl=64 time=0.124 ms\nrtt min/avg/max/mdev = 1/2/3/4 ms, time 401ms\n";
        assert_eq!(times(text).len(), 2);
        assert!((times(text)[1] - 0.124).abs() < 1e-9);
    }
}
