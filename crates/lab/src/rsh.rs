//! A remote shell by ssh's command line, for programs that start others on the hosts of a lab that way.
//!
//! Model:   the first word that is not an option is the host; the words behind it, joined by spaces, are a command of `sh` there.
//!          Of the options `-n` gives an empty input and `-f` goes on when the call has ended; the others, and a user, are
//!          passed over: a lab's hosts need none of them. Options may stand behind the host too, as rsh has them. Who is
//!          root stays root. The environment and the folder go along.
//! Source:  ssh(1) of OpenSSH 9.2; rsh(1) of netkit 0.17.
//! Checked: `a_command_line_of_ssh_is_read`, `what_cannot_be_run_is_refused`; `lab_libraries` of the command.
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

use crate::config::HOSTS;
use crate::exec::{Exec, ExecError, Session, follow, signals};
use sonde_sys::tell;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::iter::Peekable;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

/// The first argument of a remote shell.
pub(crate) const REMOTE_SHELL: &str = "--sonde-lab-rsh";
/// Options of ssh behind which a value stands.
const VALUED: &[u8] = b"BbcDEeFIiJLlmOopQRSWw";
const USAGE: i32 = 64;

/// A command for a host.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RemoteCommand {
    host: u16,
    command: OsString,
    is_detached: bool,
    has_no_input: bool,
}

/// Runs what stands behind `rsh`; the exit code is the command's.
pub(crate) fn run(words: impl Iterator<Item = OsString>) -> i32 {
    let words: Vec<_> = words.collect();
    let remote = match RemoteCommand::parse(&words, &Here::read()) {
        Ok(remote) => remote,
        Err(problem) => {
            tell!("rsh: {problem}");
            return USAGE;
        }
    };
    remote.run().unwrap_or_else(|error| {
        tell!("rsh: {error}");
        error.code()
    })
}

impl RemoteCommand {
    fn run(&self) -> Result<i32, ExecError> {
        let root = sonde_sys::process::ids().0 == 0;
        let exec = Exec {
            detached: self.is_detached,
            ..Exec::here(&["sh".into(), "-c".into(), self.command.clone()], root)
        };
        let signals = signals().map_err(|e| ExecError::connection(self.host, e))?;
        let nothing = File::open("/dev/null").map_err(|e| ExecError::connection(self.host, e))?;
        let (input, output, error) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
        let input = if self.has_no_input {
            nothing.as_fd()
        } else {
            input.as_fd()
        };
        let streams = [input, output.as_fd(), error.as_fd()];
        let (session, _) = Session::inside(self.host, &exec, streams)?;
        if self.is_detached {
            return Ok(0);
        }
        follow(&[session], &signals)
    }

    /// Reads what stands behind `rsh`.
    pub(crate) fn parse(words: &[OsString], here: &Here) -> Result<Self, String> {
        let mut remote = Self::default();
        let mut words = words.iter().peekable();
        remote.pass_options(&mut words);
        let host = words
            .next()
            .ok_or("the host is missing: write `rsh h2 COMMAND`")?;
        remote.host = host_number(host, here)?;
        remote.pass_options(&mut words);
        let rest: Vec<&OsStr> = words.map(OsString::as_os_str).collect();
        if rest.is_empty() {
            return Err(format!(
                "there is no command for {}: write `rsh {0} COMMAND`",
                host.to_string_lossy()
            ));
        }
        remote.command = rest.join(OsStr::new(" "));
        Ok(remote)
    }

    fn pass_options<'a>(&mut self, words: &mut Peekable<impl Iterator<Item = &'a OsString>>) {
        let letters = |word: &OsString| {
            let letters = word.as_bytes().strip_prefix(b"-")?;
            (!letters.is_empty()).then(|| letters.to_vec())
        };
        let is_option = |word: &&OsString| letters(word).is_some();
        while let Some(word) = words.next_if(is_option) {
            let letters = letters(word).unwrap_or_default();
            if letters == b"-" {
                return;
            }
            let last = letters.len().saturating_sub(1);
            for (at, letter) in letters.iter().enumerate() {
                self.has_no_input |= matches!(letter, b'n' | b'f');
                self.is_detached |= *letter == b'f';
                if VALUED.contains(letter) {
                    if at == last {
                        words.next();
                    }
                    break;
                }
            }
        }
    }
}

/// Where it is typed, as a host's programs are told.
pub(crate) struct Here {
    /// The number of the host.
    number: Option<u16>,
    /// What hosts are called, as /etc/hosts has it.
    names: String,
}

impl Here {
    /// On a host by its number, of so many.
    pub(crate) const fn of(number: u16, names: String) -> Self {
        Self {
            number: Some(number),
            names,
        }
    }

    fn read() -> Self {
        let own = std::env::var("SONDE_HOST").ok();
        Self {
            number: own.and_then(|name| named(&name)),
            // Where it cannot be read, names are h1 and so on.
            names: std::fs::read_to_string("/etc/hosts").unwrap_or_default(),
        }
    }
}

impl Here {
    /// The number of a host by any of its names or addresses.
    fn called(&self, name: &str) -> Option<u16> {
        let lines = self.names.lines().map(str::split_whitespace);
        let mut of = lines.filter(|words| words.clone().any(|word| word == name));
        of.next()?.find_map(named)
    }
}

/// The number of a host by its name or address, inside a lab.
///
/// # Errors
/// A sentence, where no host is called so.
pub fn number(text: &str) -> Result<u16, String> {
    host_number(OsStr::new(text), &Here::read())
}

/// The number in the name of a host.
fn named(name: &str) -> Option<u16> {
    let short = name.split_once("-eth").map_or(name, |(host, _)| host);
    short.strip_prefix('h')?.parse().ok()
}

/// The number of a host, by its name or address on any network, with or without a user.
fn host_number(word: &OsStr, here: &Here) -> Result<u16, String> {
    let text = word.to_string_lossy();
    let name = text.rsplit('@').next().unwrap_or_default();
    let number = match name.parse::<Ipv4Addr>() {
        Ok(address) if address.is_loopback() => here.number,
        Ok(_) => here.called(name),
        Err(_) if name == "localhost" => here.number,
        Err(_) => here.called(name).or_else(|| named(name)),
    };
    number
        .filter(|number| (1..=*HOSTS.end()).contains(number))
        .ok_or_else(|| {
            format!(
                "`{text}` is not a host of a lab: write h1, h2 and so on, or an address as 10.9.0.2"
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<RemoteCommand, String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        RemoteCommand::parse(
            &words,
            &Here::of(
                3,
                "127.0.0.1 localhost\n10.9.0.4\tdata\th4\n10.9.1.5\th5-eth1\n".into(),
            ),
        )
    }

    #[test]
    fn a_command_line_of_ssh_is_read() {
        for (line, host, command) in [
            // Open MPI, Hydra, PVM.
            (
                "-x h2 PATH=/a:$PATH ; orted -mca x y",
                2,
                "PATH=/a:$PATH ; orted -mca x y",
            ),
            (
                "-x h4 \"hydra_pmi_proxy\" --rmk user",
                4,
                "\"hydra_pmi_proxy\" --rmk user",
            ),
            ("h2 -l me pvmd -s -d0x0 -nh2", 2, "pvmd -s -d0x0 -nh2"),
            // Values apart and together, clusters, and the end of the options.
            (
                "-o BatchMode=yes -p 22 -oX=y -p2222 me@h12 hostname",
                12,
                "hostname",
            ),
            ("-tt -Ai key h2 a -l b", 2, "a -l b"),
            ("-- h2 -- -x", 2, "-x"),
            // Other names of a host.
            ("h7-eth1 a", 7, "a"),
            ("me@data a", 4, "a"),
            ("10.9.1.5 a", 5, "a"),
            ("localhost a", 3, "a"),
            ("127.0.0.1 a", 3, "a"),
        ] {
            let read = RemoteCommand {
                host,
                command: command.into(),
                ..RemoteCommand::default()
            };
            assert_eq!(parse(line), Ok(read), "{line}");
        }
        let silent = parse("-n h2 a").unwrap();
        assert!(silent.has_no_input && !silent.is_detached);
        let detached = parse("h2 -qf a b").unwrap();
        assert!(detached.has_no_input && detached.is_detached);
        assert_eq!(detached.command, "a b");
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        for (line, said) in [
            ("-x", "the host is missing"),
            ("-p 22", "the host is missing"),
            ("h2", "there is no command for h2: write `rsh h2 COMMAND`"),
            ("h2 -n", "there is no command for h2"),
            ("example.org a", "`example.org` is not a host of a lab"),
            ("10.8.0.2 a", "`10.8.0.2` is not a host"),
            ("h0 a", "`h0` is not a host"),
            ("h257 a", "`h257` is not a host"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(said), "{line}: {error}");
        }
    }
}
