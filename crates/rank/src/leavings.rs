//! What a library leaves in the machine's memory when its rank is killed, and who takes it away.
//!
//! Model:   libfabric's provider shm has a segment for each rank in /dev/shm, named for its process: `14787:0:0`. One that ends in
//!          order takes it away itself. Here a shell waits for the end of this process, however it comes, which is that of a
//!          pipe; it has a session and an environment of its own, so that what ends the ranks does not end it before.
//! Checked: `crates/sonde/tests/lab_check_times.rs::a_killed_rank_ends_the_others_and_leaves_no_memory`.

use std::process::{Child, Command, Stdio};

use sonde_sys::exec::{Step, before_exec};

/// Ends by itself after this process.
pub struct Sweeper {
    /// With it the end of the pipe.
    _shell: Child,
}

impl Sweeper {
    /// Begins to wait. `None` where there is no shell: then what is left stays.
    pub fn begin() -> Option<Self> {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", "read -r nothing; rm -f -- /dev/shm/\"$0\":*"])
            .arg(std::process::id().to_string())
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        before_exec(&mut command, vec![Step::NewSession]);
        let shell = command.spawn().ok()?;
        Some(Self { _shell: shell })
    }
}
