//! Where the adapters of libraries lie: files that `sonde doctor --build-adapters` makes and `sonde-rank` loads.
//!
//! Model:   the folder that $SONDE_ADAPTERS names, `adapters` beside the program, and the user's own, in this order; a file
//!          is named by its library. What is built goes into the folder of $SONDE_ADAPTERS, else into the user's.
//! Checked: `the_first_folder_that_has_it_is_taken`, `folders_stand_in_their_order`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The variable that names the folder of adapters.
pub const VARIABLE: &str = "SONDE_ADAPTERS";

/// There is no adapter of this library.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no adapter for {library} in {looked}: build it with `sonde doctor --build-adapters`, or name its folder in ${VARIABLE}"
)]
pub struct Absent {
    /// For whom.
    pub library: String,
    /// Where it was looked for.
    pub looked: String,
}

/// The file of the adapter for `library`, in a folder of adapters.
pub fn file_name(library: &str) -> String {
    format!("sonde-{library}.so")
}

/// The folders where adapters are looked for, the first one first.
pub fn folders() -> Vec<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let program = std::env::current_exe().ok();
    ordered(variable(VARIABLE), program.as_deref(), variable("HOME"))
}

fn ordered(
    named: Option<OsString>,
    program: Option<&Path>,
    home: Option<OsString>,
) -> Vec<PathBuf> {
    let beside = program.and_then(Path::parent);
    let named = named.map(PathBuf::from);
    let beside = beside.map(|folder| folder.join("adapters"));
    let own = home.map(|home| user_folder(Path::new(&home)));
    named.into_iter().chain(beside).chain(own).collect()
}

/// The user's own folder of adapters.
pub fn user_folder(home: &Path) -> PathBuf {
    home.join(".local/share/sonde/adapters")
}

/// Where adapters are built: what $SONDE_ADAPTERS names, else the user's folder; none without a home.
pub fn build_folder() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    variable(VARIABLE)
        .map(PathBuf::from)
        .or_else(|| variable("HOME").map(|home| user_folder(Path::new(&home))))
}

/// The adapter for `library`.
///
/// # Errors
/// None of the folders has it.
pub fn find(library: &str) -> Result<PathBuf, Absent> {
    find_in(library, &folders())
}

/// The adapter for `library` in the first of `folders` that has it.
///
/// # Errors
/// None of the folders has it.
pub fn find_in(library: &str, folders: &[PathBuf]) -> Result<PathBuf, Absent> {
    let name = file_name(library);
    let found = folders.iter().map(|folder| folder.join(&name));
    found
        .into_iter()
        .find(|file| file.is_file())
        .ok_or_else(|| {
            let looked: Vec<String> = folders
                .iter()
                .map(|folder| folder.display().to_string())
                .collect();
            Absent {
                library: library.into(),
                looked: if looked.is_empty() {
                    "no folder at all".into()
                } else {
                    looked.join(", ")
                },
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_stand_in_their_order() {
        let all = ordered(
            Some("/a".into()),
            Some(Path::new("/opt/bin/sonde-rank")),
            Some("/home/ann".into()),
        );
        let wanted = [
            "/a",
            "/opt/bin/adapters",
            "/home/ann/.local/share/sonde/adapters",
        ];
        assert_eq!(all, wanted.map(PathBuf::from));
        assert!(ordered(None, None, None).is_empty());
    }

    #[test]
    fn the_first_folder_that_has_it_is_taken() {
        let root = std::env::temp_dir().join(format!("sonde-adapters-{}", std::process::id()));
        let [first, second] = ["first", "second"].map(|name| root.join(name));
        std::fs::create_dir_all(&first).unwrap();
        std::fs::create_dir_all(&second).unwrap();
        let folders = [first, second.clone()];
        let said = find_in("pvm", &folders).unwrap_err().to_string();
        assert!(
            said.contains("pvm in /") && said.contains("--build-adapters"),
            "{said}"
        );
        std::fs::write(second.join("sonde-pvm.so"), "").unwrap();
        assert_eq!(
            find_in("pvm", &folders).unwrap(),
            second.join("sonde-pvm.so")
        );
        std::fs::remove_dir_all(&root).unwrap();
    }
}
