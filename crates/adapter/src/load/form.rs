//! What kind of file an adapter is: the head of an ELF file.
//!
//! Model:   class, byte order, kind and machine of the first bytes; it must be a shared object of this program's own.
//! Source:  ELF-64 Object File Format, version 1.5, §2 (ELF header).
//! Checked: `tests/loading.rs`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::io::Read;
use std::path::Path;

use crate::error::{LoadError, Result};

/// Machines of ELF by number, those that sonde may meet.
const MACHINES: [(u16, &str); 6] = [
    (3, "i386"),
    (21, "ppc64"),
    (22, "s390x"),
    (62, "x86_64"),
    (183, "aarch64"),
    (243, "riscv64"),
];
const MAGIC: [u8; 4] = *b"\x7fELF";
/// The type of a shared object.
const SHARED: u16 = 3;
const HEAD_BYTES: usize = 20;

/// Looks at the ELF head: a shared object for this machine's kind of processor.
pub(super) fn check(file: &Path) -> Result<()> {
    let mut head = Vec::new();
    let read = std::fs::File::open(file)
        .and_then(|opened| opened.take(HEAD_BYTES as u64).read_to_end(&mut head));
    read.map_err(|why| LoadError::Unreadable {
        file: file.into(),
        why,
    })?;
    let own = own_form();
    let refused = |found: String| {
        let (_, _, machine) = own;
        let wanted = format!("a shared object for {}", machine_name(machine));
        let file = file.into();
        Err(LoadError::Form {
            file,
            found,
            wanted,
        })
    };
    let Some(form) = Form::of(&head) else {
        return refused("not an ELF file".into());
    };
    if (form.class, form.order, form.machine) != own {
        return refused(format!(
            "for {} ({} bits)",
            machine_name(form.machine),
            if form.class == 2 { 64 } else { 32 }
        ));
    }
    if form.kind != SHARED {
        return refused("an ELF file of another kind".into());
    }
    Ok(())
}

/// What the head of an ELF file says of it.
struct Form {
    class: u8,
    order: u8,
    kind: u16,
    machine: u16,
}

impl Form {
    /// Of the first bytes of a file; none where it is of another kind.
    fn of(head: &[u8]) -> Option<Self> {
        let head: &[u8; HEAD_BYTES] = head.first_chunk()?;
        if !head.starts_with(&MAGIC) {
            return None;
        }
        let [class, order] = [head[4], head[5]];
        let half = |bytes| match order {
            2 => u16::from_be_bytes(bytes),
            _ => u16::from_le_bytes(bytes),
        };
        Some(Self {
            class,
            order,
            kind: half([head[16], head[17]]),
            machine: half([head[18], head[19]]),
        })
    }
}

/// Class, byte order and machine of this program.
fn own_form() -> (u8, u8, u16) {
    let class = if size_of::<usize>() == 8 { 2 } else { 1 };
    let order = if cfg!(target_endian = "big") { 2 } else { 1 };
    let name = std::env::consts::ARCH;
    let machine = MACHINES.iter().find(|(_, known)| {
        *known == name
            || (name == "x86" && *known == "i386")
            || (name == "powerpc64" && *known == "ppc64")
    });
    (class, order, machine.map_or(0, |(number, _)| *number))
}

fn machine_name(machine: u16) -> String {
    let known = MACHINES.iter().find(|(number, _)| *number == machine);
    known.map_or_else(|| format!("machine {machine}"), |(_, name)| (*name).into())
}
