//! Which rooms of the workspace may see which: the architecture's arrows as one table.
//!
//! Model:   the rooms stand in rank order, and each may name only lower ones, those listed for it. Development and
//!          build dependencies are held to the same table.
//! Checked: `the_table_points_downward`, `pure_rooms_see_only_pure_rooms`, `a_forbidden_edge_is_found`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::finding::Finding;
use crate::metadata::{Metadata, Package};

/// Every room, lowest first, and the rooms it may see. `sonde` may see all and is where lab and virtual meet.
const ROOMS: [(&str, &[&str]); 19] = [
    ("units", &[]),
    ("link", &["units"]),
    ("stats", &["units"]),
    ("measure", &["units", "link", "stats"]),
    ("record", &["units", "link", "stats", "measure"]),
    ("sys", &["units"]),
    ("channel", &["units", "sys", "measure"]),
    ("message", &["units", "measure", "sys", "channel"]),
    ("adapter", &["units", "measure", "channel", "message"]),
    (
        "probe",
        &[
            "units", "link", "stats", "measure", "sys", "channel", "message",
        ],
    ),
    (
        "workload",
        &[
            "units", "link", "stats", "measure", "sys", "channel", "message", "probe",
        ],
    ),
    (
        "rank",
        &[
            "units", "stats", "measure", "sys", "channel", "message", "adapter", "probe",
            "workload",
        ],
    ),
    ("virtual", &["units", "link", "stats"]),
    ("place", &["units"]),
    ("lab", &["units", "link", "stats", "measure", "sys"]),
    (
        "fleet",
        &[
            "units", "link", "stats", "measure", "sys", "channel", "message", "probe", "workload",
            "lab",
        ],
    ),
    ("report", &["units", "stats", "measure"]),
    (
        "sonde",
        &[
            "units", "link", "stats", "measure", "record", "sys", "channel", "message", "probe",
            "workload", "virtual", "place", "lab", "fleet", "report",
        ],
    ),
    (
        "xtask",
        &[
            "units", "link", "stats", "measure", "record", "report", "sys", "virtual",
        ],
    ),
];

/// Rooms without a clock, a socket, a file or the machine.
const PURE: [&str; 6] = ["units", "link", "stats", "measure", "virtual", "place"];

/// Crates from outside that touch the machine: no pure room names one. A star stands for any ending.
const OUTSIDE_PURE: [&str; 10] = [
    "libc",
    "rustix",
    "netlink-*",
    "rusqlite",
    "signal-hook",
    "io-uring",
    "libloading",
    "socket2",
    "nix",
    "tokio",
];

/// Finds every edge that the table does not allow.
///
/// # Errors
/// A manifest that cannot be read again for its line numbers.
pub fn check(metadata: &Metadata) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for package in &metadata.packages {
        let manifest = &package.manifest_path;
        let text = fs::read_to_string(manifest)
            .with_context(|| format!("reading {}", manifest.display()))?;
        let shown = manifest
            .strip_prefix(&metadata.workspace_root)
            .unwrap_or(manifest);
        findings.extend(check_package(package, shown, &text));
    }
    Ok(findings)
}

/// Finds the forbidden edges of one crate, whose manifest has this text.
fn check_package(package: &Package, manifest: &Path, text: &str) -> Vec<Finding> {
    let room = room_of(package.manifest_path.parent().unwrap_or(Path::new("")));
    let Some(allowed) = allowed_to(&room) else {
        let what = format!("the room `{room}` is in no table");
        return vec![Finding::new(
            manifest,
            1,
            what,
            "give it a rank and its arrows in ROOMS of xtask/src/edges.rs",
        )];
    };
    let mut findings = Vec::new();
    for dependency in &package.dependencies {
        let line = line_naming(text, &dependency.name);
        match &dependency.path {
            Some(path) => {
                let seen = room_of(path);
                if !allowed.contains(&seen.as_str()) {
                    let what = format!("`{room}` may not see `{seen}`");
                    let remedy = format!(
                        "`{room}` may see {}: move the code to a room that may, or redraw the arrow in xtask/src/edges.rs \
                         and ARCHITECTURE.md",
                        if allowed.is_empty() {
                            "no other room".to_string()
                        } else {
                            allowed.join(", ")
                        }
                    );
                    findings.push(Finding::new(manifest, line, what, remedy));
                }
            }
            None if PURE.contains(&room.as_str()) && touches_machine(&dependency.name) => {
                let what = format!(
                    "`{room}` is pure and may not depend on `{}`",
                    dependency.name
                );
                findings.push(Finding::new(
                    manifest,
                    line,
                    what,
                    "take what it gives as an argument; `sys` touches the machine",
                ));
            }
            None => {}
        }
    }
    findings
}

/// The rooms that `room` may see, or `None` for an unknown room.
fn allowed_to(room: &str) -> Option<&'static [&'static str]> {
    ROOMS
        .iter()
        .find(|(name, _)| *name == room)
        .map(|(_, allowed)| *allowed)
}

/// The room of a crate is the name of its directory.
fn room_of(dir: &Path) -> String {
    dir.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn touches_machine(name: &str) -> bool {
    OUTSIDE_PURE
        .iter()
        .any(|banned| match banned.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == *banned,
        })
}

/// The line of a manifest that names this dependency; the first line when none does.
fn line_naming(text: &str, name: &str) -> usize {
    let names = |line: &str| {
        let rest = line.trim_start().strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
            || line.contains(&format!("dependencies.{name}]"))
    };
    text.lines().position(names).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Dependency;
    use std::path::PathBuf;

    fn package(room: &str, dependencies: &[(&str, Option<&str>)]) -> Package {
        let dependencies = dependencies
            .iter()
            .map(|(name, path)| Dependency {
                name: (*name).into(),
                path: path.map(PathBuf::from),
            })
            .collect();
        Package {
            manifest_path: format!("/w/crates/{room}/Cargo.toml").into(),
            dependencies,
            ..Package::default()
        }
    }

    fn found(package: &Package, text: &str) -> Vec<Finding> {
        check_package(package, Path::new("Cargo.toml"), text)
    }

    #[test]
    fn the_table_points_downward() {
        for (rank, (room, allowed)) in ROOMS.iter().enumerate() {
            for seen in *allowed {
                let below = ROOMS
                    .iter()
                    .position(|(name, _)| name == seen)
                    .expect("a room of the table");
                assert!(below < rank, "{room} -> {seen}");
            }
        }
    }

    #[test]
    fn pure_rooms_see_only_pure_rooms() {
        for room in PURE {
            for seen in allowed_to(room).unwrap() {
                assert!(PURE.contains(seen), "{room} -> {seen}");
            }
        }
        for (one, other) in [
            ("lab", "virtual"),
            ("virtual", "lab"),
            ("probe", "lab"),
            ("workload", "virtual"),
        ] {
            assert!(
                !allowed_to(one).unwrap().contains(&other),
                "{one} -> {other}"
            );
        }
    }

    #[test]
    fn a_forbidden_edge_is_found_at_its_line() {
        let text = "[dependencies]\nsonde-units.workspace = true\n\n[dev-dependencies]\nsonde-virtual = { path = \"../virtual\" }\n";
        let lab = package(
            "lab",
            &[
                ("sonde-units", Some("/w/crates/units")),
                ("sonde-virtual", Some("/w/crates/virtual")),
            ],
        );
        let findings = found(&lab, text);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(
            (findings[0].line(), findings[0].what()),
            (5, "`lab` may not see `virtual`")
        );
    }

    #[test]
    fn a_pure_crate_may_not_touch_the_machine() {
        let text = "[dependencies]\nlibc.workspace = true\nnetlink-sys = \"1\"\nserde = \"1\"\n";
        let dependencies = [("libc", None), ("netlink-sys", None), ("serde", None)];
        let lines: Vec<_> = found(&package("link", &dependencies), text)
            .iter()
            .map(Finding::line)
            .collect();
        assert_eq!(lines, [2, 3]);
        assert_eq!(found(&package("sys", &dependencies), text), []);
    }

    #[test]
    fn an_unknown_room_is_found() {
        assert_eq!(
            found(&package("cellar", &[]), "")[0].what(),
            "the room `cellar` is in no table"
        );
    }
}
