//! Pseudo-terminals and raw mode.
//!
//! Model:   [`Pty`] is a controller and the terminal a program runs on; [`RawTerminal`] puts the user's own
//!          terminal into raw mode and restores it when dropped.
//! Checked: `a_terminal_echoes_and_has_a_size`, `raw_mode_is_undone`.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::pty::OpenptFlags;
use rustix::termios::{OptionalActions, Termios};

use crate::Result;
use crate::error::Attempt;

/// The size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowSize {
    /// Lines.
    pub rows: u16,
    /// Characters a line.
    pub columns: u16,
}

/// A pseudo-terminal of the current devpts.
#[derive(Debug)]
pub struct Pty {
    /// The end that plays the user: what is written here is typed.
    pub controller: OwnedFd,
    /// The end a program gets as its standard streams.
    pub terminal: OwnedFd,
}

impl Pty {
    /// Opens a pair. /dev/pts/ptmx is preferred, so that a fresh devpts without a bound /dev/ptmx works.
    pub fn open() -> Result<Self> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let controller = rustix::fs::open("/dev/pts/ptmx", flags, Mode::empty())
            .or_else(|_| rustix::fs::open("/dev/ptmx", flags, Mode::empty()))
            .attempt(|| "open /dev/pts/ptmx and /dev/ptmx (is devpts mounted?)".into())?;
        rustix::pty::unlockpt(&controller).attempt(|| "unlock a pseudo-terminal".into())?;
        // TIOCGPTPEER needs no path, hence works whatever is mounted on /dev/pts.
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let terminal = rustix::pty::ioctl_tiocgptpeer(&controller, flags)
            .attempt(|| "open the terminal's own end".into())?;
        Ok(Self {
            controller,
            terminal,
        })
    }
}

/// The window size of a terminal.
pub fn window_size(terminal: impl AsFd) -> Result<WindowSize> {
    let size = rustix::termios::tcgetwinsize(terminal).attempt(|| "read the window size".into())?;
    Ok(WindowSize {
        rows: size.ws_row,
        columns: size.ws_col,
    })
}

/// Sets the window size; programs on the terminal get SIGWINCH.
pub fn set_window_size(terminal: impl AsFd, size: WindowSize) -> Result<()> {
    let size = rustix::termios::Winsize {
        ws_row: size.rows,
        ws_col: size.columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    rustix::termios::tcsetwinsize(terminal, size).attempt(|| "set the window size".into())
}

/// Whether a descriptor is a terminal.
pub fn is_terminal(fd: impl AsFd) -> bool {
    rustix::termios::isatty(fd)
}

/// Raw mode for as long as it lives.
#[derive(Debug)]
pub struct RawTerminal {
    terminal: OwnedFd,
    before: Termios,
}

impl RawTerminal {
    /// Turns off echo, line editing and signal keys on `terminal`.
    pub fn enter(terminal: impl AsFd) -> Result<Self> {
        let terminal = terminal
            .as_fd()
            .try_clone_to_owned()
            .attempt(|| "copy the terminal's descriptor".into())?;
        let before =
            rustix::termios::tcgetattr(&terminal).attempt(|| "read the terminal's mode".into())?;
        let mut raw = before.clone();
        raw.make_raw();
        rustix::termios::tcsetattr(&terminal, OptionalActions::Flush, &raw)
            .attempt(|| "set the terminal to raw mode".into())?;
        Ok(Self { terminal, before })
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        let _ = rustix::termios::tcsetattr(&self.terminal, OptionalActions::Flush, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::termios::{LocalModes, tcgetattr};

    #[test]
    fn a_terminal_echoes_and_has_a_size() {
        let pty = Pty::open().unwrap();
        assert!(is_terminal(&pty.terminal));
        let size = WindowSize {
            rows: 33,
            columns: 101,
        };
        set_window_size(&pty.controller, size).unwrap();
        assert_eq!(window_size(&pty.terminal).unwrap(), size);
        rustix::io::write(&pty.controller, b"hi\n").unwrap();
        let mut line = [0; 16];
        let length = rustix::io::read(&pty.terminal, &mut line).unwrap();
        assert_eq!(&line[..length], b"hi\n");
        let length = rustix::io::read(&pty.controller, &mut line).unwrap();
        assert_eq!(&line[..length], b"hi\r\n");
    }

    #[test]
    fn raw_mode_is_undone() {
        let pty = Pty::open().unwrap();
        let echoes = || {
            tcgetattr(&pty.terminal)
                .unwrap()
                .local_modes
                .contains(LocalModes::ECHO)
        };
        assert!(echoes());
        let raw = RawTerminal::enter(&pty.terminal).unwrap();
        assert!(!echoes());
        drop(raw);
        assert!(echoes());
        assert!(RawTerminal::enter(rustix::pipe::pipe().unwrap().0).is_err());
    }
}
