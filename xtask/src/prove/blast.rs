//! Datagrams as fast as the program can send them, into a line of 10 Mb/s.
//!
//! Model:   `sockperf throughput` sends without waiting for anything and says how many datagrams it sent; its server, stopped
//!          when the queues have run empty, says how many came. Cold: the neighbour entry is flushed before the first datagram
//!          (nothing else has talked). Warm: after a ping. What the kernels of both hosts count as lost is read from
//!          /proc/net/snmp, what the interfaces dropped from the lab's report. The rate is that of iperf3 after its
//!          first second, when the buffers are full, against the ceiling of the line for this datagram.
//! Checked: `counts_are_read`, `losses_are_added_up`.

use anyhow::{Context, Result};
use serde_json::Value;
use sonde_link::udp_max;
use sonde_units::Bytes;

use crate::prove::lab::{Lab, spec};
use crate::prove::table::{Table, verdict};
use crate::prove::{ATTACHMENTS, Ground, Proof};

const NETWORK: &str = "ethernet-100:rate=10Mbit";
const PAYLOAD: Bytes = Bytes(1_400);
const NEAR: f64 = 0.01;
const COUNTERS: &str = "cat /proc/net/snmp; sonde lab exec h2 -- cat /proc/net/snmp";
const SERVER: &str =
    "sonde lab exec --root h2 -- sockperf sr -i 10.9.0.2 -p 11111 2>&1 & sleep 0.5";
const CLIENT: &str = "sockperf tp -i 10.9.0.2 -p 11111 -m 1400 -t 2 2>&1; sleep 1; sonde lab exec --root h2 -- pkill -INT -x sockperf; wait";
const RATE: &str = "sonde lab exec --detach h2 -- iperf3 -s -1 -J >/dev/null 2>&1; sleep 0.3; iperf3 -c 10.9.0.2 -u -b 0 -l 1400 -t 3 -O 1 -J --get-server-output";
/// Counters of /proc/net/snmp that tell of lost datagrams.
const LOSSES: [(&str, &[&str]); 2] = [
    (
        "Ip:",
        &[
            "InDiscards",
            "OutDiscards",
            "ReasmFails",
            "FragFails",
            "OutNoRoutes",
        ],
    ),
    (
        "Udp:",
        &[
            "InErrors",
            "RcvbufErrors",
            "SndbufErrors",
            "InCsumErrors",
            "MemErrors",
        ],
    ),
];

pub fn measure(ground: &Ground) -> Result<Proof> {
    let mut table = Table::new(&[
        "attachment",
        "start",
        "sent",
        "received",
        "lost in the hosts' kernels",
        "lost between host and switch",
        "verdict",
    ]);
    let mut rates = Table::new(&[
        "attachment",
        "sent, Mb/s",
        "ceiling, Mb/s",
        "ratio",
        "lost by iperf3's count",
        "verdict",
    ]);
    let mut unmet = Vec::new();
    for attachment in ATTACHMENTS {
        for (start, first) in [
            ("cold", "ip neigh flush dev eth0"),
            ("warm", "ping -q -c 2 -i 0.2 10.9.0.2"),
        ] {
            eprintln!("prove blast: {attachment} {start}");
            if let Err(error) = count(ground, attachment, start, first, &mut table, &mut unmet) {
                table.broken(&[attachment, start], &error);
                unmet.push(format!("{attachment}, {start}: {error:#}"));
            }
        }
        eprintln!("prove blast: {attachment} rate");
        if let Err(error) = rate(ground, attachment, &mut rates, &mut unmet) {
            rates.broken(&[attachment], &error);
            unmet.push(format!("{attachment}, rate: {error:#}"));
        }
    }
    Ok(Proof {
        command: Ground::retry("blast"),
        note: format!(
            "Datagrams of {PAYLOAD} into `{NETWORK}`, as fast as the program's `send` lets it: sockperf counts for two seconds, iperf3 rates after its first second. Every datagram is to arrive, no counter of either kernel to move, and the rate to be within {:.0} % of the line's.",
            100.0 * NEAR
        ),
        tables: vec![table, rates],
        unmet,
    })
}

fn count(
    ground: &Ground,
    attachment: &str,
    start: &str,
    first: &str,
    table: &mut Table,
    unmet: &mut Vec<String>,
) -> Result<()> {
    let lab = Lab {
        root: true,
        ..Lab::new(NETWORK, attachment)
    };
    let ran = lab.sh(ground, &format!("{SERVER}; {first}; {CLIENT}; {COUNTERS}"))?;
    let sent =
        number_after(&ran.output, "Total of ").context("sockperf did not say what it sent")?;
    let received = number_after(&ran.output, "sockperf: Total ")
        .context("the server of sockperf did not say what it received")?;
    let (kernel, ports) = (kernel_losses(&ran.output), ran.report.lost());
    let is_met = sent > 0 && sent == received && kernel == 0 && ports == 0;
    let cells = [
        attachment.to_owned(),
        start.to_owned(),
        sent.to_string(),
        received.to_string(),
        kernel.to_string(),
        ports.to_string(),
        verdict(is_met),
    ];
    table.row(cells.to_vec());
    if !is_met {
        unmet.push(format!("{attachment}, {start}: {sent} sent, {received} received, {kernel} lost in the kernels, {ports} between host and switch"));
    }
    Ok(())
}

/// The number that follows the first `words` with a digit after them.
fn number_after(text: &str, words: &str) -> Option<u64> {
    text.match_indices(words).find_map(|(at, _)| {
        text[at + words.len()..]
            .split_whitespace()
            .next()?
            .parse()
            .ok()
    })
}

/// The sum of the counters of all hosts whose tables are in `text`.
fn kernel_losses(text: &str) -> u64 {
    let lines: Vec<&str> = text.lines().collect();
    let counted = |pair: &[&str]| {
        let (names, values) = (pair[0].split_whitespace(), pair[1].split_whitespace());
        let layer = LOSSES
            .iter()
            .find(|(layer, _)| pair.iter().all(|line| line.starts_with(layer)));
        let lossy = layer.map_or(&[][..], |(_, lossy)| lossy);
        names
            .zip(values)
            .filter(|(name, _)| lossy.contains(name))
            .filter_map(|(_, value)| value.parse::<u64>().ok())
            .sum::<u64>()
    };
    lines.windows(2).map(counted).sum()
}

fn rate(
    ground: &Ground,
    attachment: &str,
    table: &mut Table,
    unmet: &mut Vec<String>,
) -> Result<()> {
    let ran = Lab::new(NETWORK, attachment).sh(ground, RATE)?;
    let all: Value = serde_json::from_str(&ran.output).context("reading what iperf3 -J wrote")?;
    let number = |path: &str| {
        all.pointer(path)
            .and_then(Value::as_f64)
            .with_context(|| format!("iperf3 wrote no {path}"))
    };
    let ceiling = udp_max(&spec(NETWORK)?, PAYLOAD).context("the network has no rate")? as f64;
    let sent = number("/end/sum_sent/bytes")? * 8.0 / number("/end/sum_sent/seconds")?;
    let lost = number("/end/sum_received/lost_packets")?;
    let is_met = (sent / ceiling - 1.0).abs() <= NEAR && lost <= 0.0;
    table.row(vec![
        attachment.to_owned(),
        format!("{:.3}", sent / 1e6),
        format!("{:.3}", ceiling / 1e6),
        format!("{:.4}", sent / ceiling),
        format!("{lost}"),
        verdict(is_met),
    ]);
    if !is_met {
        unmet.push(format!(
            "{attachment}: iperf3 sent at {:.4} of the line's ceiling and lost {lost}",
            sent / ceiling
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read() {
        let text = "sockperf: Total of 1786 messages sent in 2.000 sec\nsockperf: Total 1785 messages received and handled\n";
        assert_eq!(number_after(text, "Total of "), Some(1_786));
        assert_eq!(number_after(text, "sockperf: Total "), Some(1_785));
        assert_eq!(number_after("", "Total of "), None);
    }

    #[test]
    fn losses_are_added_up() {
        let udp = "Udp: InDatagrams InErrors RcvbufErrors\nUdp: 500 2 1\n";
        let other = "Tcp: InErrs InErrors\nTcp: 5 5\nUdpLite: InErrors\nUdpLite: 9\n";
        assert_eq!(kernel_losses(&format!("{udp}{other}{udp}")), 6);
    }
}
