//! The header `adapters/sonde_adapter.h` in Rust.
//!
//! Model:   the same structures in the same order. A table is read only after its number and its length were found right,
//!          and becomes [`Calls`] only when no function is missing.
//! Checked: `the_header_says_the_same`, which compiles a C program that tells sizes and offsets.

use std::ffi::{c_char, c_void};

/// The number of this table.
pub const ABI: u32 = 1;

pub const OK: i32 = 0;
pub const NOT: i32 = 1;
pub const LOST: i32 = -1;
pub const SILENT: i32 = -2;
pub const TRUNCATED: i32 = -3;
pub const ARGUMENT: i32 = -4;
pub const MISSING: i32 = -5;
pub const REFUSED: i32 = -6;

pub const WILDCARDS: u64 = 1;
pub const PROBE: u64 = 2;
pub const ASYNCHRONOUS: u64 = 4;
pub const SPLIT: u64 = 8;
pub const BOUNDED: u64 = 16;

/// Any source, any tag, no colour.
pub const ANY: i32 = -1;
/// The memory of buffers: the host's.
pub const HOST: u32 = 0;
/// What a call may take for a byte, beside the timeout: 1 Mbit/s.
pub const NS_A_BYTE: u64 = 8_000;

const WHAT_BYTES: usize = 64;
const WHY_BYTES: usize = 448;

/// What went wrong.
#[repr(C)]
pub struct Details {
    pub rank: i32,
    pub tag: u32,
    pub bytes: u64,
    pub room: u64,
    pub what: [c_char; WHAT_BYTES],
    pub why: [c_char; WHY_BYTES],
}

impl Details {
    /// Nothing yet.
    pub const NONE: Self = Self {
        rank: -1,
        tag: 0,
        bytes: 0,
        room: 0,
        what: [0; WHAT_BYTES],
        why: [0; WHY_BYTES],
    };
}

/// The text in a field of [`Details`], up to its zero or the field's end.
pub fn text(field: &[c_char]) -> String {
    let bytes: Vec<u8> = field
        .iter()
        .take_while(|byte| **byte != 0)
        .map(|byte| byte.to_ne_bytes()[0])
        .collect();
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

/// Where an empty slice lies, as a library is told it. Rust's own address of it is 1 for bytes, and that is MPI_IN_PLACE of
/// Open MPI; null is MPI_BOTTOM.
static NOWHERE: [u64; 1] = [0];

/// The address of `bytes`.
pub fn address(bytes: &[u8]) -> *const c_void {
    if bytes.is_empty() {
        NOWHERE.as_ptr().cast()
    } else {
        bytes.as_ptr().cast()
    }
}

/// The address of `bytes`, to write as many as there are.
pub fn room(bytes: &mut [u8]) -> *mut c_void {
    if bytes.is_empty() {
        NOWHERE.as_ptr().cast_mut().cast()
    } else {
        bytes.as_mut_ptr().cast()
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Envelope {
    pub from: i32,
    pub tag: u32,
    pub bytes: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Transfer {
    /// 0 send, 1 receive.
    pub kind: u32,
    pub peer: i32,
    pub tag: i32,
    pub reserved: u32,
    pub data: *mut c_void,
    pub bytes: u64,
    pub envelope: Envelope,
}

#[repr(C)]
pub struct Collective {
    pub kind: u32,
    pub element: u32,
    pub operation: u32,
    pub root: i32,
    pub input: *const c_void,
    pub output: *mut c_void,
    pub bytes: u64,
    pub sent: *const u64,
    pub received: *const u64,
    pub sent_each: u64,
    pub received_each: u64,
}

/// Gives each rank's bytes to all, in order of rank.
pub type Exchange = unsafe extern "C" fn(*mut c_void, *const c_void, u64, *mut c_void) -> i32;
/// Takes one fact.
pub type Tell = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char);

#[repr(C)]
pub struct Start {
    pub size: u32,
    pub thread_level: u32,
    pub rank: i32,
    pub ranks: i32,
    pub timeout_ns: u64,
    pub options: *const *const c_char,
    pub command: *const *const c_char,
    pub exchange: Option<Exchange>,
    pub exchange_to: *mut c_void,
    pub lost: *const i32,
    pub error: *mut Details,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct About {
    pub size: u32,
    pub rank: i32,
    pub ranks: i32,
    pub thread_level: u32,
    pub capabilities: u64,
    pub collectives: u64,
    pub mem_kinds: u64,
    pub message_bytes_max: u64,
    pub tag_max: u32,
    pub reserved: u32,
}

/// The adapter's own.
#[repr(C)]
pub struct Rank {
    _private: [u8; 0],
}

/// The entry's name, with its zero.
pub const ENTRY: &[u8] = b"sonde_adapter\0";
/// The entry: the table, or null where the adapter does not speak this number.
pub type Entry = unsafe extern "C" fn(u32) -> *const Table;

/// What stands first in every table, of whatever number.
#[repr(C)]
pub struct Head {
    pub abi: u32,
    pub size: u32,
}

macro_rules! table {
    ($($name:ident($($of:ty),*) $(-> $gives:ty)?;)*) => {
        /// The table as the adapter gives it.
        #[repr(C)]
        pub struct Table {
            pub head: Head,
            pub name: *const c_char,
            $(pub $name: Option<unsafe extern "C" fn($($of),*) $(-> $gives)?>,)*
        }

        /// The functions of a table in which none is missing.
        #[derive(Clone, Copy)]
        pub struct Calls {
            $(pub $name: unsafe extern "C" fn($($of),*) $(-> $gives)?,)*
        }

        impl Table {
            /// Its functions.
            ///
            /// # Errors
            /// The name of the first that is missing.
            pub fn calls(&self) -> Result<Calls, &'static str> {
                Ok(Calls { $($name: self.$name.ok_or(stringify!($name))?,)* })
            }
        }
    };
}

table! {
    open(*const Start, *mut *mut Rank) -> i32;
    about(*mut Rank, *mut About) -> i32;
    facts(*mut Rank, Tell, *mut c_void) -> i32;
    memory(*mut Rank, u32) -> i32;
    group(*mut Rank, u32, *mut i32, *mut i32) -> i32;
    send(*mut Rank, u32, i32, i32, *const c_void, u64) -> i32;
    recv(*mut Rank, u32, i32, i32, *mut c_void, u64, *mut Envelope) -> i32;
    exchange(*mut Rank, u32, *mut Transfer, u64) -> i32;
    isend(*mut Rank, u32, i32, i32, *const c_void, u64, *mut u64) -> i32;
    irecv(*mut Rank, u32, i32, i32, *mut c_void, u64, *mut u64) -> i32;
    test(*mut Rank, *mut u64, *mut Envelope) -> i32;
    wait(*mut Rank, *mut u64, *mut Envelope) -> i32;
    iprobe(*mut Rank, u32, i32, i32, *mut Envelope) -> i32;
    split(*mut Rank, u32, i32, i32, *mut u32) -> i32;
    collective(*mut Rank, u32, *mut Collective) -> i32;
    progress(*mut Rank) -> i32;
    abort(*mut Rank, *const c_char);
    finish(*mut Rank) -> i32;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};
    use std::process::Command;

    /// What C says of the same structures.
    const PROGRAM: &str = r#"
#include <stddef.h>
#include <stdio.h>
#include "sonde_adapter.h"
#define S(x) printf("%zu ", sizeof(struct x))
#define O(x, y) printf("%zu ", offsetof(struct x, y))
int main(void) {
    S(sonde_error); S(sonde_status); S(sonde_op); S(sonde_collective); S(sonde_start); S(sonde_about); S(sonde_adapter);
    O(sonde_error, why); O(sonde_status, bytes); O(sonde_op, status); O(sonde_collective, received_each);
    O(sonde_start, timeout_ns); O(sonde_start, exchange); O(sonde_start, error); O(sonde_about, tag_max);
    O(sonde_adapter, name); O(sonde_adapter, open); O(sonde_adapter, exchange); O(sonde_adapter, iprobe); O(sonde_adapter, finish);
    printf("%u %d %u %u %d %d", SONDE_ADAPTER_ABI, SONDE_SILENT, SONDE_BOUNDED, SONDE_NS_A_BYTE, SONDE_SCAN, SONDE_OR);
    return 0;
}"#;

    #[test]
    fn the_header_says_the_same() {
        let folder = std::env::temp_dir().join(format!("sonde-abi-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (source, program) = (folder.join("told.c"), folder.join("told"));
        std::fs::write(&source, PROGRAM).unwrap();
        let header = concat!(env!("CARGO_MANIFEST_DIR"), "/../../adapters");
        let made = Command::new("cc")
            .args(["-I", header, "-o"])
            .args([&program, &source])
            .status();
        if made.is_err() {
            println!("skipped: no C compiler `cc`");
            return;
        }
        assert!(made.unwrap().success());
        let said = Command::new(&program).output().unwrap().stdout;
        std::fs::remove_dir_all(&folder).unwrap();
        let said: Vec<i64> = String::from_utf8(said)
            .unwrap()
            .split_whitespace()
            .map(|word| word.parse().unwrap())
            .collect();
        let sizes = [
            size_of::<Details>(),
            size_of::<Envelope>(),
            size_of::<Transfer>(),
            size_of::<Collective>(),
            size_of::<Start>(),
            size_of::<About>(),
            size_of::<Table>(),
            offset_of!(Details, why),
            offset_of!(Envelope, bytes),
            offset_of!(Transfer, envelope),
            offset_of!(Collective, received_each),
            offset_of!(Start, timeout_ns),
            offset_of!(Start, exchange),
            offset_of!(Start, error),
            offset_of!(About, tag_max),
            offset_of!(Table, name),
            offset_of!(Table, open),
            offset_of!(Table, exchange),
            offset_of!(Table, iprobe),
            offset_of!(Table, finish),
        ];
        let mut own: Vec<i64> = sizes.map(|size| size as i64).to_vec();
        own.extend([ABI.into(), SILENT.into(), BOUNDED as i64, NS_A_BYTE as i64]);
        own.push(sonde_message::Kind::Scan as i64);
        own.push(sonde_message::Operation::Or as i64);
        assert_eq!(said, own);
    }
}
