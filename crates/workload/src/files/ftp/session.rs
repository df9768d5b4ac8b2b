//! The server's side of a control connection, without a socket: who is in, where, and what a command comes to.
//!
//! Model:   a [`Command`] becomes a [`Step`] that the host does. Only who gave the password gets further than USER and PASS. A transfer needs a
//!          data connection that was agreed on by the command before: the server listens, or connects to where the client listens, which must be the
//!          client's own address. Each agreement is for one transfer.
//! Source:  RFC 959 §5.4, RFC 2428 §2 to §4, RFC 2577 §3 (a server connects to its client alone).
//! Checked: the tests below.

use std::net::{IpAddr, SocketAddr};

use sonde_measure::files::Representation;

use super::dialogue::{Command, Reply};

/// The most names of a path.
const DEPTH_MAX: usize = 64;

/// Names from the root down.
pub type Path = Vec<Vec<u8>>;

/// How the next data connection comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The server listens.
    Listen,
    /// The client does.
    Connect(SocketAddr),
}

/// What a transfer moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A file to the client.
    Send(Path),
    /// A file from the client.
    Receive(Path),
    /// So many bytes of no file to the client.
    SendBare(u64),
    /// Bytes of no file from the client.
    ReceiveBare,
    /// Names of a directory to the client.
    List {
        /// By lines as of `ls -l`.
        long: bool,
        /// Of what.
        path: Path,
    },
}

/// What the host does about a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// It answers.
    Say(Reply),
    /// It answers and ends the connection.
    Close(Reply),
    /// It turns a client away that does not know the password.
    TurnAway(Reply),
    /// It listens for a data connection and says where; by EPSV or by PASV.
    Listen {
        /// EPSV.
        extended: bool,
    },
    /// It makes the data connection and moves something.
    Transfer {
        /// How the connection comes about.
        way: Way,
        /// What.
        what: What,
        /// As what.
        representation: Representation,
    },
    /// It looks whether there is such a directory, and says so to [`Session::enter`].
    Enter(Path),
    /// It says how long a file is.
    Size(Path),
    /// It says the hash of a file.
    Hash(Path),
    /// It removes a file.
    Delete(Path),
    /// It says what it counted.
    Counts,
}

/// A control connection.
#[derive(Debug)]
pub struct Session {
    peer: IpAddr,
    password: Vec<u8>,
    has_user: bool,
    is_in: bool,
    at: Path,
    representation: Representation,
    way: Option<Way>,
    extended_only: bool,
    is_bare: bool,
}

impl Session {
    /// Of a client at an address, which must know the password where there is one.
    pub const fn new(peer: IpAddr, password: Vec<u8>) -> Self {
        Self {
            peer,
            password,
            has_user: false,
            is_in: false,
            at: Vec::new(),
            // RFC 959 §5.1: ASCII until TYPE says otherwise.
            representation: Representation::Ascii,
            way: None,
            extended_only: false,
            is_bare: false,
        }
    }

    /// Whether the client gave the password.
    pub const fn is_in(&self) -> bool {
        self.is_in
    }

    /// There is such a directory.
    pub fn enter(&mut self, path: Path) {
        self.at = path;
    }

    /// A command.
    pub fn on_command(&mut self, command: Command) -> Step {
        let say = |code, text: &str| Step::Say(Reply::new(code, text));
        match command {
            Command::Quit => return Step::Close(Reply::new(221, "Goodbye.")),
            Command::User(name) => {
                let is_known = name.eq_ignore_ascii_case(b"anonymous") || name == b"ftp";
                (self.has_user, self.is_in) = (is_known, false);
                return match is_known {
                    true => say(331, "Please specify the password."),
                    false => say(530, "This server is anonymous only."),
                };
            }
            Command::Pass(given) => {
                if !self.has_user {
                    return say(503, "Say USER first.");
                }
                self.is_in = self.password.is_empty() || given == self.password;
                return match self.is_in {
                    true => say(230, "Login successful."),
                    false => Step::TurnAway(Reply::new(530, "Login incorrect.")),
                };
            }
            Command::Features => return say(211, "Features:\nEPRT\nEPSV\nSIZE\nEnd"),
            Command::System => return say(215, "UNIX Type: L8"),
            Command::Nothing => return say(200, "Nothing done."),
            Command::Unknown => return say(502, "That is not offered."),
            Command::Wrong => return say(504, "Not with that argument."),
            _ if !self.is_in => return say(530, "Please log in with USER and PASS."),
            _ => {}
        }
        self.on_command_of_member(command)
    }

    fn on_command_of_member(&mut self, command: Command) -> Step {
        let say = |code, text: &str| Step::Say(Reply::new(code, text));
        match command {
            Command::WhichDirectory => {
                let path = String::from_utf8_lossy(&self.at.join(&b'/')).replace('"', "\"\"");
                say(257, &format!("\"/{path}\" is the current directory"))
            }
            Command::Ascii => {
                self.representation = Representation::Ascii;
                say(200, "Switching to ASCII mode.")
            }
            Command::Binary => {
                self.representation = Representation::Binary;
                say(200, "Switching to Binary mode.")
            }
            Command::Bare(is_bare) => {
                self.is_bare = is_bare;
                say(200, "So be it.")
            }
            Command::Usual => say(200, "So it is."),
            Command::ExtendedPassive { all: true } => {
                self.extended_only = true;
                say(200, "No other form will be taken.")
            }
            Command::Passive | Command::Port(_) if self.extended_only => {
                say(501, "EPSV ALL was said.")
            }
            Command::ExtendedPassive { .. } => self.listen(true),
            Command::Passive if self.peer.is_ipv6() => say(522, "Use EPSV."),
            Command::Passive => self.listen(false),
            Command::Port(at) if at.ip() != self.peer => say(
                501,
                "The server connects to the client's own address alone.",
            ),
            Command::Port(at) => {
                self.way = Some(Way::Connect(at));
                say(200, "That address will be connected to.")
            }
            Command::Directory(path) => self.of_path(&path, Step::Enter),
            Command::Size(path) => match self.representation {
                Representation::Binary => self.of_path(&path, Step::Size),
                Representation::Ascii => say(550, "A size is given in binary mode alone."),
            },
            Command::Hash(path) => self.of_path(&path, Step::Hash),
            Command::Delete(path) => self.of_path(&path, Step::Delete),
            Command::Counts => Step::Counts,
            Command::Retrieve(name) if self.is_bare => {
                let size = std::str::from_utf8(&name)
                    .ok()
                    .and_then(|name| name.parse().ok());
                size.map_or_else(
                    || say(501, "Without a store a size stands for a name."),
                    |size| self.transfer(What::SendBare(size)),
                )
            }
            Command::Store(_) if self.is_bare => self.transfer(What::ReceiveBare),
            Command::Retrieve(path) => self.of_file(&path, What::Send),
            Command::Store(path) => self.of_file(&path, What::Receive),
            Command::List { long, path } => self.of_file(&path, |path| What::List { long, path }),
            // What anybody may say was answered before.
            _ => say(502, "That is not offered."),
        }
    }

    fn listen(&mut self, extended: bool) -> Step {
        self.way = Some(Way::Listen);
        Step::Listen { extended }
    }

    fn transfer(&mut self, what: What) -> Step {
        let Some(way) = self.way.take() else {
            return Step::Say(Reply::new(425, "Say EPSV, PASV, EPRT or PORT first."));
        };
        Step::Transfer {
            way,
            what,
            representation: self.representation,
        }
    }

    fn of_path(&self, path: &[u8], step: impl FnOnce(Path) -> Step) -> Step {
        match self.resolve(path) {
            Some(path) => step(path),
            None => Step::Say(Reply::new(550, "That path is too deep.")),
        }
    }

    fn of_file(&mut self, path: &[u8], what: impl FnOnce(Path) -> What) -> Step {
        match self.resolve(path) {
            Some(path) => self.transfer(what(path)),
            None => Step::Say(Reply::new(550, "That path is too deep.")),
        }
    }

    /// A path from the root, whose parent is the root itself.
    fn resolve(&self, path: &[u8]) -> Option<Path> {
        let mut names = match path.starts_with(b"/") {
            true => Vec::new(),
            false => self.at.clone(),
        };
        for name in path.split(|byte| *byte == b'/') {
            match name {
                b"" | b"." => {}
                b".." => drop(names.pop()),
                name => names.push(name.to_vec()),
            }
        }
        (names.len() <= DEPTH_MAX).then_some(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(password: &str) -> Session {
        Session::new("10.9.0.2".parse().unwrap(), password.into())
    }

    /// The code of what is said to a line.
    fn code(session: &mut Session, line: &str) -> u16 {
        match session.on_command(Command::parse(line.as_bytes())) {
            Step::Say(reply) | Step::Close(reply) | Step::TurnAway(reply) => reply.code,
            step => panic!("{line}: {step:?}"),
        }
    }

    fn step(session: &mut Session, line: &str) -> Step {
        session.on_command(Command::parse(line.as_bytes()))
    }

    fn member() -> Session {
        let mut session = session("");
        assert_eq!(code(&mut session, "USER anonymous"), 331);
        assert_eq!(code(&mut session, "PASS me@here"), 230);
        session
    }

    #[test]
    fn who_does_not_know_the_password_gets_nothing() {
        let mut session = session("secret");
        for line in ["RETR x", "EPSV", "SITE COUNTS", "CWD /", "TYPE I", "DELE x"] {
            assert_eq!(code(&mut session, line), 530, "{line}");
        }
        assert_eq!(code(&mut session, "PASS secret"), 503);
        assert_eq!(code(&mut session, "USER root"), 530);
        assert_eq!(code(&mut session, "PASS secret"), 503);
        assert_eq!(code(&mut session, "USER ftp"), 331);
        let away = step(&mut session, "PASS other");
        assert!(matches!(away, Step::TurnAway(_)) && !session.is_in());
        assert_eq!(code(&mut session, "PASS secret"), 230);
        // Another name is another login.
        assert_eq!(code(&mut session, "USER ftp"), 331);
        assert_eq!(code(&mut session, "EPSV"), 530);
    }

    #[test]
    fn each_transfer_needs_an_agreement() {
        let mut session = member();
        assert_eq!(code(&mut session, "RETR x"), 425);
        assert_eq!(step(&mut session, "EPSV"), Step::Listen { extended: true });
        let Step::Transfer {
            way,
            what,
            representation,
        } = step(&mut session, "RETR x")
        else {
            panic!("no transfer");
        };
        assert_eq!((way, representation), (Way::Listen, Representation::Ascii));
        assert_eq!(what, What::Send(vec![b"x".to_vec()]));
        assert_eq!(code(&mut session, "STOR x"), 425);
        assert_eq!(code(&mut session, "TYPE I"), 200);
        // To itself alone.
        assert_eq!(code(&mut session, "PORT 10,9,0,3,4,1"), 501);
        assert_eq!(code(&mut session, "STOR x"), 425);
        assert_eq!(code(&mut session, "EPRT |1|10.9.0.2|1025|"), 200);
        let Step::Transfer {
            way,
            representation,
            ..
        } = step(&mut session, "STOR x")
        else {
            panic!("no transfer");
        };
        let wanted = Way::Connect("10.9.0.2:1025".parse().unwrap());
        assert_eq!((way, representation), (wanted, Representation::Binary));
        assert_eq!(code(&mut session, "EPSV ALL"), 200);
        assert_eq!(code(&mut session, "PASV"), 501);
        assert_eq!(step(&mut session, "EPSV"), Step::Listen { extended: true });
        assert_eq!(code(&mut session, "QUIT"), 221);
    }

    #[test]
    fn paths_stay_below_the_root() {
        let mut session = member();
        assert_eq!(code(&mut session, "SIZE x"), 550);
        assert_eq!(code(&mut session, "TYPE I"), 200);
        let path = |names: &[&str]| -> Path { names.iter().map(|name| (*name).into()).collect() };
        let enter = step(&mut session, "CWD a/b");
        assert_eq!(enter, Step::Enter(path(&["a", "b"])));
        session.enter(path(&["a", "b"]));
        for (line, wanted) in [
            ("SIZE c", path(&["a", "b", "c"])),
            ("SIZE ../../../../etc/passwd", path(&["etc", "passwd"])),
            ("SIZE /c//./d", path(&["c", "d"])),
        ] {
            assert_eq!(step(&mut session, line), Step::Size(wanted), "{line}");
        }
        let deep = format!("SIZE {}", "x/".repeat(DEPTH_MAX));
        assert_eq!(code(&mut session, &deep), 550);
    }

    #[test]
    fn bare_transfers_are_of_sizes() {
        let mut session = member();
        assert_eq!(code(&mut session, "SITE BARE ON"), 200);
        step(&mut session, "EPSV");
        assert_eq!(code(&mut session, "RETR x"), 501);
        let bare = |session: &mut Session, line| match step(session, line) {
            Step::Transfer { what, .. } => what,
            step => panic!("{step:?}"),
        };
        assert_eq!(bare(&mut session, "RETR 4096"), What::SendBare(4_096));
        step(&mut session, "EPSV");
        assert_eq!(bare(&mut session, "STOR x"), What::ReceiveBare);
        assert_eq!(code(&mut session, "SITE BARE OFF"), 200);
        step(&mut session, "EPSV");
        let file = vec![b"4096".to_vec()];
        assert_eq!(bare(&mut session, "RETR 4096"), What::Send(file));
    }
}
