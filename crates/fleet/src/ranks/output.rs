//! What launchers of ranks, and ranks, write beside a report, and what of it tells why a launch failed.
//!
//! Checked: the tests of `ranks` and of `mpi`; the fuzz target `launchers`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

/// What a launcher wrote to its output beside a report.
pub(crate) fn stray(output: &str) -> String {
    const MOST: usize = 4_000;
    output.chars().take(MOST).collect()
}

/// What MPICH's launcher and UCX say of a rank that a signal ended, with the cause in words.
///
/// The launcher ends with the statuses of all ranks joined by `|`, and takes the sum for a signal: where one was killed (9) and
/// another then aborted (6), it says `Terminated (signal 15)`, though no rank was. Its `EXIT CODE` is that of the rank whose PID
/// it prints, which may be another than the one that was killed. A rank aborts where it reads the memory of the killed one: UCX
/// takes the failure of process_vm_readv(2) for fatal, and names the process. To see it with MPICH 4.0 over UCX 1.13:
/// `sonde npb lu --class B --path mpich:sm`, then `kill -9` one rank; one of six to twenty such ends is of this kind.
pub(crate) fn cause_of_mpich(said: &str) -> String {
    const EXIT: &str = "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: ";
    let mut code: Option<u32> = None;
    let line = |line: &str| {
        if let Some((_, text)) = line.split_once("EXIT CODE: ") {
            code = text.trim().parse().ok();
        }
        let lost = line
            .split_once("process_vm_readv(pid=")
            .filter(|_| line.contains("No such process"));
        if let Some((_, rest)) = lost {
            let pid: String = rest.chars().take_while(char::is_ascii_digit).collect();
            return format!("process {pid} is gone, and another rank read its memory");
        }
        let signal = line
            .strip_prefix(EXIT)
            .and_then(|text| text.split_once("(signal "));
        let signal =
            signal.and_then(|(_, text)| text.trim_end().strip_suffix(')')?.parse::<u32>().ok());
        match (code, signal) {
            (Some(one), Some(all)) if one != all && one | all == all => {
                format!(
                    "ranks were ended by signal {one} and others, which the launcher joins to (signal {all})"
                )
            }
            _ => line.to_owned(),
        }
    };
    said.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// What a program said, to follow a sentence: its first telling lines.
pub(crate) fn words(errors: &str) -> String {
    const LINES: usize = 4;
    let lines = errors.lines().map(str::trim);
    // Rulers, and the warnings of launchers that nobody is to do anything about.
    let telling = lines.filter(|line| line.chars().any(char::is_alphanumeric));
    let mut own: Vec<&str> = telling
        .clone()
        .filter(|line| line.contains("sonde-rank") && !is_frame(line))
        .collect();
    if own.is_empty() {
        // Which rank it was that ended, as launchers say it among much else.
        let names = [
            "process rank",
            "PID ",
            "EXIT CODE: ",
            "(signal ",
            " is gone",
        ];
        let is_cause = |line: &&str| names.iter().any(|name| line.contains(name));
        own = telling.clone().filter(is_cause).collect();
    }
    if own.is_empty() {
        own = telling.collect();
    }
    own.truncate(LINES);
    if own.is_empty() {
        return String::new();
    }
    format!("; it said: {}", own.join(" / "))
}

/// Whether a line is of a stack, as glibc and UCX print it: `7  /tmp/sonde-rank(+0x2541de) [0x562e5eb711de]`. It names the program,
/// and no cause.
fn is_frame(line: &str) -> bool {
    line.contains("+0x") && line.ends_with(']')
}
