//! The command under comparison, started so that nothing of this machine shows in what it prints.
//!
//! Model:   a terminal's width, the zone of time, the language and the home are fixed; standard input is empty; output goes to
//!          pipes, for which tables have their own width.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, bail};

/// The command.
#[derive(Debug)]
pub struct Program {
    path: PathBuf,
}

/// What a call gave.
#[derive(Debug)]
pub struct Said {
    /// The exit code; 128 and the number of the signal that ended it.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Program {
    /// `$SONDE_BIN`, else the static program, else the other one.
    ///
    /// # Errors
    /// None is built.
    pub fn find(root: &Path) -> Result<Self> {
        let named = std::env::var_os("SONDE_BIN").map(PathBuf::from);
        let built = ["target/static/sonde", "target/release/sonde"].map(|path| root.join(path));
        let found = named.into_iter().chain(built).find(|path| path.is_file());
        match found {
            Some(path) => Ok(Self {
                path: path.canonicalize()?,
            }),
            None => bail!(
                "there is no program to compare: run scripts/build.sh, or name one by SONDE_BIN"
            ),
        }
    }

    /// Runs it in this folder.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn call<S: AsRef<OsStr>>(&self, folder: &Path, words: &[S]) -> Result<Said> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut command = Command::new(&self.path);
        command
            .args(words)
            .current_dir(folder)
            .stdin(Stdio::null())
            .env_clear();
        command.env("PATH", path).env("HOME", folder);
        command.envs([("COLUMNS", "100"), ("LC_ALL", "C.UTF-8"), ("TZ", "UTC")]);
        let output = command
            .output()
            .with_context(|| format!("starting {}", self.path.display()))?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let signal = std::os::unix::process::ExitStatusExt::signal(&output.status);
        Ok(Said {
            code: output
                .status
                .code()
                .unwrap_or_else(|| 128 + signal.unwrap_or(0)),
            out: text(output.stdout),
            err: text(output.stderr),
        })
    }

    /// A script in place of the command. Another process writes it: a file that is open for writing in this one when another
    /// test forks stays open in that child, and cannot be started until it has gone on (ETXTBSY).
    #[cfg(test)]
    pub fn stand_in(folder: &Folder, script: &str) -> Self {
        let path = folder.path().join("program");
        let write = "printf %s \"$1\" >\"$0\" && chmod 755 \"$0\"";
        let mut shell = Command::new("sh");
        let done = shell.args(["-c", write]).arg(&path).arg(script).status();
        assert!(done.unwrap().success());
        Self { path }
    }
}

/// A folder of its own, removed at the end.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A fresh one.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new(name: &str) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sonde-{name}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left is a temporary file.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
