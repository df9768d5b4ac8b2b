//! What `sonde-rank` is told on its command line.
//!
//! Checked: `a_command_line_is_read`, `what_cannot_be_is_refused`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use sonde_message::{Library, Path};
use sonde_probe::library::Job;

/// How it is called.
pub const USAGE: &str = "sonde-rank --check PATH
       sonde-rank --native JOB
       sonde-rank --adapter PATH [--set NAME=VALUE]... [--cpus 0,1:2,3] [--ranks N] JOB

sonde starts it, on each host of a measurement; see `sonde probe latency --path openmpi:tcp`. PATH is a library and its
transport, as openmpi:tcp; JOB what is measured, as JSON. How native ranks meet is in $SONDE_NATIVE, which holds a secret.";

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub enum Order {
    /// Say whether this path can be had here.
    Check(Path),
    /// Be a rank.
    Be {
        /// How it joins the others.
        joins: Joins,
        /// The CPUs of each rank; empty where it may use all that it has.
        cpus: Vec<Vec<usize>>,
        /// What all ranks do.
        job: Box<Job>,
    },
}

/// How a rank joins the others.
#[derive(Debug, PartialEq, Eq)]
pub enum Joins {
    /// By sonde's own engine.
    Native,
    /// By a library.
    Adapter {
        /// Which.
        path: Path,
        /// Options of the adapter.
        settings: Vec<(String, String)>,
        /// How many there are, for a library that starts the others itself.
        ranks: Option<usize>,
    },
}

/// Reads the words behind the program's name.
///
/// # Errors
/// What is wrong, in words.
pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Order, String> {
    let mut words = words.into_iter();
    let (mut native, mut settings) = (false, Vec::new());
    let (mut adapter, mut cpus, mut ranks, mut job) = (None, None, None, None);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--check" => return Ok(Order::Check(path(&value()?)?)),
            "--native" => native = true,
            "--set" => {
                let text = value()?;
                let pair = text.split_once('=');
                let (name, value) =
                    pair.ok_or(format!("`{text}` sets nothing: write NAME=VALUE"))?;
                settings.push((name.to_string(), value.to_string()));
            }
            "--adapter" => adapter = Some(path(&value()?)?),
            "--cpus" => cpus = Some(seats(&value()?)?),
            "--ranks" => {
                let text = value()?;
                let number = text.parse().ok().filter(|number| *number > 0);
                ranks = Some(number.ok_or(format!("`{text}` is not a number of ranks"))?);
            }
            _ if word.starts_with('-') => return Err(format!("there is no option `{word}`")),
            _ if job.is_some() => return Err(format!("`{word}` is one word too many")),
            _ => {
                let read = Job::parse(&word).map_err(|error| error.to_string())?;
                job = Some(Box::new(read));
            }
        }
    }
    let joins = match (native, adapter) {
        (true, None) => Joins::Native,
        (false, Some(path)) if path.library == Library::Native => {
            return Err(format!("{path} takes no adapter: write --native"));
        }
        (false, Some(path)) => Joins::Adapter {
            path,
            settings,
            ranks,
        },
        _ => return Err("write either --native or --adapter".into()),
    };
    Ok(Order::Be {
        joins,
        cpus: cpus.unwrap_or_default(),
        job: job.ok_or("there is no job")?,
    })
}

fn path(text: &str) -> Result<Path, String> {
    text.parse()
        .map_err(|error: sonde_message::Unnamed| error.to_string())
}

/// `0,1:2` are the CPUs 0 and 1 of rank 0 and CPU 2 of rank 1.
fn seats(text: &str) -> Result<Vec<Vec<usize>>, String> {
    let number = |cpu: &str| {
        cpu.parse()
            .map_err(|_| format!("`{cpu}` of `{text}` is not a CPU"))
    };
    let seat = |seat: &str| seat.split(',').map(number).collect();
    text.split(':').map(seat).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_measure::{Sampling, Wait};
    use sonde_probe::library::Task;

    fn read(words: &[&str]) -> Result<Order, String> {
        parse(words.iter().map(|word| (*word).to_string()))
    }

    #[test]
    fn a_command_line_is_read() {
        let job = Job::new(Task::Latency(Sampling::LATENCY), Wait::Poll);
        let text = job.text();
        let order = read(&[
            "--adapter",
            "openmpi:sm",
            "--set",
            "idle=spin",
            "--set",
            "hint=a=b",
            "--cpus",
            "0,1:2",
            &text,
        ])
        .unwrap();
        let path = "openmpi:sm".parse().unwrap();
        let wanted = Order::Be {
            joins: Joins::Adapter {
                path,
                // A value may have a sign of equality.
                settings: vec![
                    ("idle".into(), "spin".into()),
                    ("hint".into(), "a=b".into()),
                ],
                ranks: None,
            },
            cpus: vec![vec![0, 1], vec![2]],
            job: Box::new(job),
        };
        assert_eq!(order, wanted);
        assert_eq!(
            read(&["--check", "pvm"]).unwrap(),
            Order::Check("pvm:default".parse().unwrap())
        );
        assert!(matches!(
            read(&["--native", &text]).unwrap(),
            Order::Be {
                joins: Joins::Native,
                ..
            }
        ));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let job = Job::new(Task::Latency(Sampling::LATENCY), Wait::Poll).text();
        for (words, said) in [
            (&["--check"][..], "--check needs a value"),
            (&["--check", "smoke"], "no path `smoke`"),
            (&["--adapter", "native:tcp", &job], "takes no adapter"),
            (&["--adapter", "pvm"], "no job"),
            (&["--adapter", "pvm", "{}"], "something else"),
            (&["--adapter", "pvm", "--cpus", "0,x", &job], "`x` of `0,x`"),
            (
                &["--adapter", "pvm", "--ranks", "0", &job],
                "`0` is not a number",
            ),
            (&["--adapter", "pvm", &job, &job], "one word too many"),
            (&["--set", "idle"], "sets nothing"),
            (&["--what"], "no option"),
            (&[&job], "either"),
        ] {
            let error = read(words).unwrap_err();
            assert!(error.contains(said), "{words:?}: {error}");
        }
    }
}
