//! An agent over stdio and nothing else: what the conversation tests start as hosts.
#![forbid(unsafe_code)]

fn main() -> sonde_probe::Result<()> {
    sonde_probe::agent::run(std::io::stdin(), std::io::stdout())
}
