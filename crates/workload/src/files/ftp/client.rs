//! A client of FTP on sockets.
//!
//! Model:   one command at a time: its line goes out, and replies come until one that ends it. A transfer asks by EPSV where to connect, by PASV
//!          where the server does not know that, connects, gives the command, moves the bytes, and waits for the reply behind them: a file that was
//!          put is stored when that is there.
//! Source:  RFC 959 §5.4, RFC 2428 §3.
//! Checked: `crates/workload/tests/ftp_sockets.rs`, `ftp_partners.rs`.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use sonde_measure::Socket;
use sonde_measure::files::Representation;

use super::data::{Broken, Buffers, Data};
use super::dialogue::{Malformed, Replies, Reply};
use crate::files::sockets;

/// Which server, and how it is spoken to.
#[derive(Debug, Clone)]
pub struct Reach {
    /// Its control port.
    pub server: SocketAddr,
    /// The address from which connections are made; none is the kernel's choice.
    pub source: Option<IpAddr>,
    /// The password of the user anonymous.
    pub password: String,
    /// What is set of data connections.
    pub buffers: Buffers,
    /// The longest wait for a reply, and for a byte.
    pub limit: Duration,
}

/// Why a command did not end well.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The kernel says so.
    #[error("{what} the FTP server at {server} failed: {source}")]
    Failed {
        /// What was attempted.
        what: &'static str,
        /// Where.
        server: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The server refuses.
    #[error("the FTP server answers {command} with {code} {text}")]
    Refused {
        /// The command's word.
        command: String,
        /// The code.
        code: u16,
        /// What it says.
        text: String,
    },
    /// What came is no answer.
    #[error("the FTP server sends what cannot be read: {0}")]
    Malformed(#[from] Malformed),
    /// A transfer broke.
    #[error("a transfer broke off: {0}")]
    Broken(#[from] Broken),
    /// Something else came than was asked for.
    #[error("the FTP server answers {command} with `{text}`, which it does not mean")]
    Odd {
        /// The command's word.
        command: String,
        /// What it says.
        text: String,
    },
}

impl Trouble {
    fn refused(command: &str, reply: &Reply) -> Self {
        Self::Refused {
            command: word(command),
            code: reply.code,
            text: sonde_units::plain(&reply.text),
        }
    }
}

fn word(command: &str) -> String {
    command.split(' ').next().unwrap_or_default().to_owned()
}

/// A client that is logged in.
#[derive(Debug)]
pub struct Client {
    control: TcpStream,
    replies: Replies,
    reach: Reach,
    is_extended: bool,
    /// Segments of data connections that were sent again.
    pub retransmitted: u64,
    /// What the kernel made of the buffers of the last one.
    pub socket: Socket,
}

impl Client {
    /// Connects and logs in.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub fn open(reach: Reach) -> Result<Self, Trouble> {
        let failed = |source| Trouble::Failed {
            what: "connecting to",
            server: reach.server,
            source,
        };
        let dialled = || {
            let control = sockets::dial(reach.server, reach.source, reach.limit, |_| Ok(()))?;
            control.set_nonblocking(false)?;
            control.set_nodelay(true)?;
            control.set_read_timeout(Some(reach.limit))?;
            control.set_write_timeout(Some(reach.limit))?;
            Ok(control)
        };
        let control = dialled().map_err(failed)?;
        let mut client = Self {
            control,
            replies: Replies::default(),
            reach,
            is_extended: true,
            retransmitted: 0,
            socket: Socket::default(),
        };
        let welcome = client.reply()?;
        if !welcome.is_positive() {
            return Err(Trouble::refused("the connection", &welcome));
        }
        let user = client.ask("USER anonymous")?;
        match user.code {
            230 => {}
            331 => {
                let password = format!("PASS {}", client.reach.password);
                client.command(&password)?;
            }
            _ => return Err(Trouble::refused("USER", &user)),
        }
        Ok(client)
    }

    fn failed(&self, what: &'static str) -> impl Fn(std::io::Error) -> Trouble + use<> {
        let server = self.reach.server;
        move |source| Trouble::Failed {
            what,
            server,
            source,
        }
    }

    fn send(&mut self, command: &str) -> Result<(), Trouble> {
        // A name with an end of line in it would be two commands.
        if command.contains(['\r', '\n']) {
            return Err(Trouble::Odd {
                command: word(command),
                text: "an end of line in a name".into(),
            });
        }
        let line = format!("{command}\r\n");
        let failed = self.failed("sending to");
        self.control.write_all(line.as_bytes()).map_err(failed)
    }

    fn reply(&mut self) -> Result<Reply, Trouble> {
        let mut buffer = [0; 1_024];
        loop {
            if let Some(reply) = self.replies.poll_reply()? {
                return Ok(reply);
            }
            let read = match self.control.read(&mut buffer) {
                Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => read,
            };
            let count = read.map_err(self.failed("waiting for a reply of"))?;
            self.replies.push(&buffer[..count]);
        }
    }

    /// A command, and the reply that ends it.
    fn ask(&mut self, command: &str) -> Result<Reply, Trouble> {
        self.send(command)?;
        loop {
            let reply = self.reply()?;
            if !reply.is_preliminary() {
                return Ok(reply);
            }
        }
    }

    /// A command that must be done: its reply.
    ///
    /// # Errors
    /// The server refuses, or is gone.
    pub fn command(&mut self, command: &str) -> Result<Reply, Trouble> {
        let reply = self.ask(command)?;
        match reply.is_positive() {
            true => Ok(reply),
            false => Err(Trouble::refused(command, &reply)),
        }
    }

    /// How files are represented from now on.
    ///
    /// # Errors
    /// As of [`Self::command`].
    pub fn set_type(&mut self, representation: Representation) -> Result<(), Trouble> {
        let command = match representation {
            Representation::Binary => "TYPE I",
            Representation::Ascii => "TYPE A",
        };
        self.command(command).map(drop)
    }

    /// How long a file is, in binary mode.
    ///
    /// # Errors
    /// As of [`Self::command`]; the reply is not a number.
    pub fn size(&mut self, name: &str) -> Result<u64, Trouble> {
        let command = format!("SIZE {name}");
        let reply = self.command(&command)?;
        reply.text.trim().parse().map_err(|_| Trouble::Odd {
            command,
            text: sonde_units::plain(&reply.text),
        })
    }

    /// A command that moves bytes by a data connection, which `work` moves; how many.
    ///
    /// # Errors
    /// The server refuses, or the connection breaks.
    pub fn transfer(
        &mut self,
        command: &str,
        work: impl FnOnce(&mut Data<'static>) -> Result<u64, Broken>,
    ) -> Result<u64, Trouble> {
        let mut data = self.data()?;
        self.send(command)?;
        let begun = self.reply()?;
        if !begun.is_preliminary() {
            return Err(Trouble::refused(command, &begun));
        }
        let moved = work(&mut data);
        self.retransmitted += data.retransmitted();
        self.socket = data.read_back().map_err(Broken::from)?;
        // The end of a file that is put is that of the connection.
        drop(data);
        let reply = self.reply()?;
        // Who closed the connection says why.
        if !reply.is_positive() {
            return Err(Trouble::refused(command, &reply));
        }
        Ok(moved?)
    }

    fn data(&mut self) -> Result<Data<'static>, Trouble> {
        let mut reply = match self.is_extended {
            true => self.ask("EPSV")?,
            false => self.command("PASV")?,
        };
        if self.is_extended && !reply.is_positive() {
            self.is_extended = false;
            reply = self.command("PASV")?;
        }
        let at = reply.address(self.reach.server.ip())?;
        let Reach {
            buffers,
            source,
            limit,
            ..
        } = &self.reach;
        let dialled = || {
            let stream = sockets::dial(at, *source, *limit, |fd| buffers.apply(fd))?;
            Data::new(stream, buffers, None, *limit)
        };
        dialled().map_err(self.failed("a data connection to"))
    }

    /// Says farewell.
    ///
    /// # Errors
    /// The server is gone.
    pub fn quit(mut self) -> Result<(), Trouble> {
        self.command("QUIT").map(drop)
    }
}
