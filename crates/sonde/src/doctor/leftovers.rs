//! `sonde doctor --leftovers`: what dead runs of sonde left on this machine, and with `--clear` its end.
//!
//! Model:   what is ours is known by our own marks or by its place, never by a name that others may have: words that only sonde starts
//!          itself with, a variable that an agent gives to what it starts, a file in each folder of a run, the lists of changed
//!          settings, our folder for builds, the store, a marked directory of files that no worker has locked. It is of a dead run where its owner is gone: a process whose parent is
//!          no sonde, a folder that no process uses. What is looked at twice, a second apart, and seen both times is told: a run
//!          that is just ending takes away its own. Namespaces, interfaces and mounts of a lab last as long as its processes, and go with these.
//! Checked: `dead_runs_are_found_and_cleared` of `tests/lab_leftovers.rs`, for settings, processes and folders.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use schemars::JsonSchema;
use serde::Serialize;
use sonde_fleet::{COPY_MARK, FOLDER_MARK};
use sonde_lab::CRADLE;
use sonde_probe::agent::WORKER;
use sonde_probe::host::{self, GUARD};
use sonde_probe::{PROGRAM_MARK, worker_of};
use sonde_record::Store;
use sonde_sys::process;
use sonde_sys::processes::{self, Seen};
use sonde_workload::files::SCRATCH_MARK;

use crate::document::{self, Command, Document};
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::measure::command_line;
use crate::output::{self, Print};
use crate::place;
use sonde_units::plain;

const SIGKILL: i32 = 9;
/// A run that is ending has taken away its own within this.
const PAUSE: Duration = Duration::from_secs(1);
/// The words that parts of sonde are started with, each by another part that outlives it. The others of a lab go with its first.
const PARTS: [&str; 3] = [CRADLE, WORKER, GUARD];

/// What a leftover is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A process, with the namespaces, interfaces and mounts that it holds.
    Process,
    /// Settings of this host that are not put back.
    Settings,
    /// A folder with all that is in it.
    Folder,
    /// A file.
    File,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Settings => "settings",
            Self::Folder => "folder",
            Self::File => "file",
        }
    }
}

/// Something that a dead run left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Leftover {
    /// What it is.
    pub kind: Kind,
    /// Which: the number and the words of a process, a path.
    pub what: String,
    /// How it is known to be sonde's.
    pub known_by: String,
    /// What was done about it; null where it was to be told alone.
    pub done: Option<String>,
    /// Whether it is still there.
    pub remains: bool,
    #[serde(skip)]
    at: At,
}

/// How to take it away.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum At {
    Process { pid: u32, began: u64 },
    Path(PathBuf),
}

/// The columns of `--csv`.
const CSV_COLUMNS: [&str; 5] = ["kind", "what", "known_by", "done", "remains"];

/// All of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Leftovers")]
pub struct Leftovers {
    /// In the order in which they are cleared.
    pub leftovers: Vec<Leftover>,
}

/// Where it is looked.
struct Places {
    /// Folders in which runs make folders of their own.
    temporary: Vec<PathBuf>,
    /// Where hosts keep a copy of the program for a moment.
    copies: Vec<PathBuf>,
    /// The folder of the store.
    out: PathBuf,
    /// The user's folder for builds.
    builds: Option<PathBuf>,
    /// The current folder.
    here: Option<PathBuf>,
}

impl Places {
    fn usual(out: &Path) -> Self {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let shared = ["/dev/shm", "/tmp"].map(PathBuf::from);
        let copies = [variable("XDG_RUNTIME_DIR"), variable("HOME")];
        Self {
            temporary: shared.to_vec(),
            copies: shared
                .into_iter()
                .chain(copies.into_iter().flatten())
                .collect(),
            out: out.into(),
            builds: place::mpi::builds(),
            here: std::env::current_dir().ok(),
        }
    }
}

/// `sonde doctor --leftovers`: 0 where nothing is left, or all was cleared, else 1.
///
/// # Errors
/// What is found is no JSON.
pub fn run(out: &Path, clear: bool, print: Print) -> Result<i32, Failure> {
    let places = Places::usual(out);
    let mut found = find(&places);
    if !found.is_empty() {
        std::thread::sleep(PAUSE);
        let again = find(&places);
        found.retain(|one| again.iter().any(|other| other.at == one.at));
    }
    if clear {
        found.iter_mut().for_each(Leftover::clear);
    }
    let remaining = found.iter().filter(|one| one.remains).count();
    let why = match remaining {
        0 => None,
        1 => Some("1 leftover of a dead run remains".to_owned()),
        count => Some(format!("{count} leftovers of dead runs remain")),
    };
    let outcome = Outcome {
        is_measured: true,
        is_judged: true,
        failed: why.into_iter().collect(),
        ..Outcome::default()
    };
    if print == Print::Csv {
        output::csv(&CSV_COLUMNS, &found)?;
    } else if print == Print::Json {
        let leftovers = Leftovers { leftovers: found };
        let command = Command::Leftovers(&leftovers);
        let document = Document::new(command, &command_line(), outcome.judgement());
        document::print(&document)?;
    } else {
        output::shown(&text(&found, clear));
    }
    Ok(outcome.code())
}

fn text(found: &[Leftover], clear: bool) -> String {
    if found.is_empty() {
        return "Dead runs of sonde left nothing on this machine.\n".into();
    }
    let mut text = String::new();
    for one in found {
        text += &format!("{:<8}  {}\n", one.kind.word(), plain(&one.what));
        text += &format!("          known by: {}\n", plain(&one.known_by));
        if let Some(done) = &one.done {
            text += &format!("          done:     {}\n", plain(done));
        }
    }
    if !clear {
        text += "\n`sonde doctor --leftovers --clear` ends and removes them.\n";
    }
    text
}

fn find(places: &Places) -> Vec<Leftover> {
    let all = processes::all();
    let mut found = settings();
    let folders = folders(places, &all);
    let ids: Vec<String> = folders.iter().filter_map(Leftover::name).collect();
    found.extend(all.iter().filter_map(|one| left_process(one, &all, &ids)));
    found.extend(folders);
    found.extend(files(places));
    found.extend(scratches(places));
    // A guard would put settings back when it ends: these are first.
    found.sort_by(|a, b| {
        (a.kind != Kind::Settings, a.kind, &a.at).cmp(&(b.kind != Kind::Settings, b.kind, &b.at))
    });
    found
}

impl Leftover {
    fn new(kind: Kind, what: impl Into<String>, known_by: impl Into<String>, at: At) -> Self {
        Self {
            kind,
            what: what.into(),
            known_by: known_by.into(),
            done: None,
            remains: true,
            at,
        }
    }

    fn of_path(kind: Kind, path: &Path, known_by: impl Into<String>) -> Self {
        let at = At::Path(path.into());
        Self::new(kind, path.display().to_string(), known_by, at)
    }

    /// The last part of its path.
    fn name(&self) -> Option<String> {
        match &self.at {
            At::Path(path) => Some(path.file_name()?.to_str()?.to_owned()),
            At::Process { .. } => None,
        }
    }

    /// Takes it away, and says so.
    fn clear(&mut self) {
        let done = match (&self.at, self.kind) {
            (At::Process { pid, began }, _) => end(*pid, *began),
            (At::Path(path), Kind::Settings) => put_back(path),
            (At::Path(path), Kind::Folder) => {
                fs::remove_dir_all(path).map(|()| "it was removed, with all that was in it".into())
            }
            (At::Path(path), _) => fs::remove_file(path).map(|()| "it was removed".into()),
        };
        self.remains = done.is_err();
        self.done = Some(match done {
            Ok(words) => words,
            Err(error) if self.kind == Kind::Settings => error.to_string(),
            Err(error) => format!("it could not be removed: {error}"),
        });
    }
}

/// Ends a process that is the one that was seen.
fn end(pid: u32, began: u64) -> io::Result<String> {
    if processes::began(pid) != Some(began) {
        return Ok("it had ended meanwhile".into());
    }
    process::kill(pid, SIGKILL).map_err(io::Error::other)?;
    for _ in 0..100 {
        let lives = processes::all().into_iter();
        let mut same = lives.filter(|one| (one.pid, one.began) == (pid, began));
        // One that its parent has not collected has no words any more.
        if same.next().is_none_or(|one| one.words.is_empty()) {
            return Ok("it was killed".into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(io::Error::other("it does not end"))
}

/// Puts the settings back; an error says what could not be, and stays in the list.
fn put_back(path: &Path) -> io::Result<String> {
    let said = host::put_back(path).join("; ");
    match (path.exists(), said.is_empty()) {
        (true, _) => Err(io::Error::other(said)),
        (false, true) => Ok("they were as before, and the list was removed".into()),
        (false, false) => Ok(said),
    }
}

/// What agents that were killed had changed.
fn settings() -> Vec<Leftover> {
    let of = |list: host::Unrestored| {
        let what = match list.settings.is_empty() {
            true => format!("{} (empty)", list.path.display()),
            false => format!(
                "{}: before it was {}",
                list.path.display(),
                list.settings.join(", ")
            ),
        };
        let known =
            "it is in sonde's folder of changed settings, and nobody looks after it any more";
        Leftover::new(Kind::Settings, what, known, At::Path(list.path))
    };
    host::unrestored().into_iter().map(of).collect()
}

/// A process of a dead run; `ids` are the names of folders that dead runs left.
fn left_process(one: &Seen, all: &[Seen], ids: &[String]) -> Option<Leftover> {
    if !one.is_here || one.words.is_empty() || one.pid == std::process::id() {
        return None;
    }
    let known = own_part(one, all).or_else(|| started_by(one)).or_else(|| {
        let id = processes::variable(one.pid, "PVM_VMID")?;
        let known = format!("PVM_VMID={id} in its environment is the virtual machine of a folder that a dead run left");
        ids.contains(&id).then_some(known)
    })?;
    let words: Vec<_> = one
        .words
        .iter()
        .map(|word| word.to_string_lossy())
        .collect();
    let what = format!("{}: {}", one.pid, words.join(" "));
    let at = At::Process {
        pid: one.pid,
        began: one.began,
    };
    Some(Leftover::new(Kind::Process, what, known, at))
}

/// A part of sonde itself, started by a sonde that is gone.
fn own_part(one: &Seen, all: &[Seen]) -> Option<String> {
    let word = one.words.get(1)?.to_str()?;
    // The first process of a pid namespace has its parent in another one.
    let is_part = PARTS.contains(&word) && one.parent != 0;
    let parent = all.iter().find(|other| other.pid == one.parent);
    // Each is a fresh start of the program that started it.
    let is_child = parent.is_some_and(|parent| parent.pid > 1 && parent.program == one.program);
    (is_part && one.program.is_some() && !is_child).then(|| {
        format!("`{word}` is what sonde starts a part of itself with, and the sonde that started it is gone")
    })
}

/// A program that a worker started which is gone.
fn started_by(one: &Seen) -> Option<String> {
    let mark = processes::variable(one.pid, PROGRAM_MARK)?;
    let (pid, began) = worker_of(&mark)?;
    (processes::began(pid) != Some(began)).then(|| {
        format!("{PROGRAM_MARK} in its environment names the worker {pid} of sonde that started it, which is gone")
    })
}

/// Whether it is this user's, and nobody else can write in it.
fn is_own(seen: &fs::Metadata) -> bool {
    seen.uid() == process::effective_user() && seen.mode() & 0o022 == 0
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Folders of runs, with the mark of one, that nobody uses.
fn folders(places: &Places, all: &[Seen]) -> Vec<Leftover> {
    let parents = places.temporary.iter().chain(&places.here);
    let left = |path: PathBuf| {
        let seen = fs::symlink_metadata(&path).ok()?;
        if !seen.is_dir() || !is_own(&seen) {
            return None;
        }
        let file = path.join(FOLDER_MARK.file);
        let mark = fs::symlink_metadata(&file)
            .ok()
            .filter(|mark| mark.is_file() && mark.len() < 256)?;
        let text = fs::read_to_string(&file).ok().filter(|_| is_own(&mark))?;
        if text.lines().next() != Some(FOLDER_MARK.line) || is_used(&path, &text, all) {
            return None;
        }
        let known = format!(
            "its file `{}` is the mark of a folder that a run of sonde made, and who made it is gone",
            FOLDER_MARK.file
        );
        Some(Leftover::of_path(Kind::Folder, &path, known))
    };
    parents
        .flat_map(|parent| entries(parent))
        .filter_map(left)
        .collect()
}

/// Whether the process that made a folder lives, or one that takes it away when that has ended: a guard has the folder in its
/// environment.
fn is_used(folder: &Path, mark: &str, all: &[Seen]) -> bool {
    let owner = || {
        let (pid, began) = mark.lines().nth(1)?.split_once(' ')?;
        Some((pid.parse().ok()?, began.parse::<u64>().ok()?))
    };
    let lives = owner().is_some_and(|(pid, began)| processes::began(pid) == Some(began));
    let guards = |one: &Seen| {
        processes::variable(one.pid, FOLDER_MARK.guard)
            .is_some_and(|path| Path::new(&path) == folder)
    };
    lives || all.iter().any(guards)
}

fn files(places: &Places) -> Vec<Leftover> {
    let mut found = Vec::new();
    // Pages of runs of this store that were not written to their end.
    if let Ok(store) = Store::read(&places.out) {
        for run in store.runs().unwrap_or_default() {
            let path = places.out.join(format!("{}.html.new", run.id));
            if path.is_file() && !is_open(&path) {
                let known = format!(
                    "it is beside the store, named for its run {}, and no process has it open",
                    run.id
                );
                found.push(Leftover::of_path(Kind::File, &path, known));
            }
        }
    }
    for path in places.builds.iter().flat_map(|folder| entries(folder)) {
        let words: Vec<&str> = path
            .file_name()
            .and_then(|name| name.to_str())
            .map_or(Vec::new(), |name| name.rsplit('.').collect());
        let ["part" | "c", pid, ..] = words[..] else {
            continue;
        };
        let is_left = pid.parse().is_ok_and(|pid| processes::began(pid).is_none());
        if is_left {
            let known = format!(
                "it is in sonde's own folder for builds, and the process {pid} that was building is gone"
            );
            found.push(Leftover::of_path(Kind::File, &path, known));
        }
    }
    for path in places.copies.iter().flat_map(|folder| entries(folder)) {
        let is_small = fs::symlink_metadata(&path).is_ok_and(|seen| {
            seen.is_file() && seen.len() == COPY_MARK.len() as u64 && is_own(&seen)
        });
        if is_small
            && fs::read(&path).is_ok_and(|bytes| bytes == COPY_MARK.as_bytes())
            && !is_open(&path)
        {
            let known = "its text is the mark of the place for a copy of sonde on a host, and no process has it open";
            found.push(Leftover::of_path(Kind::File, &path, known));
        }
    }
    found
}

/// Directories of files whose workers are gone: these lock them for as long as they live.
fn scratches(places: &Places) -> Vec<Leftover> {
    let [mark, text] = SCRATCH_MARK;
    let is_scratch = |path: &PathBuf| {
        let seen = |path: &Path| fs::symlink_metadata(path);
        let marked = path.join(mark);
        let is_marked = seen(&marked)
            .is_ok_and(|seen| seen.is_file() && is_own(&seen) && seen.len() == text.len() as u64);
        seen(path).is_ok_and(|seen| seen.is_dir() && is_own(&seen))
            && is_marked
            && fs::read(&marked).is_ok_and(|bytes| bytes == text.as_bytes())
    };
    let is_free = |path: &PathBuf| {
        let lock = FlockOperation::NonBlockingLockExclusive;
        fs::File::open(path).is_ok_and(|directory| flock(&directory, lock).is_ok())
    };
    let all = places.temporary.iter().flat_map(|folder| entries(folder));
    let left = all.filter(|path| is_scratch(path) && is_free(path));
    let known = "the mark of a directory of files is in it, and the worker that locked it is gone";
    left.map(|path| Leftover::of_path(Kind::Folder, &path, known))
        .collect()
}

fn is_open(path: &Path) -> bool {
    processes::all()
        .iter()
        .any(|one| processes::uses(one.pid, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_worker_that_is_gone_are_found() {
        let [mark, text] = SCRATCH_MARK;
        let above = std::env::temp_dir().join(format!("sonde-leftovers-{}", std::process::id()));
        let make = |name: &str, text: &str| {
            let path = above.join(name);
            fs::create_dir_all(&path).unwrap();
            let mode =
                |mode| <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(mode);
            fs::set_permissions(&path, mode(0o700)).unwrap();
            fs::write(path.join(mark), text).unwrap();
            fs::set_permissions(path.join(mark), mode(0o600)).unwrap();
            path
        };
        let (left, used) = (make("sonde-files-1-a", text), make("sonde-files-2-b", text));
        // The same name, and another's text.
        make("sonde-files-3-c", "sonde-files/9\n");
        let lock = fs::File::open(&used).unwrap();
        flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
        let places = Places {
            temporary: vec![above.clone()],
            copies: Vec::new(),
            out: above.clone(),
            builds: None,
            here: None,
        };
        let mut found = scratches(&places);
        let all: Vec<Option<String>> = found.iter().map(Leftover::name).collect();
        assert_eq!(all, [Some("sonde-files-1-a".into())]);
        found[0].clear();
        assert!(!left.exists() && used.exists(), "{found:?}");
        drop(lock);
        fs::remove_dir_all(&above).unwrap();
    }
}
