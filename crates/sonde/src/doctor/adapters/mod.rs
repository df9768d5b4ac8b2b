//! The adapters of message-passing libraries: what can be built here, what is built, what is missing.
//!
//! Model:   a library can be built for where a compiler of it preprocesses its header; the header's own macros tell the
//!          version. Beside each adapter lies a stamp: hash of the sources, compiler, version of the library. An adapter whose
//!          stamp is that of now is up to date and is not built again.
//! Checked: `what_is_missing_is_told_with_its_package`, `adapters_are_built_once`, `an_old_one_is_told`.

mod build;

use super::machine::Machine;
use super::{Check, Group, topic};
use build::{Made, Tools};
use sonde_message::adapters;
use std::path::{Path, PathBuf};

const HEADER: &str = include_str!("../../../../../adapters/sonde_adapter.h");
const REBUILD: &str = "sonde doctor --build-adapters";

/// One adapter and what it is made of.
struct Recipe {
    /// As in the file's name.
    name: &'static str,
    /// As people call the library.
    title: &'static str,
    source: &'static str,
    /// Compilers that may know it, the first that does is taken.
    compilers: &'static [&'static str],
    /// Its header.
    header: &'static str,
    /// Macros of the header that tell its version, the greatest part first.
    version: &'static [&'static str],
    /// What pkg-config calls it, and what the linker needs where pkg-config does not know.
    module: Option<&'static str>,
    libraries: &'static [&'static str],
    /// Debian's packages.
    packages: &'static str,
}

const MPI: &str = include_str!("../../../../../adapters/mpi.c");

const RECIPES: [Recipe; 6] = [
    Recipe {
        name: "openmpi",
        title: "Open MPI",
        source: MPI,
        compilers: &["mpicc.openmpi", "mpicc"],
        header: "mpi.h",
        version: &[
            "OMPI_MAJOR_VERSION",
            "OMPI_MINOR_VERSION",
            "OMPI_RELEASE_VERSION",
        ],
        module: None,
        libraries: &[],
        packages: "libopenmpi-dev openmpi-bin",
    },
    Recipe {
        name: "mpich",
        title: "MPICH",
        source: MPI,
        compilers: &["mpicc.mpich", "mpicc"],
        header: "mpi.h",
        version: &["MPICH_VERSION"],
        module: None,
        libraries: &[],
        packages: "libmpich-dev mpich",
    },
    Recipe {
        name: "pvm",
        title: "PVM",
        source: include_str!("../../../../../adapters/pvm.c"),
        compilers: &["cc"],
        header: "pvm3.h",
        version: &[
            "PVM_MAJOR_VERSION",
            "PVM_MINOR_VERSION",
            "PVM_PATCH_VERSION",
        ],
        module: None,
        libraries: &["-lpvm3"],
        packages: "pvm pvm-dev",
    },
    Recipe {
        name: "ucx",
        title: "UCX",
        source: include_str!("../../../../../adapters/ucx.c"),
        compilers: &["cc"],
        header: "ucp/api/ucp.h",
        version: &["UCP_API_MAJOR", "UCP_API_MINOR"],
        module: Some("ucx"),
        libraries: &["-lucp", "-lucs"],
        packages: "libucx-dev",
    },
    Recipe {
        name: "ofi",
        title: "libfabric",
        source: include_str!("../../../../../adapters/ofi.c"),
        compilers: &["cc"],
        header: "rdma/fabric.h",
        version: &[
            "FI_MAJOR_VERSION",
            "FI_MINOR_VERSION",
            "FI_REVISION_VERSION",
        ],
        module: Some("libfabric"),
        libraries: &["-lfabric"],
        packages: "libfabric-dev",
    },
    Recipe {
        name: "null",
        title: "no library (for tests)",
        source: include_str!("../../../../../adapters/null.c"),
        compilers: &["cc"],
        header: "sonde_adapter.h",
        version: &["SONDE_ADAPTER_ABI"],
        module: None,
        libraries: &[],
        packages: "gcc libc6-dev",
    },
];

impl Recipe {
    fn topic(&self) -> super::Topic {
        let needed_for = format!("measuring {}: paths {}:...", self.title, self.name);
        topic(
            Group::Libraries,
            format!("adapter {}", self.name),
            &needed_for,
        )
    }

    /// What to do where compiler or header are missing.
    fn remedy(&self, machine: &Machine) -> String {
        format!("{}; then: {REBUILD}", machine.install(self.packages))
    }
}

/// The state of each adapter; `named` is looked into before all other folders.
pub fn checks(machine: &Machine, named: Option<&Path>) -> Vec<Check> {
    let mut folders: Vec<PathBuf> = named.map(PathBuf::from).into_iter().collect();
    folders.extend(adapters::folders());
    RECIPES
        .iter()
        .map(|recipe| state(machine, recipe, &folders))
        .collect()
}

fn state(machine: &Machine, recipe: &Recipe, folders: &[PathBuf]) -> Check {
    let topic = recipe.topic();
    let tools = Tools::find(machine, recipe);
    match (adapters::find_in(recipe.name, folders), tools) {
        (Ok(file), Ok(tools)) if build::is_made_by(&file, &tools, recipe) => topic.ok(format!(
            "{} {}, {}",
            recipe.title,
            tools.version,
            file.display()
        )),
        (Ok(file), Ok(tools)) => topic.limited(
            format!(
                "{} was built by another sonde, compiler or version than {} {}",
                file.display(),
                recipe.title,
                tools.version
            ),
            REBUILD,
        ),
        // It was built elsewhere, or its compiler is gone: it may work all the same.
        (Ok(file), Err(_)) => topic.ok(format!("{}; cannot be rebuilt here", file.display())),
        (Err(_), Ok(tools)) => topic.missing(
            format!("not built; {} {} is installed", recipe.title, tools.version),
            REBUILD,
        ),
        (Err(_), Err(lacking)) => topic.missing(lacking, recipe.remedy(machine)),
    }
}

/// Builds what can be built into `folder`: one check an adapter, and whether none failed.
pub fn build(machine: &Machine, folder: &Path) -> (Vec<Check>, bool) {
    let mut sound = true;
    let one = |recipe: &Recipe| {
        let topic = recipe.topic();
        let tools = match Tools::find(machine, recipe) {
            Ok(tools) => tools,
            Err(lacking) => return topic.missing(lacking, recipe.remedy(machine)),
        };
        let (title, version) = (recipe.title, &tools.version);
        match build::make(&tools, recipe, folder) {
            Ok((Made::Now, file)) => {
                topic.ok(format!("built for {title} {version}: {}", file.display()))
            }
            Ok((Made::Before, file)) => topic.ok(format!(
                "up to date for {title} {version}: {}",
                file.display()
            )),
            Err(problem) => {
                sound = false;
                topic.missing(problem, "the compiler's messages are above")
            }
        }
    };
    (RECIPES.iter().map(one).collect(), sound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;
    use crate::doctor::machine::tests::Tree;

    /// A compiler that tells a version, and compiles by writing its arguments.
    const COMPILER: &str = r#"#!/bin/sh
case "$*" in
--version) echo 'toycc 1.2' ;;
*-E*) grep -q mpi.h && echo 'sonde_version 4 1 "4"' ;;
*) while [ $# -gt 1 ] && [ "$1" != -o ]; do shift; done; echo "made" >>"$2" ;;
esac
"#;

    #[test]
    fn what_is_missing_is_told_with_its_package() {
        let tree = Tree::of(&[("usr/bin/apt-get", "")]);
        let nowhere = tree.machine.file("nowhere");
        let (checks, sound) = build(&tree.machine, &nowhere);
        assert!(sound && !nowhere.exists(), "nothing to build is no failure");
        assert_eq!(checks.len(), RECIPES.len());
        for (check, recipe) in checks.iter().zip(&RECIPES) {
            assert_eq!(check.status, Status::Missing);
            let remedy = check.remedy.as_deref().unwrap();
            assert!(remedy.contains(recipe.packages), "{remedy}");
            assert!(remedy.contains("--build-adapters"), "{remedy}");
            assert!(check.value.contains(recipe.compilers[0]), "{}", check.value);
        }
    }

    #[test]
    fn adapters_are_built_once() {
        let tree = Tree::of(&[("usr/bin/mpicc.openmpi", COMPILER)]);
        let folder = tree.machine.file("built");
        let (checks, sound) = build(&tree.machine, &folder);
        assert!(sound, "{checks:?}");
        assert!(
            checks[0].value.starts_with("built for Open MPI 4.1.4"),
            "{checks:?}"
        );
        assert_eq!(checks[1].status, Status::Missing, "it is not MPICH's");
        let (checks, _) = build(&tree.machine, &folder);
        assert!(checks[0].value.starts_with("up to date"), "{checks:?}");
        let text = std::fs::read_to_string(folder.join("sonde-openmpi.so")).unwrap();
        assert_eq!(text, "made\n", "built once");
        let left: Vec<_> = std::fs::read_dir(&folder).unwrap().collect();
        assert_eq!(left.len(), 2, "the adapter and its stamp: {left:?}");
    }

    #[test]
    fn an_old_one_is_told() {
        let tree = Tree::of(&[("usr/bin/mpicc.openmpi", COMPILER)]);
        let folder = tree.machine.file("built");
        let found = || {
            let folders = std::slice::from_ref(&folder);
            state(&tree.machine, &RECIPES[0], folders)
        };
        assert_eq!(found().value, "not built; Open MPI 4.1.4 is installed");
        build(&tree.machine, &folder);
        assert_eq!(found().status, Status::Ok);
        std::fs::write(folder.join("sonde-openmpi.so.stamp"), "of another").unwrap();
        let old = found();
        assert_eq!(old.status, Status::Limited);
        assert_eq!(old.remedy.as_deref(), Some(REBUILD));
        let (checks, _) = build(&tree.machine, &folder);
        assert!(checks[0].value.starts_with("built"), "anew");
        std::fs::remove_file(tree.machine.file("usr/bin/mpicc.openmpi")).unwrap();
        assert!(found().value.contains("cannot be rebuilt here"));
    }

    #[test]
    fn a_compiler_that_fails_is_a_failure() {
        let failing = COMPILER.replace("echo \"made\" >>\"$2\"", "echo 'mpi.c:1: no' >&2; exit 1");
        let tree = Tree::of(&[("usr/bin/mpicc.openmpi", &failing)]);
        let folder = tree.machine.file("built");
        let (checks, sound) = build(&tree.machine, &folder);
        assert!(!sound && checks[0].status == Status::Missing);
        assert!(checks[0].value.contains("mpi.c:1: no"), "{checks:?}");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    }
}
