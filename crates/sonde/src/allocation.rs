//! Hosts that another program gives: a Slurm allocation, an MPI's hosts, agents that users start.
//!
//! Model:   inside an allocation of several nodes these are the usual testbed. Where `srun` started this very command several
//!          times, the first of them measures and the others end.
//! Checked: `launchers_follow_the_plan`; `tests/lab_slurm.rs`.

use crate::failure::Failure;
use crate::plan::{Kind, TestbedPlan};
use sonde_channel::Woken;
use sonde_fleet::{Allocation, ConnectOptions, Launcher, Listen, TOKEN_VARIABLE, Token};
use sonde_sys::tell;
use std::io::Read;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// What the input of a task that has nothing to do may take to end; a terminal's does not.
const INPUT_TIMEOUT: Duration = Duration::from_secs(2);
/// And then.
const LINGER: Duration = Duration::from_millis(500);

/// [`Kind::usual`] as it is written.
pub fn usual_testbed() -> &'static str {
    match Kind::usual() {
        Kind::Slurm => "slurm",
        _ => "lab",
    }
}

/// The exit code of a task that has nothing to do, since another of the same step measures.
pub fn bystander(kind: Kind) -> Option<i32> {
    if kind != Kind::Slurm {
        return None;
    }
    // What is wrong with the allocation is told by who measures.
    let allocation = Allocation::here().ok().flatten()?;
    match allocation.task {
        Some(task @ 1..) => {
            tell!("sonde: this is task {task} of the step: task 0 measures");
            await_input_end();
            Some(0)
        }
        _ => {
            let (count, nodes) = (allocation.nodes.len(), allocation.nodes.join(", "));
            tell!(
                "sonde: measuring the {count} nodes of Slurm job {}: {nodes}",
                allocation.job
            );
            None
        }
    }
}

/// How many nodes the allocation has that this process is in.
pub fn nodes() -> Option<usize> {
    let allocation = Allocation::here().ok().flatten()?;
    Some(allocation.nodes.len())
}

/// Slurm 22.05 kills a whole step ("error reading header: Connection reset by peer") when a task is gone before what srun
/// hands on to it has arrived: such a task waits for the end of its input, and a little.
fn await_input_end() {
    let end = Instant::now() + INPUT_TIMEOUT;
    let mut input = std::io::stdin().lock();
    let left = || end.saturating_duration_since(Instant::now());
    while matches!(
        sonde_channel::readable(&[input.as_fd()], left()),
        Ok(Woken::Readable(_))
    ) {
        match input.read(&mut [0; 4 << 10]) {
            Ok(1..) => {}
            Ok(0) | Err(_) => break,
        }
    }
    std::thread::sleep(LINGER);
}

/// How agents are started.
pub fn options(testbed: &TestbedPlan, listen: Listen) -> Result<ConnectOptions, Failure> {
    let mut options = ConnectOptions::new(launcher(testbed));
    options.listen = listen;
    if let Ok(text) = std::env::var(TOKEN_VARIABLE) {
        options.token = Some(Token::parse(&text).map_err(Failure::usage)?);
    }
    Ok(options)
}

fn launcher(testbed: &TestbedPlan) -> Launcher {
    let named = testbed.names.as_deref();
    match testbed.kind {
        Kind::Slurm => Launcher::Slurm {
            program: named.map(Into::into),
        },
        Kind::Listen => Launcher::User {
            hosts: testbed.count().unwrap_or(0),
        },
        _ => Launcher::Mpirun {
            arguments: named
                .unwrap_or_default()
                .split_whitespace()
                .map(Into::into)
                .collect(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_follow_the_plan() {
        let of = |kind, names: Option<&str>| {
            launcher(&TestbedPlan {
                kind,
                hosts: 4,
                names: names.map(Into::into),
                ..TestbedPlan::default()
            })
        };
        assert_eq!(of(Kind::Slurm, None), Launcher::Slurm { program: None });
        assert_eq!(of(Kind::Listen, Some("7")), Launcher::User { hosts: 7 });
        let words = vec!["--hostfile".to_owned(), "h".to_owned()];
        assert_eq!(
            of(Kind::Mpirun, Some(" --hostfile  h ")),
            Launcher::Mpirun { arguments: words }
        );
    }
}
