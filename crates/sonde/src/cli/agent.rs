//! The options of `sonde agent`.

use crate::failure::Failure;
use clap::Args;
use sonde_fleet::{Joining, TOKEN_VARIABLE, Token};
use std::path::PathBuf;
use std::time::Duration;

/// Whom to serve.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  SONDE_TOKEN=... sonde agent --connect 10.0.0.1:7000     on each host, for `sonde assess --testbed listen:N`

The token is read from the variable SONDE_TOKEN or from a file, never from the command line, where others could see it.")]
pub struct AgentOptions {
    /// Connect to this orchestrator, instead of standard input and output.
    #[arg(long, value_name = "HOST:PORT")]
    connect: Option<String>,
    /// The file that holds the run's token, instead of the variable SONDE_TOKEN.
    #[arg(long, value_name = "FILE", requires = "connect")]
    token_file: Option<PathBuf>,
    /// The host's name in results [default: its node name in Slurm, else its host name].
    #[arg(long, requires = "connect")]
    name: Option<String>,
    /// Timeout of the connection, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400), requires = "connect")]
    timeout: u64,
}

impl AgentOptions {
    /// Serves until the orchestrator ends; the exit code.
    pub fn run(self) -> Result<i32, Failure> {
        let Some(to) = self.connect else {
            let served = sonde_probe::agent::run(std::io::stdin(), std::io::stdout());
            return served.map(|()| 0).map_err(Failure::cannot);
        };
        let joining = Joining {
            to,
            token: token(self.token_file)?,
            name: self.name,
            timeout: Duration::from_secs(self.timeout),
        };
        let joined = sonde_fleet::join(&joining);
        joined.map(|()| 0).map_err(Failure::cannot)
    }
}

fn token(file: Option<PathBuf>) -> Result<Token, Failure> {
    let text = match file {
        Some(path) => sonde_sys::file::text(&path).map_err(|error| {
            Failure::usage(format!("cannot read the token in {}: {error}", path.display()))
        })?,
        None => std::env::var(TOKEN_VARIABLE).map_err(|_| {
            Failure::usage(format!(
                "an agent that connects needs the run's token, which the orchestrator prints or hands on: set {TOKEN_VARIABLE}, or \
                 name its file with `--token-file`"
            ))
        })?,
    };
    Token::parse(&text).map_err(Failure::usage)
}
