//! Opening an adapter: what must hold before one of its functions is called.
//!
//! Model:   the file's ELF head is read first, since the dynamic loader runs what it loads; then the object is loaded, its
//!          entry asked for the table, the table's number, length and functions looked at, and the library begun. A loaded
//!          object stays: libraries have threads and handlers that outlive their end.
//! Source:  ELF-64 Object File Format, version 1.5, §2 (ELF header); dlopen(3).
//! Checked: `tests/loading.rs`.

mod form;

use std::ffi::{CString, c_char, c_void};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::AtomicI32;
use std::time::Duration;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use crate::abi::{self, About, Calls, Details, Start};
use crate::error::{LoadError, Result};
use crate::loaded::{Loaded, error_of};
use crate::watch::{Doing, Watch};

/// What a library must allow to its caller's threads. [`Loaded`] calls from one thread only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum ThreadLevel {
    /// One thread calls, and the library need not know of others: the usual, for those of sonde itself call none. Open MPI 4.1
    /// takes locks from the next level on, which is 20 to 35 ns of a message over shared memory (`examples/overhead`).
    #[default]
    Single = 0,
    /// One thread calls.
    Funneled = 1,
    /// One thread calls at a time.
    Serialized = 2,
    /// All call as they like.
    Multiple = 3,
}

/// Gives the bytes of all ranks, in order of rank, to each.
pub type Allgather = Box<dyn FnMut(&[u8]) -> sonde_message::Result<Vec<u8>>>;

/// How ranks that no library starts find each other.
pub struct Bootstrap {
    /// This rank.
    pub rank: usize,
    /// Of so many.
    pub ranks: usize,
    /// All call it with equally many bytes.
    pub exchange: Allgather,
    /// -1, or the rank that is known to be gone; looked at in every wait.
    pub lost: Arc<AtomicI32>,
}

/// How a rank begins.
pub struct Options {
    /// How long a call waits for others, beside the time of its bytes at 1 Mbit/s.
    pub timeout: Duration,
    /// What the library must allow.
    pub thread_level: ThreadLevel,
    /// Options of the library, by name.
    pub settings: Vec<(String, String)>,
    /// How many ranks, for a library that spawns them (PVM's rank 0).
    pub ranks: Option<usize>,
    /// The program and arguments by which a library spawns a further rank.
    pub command: Vec<String>,
    /// How ranks that no library starts find each other (UCX, libfabric).
    pub bootstrap: Option<Bootstrap>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(20),
            thread_level: ThreadLevel::default(),
            settings: Vec::new(),
            ranks: None,
            command: Vec::new(),
            bootstrap: None,
        }
    }
}

/// Loads the adapter `file` and begins with its library: all ranks do.
///
/// # Errors
/// The file is not an adapter, is one of another table or machine, or lacks a function; its library cannot be loaded or does
/// not begin.
pub fn open(file: &Path, options: Options) -> Result<Loaded> {
    let (library, calls) = load(file)?;
    begin(file, library, calls, options)
}

/// The bootstrap as the adapter is given it: its address is that of the whole box.
pub struct Meeting {
    ranks: usize,
    exchange: Allgather,
    /// What went wrong in it.
    pub failed: Option<sonde_message::Error>,
}

/// Begins with the library and asks it what this rank is.
fn begin(file: &Path, library: String, calls: Calls, options: Options) -> Result<Loaded> {
    let settings: Vec<String> = options
        .settings
        .iter()
        .flat_map(|(name, value)| [name.clone(), value.clone()])
        .collect();
    let settings = strings(file, &settings)?;
    let command = strings(file, &options.command)?;
    let mut details = Box::new(Details::NONE);
    let (mut rank, mut ranks, mut lost, mut meeting) = (-1, -1, None, None);
    if let Some(bootstrap) = options.bootstrap {
        rank = number(bootstrap.rank);
        ranks = number(bootstrap.ranks);
        lost = Some(bootstrap.lost);
        meeting = Some(Box::new(Meeting {
            ranks: bootstrap.ranks,
            exchange: bootstrap.exchange,
            failed: None,
        }));
    }
    if let Some(wanted) = options.ranks {
        ranks = number(wanted);
    }
    let watch = Watch::new(&library, options.timeout);
    let start = Start {
        size: size_of::<Start>() as u32,
        thread_level: options.thread_level as u32,
        rank,
        ranks,
        timeout_ns: u64::try_from(options.timeout.as_nanos()).unwrap_or(u64::MAX / 4),
        options: settings.pointers.as_ptr(),
        command: if options.command.is_empty() {
            std::ptr::null()
        } else {
            command.pointers.as_ptr()
        },
        exchange: meeting.as_ref().map(|_| exchange as abi::Exchange),
        exchange_to: meeting
            .as_deref_mut()
            .map_or(null_mut(), |meeting| (&raw mut *meeting).cast()),
        lost: lost
            .as_ref()
            .map_or(std::ptr::null(), |lost| lost.as_ptr().cast_const()),
        error: &raw mut *details,
    };
    let mut handle = null_mut();
    // SAFETY: the table was found right; `start` and all that it points to live over the call, and what the adapter keeps
    // (`lost`, `exchange_to`, `error`) is kept by `Loaded`.
    let code = watch.around(Doing::Open, 0, || unsafe {
        (calls.open)(&raw const start, &raw mut handle)
    });
    let failed = |code: i32, details: &Details, meeting: Option<&mut Meeting>| LoadError::Begin {
        library: library.clone(),
        why: meeting
            .and_then(|meeting| meeting.failed.take())
            .unwrap_or_else(|| error_of(code, details, &library, "beginning", options.timeout)),
    };
    if code != abi::OK || handle.is_null() {
        return Err(failed(code, &details, meeting.as_deref_mut()));
    }
    let about = ask(calls, handle).map_err(|code| failed(code, &details, None))?;
    Ok(Loaded::new(
        file,
        library,
        calls,
        handle,
        details,
        about,
        watch,
        lost,
        meeting,
        options.timeout,
    ))
}

/// What a rank that was opened is; its buffers lie in the host's memory.
///
/// # Errors
/// The adapter's negative result.
fn ask(calls: Calls, handle: *mut abi::Rank) -> std::result::Result<About, i32> {
    let mut about = About {
        size: size_of::<About>() as u32,
        ..About::default()
    };
    // SAFETY: the rank was opened just now; `about` is one.
    let code = unsafe { (calls.about)(handle, &raw mut about) };
    let sound = about.ranks >= 1 && (0..about.ranks).contains(&about.rank);
    if code != abi::OK || !sound {
        return Err(code.min(abi::REFUSED));
    }
    // SAFETY: as above.
    match unsafe { (calls.memory)(handle, abi::HOST) } {
        abi::OK => Ok(about),
        code => Err(code),
    }
}

/// What an adapter calls to give each rank's bytes to all.
unsafe extern "C" fn exchange(
    to: *mut c_void,
    mine: *const c_void,
    bytes: u64,
    all: *mut c_void,
) -> i32 {
    // SAFETY: `to` is the address that `begin` gave, of the `Meeting` that outlives the rank; nobody else holds it now.
    let meeting = unsafe { &mut *to.cast::<Meeting>() };
    let bytes = bytes as usize;
    // SAFETY: the header promises `bytes` bytes at `mine`.
    let own = unsafe { std::slice::from_raw_parts(mine.cast::<u8>(), bytes) };
    match (meeting.exchange)(own) {
        Ok(told) if told.len() == bytes * meeting.ranks => {
            // SAFETY: the header promises room for the bytes of all ranks at `all`.
            unsafe { std::ptr::copy_nonoverlapping(told.as_ptr(), all.cast(), told.len()) };
            abi::OK
        }
        Ok(told) => {
            meeting.failed = Some(sonde_message::Error::Argument {
                what: "the messages of the ranks to each other",
                value: format!("{} bytes", told.len()),
                wanted: format!("{bytes} of each of {} ranks", meeting.ranks),
            });
            abi::ARGUMENT
        }
        Err(error) => {
            meeting.failed = Some(error);
            abi::LOST
        }
    }
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// Texts as C has them, and the list of their addresses with the null at its end.
struct Strings {
    pointers: Vec<*const c_char>,
    _texts: Vec<CString>,
}

fn strings(file: &Path, texts: &[String]) -> Result<Strings> {
    let convert = |text: &String| {
        CString::new(text.as_str()).map_err(|_| LoadError::Option {
            file: file.into(),
            name: text.replace('\0', "?"),
        })
    };
    let texts: Vec<CString> = texts.iter().map(convert).collect::<Result<_>>()?;
    let addresses = texts.iter().map(|text| text.as_ptr());
    let pointers = addresses.chain([std::ptr::null()]).collect();
    Ok(Strings {
        pointers,
        _texts: texts,
    })
}

/// Loads the object and checks its table: the library's name and the functions.
fn load(file: &Path) -> Result<(String, Calls)> {
    form::check(file)?;
    // SAFETY: loading runs the object's initialisers; it is a file that the user built or installed as an adapter, found
    // where adapters are.
    let library = unsafe { Library::open(Some(file), RTLD_NOW | RTLD_GLOBAL) };
    let library = library.map_err(|error| LoadError::Library {
        file: file.into(),
        why: reason(&error),
    })?;
    // SAFETY: the entry has this type in every version of the header.
    let entry = unsafe { library.get::<abi::Entry>(abi::ENTRY) };
    let entry = *entry.map_err(|_| LoadError::Entry { file: file.into() })?;
    // SAFETY: as above.
    let table = unsafe { entry(abi::ABI) };
    let wanted = abi::ABI;
    if table.is_null() {
        return Err(LoadError::Abi {
            file: file.into(),
            found: "another table".into(),
            wanted,
        });
    }
    // SAFETY: every table begins with its head, and stays as long as the object is loaded.
    let head = unsafe { &(*table).head };
    if head.abi != wanted {
        return Err(LoadError::Abi {
            file: file.into(),
            found: format!("table {}", head.abi),
            wanted,
        });
    }
    if (head.size as usize) < size_of::<abi::Table>() {
        return Err(LoadError::Short {
            file: file.into(),
            bytes: head.size,
            wanted: size_of::<abi::Table>(),
        });
    }
    // SAFETY: it is of this number and at least as long.
    let table = unsafe { &*table };
    let calls = table.calls().map_err(|function| LoadError::Function {
        file: file.into(),
        function,
    })?;
    let name = if table.name.is_null() {
        "unnamed".into()
    } else {
        // SAFETY: the header promises a text with a zero at its end.
        let name = unsafe { std::ffi::CStr::from_ptr(table.name) };
        name.to_string_lossy().into_owned()
    };
    // It is never unloaded.
    std::mem::forget(library);
    Ok((name, calls))
}

/// The dynamic loader's own words, which stand behind libloading's.
fn reason(error: &libloading::Error) -> String {
    let said = std::error::Error::source(error).map(ToString::to_string);
    said.unwrap_or_else(|| error.to_string())
}
