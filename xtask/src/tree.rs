//! The workspace's text files, read once and shared by the rules.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Directories that hold nothing a rule reads.
const PASSED_OVER: [&str; 4] = ["target", "sonde-runs", "node_modules", "snapshots"];

/// Text files by path relative to the root, in path order.
pub struct Tree {
    root: PathBuf,
    files: BTreeMap<PathBuf, String>,
}

impl Tree {
    /// Reads every `.rs`, `.md`, `.toml` and `.ts` file under `root`, hidden and built directories apart.
    ///
    /// # Errors
    /// A directory or file that cannot be read.
    pub fn read(root: &Path) -> Result<Tree> {
        let mut tree = Tree {
            root: root.to_path_buf(),
            files: BTreeMap::new(),
        };
        tree.descend(root)?;
        Ok(tree)
    }

    /// A tree of given files, without a disk: for the rules' tests.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Tree {
        let files = files
            .iter()
            .map(|(path, text)| (PathBuf::from(path), (*text).to_string()))
            .collect();
        Tree {
            root: PathBuf::from("/nonexistent"),
            files,
        }
    }

    fn descend(&mut self, dir: &Path) -> Result<()> {
        for entry in
            fs::read_dir(dir).with_context(|| format!("reading directory {}", dir.display()))?
        {
            let path = entry?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let relative = path.strip_prefix(&self.root)?.to_path_buf();
            if path.is_symlink() {
                continue;
            } else if path.is_dir() {
                if !name.starts_with('.') && !PASSED_OVER.contains(&name.as_str()) {
                    self.descend(&path)?;
                }
            } else if ["rs", "md", "toml", "ts"]
                .iter()
                .any(|extension| relative.extension() == Some(extension.as_ref()))
            {
                let text = fs::read_to_string(&path)
                    .with_context(|| format!("reading {}", path.display()))?;
                self.files.insert(relative, text);
            }
        }
        Ok(())
    }

    /// The workspace's directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The text of one file.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<&str> {
        self.files.get(path.as_ref()).map(String::as_str)
    }

    /// Whether a file or directory of this name exists, of any kind.
    pub fn exists(&self, path: &Path) -> bool {
        self.files.keys().any(|file| file.starts_with(path)) || self.root.join(path).exists()
    }

    /// Files with this extension, in path order.
    pub fn with_extension(&self, extension: &str) -> impl Iterator<Item = (&Path, &str)> {
        self.files
            .iter()
            .filter(move |(path, _)| path.extension().is_some_and(|found| found == extension))
            .map(|(path, text)| (path.as_path(), text.as_str()))
    }

    /// Rust files below a crate's `src`.
    pub fn sources(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.with_extension("rs")
            .filter(|(path, _)| place(path).is_some_and(|(_, part)| part == "src"))
    }

    /// The directories of the workspace's crates: `crates/NAME`, and `xtask`.
    pub fn crates(&self) -> Vec<&Path> {
        self.files
            .keys()
            .filter(|path| path.ends_with("Cargo.toml"))
            .filter_map(|path| path.parent())
            .filter(|dir| dir.starts_with("crates") || *dir == Path::new("xtask"))
            .collect()
    }
}

/// The room a path belongs to and the part of the crate it lies in: `crates/link/src/atm.rs` is
/// `("link", "src")`, `xtask/src/main.rs` is `("xtask", "src")`.
pub fn place(path: &Path) -> Option<(&str, &str)> {
    let mut parts = path.iter().filter_map(|part| part.to_str());
    match parts.next()? {
        "crates" => Some((parts.next()?, parts.next()?)),
        "xtask" => Some(("xtask", parts.next()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_belongs_to_a_room() {
        assert_eq!(
            place(Path::new("crates/link/src/atm.rs")),
            Some(("link", "src"))
        );
        assert_eq!(
            place(Path::new("xtask/src/main.rs")),
            Some(("xtask", "src"))
        );
        assert_eq!(place(Path::new("docs/manual.md")), None);
    }

    #[test]
    fn a_tree_is_read_without_what_was_built() {
        let root = std::env::temp_dir().join(format!("sonde-xtask-tree-{}", std::process::id()));
        for dir in ["crates/link/src", "target/release", ".git"] {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        for file in [
            "crates/link/src/lib.rs",
            "crates/link/Cargo.toml",
            "target/release/x.rs",
            ".git/y.md",
            "z.txt",
        ] {
            fs::write(root.join(file), "text").unwrap();
        }
        let tree = Tree::read(&root).unwrap();
        fs::remove_dir_all(&root).unwrap();
        let files: Vec<_> = tree
            .files
            .keys()
            .map(|path| path.to_str().unwrap())
            .collect();
        assert_eq!(files, ["crates/link/Cargo.toml", "crates/link/src/lib.rs"]);
        assert_eq!(tree.crates(), [Path::new("crates/link")]);
    }
}
