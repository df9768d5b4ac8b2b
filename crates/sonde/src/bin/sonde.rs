//! The program `sonde`: the command and nothing else.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    sonde_cli::main()
}
