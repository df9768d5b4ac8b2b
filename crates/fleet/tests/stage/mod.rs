//! A lab for tests of the fleet: programs on its hosts, OpenSSH servers, an orchestrator that is told what to do.
//!
//! Model:   all programs are the part program of these tests (`part.rs`). As root the hosts' servers are Debian's own, as an
//!          ordinary user they serve that user; see `../sshd.sh`.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use sonde_lab::{Attachment, Config, CpuPlan, Exec, Lab, Profile, Session, User};

/// Nothing here takes longer.
const TIMEOUT: Duration = Duration::from_secs(60);
/// What is left of a program is gone after this.
const GONE: Duration = Duration::from_secs(10);
const SSHD_SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sshd.sh");

/// The program that plays agents and orchestrators.
pub fn part() -> PathBuf {
    env!("CARGO_BIN_EXE_sonde-fleet-part").into()
}

/// A lab of `hosts` hosts over a network of the catalogue.
pub fn config(network: &str, hosts: u16) -> Config {
    let none = |_: &str| Err::<String, String>("not in the catalogue".into());
    let network = sonde_link::resolve(network, &none).unwrap();
    let online = sonde_sys::cpu::online().unwrap();
    let (uid, gid) = sonde_sys::process::ids();
    let user = if uid == 0 { (1_000, 1_000) } else { (uid, gid) };
    Config {
        site: sonde_link::SiteSpec::single(network, hosts),
        attachment: Attachment::Auto,
        tun: "/dev/net/tun".into(),
        profile: Profile::MODERN,
        cpus: CpuPlan::named("free", &online).unwrap(),
        priority: sonde_lab::Priority::Auto,
        seed: 1,
        pcap: None,
        ledger: None,
        share: false,
        fail_over: false,
        keep: vec![
            part().parent().unwrap().into(),
            env!("CARGO_MANIFEST_DIR").into(),
        ],
        user: User {
            uid: user.0,
            gid: user.1,
            behind: (0, 0),
        },
    }
}

/// Whether OpenSSH's server and client are installed; says so where they are not.
pub fn has_openssh() -> bool {
    let found = |paths: [&str; 2]| paths.iter().any(|path| Path::new(path).is_file());
    let has = found(["/usr/sbin/sshd", "/usr/bin/sshd"]) && found(["/usr/bin/ssh", "/bin/ssh"]);
    if !has {
        println!("skipped: OpenSSH's server and client (openssh-server, openssh-client)");
    }
    has
}

/// A lab whose hosts h2 and on run ssh servers.
pub struct Stage {
    lab: Lab,
    /// Keys and configuration, seen by all hosts; removed at the end.
    pub folder: PathBuf,
    servers: Vec<(u16, Session)>,
    is_root: bool,
}

impl Stage {
    /// The lab with `hosts` hosts, and keys for those from h2.
    pub fn new(hosts: u16) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = PathBuf::from(format!(
            "/var/tmp/sonde-fleet-{}-{number}",
            std::process::id()
        ));
        std::fs::create_dir(&folder).unwrap();
        let mut stage = Self {
            lab: Lab::start(&part(), &config("ethernet-1g", hosts), None, None).unwrap(),
            folder,
            servers: Vec::new(),
            is_root: sonde_sys::process::ids().0 == 0,
        };
        let names: Vec<String> = (2..=hosts).map(|host| format!("h{host}")).collect();
        let folder = stage.keys();
        let mut words = vec!["sh", SSHD_SCRIPT, "keys", &folder];
        words.extend(names.iter().map(String::as_str));
        assert_eq!(stage.run(1, &words), "");
        for host in 2..=hosts {
            stage.serve(host, &[]);
        }
        stage
    }

    /// The folder of keys and configuration, as text.
    pub fn keys(&self) -> String {
        self.folder.join("keys").to_str().unwrap().into()
    }

    /// The port of the servers.
    pub fn port(&self) -> u16 {
        if self.is_root { 22 } else { 2_222 }
    }

    /// Whether the hosts' programs are the lab's root.
    pub fn is_root(&self) -> bool {
        self.is_root
    }

    /// Starts a server, with more options of sshd, and waits until it answers.
    pub fn serve(&mut self, host: u16, options: &[&str]) {
        self.serve_by(host, &[], options);
    }

    /// The same, started by another program.
    pub fn serve_by(&mut self, host: u16, starter: &[&str], options: &[&str]) {
        let keys = self.keys();
        let words = [starter, &["sh", SSHD_SCRIPT, "serve", &keys], options].concat();
        let (session, _) = self.start(host, &words);
        self.servers.push((host, session));
        let ready = format!(
            "until ss -Hltn 'sport = :{}' | grep -q LISTEN; do sleep 0.02; done",
            self.port()
        );
        self.run(host, &["timeout", "10", "sh", "-c", &ready]);
    }

    /// Ends the servers of a host.
    pub fn end_server(&mut self, host: u16) {
        self.servers.retain(|(one, _)| *one != host);
    }

    fn exec(&self, words: &[&str]) -> Exec {
        Exec {
            argv: words.iter().map(OsString::from).collect(),
            environment: std::env::vars_os().collect(),
            directory: "/".into(),
            root: self.is_root,
            detached: false,
            terminal: None,
            cpus: Vec::new(),
            keeps_priority: false,
        }
    }

    /// Starts a program; its standard input and output are the socket.
    pub fn start(&self, host: u16, words: &[&str]) -> (Session, UnixStream) {
        let (mine, theirs) = UnixStream::pair().unwrap();
        let log = std::fs::File::options()
            .append(true)
            .create(true)
            .open(self.folder.join("log"))
            .unwrap();
        let streams = [theirs.as_fd(), theirs.as_fd(), log.as_fd()];
        let (session, _) = self.lab.exec(host, &self.exec(words), streams).unwrap();
        mine.set_read_timeout(Some(TIMEOUT)).unwrap();
        (session, mine)
    }

    /// Runs a program to its end; what it wrote.
    pub fn run(&self, host: u16, words: &[&str]) -> String {
        let (session, mut output) = self.start(host, words);
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        let ended = session.wait().unwrap();
        assert_eq!(
            ended.code(),
            0,
            "{words:?} on h{host}: {text}\n{}",
            self.log()
        );
        text
    }

    /// What programs wrote to standard error.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// An orchestrator on h1, by the configuration in `folder`.
    pub fn steer(&self, folder: &str, hosts: &str) -> Steer {
        let program = part();
        let (session, socket) = self.start(1, &[program.to_str().unwrap(), "steer", folder, hosts]);
        Steer {
            session,
            from: BufReader::new(socket.try_clone().unwrap()),
            to: socket,
        }
    }

    /// The programs that the processes of a host run, without those of the lab, the servers and this question.
    pub fn programs(&self, host: u16) -> Vec<String> {
        let ask = "for p in /proc/[0-9]*; do [ $p = /proc/$$ ] || echo \"$(readlink $p/exe) $(tr '\\0' ' ' <$p/cmdline)\"; done 2>/dev/null";
        let text = self.run(host, &["sh", "-c", ask]);
        let own = |line: &&str| {
            let line = line.trim();
            !line.is_empty()
                && !line.contains("--sonde-lab-")
                && !line.contains("[listener]")
                && !line.contains("for p in /proc")
        };
        text.lines().filter(own).map(str::to_owned).collect()
    }

    /// Programs and files that are on a host and were not before any test.
    pub fn left(&self, host: u16) -> Vec<String> {
        let mut left = self.programs(host);
        let files = self.run(
            host,
            &[
                "sh",
                "-c",
                "ls -A /tmp /dev/shm; ls -A $HOME | grep '^.sonde' || true",
            ],
        );
        // The lab shows a host the folder of its program, also where that lies below /tmp.
        let program = std::env::current_exe().unwrap();
        let names = files.lines().filter(|line| {
            let is_way = program.starts_with(Path::new("/tmp").join(line));
            !(line.is_empty() || line.ends_with(':') || is_way)
        });
        left.extend(names.map(|name| format!("file {name}")));
        left
    }

    /// Fails unless soon nothing is left on any host.
    pub fn assert_nothing_left(&self) {
        let end = Instant::now() + GONE;
        for host in 1..=self.lab.hosts() {
            loop {
                let left = self.left(host);
                if left.is_empty() {
                    break;
                }
                assert!(Instant::now() < end, "left on h{host}: {left:#?}");
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }

    /// Kills every process of a host but its init: server, sessions, agent.
    pub fn kill_all(&mut self, host: u16) {
        // The shell's own id and that of the init are left out; the numbers are the host's own.
        let kill = "for p in /proc/[0-9]*; do n=${p#/proc/}; [ $n = 1 ] || [ $n = $$ ] || kill -9 $n; done";
        self.run(host, &["sh", "-c", kill]);
        self.end_server(host);
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- standard error of the hosts' programs\n{}", self.log());
        }
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

/// An orchestrator that does what it is told.
pub struct Steer {
    session: Session,
    from: BufReader<UnixStream>,
    to: UnixStream,
}

impl Steer {
    /// Its next answer.
    pub fn answer(&mut self) -> String {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        line.trim_end().into()
    }

    /// Tells it to do something.
    pub fn tell(&mut self, line: &str) {
        self.to.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Tells it, and takes its answer.
    pub fn ask(&mut self, line: &str) -> String {
        self.tell(line);
        self.answer()
    }

    /// The same; the answer must begin with `ok`. The rest of it.
    pub fn expect(&mut self, line: &str) -> String {
        let answer = self.ask(line);
        let rest = answer.strip_prefix("ok");
        rest.unwrap_or_else(|| panic!("{line}: {answer}"))
            .trim()
            .into()
    }

    /// Ends its input: it stops the fleet. Its last answer.
    pub fn stop(mut self) -> String {
        self.to.shutdown(std::net::Shutdown::Write).unwrap();
        let answer = self.answer();
        assert_eq!(self.session.wait().unwrap().code(), 0);
        answer
    }

    /// Kills it.
    pub fn kill(self) {
        self.session.signal(9).unwrap();
        assert_eq!(self.session.wait().unwrap().code(), 128 + 9);
    }
}
