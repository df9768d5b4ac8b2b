//! The machine as files below a root folder, its programs, and a bound on every wait.
//!
//! Model:   settings are files; a program is found by PATH, then in the folders of the administrator, and its version is
//!          what it prints. Whatever may wait for ever runs on a thread or in a process of its own, and is left or killed
//!          when its time is up.
//! Checked: `programs_are_found_and_asked`, `a_wait_is_bounded`, `packages_have_their_distribution_s_name`.

use rustix::fs::MemfdFlags;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A program that was asked for its version has answered by then.
const ANSWER: Duration = Duration::from_secs(3);
/// Where programs of the administrator are, which an ordinary user's PATH may lack.
const SYSTEM_FOLDERS: [&str; 4] = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin"];

/// What is looked at.
#[derive(Clone, Debug)]
pub struct Machine {
    root: PathBuf,
    folders: Vec<PathBuf>,
    /// The user's folder.
    pub home: Option<PathBuf>,
    /// The socket of the user's ssh agent.
    pub agent: Option<PathBuf>,
    /// The user.
    pub uid: u32,
}

impl Machine {
    /// The one this program runs on.
    pub fn this() -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path)
            .filter(|folder| folder.is_absolute())
            .chain(SYSTEM_FOLDERS.map(PathBuf::from))
            .collect();
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        Self {
            root: PathBuf::from("/"),
            folders,
            home: variable("HOME"),
            agent: variable("SSH_AUTH_SOCK"),
            uid: sonde_sys::process::ids().0,
        }
    }

    /// The file at `path`, which is relative to the root.
    pub fn file(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// The text of a file, without white space around it; none where it cannot be read.
    pub fn text(&self, path: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.file(path)).ok()?;
        Some(text.trim().to_owned())
    }

    /// The numbers in a file, up to the first word that is none.
    pub fn numbers(&self, path: &str) -> Vec<u64> {
        let text = self.text(path).unwrap_or_default();
        text.split_whitespace()
            .map_while(|word| word.parse().ok())
            .collect()
    }

    /// The names in a folder, sorted; none where it cannot be read.
    pub fn names(&self, path: &str) -> Vec<String> {
        sonde_sys::topology::names(&self.file(path))
    }

    /// Where the program `name` is.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        let executable = |path: &PathBuf| {
            std::fs::metadata(path)
                .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
        };
        self.folders
            .iter()
            .map(|folder| folder.join(name))
            .find(executable)
    }

    /// The command that installs what Debian calls `package`.
    pub fn install(&self, package: &str) -> String {
        let fedora = match package {
            "openssh-client" => "openssh-clients",
            "uidmap" => "shadow-utils",
            "libc-bin" => "glibc-common",
            other => other,
        };
        if self.program("apt-get").is_some() {
            format!("as root: apt-get install {package}")
        } else if self.program("dnf").is_some() {
            format!("as root: dnf install {fedora}")
        } else {
            format!("install what Debian calls the package {package}")
        }
    }
}

/// The first line that `program` prints, to either stream, that holds `word`; the reason where there is none.
pub fn version(program: &Path, argument: &str, word: &str) -> Result<String, String> {
    let said = output(program, argument, ANSWER)?;
    let line = said.lines().map(str::trim).find(|line| line.contains(word));
    line.map(str::to_owned).ok_or_else(|| {
        format!(
            "`{} {argument}` does not print its version",
            program.display()
        )
    })
}

/// What a program prints, within `limit`.
fn output(program: &Path, argument: &str, limit: Duration) -> Result<String, String> {
    run(Command::new(program).arg(argument), b"", limit).map(|(_, said)| said)
}

/// Runs a command on `input`: whether it succeeded, and what it printed to either stream. It reads from and writes into
/// memory, not pipes, which a child of its own could hold open.
///
/// # Errors
/// It cannot be started, or has not ended within `limit`: then it is killed.
pub fn run(command: &mut Command, input: &[u8], limit: Duration) -> Result<(bool, String), String> {
    let program = PathBuf::from(command.get_program());
    let text = |e: &dyn std::fmt::Display| format!("cannot run {}: {e}", program.display());
    let memory = || {
        let made = rustix::fs::memfd_create("sonde-doctor", MemfdFlags::CLOEXEC);
        made.map(File::from).map_err(|e| text(&e))
    };
    let (mut given, mut memory) = (memory()?, memory()?);
    given.write_all(input).map_err(|e| text(&e))?;
    given.rewind().map_err(|e| text(&e))?;
    let copy = || memory.try_clone().map(Stdio::from).map_err(|e| text(&e));
    let mut child = command
        .env("LC_ALL", "C")
        .stdin(given)
        .stdout(copy()?)
        .stderr(copy()?)
        .spawn()
        .map_err(|e| text(&e))?;
    let deadline = Instant::now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|e| text(&e))? {
            break status;
        }
        if Instant::now() >= deadline {
            // It may have ended just now; then there is nothing left to kill.
            drop(child.kill());
            drop(child.wait());
            return Err(format!(
                "{} gave no answer within {} s",
                program.display(),
                limit.as_secs_f32()
            ));
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let mut bytes = Vec::new();
    memory.rewind().map_err(|e| text(&e))?;
    memory.read_to_end(&mut bytes).map_err(|e| text(&e))?;
    let said = String::from_utf8_lossy(&bytes).into_owned();
    Ok((status.success(), said))
}

/// What `work` gives, or nothing when that takes longer than `limit`: then its thread is left behind.
pub fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (give, take) = mpsc::channel();
    let start = std::thread::Builder::new().spawn(move || {
        // Nobody takes what comes too late.
        drop(give.send(work()));
    });
    start.ok()?;
    take.recv_timeout(limit).ok()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A made-up machine: files in a folder of its own, which goes with it.
    pub struct Tree {
        pub machine: Machine,
    }

    impl Tree {
        /// With these files: path below the root, and text.
        pub fn of(files: &[(&str, &str)]) -> Self {
            static COUNT: AtomicU32 = AtomicU32::new(0);
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("sonde-doctor-{}-{number}", std::process::id());
            let root = std::env::temp_dir().join(name);
            std::fs::create_dir_all(&root).unwrap();
            for (path, text) in files {
                let file = root.join(path);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                if path.contains("bin/") {
                    script(&file, text);
                } else {
                    std::fs::write(&file, text).unwrap();
                }
            }
            let machine = Machine {
                folders: vec![root.join("usr/bin"), root.join("usr/sbin")],
                home: Some(root.join("home/ann")),
                agent: None,
                uid: 1001,
                root,
            };
            Self { machine }
        }
    }

    /// Writes a program from another process: a file that is open for writing in this one when another test forks stays
    /// open in that child, and cannot be started until it has gone on (ETXTBSY).
    fn script(file: &Path, text: &str) {
        let write = "printf %s \"$1\" >\"$0\" && chmod 755 \"$0\"";
        let status = Command::new("sh")
            .args(["-c", write])
            .arg(file)
            .arg(text)
            .status();
        assert!(status.unwrap().success());
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.machine.root).unwrap();
        }
    }

    #[test]
    fn programs_are_found_and_asked() {
        let tree = Tree::of(&[
            (
                "usr/sbin/tool",
                "#!/bin/sh\necho hello\necho \"tool 3.2 $1\" >&2\n",
            ),
            ("usr/bin/silent", "#!/bin/sh\n"),
            ("usr/share/file", "not a program"),
        ]);
        let tool = tree.machine.program("tool").unwrap();
        assert_eq!(version(&tool, "-V", "tool").unwrap(), "tool 3.2 -V");
        let silent = tree.machine.program("silent").unwrap();
        assert!(version(&silent, "-V", "").is_err());
        assert!(
            version(Path::new("/no/such"), "-V", "")
                .unwrap_err()
                .contains("/no/such")
        );
        assert_eq!(tree.machine.program("file"), None);
        assert_eq!(tree.machine.names("usr"), ["bin", "sbin", "share"]);
    }

    #[test]
    fn a_wait_is_bounded() {
        let tree = Tree::of(&[("usr/bin/slow", "#!/bin/sh\nexec sleep 100\n")]);
        let slow = tree.machine.program("slow").unwrap();
        let said = output(&slow, "", Duration::from_millis(50)).unwrap_err();
        assert!(said.contains("no answer within 0.05 s"), "{said}");
        let (hold, wait) = mpsc::channel::<()>();
        assert_eq!(
            within(Duration::from_millis(20), move || wait.recv().is_ok()),
            None
        );
        drop(hold);
        assert_eq!(within(Duration::from_secs(60), || 7), Some(7));
    }

    #[test]
    fn packages_have_their_distribution_s_name() {
        let debian = Tree::of(&[("usr/bin/apt-get", "")]);
        assert_eq!(
            debian.machine.install("uidmap"),
            "as root: apt-get install uidmap"
        );
        let fedora = Tree::of(&[("usr/bin/dnf", "")]);
        assert_eq!(
            fedora.machine.install("uidmap"),
            "as root: dnf install shadow-utils"
        );
        assert!(
            Tree::of(&[])
                .machine
                .install("iperf3")
                .ends_with("package iperf3")
        );
    }
}
