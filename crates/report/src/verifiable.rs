//! What shows whether a finding of files is so: the one setting that it names, changed.
//!
//! Model:   of what holds a service one setting is changed towards where it would hold less: twice the transfer (version 2: the next size that it
//!          has), twice the calls outstanding, as many daemons as calls, four times the receive buffer (1 MiB at least), no modelled disk, and of the
//!          stages of FTP the disk, the translation, the copy buffer or the window. Where no such setting is left, a reason stands in its place.
//! Units:   bytes; counts.
//! Checked: `each_finding_names_its_setting`, `what_cannot_be_changed_has_a_reason`.

use schemars::JsonSchema;
use serde::Serialize;
use sonde_measure::Run;
use sonde_measure::files::{
    COPY_BYTES_MAX, DATAGRAM_TRANSFER_BYTES_MAX, Files, Operation, Representation, Service, Stage,
    Store, TRANSFER_BYTES_MAX, Translation, V2_TRANSFER_BYTES_MAX,
};
use sonde_units::Bytes;

use crate::files::FilesCell;
use crate::finding::files::{held_cells, said};
use crate::index::Index;
use crate::words::Words;
use crate::words::files::{Bound, Settled};

/// The most calls outstanding, and daemons.
const CALLS_MAX: u32 = 256;
const BUFFER_BYTES_MIN: u64 = 1 << 20;
const BUFFER_BYTES_MAX: u64 = 1 << 30;
const WINDOW_BYTES_MAX: u64 = 1 << 29;

/// A setting that is changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SettingChange {
    /// Its name, as of `--with`.
    pub name: String,
    /// What it is; null where nothing is set.
    pub from: Option<String>,
    /// What it becomes; null where it is left out.
    pub to: Option<String>,
}

/// A finding of files that can be looked into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verifiable {
    /// The rule.
    pub rule: &'static str,
    /// What it says.
    pub sentence: String,
    /// The cell that it is of.
    pub cell: String,
    /// What is to be changed, the setting that is named first; or why nothing can be.
    pub change: Result<Vec<SettingChange>, Settled>,
}

/// The findings of files of a run, each with its change.
pub fn verifiable(run: &Run) -> Vec<Verifiable> {
    let index = Index::new(run);
    let all = held_cells(&index);
    let one = |(cell, bound): &(FilesCell<'_>, Bound)| {
        Some(Verifiable {
            rule: bound.rule(),
            sentence: said(cell, *bound)?.sentence(),
            cell: cell.row.cell.clone(),
            change: change(cell, bound),
        })
    };
    all.iter().filter_map(one).collect()
}

type Changes = Result<Vec<SettingChange>, Settled>;

fn set(name: &str, from: Option<String>, to: String) -> Changes {
    Ok(vec![SettingChange {
        name: name.into(),
        from,
        to: Some(to),
    }])
}

fn size(bytes: u64) -> String {
    Bytes(bytes).to_string()
}

fn change(cell: &FilesCell<'_>, bound: &Bound) -> Changes {
    let files = &cell.files;
    match *bound {
        Bound::ReceiveBuffer { buffer_bytes, .. } => {
            // The kernel grants twice what is asked for.
            let asked = files.receive_buffer_bytes.unwrap_or(buffer_bytes / 2);
            if asked >= BUFFER_BYTES_MAX {
                return Err(Settled::LargestBuffer);
            }
            let larger = asked.saturating_mul(4);
            let to = size(larger.clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX));
            set("rcvbuf", files.receive_buffer_bytes.map(size), to)
        }
        Bound::Disk { .. } => without_disk(cell, "disk"),
        Bound::Daemons { .. } => {
            let wanted = files.under_way().min(CALLS_MAX);
            set(
                "daemons",
                Some(files.daemons.to_string()),
                wanted.to_string(),
            )
        }
        Bound::Service { .. } | Bound::Window { .. } => more_outstanding(files),
        Bound::TransferSize { .. } => match cell.row.size_bytes {
            Some(file_bytes) => larger_transfer(cell, file_bytes),
            // A call on names has no bytes: others share its round trip.
            None => more_outstanding(files),
        },
        Bound::Stage { stage, .. } => other_stage(cell, stage),
    }
}

fn more_outstanding(files: &Files) -> Changes {
    let outstanding = files.outstanding;
    if outstanding >= CALLS_MAX {
        return Err(Settled::MostOutstanding);
    }
    let to = outstanding.saturating_mul(2).min(CALLS_MAX);
    set("outstanding", Some(outstanding.to_string()), to.to_string())
}

fn larger_transfer(cell: &FilesCell<'_>, file_bytes: u64) -> Changes {
    let files = &cell.files;
    let transfer = files.transfer_bytes;
    let is_by_datagrams = cell.row.path.ends_with(":udp");
    let next = match files.service {
        Service::Nfs2 if transfer >= V2_TRANSFER_BYTES_MAX => DATAGRAM_TRANSFER_BYTES_MAX,
        Service::Nfs2 => transfer.saturating_mul(2).min(V2_TRANSFER_BYTES_MAX),
        _ if is_by_datagrams => transfer.saturating_mul(2).min(DATAGRAM_TRANSFER_BYTES_MAX),
        _ => transfer.saturating_mul(2).min(TRANSFER_BYTES_MAX),
    };
    if next <= transfer {
        return Err(Settled::LargestTransfer);
    }
    if transfer >= file_bytes {
        return Err(Settled::OneCall);
    }
    set("transfer", Some(size(transfer)), size(next))
}

/// Leaves out what is said of a modelled disk.
fn without_disk(cell: &FilesCell<'_>, disk: &'static str) -> Changes {
    let of_disk = match disk {
        "disk" => ["disk", "seek", "cache"],
        _ => ["client-disk", "client-seek", "client-cache"],
    };
    let set = of_disk
        .into_iter()
        .filter_map(|name| cell.row.knobs.get_key_value(name));
    Ok(set
        .map(|(name, value)| SettingChange {
            name: name.clone(),
            from: Some(value.clone()),
            to: None,
        })
        .collect())
}

fn other_stage(cell: &FilesCell<'_>, stage: Stage) -> Changes {
    let files = &cell.files;
    let is_read = matches!(files.operation, Operation::Read {});
    match stage {
        Stage::SourceDisk | Stage::SinkDisk => {
            let is_of_server = is_read == (stage == Stage::SourceDisk);
            let (name, disk) = match is_of_server {
                true => ("disk", files.disk),
                false => ("client-disk", files.ftp.client_disk),
            };
            match (disk, files.store) {
                (Some(_), _) => without_disk(cell, name),
                (None, Store::Scratch) => set("store", Some("scratch".into()), "memory".into()),
                (None, Store::Memory) => Err(Settled::Memory),
            }
        }
        Stage::Translation => match (files.ftp.representation, files.ftp.translation) {
            (Representation::Ascii, Translation::Character) => {
                set("translate", Some("character".into()), "block".into())
            }
            _ => set("type", Some("ascii".into()), "binary".into()),
        },
        Stage::Socket => {
            let copy = files.ftp.copy_bytes;
            let next = copy.saturating_mul(4).min(COPY_BYTES_MAX);
            if next <= copy {
                return Err(Settled::LargestCopy);
            }
            set("copy", Some(size(copy)), size(next))
        }
        Stage::Network => match files.ftp.window_bytes {
            Some(window) if window < WINDOW_BYTES_MAX => {
                let next = window.saturating_mul(2).min(WINDOW_BYTES_MAX);
                set("window", Some(size(window)), size(next))
            }
            Some(_) => Err(Settled::LargestWindow),
            None => Err(Settled::NoWindow),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::testing::{facts, run, transfer};
    use sonde_measure::FilesFacts;

    fn changes(run: &Run) -> (&'static str, Changes) {
        let all = verifiable(run);
        assert_eq!(all.len(), 1, "{all:?}");
        let one = all.into_iter().next().unwrap();
        assert_eq!(one.cell, run.cells[0].id);
        assert!(one.sentence.contains("1 MiB"), "{}", one.sentence);
        (one.rule, one.change)
    }

    fn one(name: &str, from: Option<&str>, to: Option<&str>) -> Changes {
        Ok(vec![SettingChange {
            name: name.into(),
            from: from.map(str::to_owned),
            to: to.map(str::to_owned),
        }])
    }

    #[test]
    fn each_finding_names_its_setting() {
        let found = |knobs: &[(&str, &str)], facts| changes(&run(knobs, facts));
        assert_eq!(
            found(&[("op", "read")], facts()),
            (
                "transfer-size-bound",
                one("transfer", Some("8KiB"), Some("60KiB"))
            )
        );
        let slow = FilesFacts {
            own_call_ns: Some(150_000),
            null_ns: Some(30_000),
            ..facts()
        };
        assert_eq!(
            found(&[("op", "read")], slow),
            ("service-bound", one("outstanding", Some("1"), Some("2")))
        );
        let many = [("op", "read"), ("outstanding", "4")];
        assert_eq!(
            found(&many, facts()),
            ("window-bound", one("outstanding", Some("4"), Some("8")))
        );
        let busy = FilesFacts {
            held_ns: Some(980_000_000),
            ..facts()
        };
        let knobs = [("op", "read"), ("outstanding", "4"), ("daemons", "1")];
        assert_eq!(
            found(&knobs, busy),
            ("daemons-short", one("daemons", Some("1"), Some("4")))
        );
        let lost = FilesFacts {
            lost_server_buffer: Some(7),
            retransmissions: Some(8),
            receive_buffer_bytes: Some(131_072),
            ..facts()
        };
        assert_eq!(
            found(&[("op", "read"), ("rcvbuf", "64KiB")], lost),
            (
                "lost-at-receive-buffer",
                one("rcvbuf", Some("64KiB"), Some("1MiB"))
            )
        );
        let (rule, change) = found(
            &[("op", "read"), ("disk", "320Mbit"), ("seek", "1ms")],
            facts(),
        );
        let names: Vec<String> = change.unwrap().into_iter().map(|one| one.name).collect();
        assert_eq!(
            (rule, names),
            ("disk-bound", vec!["disk".into(), "seek".into()])
        );
        assert_eq!(
            changes(&transfer()),
            ("stage-bound", one("disk", Some("16Mbit"), None))
        );
    }

    #[test]
    fn what_cannot_be_changed_has_a_reason() {
        let knobs = [("op", "read"), ("transfer", "60KiB")];
        let (rule, change) = changes(&run(&knobs, facts()));
        assert_eq!(rule, "transfer-size-bound");
        assert!(change.unwrap_err().words().contains("the largest"));
        // What was measured to look into a finding is no finding of its own.
        let knobs = [("op", "read"), (crate::VERIFY, "service-bound")];
        assert!(verifiable(&run(&knobs, facts())).is_empty());
    }
}
