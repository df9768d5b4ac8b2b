//! `sonde lab shell` on a terminal: prompt, job control, window size, exit code, and the user's terminal afterwards.

use crate::lab::{Case, Stage, attached, cases, eventually, has, marked, path_of};
use sonde_sys::exec::{Step, before_exec};
use sonde_sys::pty::{Pty, WindowSize, set_window_size};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const PROMPT: &str = "sonde-test> ";

/// A shell in a lab, on a terminal that the test plays the user of.
struct Shell {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    terminal: File,
    all: String,
    mark: String,
    lines: u32,
}

impl Shell {
    fn open(stage: &Stage, shell: &str, options: &[&str]) -> Self {
        let pty = Pty::open().unwrap();
        set_window_size(
            &pty.terminal,
            WindowSize {
                rows: 41,
                columns: 133,
            },
        )
        .unwrap();
        let mut call = stage
            .lab("shell", options)
            .env("SHELL", shell)
            .env("PS1", PROMPT)
            .env("HOME", &stage.folder);
        call = call.env("TERM", "dumb").env("ENV", "");
        let stream = || pty.terminal.try_clone().unwrap();
        call.command
            .stdin(stream())
            .stdout(stream())
            .stderr(stream());
        before_exec(
            &mut call.command,
            vec![Step::NewSession, Step::ControlTerminal],
        );
        let mark = call.mark().to_owned();
        let child = call.command.spawn().unwrap();
        let mut controller = File::from(pty.controller);
        let keyboard = controller.try_clone().unwrap();
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            let mut piece = [0; 4_096];
            while let Ok(count @ 1..) = controller.read(&mut piece) {
                if sender.send(piece[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            keyboard,
            screen,
            terminal: File::from(pty.terminal),
            all: String::new(),
            mark,
            lines: 0,
        }
    }

    fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    /// What appears until `text` does.
    fn shows(&mut self, text: &str) -> String {
        self.shows_after("", text)
    }

    /// What appears until `text` does, after `mark`.
    fn shows_after(&mut self, mark: &str, text: &str) -> String {
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut seen = String::new();
        while !seen
            .split_once(mark)
            .is_some_and(|(_, rest)| rest.contains(text))
        {
            match self
                .screen
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                Ok(piece) => seen.push_str(&String::from_utf8_lossy(&piece)),
                Err(_) => panic!("waited for `{text}`\nbefore:\n{}\nnow:\n{seen}", self.all),
            }
        }
        self.all.push_str(&seen);
        seen
    }

    /// Runs a line; what it shows until the next prompt. The line's own end is marked, for a shell also shows its prompt
    /// when the window changes.
    fn line(&mut self, text: &str) -> String {
        self.lines += 1;
        let lines = self.lines;
        self.types(&format!("{text}; echo line-$((1000 + {lines}))\n"));
        self.shows_after(&format!("line-{}", 1_000 + lines), PROMPT)
    }

    /// The exit code, within some seconds.
    fn end(&mut self) -> i32 {
        let status = eventually(|| self.child.try_wait().unwrap(), Option::is_some);
        let status = status.unwrap_or_else(|| panic!("the shell does not end:\n{}", self.all));
        status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn shells() -> Vec<String> {
    let shells = ["dash", "bash"].into_iter().filter(|shell| has(shell));
    shells
        .map(|shell| path_of(shell).unwrap().to_str().unwrap().to_owned())
        .collect()
}

/// Bash takes its prompt from a file of the user's.
fn stage(case: Case) -> Stage {
    let stage = Stage::new(case);
    std::fs::write(
        stage.folder.join(".bashrc"),
        format!("PS1='{PROMPT}'\nbind 'set enable-bracketed-paste off' 2>/dev/null\n"),
    )
    .unwrap();
    stage
}

#[test]
fn a_shell_has_a_prompt_and_its_code_is_the_commands() {
    for case in cases() {
        for shell in shells() {
            let stage = stage(case);
            let mut shell = Shell::open(&stage, &shell, &["--hosts", "2"]);
            shell.shows(PROMPT);
            assert!(shell.line("hostname").contains("\nh1\r\n"), "{}", shell.all);
            assert!(shell.line("tty").contains("/dev/pts/"), "{}", shell.all);
            assert!(
                shell
                    .line("sonde lab exec h2 -- hostname")
                    .contains("\nh2\r\n"),
                "{}",
                shell.all
            );
            assert!(
                shell.line("ping -q -c 1 h2").contains(" 0% packet loss"),
                "{}",
                shell.all
            );
            assert!(
                shell
                    .line("echo a b; pwd")
                    .contains(stage.folder.to_str().unwrap()),
                "{}",
                shell.all
            );
            shell.types("exit 7\n");
            assert_eq!(shell.end(), 7, "{}", shell.all);
            for complaint in [
                "job control",
                "process group",
                "ioctl",
                "can't access tty",
                "panicked",
            ] {
                assert!(!shell.all.contains(complaint), "{}", shell.all);
            }
            assert!(eventually(|| marked(&shell.mark), Vec::is_empty).is_empty());
        }
    }
}

#[test]
fn keys_reach_the_job_in_the_foreground() {
    for case in attached("tap") {
        for shell in shells() {
            let stage = stage(case);
            let mut shell = Shell::open(&stage, &shell, &["--hosts", "2"]);
            shell.shows(PROMPT);
            shell.types("sh -c 'echo begun; exec sleep 1000'\n");
            shell.shows("begun\r\n");
            shell.types("\x03");
            shell.shows(PROMPT);
            assert!(
                shell.line("echo code $?").contains("code 130"),
                "{}",
                shell.all
            );
            shell.types("sh -c 'echo again; exec sleep 1000'\n");
            shell.shows("again\r\n");
            shell.types("\x1a");
            shell.shows(PROMPT);
            assert!(shell.line("jobs").contains("topped"), "{}", shell.all);
            assert!(
                shell.line("kill -9 %1; wait; echo gone").contains("gone"),
                "{}",
                shell.all
            );
            // Dash minds a job that was stopped, once.
            shell.types("exit 0\nexit 0\n");
            assert_eq!(shell.end(), 0, "{}", shell.all);
            assert!(eventually(|| marked(&shell.mark), Vec::is_empty).is_empty());
        }
    }
}

#[test]
fn the_window_has_the_users_size() {
    for case in attached("veth") {
        let stage = stage(case);
        for shell in shells() {
            let mut shell = Shell::open(&stage, &shell, &["--hosts", "2"]);
            shell.shows(PROMPT);
            assert!(shell.line("stty size").contains("41 133"), "{}", shell.all);
            set_window_size(
                &shell.terminal,
                WindowSize {
                    rows: 50,
                    columns: 90,
                },
            )
            .unwrap();
            let mut size = String::new();
            for _ in 0..50 {
                size = shell.line("stty size");
                if size.contains("50 90") {
                    break;
                }
            }
            assert!(size.contains("50 90"), "{}", shell.all);
            // The end of the input is the end of the shell.
            shell.types("\x04");
            assert_eq!(shell.end(), 0, "{}", shell.all);
        }
    }
}

/// The mode of a terminal, as stty prints it.
fn mode(terminal: &File) -> String {
    let output = Command::new("stty")
        .arg("-g")
        .stdin(terminal.try_clone().unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_users_terminal_is_as_before() {
    for case in attached("tap") {
        let stage = stage(case);
        let before = {
            let pty = Pty::open().unwrap();
            mode(&File::from(pty.terminal))
        };
        for line in ["exit 0", "stty raw -echo; exit 0", "kill -9 $$"] {
            let mut shell = Shell::open(&stage, "/bin/sh", &["--hosts", "2"]);
            shell.shows(PROMPT);
            assert_ne!(mode(&shell.terminal), before, "raw while the shell runs");
            shell.types(&format!("{line}\n"));
            let code = shell.end();
            assert_eq!(
                code,
                if line.starts_with("kill") { 137 } else { 0 },
                "{}",
                shell.all
            );
            assert_eq!(mode(&shell.terminal), before, "{line}");
        }
    }
}

#[test]
fn it_opens_on_the_host_that_is_named() {
    for case in attached("veth") {
        let stage = stage(case);
        let mut shell = Shell::open(&stage, "/bin/sh", &["--hosts", "3", "h3"]);
        shell.shows(PROMPT);
        assert!(shell.line("hostname").contains("h3"), "{}", shell.all);
        shell.types("exit 0\n");
        assert_eq!(shell.end(), 0, "{}", shell.all);
        let mut refused = Shell::open(&stage, "/bin/sh", &["--hosts", "2", "h3"]);
        refused.shows("there is no host h3: this lab has h1 to h2");
        assert_eq!(refused.end(), 64, "{}", refused.all);
    }
}

#[test]
fn a_hang_up_ends_the_lab() {
    for case in attached("tap") {
        let stage = stage(case);
        let mut shell = Shell::open(&stage, "/bin/sh", &["--hosts", "2"]);
        shell.shows(PROMPT);
        shell.types("sleep 1000 &\n");
        shell.shows(PROMPT);
        sonde_sys::process::kill(shell.child.id(), 1).unwrap();
        assert_eq!(shell.end(), 129, "{}", shell.all);
        assert!(eventually(|| marked(&shell.mark), Vec::is_empty).is_empty());
    }
}
