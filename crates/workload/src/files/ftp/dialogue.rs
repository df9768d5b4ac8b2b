//! The lines of FTP's control connection: commands, replies and addresses, as texts.
//!
//! Model:   a command is a word and an argument in one line; a reply is a code of three digits and a text, in several lines where the code is
//!          followed by `-`, up to the line that has the same code and a space. Addresses are of four forms: PORT and the reply of PASV by six
//!          numbers, EPRT and the reply of EPSV between delimiters.
//! Source:  RFC 959 §4.1, §4.2, §5.3; RFC 2428 §2, §3; RFC 3659 §4.
//! Units:   a line is at most [`LINE_BYTES_MAX`] bytes without its end.
//! Checked: the tests below; the fuzz target `files`.
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

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The longest line, without its end.
pub const LINE_BYTES_MAX: usize = 4_096;
/// The most lines of a reply.
const REPLY_LINES_MAX: usize = 1_000;

/// Why a line or a reply is of no use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It does not end.
    #[error("a line of more than {LINE_BYTES_MAX} bytes")]
    TooLong,
    /// No reply has so many lines.
    #[error("a reply of more than {REPLY_LINES_MAX} lines")]
    TooMany,
    /// It has no code.
    #[error("`{0}` is not a reply of FTP")]
    NoReply(String),
    /// The address of a reply cannot be read.
    #[error("`{0}` has no address or port")]
    NoAddress(String),
}

/// Bytes of a connection, cut into lines.
#[derive(Debug, Default)]
pub struct Lines {
    bytes: Vec<u8>,
    read: usize,
}

impl Lines {
    /// Bytes that came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.read);
        self.read = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole line without its end, CR LF or LF alone.
    ///
    /// # Errors
    /// It is too long.
    pub fn poll_line(&mut self) -> Result<Option<Vec<u8>>, Malformed> {
        let rest = self.bytes.get(self.read..).unwrap_or_default();
        let Some(at) = memchr::memchr(b'\n', rest) else {
            return match rest.len() > LINE_BYTES_MAX {
                true => Err(Malformed::TooLong),
                false => Ok(None),
            };
        };
        let line = rest.get(..at).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > LINE_BYTES_MAX {
            return Err(Malformed::TooLong);
        }
        let line = line.to_vec();
        self.read = self.read.saturating_add(at).saturating_add(1);
        Ok(Some(line))
    }
}

/// What a client asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// USER: who it is.
    User(Vec<u8>),
    /// PASS: by which password.
    Pass(Vec<u8>),
    /// CWD, or CDUP as `..`.
    Directory(Vec<u8>),
    /// PWD.
    WhichDirectory,
    /// TYPE A.
    Ascii,
    /// TYPE I.
    Binary,
    /// PASV.
    Passive,
    /// EPSV; ALL promises that no other form will come.
    ExtendedPassive {
        /// EPSV ALL.
        all: bool,
    },
    /// PORT or EPRT.
    Port(SocketAddr),
    /// RETR.
    Retrieve(Vec<u8>),
    /// STOR.
    Store(Vec<u8>),
    /// LIST or NLST, of a directory.
    List {
        /// By lines as of `ls -l`.
        long: bool,
        /// Of what; options are left out.
        path: Vec<u8>,
    },
    /// SIZE.
    Size(Vec<u8>),
    /// DELE.
    Delete(Vec<u8>),
    /// FEAT.
    Features,
    /// SYST.
    System,
    /// MODE S, STRU F and ALLO: what there is no choice of.
    Usual,
    /// NOOP.
    Nothing,
    /// SITE COUNTS: what the server counted, for the measuring side.
    Counts,
    /// SITE BARE ON or OFF: bytes are moved without store, disk and translation.
    Bare(bool),
    /// SITE HASH: SHA-256 of a file.
    Hash(Vec<u8>),
    /// QUIT.
    Quit,
    /// A word that is known, with an argument that is not.
    Wrong,
    /// Any other.
    Unknown,
}

impl Command {
    /// What a line asks.
    pub fn parse(line: &[u8]) -> Self {
        let end = memchr::memchr(b' ', line).unwrap_or(line.len());
        let (word, rest) = line.split_at(end);
        let word = word.to_ascii_uppercase();
        let argument = rest.strip_prefix(b" ").unwrap_or(rest);
        let text = || std::str::from_utf8(argument).map(str::trim).unwrap_or("?");
        let named = |make: fn(Vec<u8>) -> Self| match argument.is_empty() {
            true => Self::Wrong,
            false => make(argument.to_vec()),
        };
        match &*word {
            b"USER" => named(Self::User),
            b"PASS" => Self::Pass(argument.to_vec()),
            b"CWD" | b"XCWD" => named(Self::Directory),
            b"CDUP" | b"XCUP" => Self::Directory(b"..".to_vec()),
            b"PWD" | b"XPWD" => Self::WhichDirectory,
            b"TYPE" => match &*text().to_ascii_uppercase() {
                "A" | "A N" => Self::Ascii,
                "I" | "L 8" => Self::Binary,
                _ => Self::Wrong,
            },
            b"PASV" => Self::Passive,
            b"EPSV" => match &*text().to_ascii_uppercase() {
                "" | "1" | "2" => Self::ExtendedPassive { all: false },
                "ALL" => Self::ExtendedPassive { all: true },
                _ => Self::Wrong,
            },
            b"PORT" => six(text()).map_or(Self::Wrong, Self::Port),
            b"EPRT" => extended(text()).map_or(Self::Wrong, Self::Port),
            b"RETR" => named(Self::Retrieve),
            b"STOR" => named(Self::Store),
            b"LIST" | b"NLST" => Self::List {
                long: &*word == b"LIST",
                path: match argument.starts_with(b"-") {
                    true => Vec::new(),
                    false => argument.to_vec(),
                },
            },
            b"SIZE" => named(Self::Size),
            b"DELE" => named(Self::Delete),
            b"FEAT" => Self::Features,
            b"SYST" => Self::System,
            b"NOOP" => Self::Nothing,
            b"ALLO" => Self::Usual,
            b"MODE" if text().eq_ignore_ascii_case("S") => Self::Usual,
            b"STRU" if text().eq_ignore_ascii_case("F") => Self::Usual,
            b"MODE" | b"STRU" => Self::Wrong,
            b"SITE" => match &*text().to_ascii_uppercase() {
                "COUNTS" => Self::Counts,
                "BARE ON" => Self::Bare(true),
                "BARE OFF" => Self::Bare(false),
                other if other.starts_with("HASH ") => {
                    Self::Hash(argument.get(5..).unwrap_or_default().to_vec())
                }
                _ => Self::Wrong,
            },
            b"QUIT" => Self::Quit,
            _ => Self::Unknown,
        }
    }
}

/// An answer to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Its code, 100 to 599.
    pub code: u16,
    /// What it says, of several lines each by itself.
    pub text: String,
}

impl Reply {
    /// One with this text.
    pub fn new(code: u16, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { code, text }
    }

    /// As it is sent: lines but the last have a `-` behind the code, and those between begin with a space.
    pub fn write(&self) -> Vec<u8> {
        let Some((before, last)) = self.text.rsplit_once('\n') else {
            return format!("{} {}\r\n", self.code, self.text).into_bytes();
        };
        let mut lines = before.split('\n');
        let mut all = format!("{}-{}\r\n", self.code, lines.next().unwrap_or_default());
        lines.for_each(|line| all += &format!(" {line}\r\n"));
        all += &format!("{} {last}\r\n", self.code);
        all.into_bytes()
    }

    /// Whether something more comes before the command is done.
    pub const fn is_preliminary(&self) -> bool {
        self.code < 200
    }

    /// Whether the command was done, or the next part of it is waited for.
    pub const fn is_positive(&self) -> bool {
        self.code < 400
    }

    /// The address in the reply of PASV, or of EPSV with the address of the server.
    ///
    /// # Errors
    /// There is none.
    pub fn address(&self, server: IpAddr) -> Result<SocketAddr, Malformed> {
        let none = || Malformed::NoAddress(excerpt(&self.text));
        let inner = || {
            let (_, rest) = self.text.split_once('(')?;
            rest.split_once(')').map(|(inner, _)| inner)
        };
        let inner = inner().ok_or_else(none)?;
        match self.code {
            // (|||port|), by whatever delimiter.
            229 => {
                let delimiter = inner.chars().next().ok_or_else(none)?;
                let port = inner.trim_matches(delimiter);
                let port: u16 = port.parse().map_err(|_| none())?;
                Ok(SocketAddr::new(server, port))
            }
            // The host of PASV is not believed: behind an address translation it is another's (RFC 2428 §1).
            227 => six(inner)
                .map(|of| SocketAddr::new(server, of.port()))
                .ok_or_else(none),
            _ => Err(none()),
        }
    }
}

fn excerpt(text: &str) -> String {
    text.chars()
        .take(80)
        .filter(|one| !one.is_control())
        .collect()
}

/// The reply of PASV, for an address of version 4.
pub fn passive(address: Ipv4Addr, port: u16) -> Reply {
    let [a, b, c, d] = address.octets();
    let [high, low] = port.to_be_bytes();
    Reply::new(
        227,
        format!("Entering Passive Mode ({a},{b},{c},{d},{high},{low})."),
    )
}

/// The reply of EPSV.
pub fn extended_passive(port: u16) -> Reply {
    Reply::new(229, format!("Entering Extended Passive Mode (|||{port}|)"))
}

/// `h1,h2,h3,h4,p1,p2`.
fn six(text: &str) -> Option<SocketAddr> {
    let numbers: Option<Vec<u8>> = text.split(',').map(|one| one.trim().parse().ok()).collect();
    let [a, b, c, d, high, low] = *numbers?.as_slice() else {
        return None;
    };
    let port = u16::from_be_bytes([high, low]);
    Some(SocketAddr::from(([a, b, c, d], port)))
}

/// `|family|address|port|`, by whatever delimiter.
fn extended(text: &str) -> Option<SocketAddr> {
    let delimiter = text.chars().next()?;
    let parts: Vec<&str> = text.split(delimiter).collect();
    let ["", family, address, port, ""] = *parts.as_slice() else {
        return None;
    };
    let address: IpAddr = address.parse().ok()?;
    let fits = match family {
        "1" => address.is_ipv4(),
        "2" => address.is_ipv6(),
        _ => false,
    };
    fits.then_some(SocketAddr::new(address, port.parse().ok()?))
}

/// Replies out of lines.
#[derive(Debug, Default)]
pub struct Replies {
    lines: Lines,
    begun: Option<(u16, Vec<String>)>,
}

impl Replies {
    /// Bytes that came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
    }

    /// The next whole reply.
    ///
    /// # Errors
    /// What came is not one.
    pub fn poll_reply(&mut self) -> Result<Option<Reply>, Malformed> {
        while let Some(line) = self.lines.poll_line()? {
            let line = String::from_utf8_lossy(&line).into_owned();
            let code = code(&line);
            let (of, mut texts) = match self.begun.take() {
                Some(begun) => begun,
                None => {
                    let no_reply = || Malformed::NoReply(excerpt(&line));
                    let (code, is_last) = code.ok_or_else(no_reply)?;
                    let text = line.get(4..).unwrap_or_default().to_owned();
                    if is_last {
                        return Ok(Some(Reply { code, text }));
                    }
                    self.begun = Some((code, vec![text]));
                    continue;
                }
            };
            if code == Some((of, true)) {
                texts.push(line.get(4..).unwrap_or_default().to_owned());
                let text = texts.join("\n");
                return Ok(Some(Reply { code: of, text }));
            }
            if texts.len() >= REPLY_LINES_MAX {
                return Err(Malformed::TooMany);
            }
            texts.push(line.strip_prefix(' ').unwrap_or(&line).to_owned());
            self.begun = Some((of, texts));
        }
        Ok(None)
    }
}

/// The code of a line, and whether it is the reply's last.
fn code(line: &str) -> Option<(u16, bool)> {
    let digits = line.get(..3)?;
    let code: u16 = digits
        .parse()
        .ok()
        .filter(|code| (100..600).contains(code))?;
    let is_last = match line.as_bytes().get(3) {
        None | Some(b' ') => true,
        Some(b'-') => false,
        Some(_) => return None,
    };
    digits
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then_some((code, is_last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replies(text: &str) -> Result<Vec<Reply>, Malformed> {
        let mut from = Replies::default();
        let mut all = Vec::new();
        // However the connection cuts it.
        for piece in text.as_bytes().chunks(3) {
            from.push(piece);
            while let Some(reply) = from.poll_reply()? {
                all.push(reply);
            }
        }
        Ok(all)
    }

    #[test]
    fn commands_are_read() {
        let at = |text: &str| Command::Port(text.parse().unwrap());
        for (line, wanted) in [
            ("USER anonymous", Command::User(b"anonymous".to_vec())),
            ("pass a b", Command::Pass(b"a b".to_vec())),
            ("PASS", Command::Pass(Vec::new())),
            ("TYPE a n", Command::Ascii),
            ("type I", Command::Binary),
            ("TYPE E", Command::Wrong),
            ("EPSV", Command::ExtendedPassive { all: false }),
            ("EPSV all", Command::ExtendedPassive { all: true }),
            ("PORT 10,9,0,1,4,1", at("10.9.0.1:1025")),
            ("PORT 10,9,0,1,4,256", Command::Wrong),
            ("PORT 10,9,0,1,4", Command::Wrong),
            ("EPRT |1|10.9.0.1|1025|", at("10.9.0.1:1025")),
            ("EPRT !2!::1!1025!", at("[::1]:1025")),
            ("EPRT |2|10.9.0.1|1025|", Command::Wrong),
            ("EPRT", Command::Wrong),
            ("RETR a name", Command::Retrieve(b"a name".to_vec())),
            ("RETR", Command::Wrong),
            (
                "LIST -al",
                Command::List {
                    long: true,
                    path: Vec::new(),
                },
            ),
            ("CDUP", Command::Directory(b"..".to_vec())),
            ("STRU F", Command::Usual),
            ("MODE B", Command::Wrong),
            ("SITE bare on", Command::Bare(true)),
            ("SITE hash f\u{e9}", Command::Hash("f\u{e9}".into())),
            ("", Command::Unknown),
            ("APPE x", Command::Unknown),
        ] {
            assert_eq!(Command::parse(line.as_bytes()), wanted, "{line}");
        }
    }

    #[test]
    fn replies_are_read_as_they_are_written() {
        let all = [
            Reply::new(220, "ready"),
            Reply::new(211, "Features:\nEPSV\n211 SIZE\nEnd"),
            Reply::new(226, ""),
        ];
        let text: Vec<u8> = all.iter().flat_map(Reply::write).collect();
        assert_eq!(replies(std::str::from_utf8(&text).unwrap()).unwrap(), all);
        // Others have the code before each line.
        let text = "230-one\r\n230-two\n230 three\r\n";
        let wanted = Reply::new(230, "one\n230-two\nthree");
        assert_eq!(replies(text).unwrap(), [wanted]);
        assert_eq!(replies("331-never ends\r\n").unwrap(), []);
        for text in [
            "hello\r\n",
            "99 x\r\n",
            "2x0 x\r\n",
            "+12 x\r\n",
            "200x\r\n",
            "\r\n",
        ] {
            assert!(
                matches!(replies(text), Err(Malformed::NoReply(_))),
                "{text}"
            );
        }
        let long = "x".repeat(LINE_BYTES_MAX + 4);
        assert_eq!(replies(&long), Err(Malformed::TooLong));
        let many = format!("200-\r\n{}", "a\r\n".repeat(REPLY_LINES_MAX));
        assert_eq!(replies(&many), Err(Malformed::TooMany));
    }

    #[test]
    fn addresses_are_those_of_the_server() {
        let server: IpAddr = "10.9.0.1".parse().unwrap();
        let wanted: SocketAddr = "10.9.0.1:40001".parse().unwrap();
        let passive = passive("127.0.0.1".parse().unwrap(), 40_001);
        assert_eq!(passive.address(server), Ok(wanted));
        assert_eq!(extended_passive(40_001).address(server), Ok(wanted));
        for (code, text) in [
            (229, "()"),
            (229, "(|||x|)"),
            (227, "1,2,3"),
            (200, "(|||1|)"),
        ] {
            let reply = Reply::new(code, text);
            assert!(reply.address(server).is_err(), "{text}");
        }
    }
}
