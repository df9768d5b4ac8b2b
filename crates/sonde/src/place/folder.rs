//! A folder of a command's own, where what it builds and writes is safe from others.
//!
//! Model:   it is in the current folder, since hosts of a lab have a /tmp of their own and see the current folder, and goes with its
//!          last user. It is made, never taken over. Where others could put another one in its place, it is refused.
//! Checked: `a_folder_is_made_and_goes`, `a_folder_of_others_is_refused`; `crates/sonde/tests/lab_place.rs`.

use crate::failure::Failure;
use sonde_fleet::FOLDER_MARK;
use std::fs::{Metadata, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A folder that all hosts see, gone with its last user.
pub struct Folder(PathBuf);

impl Folder {
    /// In the current folder.
    ///
    /// # Errors
    /// It cannot be made, or others could replace it.
    pub fn new() -> Result<Self, Failure> {
        Self::within(&std::env::current_dir().map_err(Failure::cannot)?)
    }

    fn within(parent: &Path) -> Result<Self, Failure> {
        let seen = std::fs::metadata(parent).map_err(Failure::cannot)?;
        if is_open(&seen) {
            return Err(Failure::cannot(format!(
                "other users may write in {} and could replace what is built there: run it in a folder of your own",
                parent.display()
            )));
        }
        let folder = parent.join(format!(".sonde-place-{}", std::process::id()));
        let made = std::fs::DirBuilder::new().mode(0o755).create(&folder);
        made.map_err(|e| {
            Failure::cannot(format!("cannot make the folder {}: {e}", folder.display()))
        })?;
        let made = Self(folder);
        let own = std::process::id();
        let began = sonde_sys::processes::began(own).unwrap_or_default();
        made.write(
            FOLDER_MARK.file,
            &format!("{}\n{own} {began}\n", FOLDER_MARK.line),
        )?;
        // Programs in a lab may be another user's; the caller's mask would keep them out.
        let seen = std::fs::set_permissions(made.path(), Permissions::from_mode(0o755));
        seen.map_err(Failure::cannot)?;
        Ok(made)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Where a file of it is.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file of it.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, Failure> {
        let path = self.file(name);
        std::fs::write(&path, text)
            .map_err(|e| Failure::cannot(format!("cannot write {}: {e}", path.display())))?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Whether others may remove what is in a folder: they may write in it, and it has no sticky bit.
fn is_open(folder: &Metadata) -> bool {
    folder.mode() & 0o022 != 0 && folder.mode() & 0o1000 == 0
}

/// Whether a folder is this user's, and nobody else can write in it.
pub fn is_private(folder: &Path) -> bool {
    std::fs::metadata(folder).is_ok_and(|seen| {
        seen.uid() == sonde_sys::process::effective_user() && seen.mode() & 0o022 == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent(name: &str, mode: u32) -> PathBuf {
        let path = std::env::temp_dir().join(format!("place-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn a_folder_is_made_and_goes() {
        let parent = parent("own", 0o755);
        let folder = Folder::within(&parent).unwrap();
        let file = folder.write("a", "text").unwrap();
        assert!(is_private(folder.path()) && file.is_file());
        assert!(Folder::within(&parent).is_err(), "none is taken over");
        drop(folder);
        assert!(!file.exists());
        std::fs::remove_dir(&parent).unwrap();
    }

    #[test]
    fn a_folder_of_others_is_refused() {
        let (open, sticky) = (parent("open", 0o777), parent("sticky", 0o1777));
        let refused = Folder::within(&open).err().unwrap().to_string();
        assert!(refused.contains("other users may write"), "{refused}");
        assert!(Folder::within(&sticky).is_ok());
        assert!(!is_private(&open) && !is_private(&sticky));
        std::fs::remove_dir(&open).unwrap();
        std::fs::remove_dir(&sticky).unwrap();
    }
}
