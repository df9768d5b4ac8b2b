//! NetPIPE above TCP, Open MPI, MPICH and PVM, as Debian has it, beside sonde's own half round trips by the same libraries.
//!
//! Model:   a pair is one start of the NetPIPE program by the library's own command, in `sonde lab run` with four hosts,
//!          between h1 and h4, and one launch of `sonde probe latency`, in turns, on the same network. NetPIPE tells the
//!          best of seven trials, each the mean of some round trips, halved; sonde the median of single ones, halved.
//!          NetPIPE's PVM program asks for direct routes. What waits by asking without pause (MPICH) has all CPUs, what
//!          yields or blocks one. Ratios are of the medians over pairs.
//! Source:  NetPIPE 3.7.2: columns are bytes, 2^20 bits a second, seconds one way.
//! Units:   microseconds.
//! Checked: `a_last_line_is_read`.

use anyhow::{Context, Result, bail};

use crate::prove::lab::Lab;
use crate::prove::own::{probe, sonde};
use crate::prove::table::{Table, verdict};
use crate::prove::{Ground, Proof, median};

/// NetPIPE and sonde agree within this.
const ALIKE: f64 = 0.05;
/// Four hosts at one switch; and two sites with a DS-3 between them, h1 at the one and h4 at the other.
const NETWORKS: [&str; 2] = ["atm-oc3c", "./plans/examples/networks/two-sites.toml"];
/// Bytes, the same for sonde, and round trips of one trial.
const SIZES: [(usize, &str, usize); 3] =
    [(1, "1B", 20), (65_536, "64KiB", 10), (262_144, "256KiB", 4)];
/// MPICH 4.0 may not end (github.com/pmodels/mpich/pull/6596); NetPIPE is then started again.
const STARTS: usize = 4;
const HEADS: [&str; 8] = [
    "network",
    "path",
    "size",
    "NetPIPE, µs",
    "sonde, median, µs",
    "sonde, least, µs",
    "sonde / NetPIPE",
    "verdict",
];

/// A program of NetPIPE.
struct Peer {
    program: &'static str,
    /// sonde's path.
    path: &'static str,
    cpus: &'static str,
    /// How it is started; the options of NetPIPE stand for `$O`.
    start: &'static str,
}

const PEERS: [Peer; 4] = [
    Peer {
        program: "NPtcp",
        path: "tcp",
        cpus: "one",
        start: "sonde lab exec --detach h4 -- NPtcp $O -o /tmp/o; sleep 0.5; NPtcp -h h4 $O -o /tmp/out",
    },
    Peer {
        program: "NPopenmpi",
        path: "openmpi:tcp",
        cpus: "one",
        start: "mpirun.openmpi -np 2 --host h1,h4 NPopenmpi $O -o /tmp/out",
    },
    Peer {
        program: "NPmpich2",
        path: "mpich:tcp",
        cpus: "free",
        start: "timeout 20 mpiexec.mpich -n 2 -hosts h1,h4 NPmpich2 $O -o /tmp/out",
    },
    Peer {
        program: "NPpvm",
        path: "pvm:direct",
        cpus: "one",
        start: "echo conf | pvm; sonde lab exec --detach h4 -- NPpvm $O -o /tmp/o; sleep 0.5; NPpvm -h h4 $O -o /tmp/out",
    },
];

pub fn measure(ground: &Ground) -> Result<Proof> {
    let mut table = Table::new(&HEADS);
    let mut unmet = Vec::new();
    for network in NETWORKS {
        for peer in &PEERS {
            for size in SIZES {
                if let Err(error) = row(ground, network, peer, size, &mut table, &mut unmet) {
                    table.broken(&[network, peer.path, size.1], &error);
                    unmet.push(format!("{network}, {}, {}: {error:#}", peer.path, size.1));
                }
            }
        }
    }
    Ok(Proof {
        command: format!("{} --runs {}", Ground::retry("libraries"), ground.runs),
        note: format!(
            "Debian's NetPIPE by each library's own command in `sonde lab run` with four hosts, and `sonde probe latency` (one launch), in turns, {} pairs. NetPIPE's figure is the best of seven trials, halved round trips. sonde's median is to be within {:.0} % of it.",
            ground.runs,
            100.0 * ALIKE
        ),
        tables: vec![table],
        unmet,
    })
}

fn row(
    ground: &Ground,
    network: &str,
    peer: &Peer,
    size: (usize, &str, usize),
    table: &mut Table,
    unmet: &mut Vec<String>,
) -> Result<()> {
    let (mut theirs, mut ours, mut least) = (Vec::new(), Vec::new(), Vec::new());
    for turn in 1..=ground.runs {
        theirs.push(netpipe(ground, network, peer, size)?);
        let [p50, min] = own(ground, network, peer.path, size.1)?;
        eprintln!(
            "prove netpipe: {turn}/{} {network} {} {}: NetPIPE {:.1}, sonde {p50:.1}",
            ground.runs,
            peer.path,
            size.1,
            theirs[turn - 1]
        );
        ours.push(p50);
        least.push(min);
    }
    let (theirs, ours, least) = (median(theirs), median(ours), median(least));
    let ratio = ours / theirs;
    let is_met = (ratio - 1.0).abs() <= ALIKE;
    table.row(vec![
        network.into(),
        peer.path.into(),
        size.1.into(),
        format!("{theirs:.1}"),
        format!("{ours:.1}"),
        format!("{least:.1}"),
        format!("{ratio:.4}"),
        verdict(is_met),
    ]);
    if !is_met {
        unmet.push(format!(
            "{network}, {}, {}: sonde's half round trip is {ratio:.4} of that of {}",
            peer.path, size.1, peer.program
        ));
    }
    Ok(())
}

/// One way, in microseconds.
fn netpipe(
    ground: &Ground,
    network: &str,
    peer: &Peer,
    (bytes, _, trips): (usize, &str, usize),
) -> Result<f64> {
    let lab = Lab {
        hosts: 4,
        cpus: peer.cpus,
        ..Lab::new(network, "auto")
    };
    let script = format!(
        "O='-p 0 -l {bytes} -u {bytes} -n {trips}'; ( {} ) >/tmp/log 2>&1; cat /tmp/out || cat /tmp/log",
        peer.start
    );
    let mut said = String::new();
    for _ in 0..STARTS {
        said = lab.sh(ground, &script)?.output;
        if let Some(seconds) = seconds(&said, bytes) {
            return Ok(seconds * 1e6);
        }
    }
    let last: Vec<_> = said.lines().rev().take(3).collect();
    bail!(
        "{} gave no figure in {STARTS} starts: {}",
        peer.program,
        last.join("; ")
    )
}

/// The time of this size in what NetPIPE wrote.
fn seconds(text: &str, bytes: usize) -> Option<f64> {
    let words: Vec<&str> = text.lines().last()?.split_whitespace().collect();
    let [size, _, seconds] = words[..] else {
        return None;
    };
    let is_sought = size.parse() == Ok(bytes);
    let seconds: f64 = seconds.parse().ok().filter(|_| is_sought)?;
    (seconds > 0.0).then_some(seconds)
}

/// sonde's median and least, in microseconds.
fn own(ground: &Ground, network: &str, path: &str, size: &str) -> Result<[f64; 2]> {
    let words = probe(
        "latency",
        network,
        "auto",
        &["--path", path, "--size", size],
    );
    let rows = sonde(ground, &words)?;
    let is_sought = |row: &&serde_json::Value| {
        row["quantity"] == "latency_ns" && row["phase"] == "warm" && row["path"] == path
    };
    let row = rows.all().iter().find(is_sought);
    let row = row.context("sonde printed no such row")?;
    let figure = |name: &str| {
        let ns = row[name].as_f64();
        ns.map(|ns| ns / 1e3)
            .with_context(|| format!("sonde gives no {name} of {path}: {}", row["reason"]))
    };
    Ok([figure("p50")?, figure("min")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_last_line_is_read() {
        let text = "       1 0.011466   0.00066542\n   65536 35.480438   0.01409227\n";
        assert_eq!(seconds(text, 65_536), Some(0.014_092_27));
        for (wrong, bytes) in [(text, 1), ("", 1), ("1 0.0 0.0\n", 1), ("it broke\n", 1)] {
            assert_eq!(seconds(wrong, bytes), None, "{wrong}");
        }
    }
}
