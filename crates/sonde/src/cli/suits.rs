//! `sonde suits`: its options, lowered to a task.

use super::output::OutputOptions;
use super::{OUT, typed};
use crate::failure::Failure;
use crate::suits::{Asked, Task};
use clap::Args;
use sonde_record::LATEST;
use sonde_units::{BitRate, Bytes};
use std::path::PathBuf;

/// Examples behind `--help`.
pub const EXAMPLES: &str = "Examples:
  sonde suits --list                                what applications take, as a study prints it
  sonde probe throughput --path tcp,udp --network ethernet-10,fddi --size 64,1KiB,mtu
  sonde suits web                                   which of these networks carries it, and how many at once
  sonde suits tar --run before
  sonde suits --rate 30Mbit --datagram 1KiB         an application of your own
  sonde suits ./applications.toml --json            a file of them, as docs/suits.md lays it out";

/// What `sonde suits` takes.
#[derive(Debug, Args)]
pub struct SuitsOptions {
    /// The application: a name of `--list`, as web, tar or mpeg2, or a FILE.toml of several.
    #[arg(value_name = "APPLICATION", required_unless_present_any = ["list", "rate"], conflicts_with_all = ["list", "rate"])]
    application: Option<String>,
    /// What an application of your own needs: bits per second of user data.
    #[arg(long, value_name = "RATE", value_parser = BitRate::of_option, requires = "datagram", conflicts_with = "list")]
    rate: Option<BitRate>,
    /// User bytes of its datagrams.
    #[arg(long, value_name = "BYTES", value_parser = typed::bytes, requires = "rate")]
    datagram: Option<u64>,
    /// Print the applications that are known, with their rates as printed.
    #[arg(long)]
    list: bool,
    /// The run that says what networks give: its id or a prefix of it, its name, latest, latest~1.
    #[arg(long, value_name = "RUN", default_value = LATEST)]
    run: String,
    /// The folder of the store.
    #[arg(short = 'o', long, alias = "output", value_name = "DIR", default_value = OUT)]
    out: PathBuf,
    #[command(flatten)]
    output: OutputOptions,
}

impl SuitsOptions {
    /// Answers; the exit code.
    ///
    /// # Errors
    /// There is no such application, or no run to judge by.
    pub fn run(self) -> Result<i32, Failure> {
        let asked = match (self.application, self.rate, self.datagram) {
            (Some(word), ..) => Asked::Named(word),
            (None, Some(rate), Some(datagram)) => Asked::Own(rate, Bytes(datagram)),
            _ => Asked::List,
        };
        Task {
            asked,
            out: self.out,
            run: self.run,
            print: self.output.take()?,
        }
        .run()
    }
}
