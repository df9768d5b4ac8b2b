//! A virtual machine of PVM for this host, as the tests and the example `overhead` want it: also where root runs them.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PVM_ROOT: &str = "/usr/lib/pvm3";
/// It has begun by then.
const LIMIT: Duration = Duration::from_secs(60);

/// A virtual machine of PVM of this host alone, in a folder of its own; both go with it.
pub struct Machine {
    daemon: Child,
    folder: PathBuf,
}

impl Machine {
    /// Starts it.
    ///
    /// # Errors
    /// What is missing for it.
    pub fn start() -> Result<Self, String> {
        let program = PathBuf::from(PVM_ROOT).join("lib/pvmd");
        if !program.exists() {
            return Err(format!("no {}", program.display()));
        }
        let folder = std::env::temp_dir().join(format!("sonde-pvm-{}", std::process::id()));
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir_all(&folder).unwrap();
        let mut command = Command::new(program);
        environment(&mut command, &folder);
        let daemon = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let machine = Self { daemon, folder };
        let begin = Instant::now();
        // It is ready when its socket's address is in a file.
        while !machine.is_ready() {
            if begin.elapsed() > LIMIT {
                return Err("pvmd did not begin".into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(machine)
    }

    fn is_ready(&self) -> bool {
        let entries = std::fs::read_dir(&self.folder).unwrap();
        entries.flatten().any(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            name.starts_with("pvmd.") && entry.metadata().is_ok_and(|data| data.len() > 0)
        })
    }

    /// A program is a task of it; those that it spawns have these variables too.
    pub fn within<'a>(&self, command: &'a mut Command, passed: &[&str]) -> &'a mut Command {
        environment(command, &self.folder);
        command.env("PVM_EXPORT", passed.join(":"))
    }
}

fn environment(command: &mut Command, folder: &std::path::Path) {
    command
        .env("PVM_ROOT", PVM_ROOT)
        .env("PVM_ARCH", "LINUX64")
        .env("PVM_DPATH", format!("{PVM_ROOT}/lib/pvmd"))
        .env("PVM_ALLOW_ROOT", "1")
        .env("PVM_TMP", folder)
        .env("PVM_VMID", format!("sonde{}", std::process::id()));
}

impl Drop for Machine {
    fn drop(&mut self) {
        // It ends its tasks when it is told to end.
        let number = self.daemon.id().to_string();
        drop(Command::new("kill").args(["-TERM", &number]).status());
        let begin = Instant::now();
        while self.daemon.try_wait().is_ok_and(|status| status.is_none()) {
            if begin.elapsed() > Duration::from_secs(10) {
                drop(self.daemon.kill());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(std::fs::remove_dir_all(&self.folder));
    }
}
