//! Running the built command: as root and as an ordinary user, on both attachments, with a limit on its time.
//!
//! Model:   a [`Stage`] is a folder for one test and the way the command is run there; it is removed at the end. Every
//!          process of a call carries a mark in its environment, by which all of a lab's processes are found.
//!          The command is the one that `SONDE_BIN` names, else the one built with the tests.

mod traces;

pub use traces::{Draws, Traces};

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The ordinary user that root becomes for a test.
pub const USER: u32 = 2001;
const MARK: &str = "SONDE_TEST_MARK";
const TUN: &str = "/dev/net/tun";

/// Who runs the command, and how hosts are attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// Whether root runs it as an ordinary user.
    pub is_user: bool,
    /// `tap` or `veth`.
    pub attachment: &'static str,
}

impl Case {
    /// As this process's own user.
    pub const fn own(attachment: &'static str) -> Self {
        Self {
            is_user: false,
            attachment,
        }
    }

    /// As an ordinary user.
    pub const fn user(attachment: &'static str) -> Self {
        Self {
            is_user: true,
            attachment,
        }
    }

    /// What is missing here to run it.
    fn missing(self) -> Option<&'static str> {
        if self.is_user && path_of("setpriv").is_none() {
            return Some("setpriv");
        }
        if self.attachment != "tap" {
            return None;
        }
        if !self.is_user {
            let is_open = fs::File::open(TUN).is_ok();
            return (!is_open).then_some("a TAP device that can be opened (/dev/net/tun)");
        }
        let stage = Stage::bare("probe");
        let node = tun_node(&stage.folder);
        node.is_none()
            .then_some("a device node for TAPs that a user may open")
    }
}

/// Those of `all` that can be run here. A test of which nothing is left counts as skipped; what else is left out is told.
fn possible(all: &[Case]) -> Vec<Case> {
    let (left, out): (Vec<Case>, Vec<Case>) = all.iter().partition(|case| case.missing().is_none());
    let word = if left.is_empty() {
        "skipped"
    } else {
        "left out"
    };
    for case in out {
        println!(
            "{word}: {case:?} for want of {}",
            case.missing().unwrap_or("nothing any more")
        );
    }
    left
}

/// The attachments, as this process's own user.
pub fn attachments() -> Vec<Case> {
    possible(&[Case::own("tap"), Case::own("veth")])
}

/// Whether everything is wanted that takes minutes: `make test-long`.
pub fn is_long() -> bool {
    std::env::var_os("SONDE_TESTS").is_some_and(|tier| tier == "long")
}

/// What the environment variable says, or else this, printed so that a run can be repeated.
pub fn number(variable: &str, default: u64) -> u64 {
    let given = std::env::var(variable)
        .ok()
        .and_then(|text| text.parse().ok());
    let number = given.unwrap_or(default);
    println!("{variable}={number}");
    number
}

/// As [`crossed`]; in the long tier each attachment with each user.
pub fn cases() -> Vec<Case> {
    if !is_root() || !is_long() {
        return crossed();
    }
    possible(&[
        Case::own("tap"),
        Case::own("veth"),
        Case::user("tap"),
        Case::user("veth"),
    ])
}

/// Each attachment once, and where this process is root each user once: for what depends on one of them at most.
pub fn crossed() -> Vec<Case> {
    if !is_root() {
        return attachments();
    }
    possible(&[Case::own("tap"), Case::user("veth")])
}

/// In the long tier each attachment, as this process's own user; else this one, or the other where it cannot be had: for what
/// depends on the network and not on how hosts are attached.
pub fn attached(usual: &'static str) -> Vec<Case> {
    let all = attachments();
    if is_long() {
        return all;
    }
    let named = all.iter().find(|case| case.attachment == usual);
    named.or(all.first()).copied().into_iter().collect()
}

/// Each of `all` in each of these cases in the long tier; else each once, the cases in turn.
pub fn spread<T: Copy>(cases: &[Case], all: &[T]) -> Vec<(Case, T)> {
    let pairs = all.iter().enumerate().flat_map(|(at, one)| {
        let turn = at % cases.len().max(1);
        let with = cases.iter().enumerate();
        with.filter_map(move |(number, case)| {
            (is_long() || number == turn).then_some((*case, *one))
        })
    });
    pairs.collect()
}

/// Whether this process is root.
pub fn is_root() -> bool {
    sonde_sys::process::ids().0 == 0
}

/// Says what is missing.
pub fn skip(missing: &str) -> bool {
    println!("skipped: {missing}");
    false
}

/// Whether a program is installed; says so where it is not.
pub fn has(program: &str) -> bool {
    path_of(program).is_some() || skip(program)
}

/// Where a program is installed.
pub fn path_of(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<_> = std::env::split_paths(&path).collect();
    folders.extend(["/usr/sbin".into(), "/sbin".into()]);
    let mut found = folders.into_iter().map(|folder| folder.join(program));
    found.find(|path| path.is_file())
}

/// The command under test.
pub fn sonde() -> PathBuf {
    let named = std::env::var_os("SONDE_BIN").map(PathBuf::from);
    named.unwrap_or_else(|| env!("CARGO_BIN_EXE_sonde").into())
}

/// Copies the program `from` to the file `to`, which everyone may run, by a process of its own.
///
/// The kernel starts no file that some process has open for writing (execve(2), ETXTBSY). A copy made by this process would
/// be such a file to every test whose child is forked meanwhile: the child holds all descriptors until its own execve.
///
/// # Panics
/// `install` (coreutils) is not there, or cannot copy.
pub fn copy_program(from: &Path, to: &Path) {
    let mut install = Command::new("install");
    let done = install.args(["-m", "755", "--"]).args([from, to]).status();
    assert!(done.unwrap().success(), "{install:?}");
}

/// Writes a script that everyone may run, by a process of its own, as [`copy_program`] copies.
///
/// # Panics
/// It cannot be written.
pub fn write_script(to: &Path, text: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-c", "printf %s \"$1\" >\"$0\" && chmod 755 \"$0\""]);
    let done = shell.arg(to).arg(text).status();
    assert!(done.unwrap().success(), "{shell:?}");
}

/// A device node for TAPs in `folder` that everyone may open.
fn tun_node(folder: &Path) -> Option<PathBuf> {
    let node = folder.join("tun");
    let mut mknod = Command::new("mknod");
    mknod
        .args(["-m", "666"])
        .arg(&node)
        .args(["c", "10", "200"]);
    let made = mknod.stderr(Stdio::null()).status();
    (made.is_ok_and(|status| status.success()) && fs::File::open(&node).is_ok()).then_some(node)
}

/// A folder for a test, and how the command is run in it.
#[derive(Debug)]
pub struct Stage {
    /// Removed at the end.
    pub folder: PathBuf,
    /// Who and how.
    pub case: Case,
    sonde: PathBuf,
    tun: Option<PathBuf>,
}

impl Stage {
    /// A fresh folder that the hosts of a lab see too.
    pub fn new(case: Case) -> Self {
        let mut stage = Self::bare("stage");
        stage.case = case;
        if case.is_user {
            stage.sonde = stage.copy_in(&sonde());
            stage.tun = (case.attachment == "tap")
                .then(|| tun_node(&stage.folder).expect("the case was said to be possible"));
            chown(&stage.folder, Some(USER), Some(USER)).unwrap();
        }
        stage
    }

    fn bare(kind: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sonde-test-{kind}-{}-{number}", std::process::id());
        let folder = Path::new("/var/tmp").join(name);
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        Self {
            folder,
            case: Case::own("veth"),
            sonde: sonde(),
            tun: None,
        }
    }

    /// A stage of root's own, where these programs are; says what is missing where it cannot be had. For tests that
    /// replace root's own settings of ssh, or run daemons as root.
    pub fn of_root(programs: &[&str]) -> Option<Self> {
        if !is_root() {
            skip("root, whose settings the test can replace");
            return None;
        }
        // All that is missing is told, not the first alone.
        if programs.iter().filter(|program| !has(program)).count() > 0 {
            return None;
        }
        let case = attachments().first().copied()?;
        Some(Self::new(Case {
            is_user: false,
            ..case
        }))
    }

    /// The script with `SSHD`, which starts the servers, and `DIR`, this folder, as they are here.
    pub fn with_sshd(&self, script: &str) -> String {
        let sshd = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fleet/tests/sshd.sh");
        script
            .replace("SSHD", self.copy_in(&sshd).to_str().unwrap())
            .replace("DIR", self.folder.to_str().unwrap())
    }

    /// Copies a program to where every user can run it.
    pub fn copy_in(&self, program: &Path) -> PathBuf {
        let to = self.folder.join(program.file_name().unwrap());
        copy_program(program, &to);
        to
    }

    /// The device file of TAPs, where it is not the machine's.
    pub fn tun(&self) -> Option<&Path> {
        self.tun.as_deref()
    }

    /// A path in the folder, as text.
    pub fn path(&self, name: &str) -> String {
        self.folder.join(name).to_str().unwrap().to_owned()
    }

    /// The command with these arguments.
    pub fn sonde<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Call {
        let mut call = self.call(&self.sonde);
        call.command.args(arguments);
        call
    }

    /// `sonde lab run OPTIONS -- PROGRAM`, with the attachment of the case.
    pub fn run(&self, options: &[&str], program: &[&str]) -> Call {
        let mut call = self.lab("run", options);
        call.command.arg("--").args(program);
        call
    }

    /// `sonde lab TASK OPTIONS`, with the attachment of the case.
    pub fn lab(&self, task: &str, options: &[&str]) -> Call {
        let mut call = self.sonde(&["lab", task, "--attachment", self.case.attachment]);
        if let Some(tun) = &self.tun {
            call.command.arg("--tun").arg(tun);
        }
        call.command.args(options);
        call
    }

    /// Any program, as the user of the case.
    pub fn call(&self, program: &Path) -> Call {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}-{number}", std::process::id());
        let mut command;
        if self.case.is_user {
            let user = USER.to_string();
            command = Command::new(path_of("setpriv").unwrap());
            command.args(["--reuid", &user, "--regid", &user, "--clear-groups", "--"]);
            command.arg(program).env("HOME", "/tmp");
        } else {
            command = Command::new(program);
        }
        // What disturbs is not what these tests are about, and to look for it takes 0.3 s of all CPUs.
        command.env(MARK, &mark).env("SONDE_NO_PREFLIGHT", "1");
        command.current_dir(&self.folder);
        Call {
            command,
            mark,
            input: Vec::new(),
            limit: Duration::from_secs(60),
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.folder));
    }
}

/// A command to be run.
#[derive(Debug)]
pub struct Call {
    /// To add arguments and variables.
    pub command: Command,
    mark: String,
    input: Vec<u8>,
    limit: Duration,
}

impl Call {
    /// In the environment of all its processes.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// What it reads.
    pub fn input(mut self, bytes: &[u8]) -> Self {
        self.input = bytes.to_vec();
        self
    }

    /// A variable of its environment.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Its working directory.
    pub fn dir(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// It is killed, and the test fails, after so many seconds.
    pub fn limit(mut self, seconds: u64) -> Self {
        self.limit = Duration::from_secs(seconds);
        self
    }

    /// Starts it.
    pub fn start(mut self) -> Running {
        self.command.stdin(Stdio::piped());
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = self.input;
        // It may end without having read all.
        std::thread::spawn(move || drop(stdin.write_all(&input)));
        Running {
            out: collect(child.stdout.take().unwrap()),
            err: collect(child.stderr.take().unwrap()),
            child,
            started: Instant::now(),
            text: format!("{:?}", self.command),
            mark: self.mark,
            limit: self.limit,
        }
    }

    /// Runs it to its end.
    pub fn output(self) -> Outcome {
        self.start().finish()
    }

    /// Runs it to its end, which must be this code; what it wrote.
    pub fn expect(self, code: i32) -> Outcome {
        let outcome = self.output();
        assert_eq!(outcome.code, code, "{outcome}");
        outcome
    }
}

fn collect(mut from: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut piece = [0; 65_536];
        while let Ok(count @ 1..) = from.read(&mut piece) {
            if sender.send(piece[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// A command that runs. Dropping it kills it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    out: Receiver<Vec<u8>>,
    err: Receiver<Vec<u8>>,
    started: Instant,
    text: String,
    limit: Duration,
    /// In the environment of all its processes.
    pub mark: String,
}

impl Running {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has not ended.
    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits until its output contains `text`; fails when it ends before.
    pub fn wait_for(&mut self, text: &str) -> String {
        self.wait_for_all(text, 1)
    }

    /// Waits until its output contains `text` so often; fails when it ends before.
    pub fn wait_for_all(&mut self, text: &str, count: usize) -> String {
        let deadline = self.started + self.limit;
        let mut seen = String::new();
        while seen.matches(text).count() < count {
            match self
                .out
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                Ok(piece) => seen.push_str(&String::from_utf8_lossy(&piece)),
                Err(why) => {
                    drop(self.child.kill());
                    let err = drain(&self.err, "");
                    panic!("{}: waited for `{text}`: {why}\n{seen}\n{err}", self.text);
                }
            }
        }
        seen
    }

    /// Waits for its end, within the limit.
    pub fn finish(mut self) -> Outcome {
        let mut is_late = false;
        let mut there = Vec::new();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if !is_late && self.started.elapsed() > self.limit {
                is_late = true;
                there = marked(&self.mark);
                drop(self.child.kill());
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let outcome = Outcome {
            code: status
                .code()
                .unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
            took: self.started.elapsed(),
            out: drain(&self.out, &self.text),
            err: drain(&self.err, &self.text),
            text: self.text.clone(),
        };
        assert!(
            !is_late,
            "killed after {:?}: {outcome}\n{there:#?}",
            self.limit
        );
        outcome
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What was written until the last process that could write has ended, which must be soon.
fn drain(from: &Receiver<Vec<u8>>, text: &str) -> String {
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut all = Vec::new();
    loop {
        match from.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(piece) => all.extend(piece),
            Err(RecvTimeoutError::Disconnected) => {
                return String::from_utf8_lossy(&all).into_owned();
            }
            Err(RecvTimeoutError::Timeout) => {
                let all = String::from_utf8_lossy(&all);
                panic!("{text} has ended, but something still holds its output: {all}");
            }
        }
    }
}

/// How a command ended.
#[derive(Debug)]
pub struct Outcome {
    /// Its exit code, or 128 and the signal.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
    /// For how long it ran.
    pub took: Duration,
    text: String,
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            code,
            out,
            err,
            took,
            text,
        } = self;
        write!(
            f,
            "{text}\ncode {code} after {took:?}\n--- out\n{out}--- err\n{err}---"
        )
    }
}

impl Outcome {
    /// Fails unless all of `words` are on standard error.
    pub fn tells(&self, words: &[&str]) -> &Self {
        for word in words {
            assert!(self.err.contains(word), "does not print `{word}`: {self}");
        }
        self
    }

    /// The value of `name=` on the line `number` (from 0) of those that a part wrote.
    pub fn part(&self, number: usize, name: &str) -> u64 {
        let lines: Vec<_> = self
            .out
            .lines()
            .filter(|line| line.contains("part: "))
            .collect();
        let line = lines
            .get(number)
            .unwrap_or_else(|| panic!("no line {number}: {self}"));
        let wanted = format!("{name}=");
        let mut words = line
            .split_whitespace()
            .filter_map(|word| word.strip_prefix(&wanted));
        let value = words.next().and_then(|value| value.parse().ok());
        value.unwrap_or_else(|| panic!("no {name} in `{line}`: {self}"))
    }
}

/// A process that carries a mark.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// Its command line, separated by spaces.
    pub line: String,
    /// Its network namespace.
    pub netns: u64,
}

/// All processes with this mark, by id.
pub fn marked(mark: &str) -> Vec<Process> {
    let wanted = format!("{MARK}={mark}");
    let mut found: Vec<_> = processes()
        .filter(|pid| carries(*pid, &wanted))
        .map(process)
        .collect();
    found.sort_by_key(|process| process.pid);
    found
}

/// Those with this mark, and those in one of these network namespaces, which are not this process's own: a server that ssh started
/// has no mark.
pub fn of_run(mark: &str, namespaces: &[u64]) -> Vec<Process> {
    let own = process(std::process::id()).netns;
    let mut found = marked(mark);
    let others = processes().map(process).filter(|process| {
        process.netns != own && process.netns != 0 && namespaces.contains(&process.netns)
    });
    let others = others.filter(|other| found.iter().all(|one| one.pid != other.pid));
    let others: Vec<_> = others.collect();
    found.extend(others);
    found
}

/// As [`of_run`], of the namespaces that those with the mark are in.
pub fn members(mark: &str) -> Vec<Process> {
    let namespaces: Vec<u64> = marked(mark).iter().map(|process| process.netns).collect();
    of_run(mark, &namespaces)
}

fn processes() -> impl Iterator<Item = u32> {
    let names = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    names.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn carries(pid: u32, wanted: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment
        .split(|byte| *byte == 0)
        .any(|entry| entry == wanted.as_bytes())
}

fn process(pid: u32) -> Process {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    let netns = fs::metadata(format!("/proc/{pid}/ns/net")).map_or(0, |data| data.ino());
    Process { pid, line, netns }
}

/// All network namespaces that some process is in.
pub fn network_namespaces() -> Vec<u64> {
    let mut all: Vec<_> = processes().map(|pid| process(pid).netns).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Asks again until `is_so`, for some seconds; the last answer.
pub fn eventually<T>(mut ask: impl FnMut() -> T, mut is_so: impl FnMut(&T) -> bool) -> T {
    let deadline = Instant::now() + Duration::from_secs(15);
    loop {
        let answer = ask();
        if is_so(&answer) || Instant::now() > deadline {
            return answer;
        }
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// The report that the command wrote.
pub fn report(path: &str) -> serde_json::Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Fails unless no frame was lost outside the model.
pub fn assert_attachment_lost_nothing(report: &serde_json::Value) {
    let losses = report["attachment"]
        .as_object()
        .expect("an attachment in the report");
    assert!(losses.len() >= 5, "{report:#}");
    for (place, count) in losses {
        assert_eq!(count.as_u64(), Some(0), "{place}: {report:#}");
    }
}
