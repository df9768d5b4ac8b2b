//! Which real hosts to measure: a list on the command line, or a file.
//!
//! Model:   a list is `a,b[01-16],user@c:port`; a text with a `/` names a file with one of these words a line, `#`
//!          comments, and `address=` for the address on the network that is measured. A range keeps the width of its
//!          first number when that begins with 0; several ranges in a word are multiplied out, the last one runs fastest.
//! Checked: `a_list_is_read`, `ranges_keep_their_zeros`, `bad_lists_are_refused`, `a_file_is_read`, `bad_files_name_the_line`,
//!          `any_text_is_a_list_or_an_error`, `ranges_hold_all_their_numbers`.
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

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;

use sonde_units::excerpt;

/// The most hosts of a fleet.
pub const HOSTS_MAX: usize = 1_024;
/// A measurement is between two.
const HOSTS_MIN: usize = 2;

/// A host to be reached by ssh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// What it is called in results: as it was given, without the user.
    pub name: String,
    /// Who to be there; none leaves it to ssh's configuration.
    pub user: Option<String>,
    /// Its name or address, as ssh takes it.
    pub host: String,
    /// The port of its ssh server; none leaves it to ssh's configuration.
    pub port: Option<u16>,
    /// Its address on the network that is measured; none is the one by which ssh reached it.
    pub address: Option<IpAddr>,
}

/// A list of hosts that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The file cannot be read.
    #[error(
        "cannot read the hosts in {path}: {problem}; a text with a `/` names a file with one host a line"
    )]
    File {
        /// Its path.
        path: String,
        /// What the system said.
        problem: String,
    },
    /// A word is not a host.
    #[error("{place}`{}` is not a host: {problem}", excerpt(word))]
    Word {
        /// `FILE:LINE: `, or nothing.
        place: String,
        /// The word.
        word: String,
        /// What is wrong with it and the remedy.
        problem: String,
    },
    /// A host stands there twice.
    #[error("{place}host {} is named twice; name each host once", excerpt(name))]
    Twice {
        /// `FILE:LINE: `, or nothing.
        place: String,
        /// Its name.
        name: String,
    },
    /// Fewer than two.
    #[error(
        "{place}{found} of at least {HOSTS_MIN} hosts are named; write them as in `a,b` or `node[01-16]`, or name a file that lists them (`./hosts`)"
    )]
    Few {
        /// `FILE: `, or nothing.
        place: String,
        /// How many.
        found: usize,
    },
    /// More than can be steered.
    #[error("more than {HOSTS_MAX} hosts are named; name fewer")]
    Many,
}

/// The hosts that `text` names; `read` gives the text of a file.
///
/// # Errors
/// Every variant of [`TargetError`].
pub fn targets<E: std::fmt::Display>(
    text: &str,
    read: impl FnOnce(&Path) -> Result<String, E>,
) -> Result<Vec<Target>, TargetError> {
    let mut list = List::default();
    if text.contains('/') {
        let content = read(Path::new(text)).map_err(|problem| TargetError::File {
            path: text.into(),
            problem: problem.to_string(),
        })?;
        for (number, line) in (1_usize..).zip(content.lines()) {
            list.add_line(&format!("{text}:{number}: "), line)?;
        }
    } else {
        for word in split_outside_brackets(text) {
            list.add("", word.trim(), None)?;
        }
    }
    if list.targets.len() < HOSTS_MIN {
        let place = match text.contains('/') {
            true => format!("{text}: "),
            false => String::new(),
        };
        return Err(TargetError::Few {
            place,
            found: list.targets.len(),
        });
    }
    Ok(list.targets)
}

#[derive(Default)]
struct List {
    targets: Vec<Target>,
    seen: BTreeSet<(String, Option<u16>)>,
}

impl List {
    fn add_line(&mut self, place: &str, line: &str) -> Result<(), TargetError> {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else {
            return Ok(());
        };
        let mut address = None;
        for word in words {
            let refuse = |problem: &str| TargetError::Word {
                place: place.into(),
                word: word.into(),
                problem: problem.into(),
            };
            let Some(text) = word.strip_prefix("address=") else {
                return Err(refuse(
                    "after a host stands nothing but `address=` and its numeric address; write one host a line",
                ));
            };
            let parsed = text.parse::<IpAddr>().ok().filter(|_| address.is_none());
            let parsed = parsed.ok_or_else(|| {
                refuse("write one numeric address, as in `address=10.0.0.1` or `address=fd00::1`")
            })?;
            address = Some(parsed);
        }
        self.add(place, name, address)
    }

    fn add(&mut self, place: &str, word: &str, address: Option<IpAddr>) -> Result<(), TargetError> {
        let refuse = |problem: String| TargetError::Word {
            place: place.into(),
            word: word.into(),
            problem,
        };
        let targets = parse(word).map_err(refuse)?;
        if address.is_some() && targets.len() > 1 {
            return Err(refuse(format!(
                "it names {} hosts, which cannot share one address; give each a line",
                targets.len()
            )));
        }
        for target in targets {
            if !self.seen.insert((target.host.clone(), target.port)) {
                return Err(TargetError::Twice {
                    place: place.into(),
                    name: target.name,
                });
            }
            self.targets.push(Target { address, ..target });
            if self.targets.len() > HOSTS_MAX {
                return Err(TargetError::Many);
            }
        }
        Ok(())
    }
}

/// At the commas that are not within brackets.
fn split_outside_brackets(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    text.split(|letter| {
        match letter {
            '[' => depth = depth.saturating_add(1),
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth <= 0
    })
    .collect()
}

/// `[user@]host[:port]` with ranges in the host.
fn parse(word: &str) -> Result<Vec<Target>, String> {
    if word.is_empty() {
        return Err("a name is missing between two commas".into());
    }
    let (user, rest) = match word.rsplit_once('@') {
        Some((user, rest)) => (Some(user), rest),
        None => (None, word),
    };
    if let Some(user) = user {
        plain(user, "user")?;
    }
    let (host, port) = split_port(rest)?;
    let literal = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(host);
    let hosts = if literal.parse::<IpAddr>().is_ok() {
        vec![literal.to_string()]
    } else {
        expand(host)?
    };
    hosts
        .into_iter()
        .map(|host| {
            if host.parse::<IpAddr>().is_err() {
                plain(&host, "host")?;
            }
            let name = match port {
                Some(port) if host.contains(':') => format!("[{host}]:{port}"),
                Some(port) => format!("{host}:{port}"),
                None => host.clone(),
            };
            Ok(Target {
                name,
                user: user.map(str::to_owned),
                host,
                port,
                address: None,
            })
        })
        .collect()
}

/// A colon outside brackets begins the port, unless there are several: then the word is an IPv6 address.
fn split_port(word: &str) -> Result<(&str, Option<u16>), String> {
    if word.parse::<IpAddr>().is_ok() {
        return Ok((word, None));
    }
    let behind = word.rsplit_once(']').map_or(word, |(_, behind)| behind);
    let Some((_, port)) = behind.split_once(':') else {
        return Ok((word, None));
    };
    let host = word
        .strip_suffix(port)
        .and_then(|host| host.strip_suffix(':'));
    let written = port;
    let port = written.parse().ok().filter(|port| *port > 0);
    let port = port.ok_or_else(|| {
        format!(
            "`{}` is not a port: write 1 to 65535 after the colon, and an IPv6 address with a port in brackets",
            excerpt(written)
        )
    })?;
    Ok((host.unwrap_or(word), Some(port)))
}

/// What may stand in a name. A leading `-` would be an option to ssh.
fn plain(name: &str, what: &str) -> Result<(), String> {
    let letters = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if name.is_empty() {
        return Err(format!("the {what} is missing"));
    }
    if !letters || name.starts_with('-') {
        return Err(format!(
            "the {what} `{}` has other characters than letters, digits, `.`, `_` and `-`, or begins with `-`",
            excerpt(name)
        ));
    }
    Ok(())
}

/// All names of a pattern with ranges.
fn expand(pattern: &str) -> Result<Vec<String>, String> {
    let mut names = vec![String::new()];
    let mut rest = pattern;
    loop {
        let (before, after) = rest
            .split_once('[')
            .map_or((rest, None), |(a, b)| (a, Some(b)));
        if before.contains(']') {
            return Err("a `]` has no `[` before it".into());
        }
        for name in &mut names {
            name.push_str(before);
        }
        let Some(after) = after else {
            return Ok(names);
        };
        let (range, after) = after
            .split_once(']')
            .ok_or("a `[` is not closed; write a range as in `node[01-16]`")?;
        let numbers = numbers(range)?;
        if names.len().saturating_mul(numbers.len()) > HOSTS_MAX {
            return Err(format!("it names more than {HOSTS_MAX} hosts"));
        }
        names = names
            .iter()
            .flat_map(|name| numbers.iter().map(move |number| format!("{name}{number}")))
            .collect();
        rest = after;
    }
}

/// The numbers of `1,4-6`.
fn numbers(range: &str) -> Result<Vec<String>, String> {
    let bad = || {
        format!(
            "`[{range}]` is not a range; write numbers and ranges of them, as in `[01-16]` or `[1,4-6]`"
        )
    };
    let number = |text: &str| {
        let digits =
            !text.is_empty() && text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit());
        digits
            .then(|| text.parse::<u32>().ok())
            .flatten()
            .ok_or_else(bad)
    };
    let mut all = Vec::new();
    for part in range.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (low, high) = (number(first)?, number(last)?);
        if low > high {
            return Err(format!("the range {first}-{last} runs backwards"));
        }
        if high.abs_diff(low) as usize >= HOSTS_MAX {
            return Err(format!(
                "the range {first}-{last} has more than {HOSTS_MAX} numbers"
            ));
        }
        let width = if first.starts_with('0') {
            first.len()
        } else {
            0
        };
        all.extend((low..=high).map(|number| format!("{number:0width$}")));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_none(path: &Path) -> std::io::Result<String> {
        panic!("{} was read", path.display())
    }

    fn names(text: &str) -> Vec<String> {
        let targets = targets(text, read_none).unwrap_or_else(|error| panic!("{error}"));
        targets.into_iter().map(|target| target.name).collect()
    }

    #[test]
    fn a_list_is_read() {
        let read = targets("a, root@c:2222 ,10.0.0.7,[fd00::1]:22,fd00::2", read_none).unwrap();
        let short: Vec<_> = read
            .iter()
            .map(|target| {
                (
                    &*target.name,
                    target.user.as_deref(),
                    &*target.host,
                    target.port,
                )
            })
            .collect();
        assert_eq!(
            short,
            [
                ("a", None, "a", None),
                ("c:2222", Some("root"), "c", Some(2222)),
                ("10.0.0.7", None, "10.0.0.7", None),
                ("[fd00::1]:22", None, "fd00::1", Some(22)),
                ("fd00::2", None, "fd00::2", None),
            ]
        );
        assert!(read.iter().all(|target| target.address.is_none()));
    }

    #[test]
    fn ranges_keep_their_zeros() {
        assert_eq!(names("a,b[08-11]"), ["a", "b08", "b09", "b10", "b11"]);
        assert_eq!(names("n[8-11]"), ["n8", "n9", "n10", "n11"]);
        assert_eq!(names("n[1,004-005,9]x"), ["n1x", "n004x", "n005x", "n9x"]);
        assert_eq!(names("r[1-2]n[0-1]"), ["r1n0", "r1n1", "r2n0", "r2n1"]);
        assert_eq!(
            names("u@n[1-2].cluster:23"),
            ["n1.cluster:23", "n2.cluster:23"]
        );
    }

    #[test]
    fn bad_lists_are_refused() {
        for (text, said) in [
            ("", "between two commas"),
            ("a", "1 of at least 2 hosts"),
            ("a,,b", "between two commas"),
            ("a,b,a", "host a is named twice"),
            ("n[1-3],n2", "host n2 is named twice"),
            ("a:0,b", "`0` is not a port"),
            ("a:70000,b", "`70000` is not a port"),
            ("a:,b", "not a port"),
            ("fd00::1:x,b", "not a port"),
            ("a,-oProxyCommand=x", "begins with `-`"),
            ("-l@a,b", "begins with `-`"),
            ("@a,b", "the user is missing"),
            ("u@,b", "the host is missing"),
            ("a b,c", "`a b` has other characters"),
            ("a;reboot,c", "has other characters"),
            ("n[1-3,b", "is not closed"),
            ("n1-3],b", "has no `[`"),
            ("n[],b", "is not a range"),
            ("n[a-b],b", "is not a range"),
            ("n[1-2-3],b", "is not a range"),
            ("n[5-2],b", "runs backwards"),
            ("n[1-99999],b", "more than 1024"),
            ("n[1-100]x[1-100],b", "more than 1024"),
            ("n[1-99999999999999999999],b", "is not a range"),
            ("n[1-600],m[1-600]", "more than 1024 hosts are named"),
        ] {
            let error = targets(text, read_none).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn a_file_is_read() {
        let text =
            "# my hosts\n\n  a address=10.0.0.1 # first\nroot@b:23\taddress=fd00::2\nn[1-2]\n";
        let read = targets("./hosts", |path| {
            assert_eq!(path, Path::new("./hosts"));
            Ok::<_, String>(text.into())
        })
        .unwrap();
        let short: Vec<_> = read
            .iter()
            .map(|target| {
                (
                    &*target.name,
                    target.address.map(|address| address.to_string()),
                )
            })
            .collect();
        let some = |text: &str| Some(text.to_string());
        assert_eq!(
            short,
            [
                ("a", some("10.0.0.1")),
                ("b:23", some("fd00::2")),
                ("n1", None),
                ("n2", None)
            ]
        );
    }

    #[test]
    fn bad_files_name_the_line() {
        for (text, said) in [
            ("a\nb\na\n", "x/y:3: host a is named twice"),
            ("a\n\nb!\n", "x/y:3: `b!` is not a host"),
            (
                "a b\n",
                "x/y:1: `b` is not a host: after a host stands nothing but `address=`",
            ),
            (
                "a address=b\n",
                "x/y:1: `address=b` is not a host: write one numeric address",
            ),
            (
                "a address=10.0.0.1 address=10.0.0.2\n",
                "write one numeric address",
            ),
            (
                "n[1-2] address=10.0.0.1\n",
                "it names 2 hosts, which cannot share one address",
            ),
            ("# nobody\n", "x/y: 0 of at least 2"),
        ] {
            let error = targets("x/y", |_| Ok::<_, String>(text.into()))
                .unwrap_err()
                .to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
        let missing = |_: &Path| Err("no such file");
        let error = targets("./none", missing).unwrap_err().to_string();
        assert!(
            error.contains("./none") && error.contains("one host a line"),
            "{error}"
        );
    }

    proptest! {
        #[test]
        fn any_text_is_a_list_or_an_error(text in "[a-c0-9@:,\\[\\]. -]{0,40}") {
            if let Ok(read) = targets(&text, read_none) {
                let unique: BTreeSet<_> = read.iter().map(|target| &target.name).collect();
                prop_assert!(unique.len() == read.len() && (2..=HOSTS_MAX).contains(&read.len()));
                prop_assert!(read.iter().all(|target| !target.host.starts_with('-') && !target.host.is_empty()));
            }
        }

        #[test]
        fn ranges_hold_all_their_numbers(low in 0u32..2_000, more in 1u32..200, width in 0usize..6) {
            let high = low + more;
            let read = names(&format!("n[{low:0width$}-{high}]"));
            prop_assert_eq!(read.len() as u32, more + 1);
            for (number, name) in (low..=high).zip(&read) {
                let padded = if format!("{low:0width$}").starts_with('0') {
                    let width = width.max(1);
                    format!("n{number:0width$}")
                } else {
                    format!("n{number}")
                };
                prop_assert_eq!(name, &padded);
            }
        }
    }
}
