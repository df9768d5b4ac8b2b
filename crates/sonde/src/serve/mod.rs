//! `sonde report serve`: the reports of a store, for a browser on this machine.
//!
//! Model:   the pages are those that `sonde report html`, `compare --html` and `history --html` write, and a list of the runs. The store is
//!          only looked at. Three kinds of threads: this one has the sockets ([`sockets`]) and never waits for anything else, one reads
//!          the store ([`reads`]), two make pages ([`pages`]) at the lowest priority: what is measured in the same session meanwhile
//!          keeps the CPU, and another session its share. Only a loopback address is listened at, and only requests that name it are answered ([`request`]):
//!          a name of somebody else that leads here is refused.
//! Source:  RFC 9110, RFC 9112; W3C Content Security Policy 3. Deviations: one request a connection, and no Date.
//! Checked: `only_loopback_is_listened_at`; `tests/serve.rs`, over raw sockets; `web/test/pages.spec.ts`, in a browser.

mod pages;
mod reads;
mod reply;
mod request;
mod sockets;

use crate::campaign::interruption;
use crate::failure::Failure;
use crate::output::{self, say};
use clap::Args;
use reads::Reads;
pub use request::{HEAD_BYTES_MAX, Hosts, parse};
use sockets::Sockets;
use sonde_record::Store;
use sonde_report::PageError;
use sonde_sys::tell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

/// What is typed, for the help.
pub const EXAMPLES: &str = "Examples:
  sonde report serve --open
  sonde report serve --listen 127.0.0.1:8080 --out /var/lib/sonde
  ssh -L 8080:127.0.0.1:8080 HOST sonde report serve --listen 127.0.0.1:8080     then open http://127.0.0.1:8080/ here

Nothing is written, and a run that has not ended is shown anew every 10 s. Every user of this machine can read the pages.";

/// Of which store, and where.
#[derive(Debug, Args)]
pub struct ServeOptions {
    /// The folder of the store.
    #[arg(short = 'o', long, alias = "output", value_name = "DIR", default_value = crate::cli::OUT)]
    out: PathBuf,
    /// Listen at this loopback address; port 0 is any that is free.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0", value_parser = loopback)]
    listen: SocketAddr,
    /// Open the list of runs in the browser.
    #[arg(long)]
    open: bool,
}

/// A loopback address with its port.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    let named = text.strip_prefix("localhost:").or(Some(text));
    let of_port = named.and_then(|port| port.parse::<u16>().ok());
    let local = of_port.map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    let address = local.map_or_else(|| text.parse::<SocketAddr>(), Ok);
    let address = address.map_err(|_| {
        format!("`{text}` is not an address with a port: write 127.0.0.1:8080, or [::1]:8080")
    })?;
    if !address.ip().is_loopback() {
        let port = address.port();
        let shown = if port == 0 { 8_080 } else { port };
        return Err(format!(
            "{} is not a loopback address, and reports are for this machine alone: listen at 127.0.0.1:{shown}, and on the other machine \
             run `ssh -L {shown}:127.0.0.1:{shown} HOST` and open http://127.0.0.1:{shown}/ there",
            address.ip()
        ));
    }
    Ok(address)
}

/// Serves until it is interrupted; the exit code.
///
/// # Errors
/// There is no store or no page, or the address cannot be listened at.
pub fn run(options: &ServeOptions) -> Result<i32, Failure> {
    // A store that cannot be looked at is said here, where a person reads it.
    drop(Store::look(&options.out).map_err(Failure::cannot)?);
    let policy = sonde_report::policy().ok_or_else(|| Failure::cannot(PageError::Absent))?;
    let cannot = |error: std::io::Error| {
        Failure::cannot(format!(
            "cannot listen at {}: {error}; choose another port with --listen",
            options.listen
        ))
    };
    let listener = TcpListener::bind(options.listen).map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let interrupted = interruption()?;
    let reads = Reads::start(&options.out)?;
    let hosts = Hosts::of(address);
    let sockets = Sockets::new(listener, hosts, reads, policy)?;
    let url = format!("http://{address}/");
    say!(
        "sonde serves the runs of {} at {url} until Ctrl-C",
        options.out.display()
    );
    // Nobody can open an address that nobody can read.
    if output::code(0) != 0 {
        return Ok(0);
    }
    if options.open {
        output::open(Path::new(&url));
    }
    sockets.serve(&interrupted)?;
    tell!("sonde: no longer serving");
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_listened_at() {
        for (text, address) in [
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("127.9.9.9:0", "127.9.9.9:0"),
            ("[::1]:8080", "[::1]:8080"),
            ("localhost:8080", "127.0.0.1:8080"),
            ("8080", "127.0.0.1:8080"),
        ] {
            assert_eq!(loopback(text).unwrap().to_string(), address);
        }
        for text in [
            "0.0.0.0:8080",
            "[::]:8080",
            "10.0.0.1:8080",
            "[::ffff:127.0.0.1]:8080",
        ] {
            let why = loopback(text).unwrap_err();
            assert!(why.contains("`ssh -L 8080:127.0.0.1:8080 HOST`"), "{why}");
        }
        for text in ["", "127.0.0.1", "example.org:80", "localhost:http", "::1"] {
            let why = loopback(text).unwrap_err();
            assert!(why.contains("write 127.0.0.1:8080"), "{text}: {why}");
        }
    }
}
