//! Stores, held to the same rules: what POSIX says of files, as far as NFS needs it.

use sonde_workload::files::nfs::{Changes, Kind, Stable, Status};
use sonde_workload::files::store::{File, Folder, Memory, Store};
use std::path::{Path, PathBuf};

/// A folder of this test's own, which goes with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sonde-files-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn folder(&self) -> Folder {
        Folder::open(&self.0, false).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn on_each(name: &str, rule: impl Fn(&mut dyn Store)) {
    rule(&mut Memory::new(1 << 22));
    let scratch = Scratch::new(name);
    rule(&mut scratch.folder());
}

fn read(store: &mut dyn Store, file: File, offset: u64, count: u32) -> (Vec<u8>, bool) {
    let (data, end) = store.read(file, offset, count).unwrap();
    (data.to_vec(), end)
}

#[test]
fn what_was_written_is_read() {
    on_each("written", |store| {
        let file = store.create(File::ROOT, b"a", true).unwrap();
        store.write(file, 3, b"defgh", Stable::Sync).unwrap();
        assert_eq!(read(store, file, 0, 100), (b"\0\0\0defgh".to_vec(), true));
        assert_eq!(read(store, file, 2, 3), (b"\0de".to_vec(), false));
        assert_eq!(read(store, file, 8, 3), (Vec::new(), true));
        assert_eq!(read(store, file, u64::MAX - 9, 3), (Vec::new(), true));
        store.write(file, 4, b"E", Stable::Unstable).unwrap();
        store.commit(file).unwrap();
        assert_eq!(read(store, file, 3, 5), (b"dEfgh".to_vec(), true));
        let known = store.attributes(file).unwrap();
        assert_eq!((known.kind, known.size_bytes), (Kind::Regular, 8));
        let cut = Changes {
            size_bytes: Some(4),
            mode: Some(0o600),
        };
        store.change(file, &cut).unwrap();
        let known = store.attributes(file).unwrap();
        assert_eq!((known.size_bytes, known.mode), (4, 0o600));
        assert_eq!(read(store, file, 0, 9), (b"\0\0\0d".to_vec(), true));
        let beyond = store.write(file, u64::MAX, b"xy", Stable::Sync);
        assert_eq!(beyond, Err(Status::TooLarge));
    });
}

#[test]
fn names_are_those_of_files() {
    on_each("names", |store| {
        let root = File::ROOT;
        let file = store.create(root, b"a", true).unwrap();
        assert_eq!(store.create(root, b"a", true), Err(Status::Exists));
        assert_eq!(store.create(root, b"a", false), Ok(file));
        let directory = store.make_directory(root, b"d").unwrap();
        assert_eq!(store.make_directory(root, b"d"), Err(Status::Exists));
        assert_eq!(store.create(root, b"d", false), Err(Status::IsDirectory));
        assert_eq!(store.lookup(root, b"d"), Ok(directory));
        assert_eq!(store.lookup(directory, b".."), Ok(root));
        assert_eq!(store.lookup(root, b".."), Ok(root), "nothing is above");
        assert_eq!(store.lookup(directory, b"."), Ok(directory));
        assert_eq!(store.lookup(root, b"none"), Err(Status::Absent));
        assert_eq!(store.lookup(file, b"a"), Err(Status::NotDirectory));
        assert_eq!(store.read(directory, 0, 1).err(), Some(Status::IsDirectory));
        for bad in [&b"a/b"[..], b"", b"zero\0"] {
            assert_eq!(
                store.create(root, bad, true),
                Err(Status::Denied),
                "{bad:?}"
            );
        }
        assert_eq!(store.create(root, b"..", false), Err(Status::Exists));
        assert_eq!(
            store.create(root, &[b'x'; 256], true),
            Err(Status::LongName)
        );
        assert_eq!(store.remove(root, b"d"), Err(Status::IsDirectory));
        let within = store.create(directory, b"w", true).unwrap();
        assert_eq!(store.remove_directory(root, b"d"), Err(Status::NotEmpty));
        store.remove(directory, b"w").unwrap();
        assert_eq!(store.attributes(within), Err(Status::Stale));
        store.remove_directory(root, b"d").unwrap();
        assert_eq!(store.lookup(root, b"d"), Err(Status::Absent));
        // What is gone is not read, although it was open.
        let open = store.create(root, b"o", true).unwrap();
        store.remove(root, b"o").unwrap();
        assert_eq!(store.read(open, 0, 1).err(), Some(Status::Stale));
        // A new file of an old name is another file.
        store.remove(root, b"a").unwrap();
        let again = store.create(root, b"a", true).unwrap();
        assert_ne!(again, file);
        assert_eq!(store.attributes(file), Err(Status::Stale));
    });
}

#[test]
fn a_file_keeps_its_handle_under_another_name() {
    on_each("rename", |store| {
        let root = File::ROOT;
        let file = store.create(root, b"a", true).unwrap();
        store.write(file, 0, b"of a", Stable::Sync).unwrap();
        let other = store.create(root, b"b", true).unwrap();
        let directory = store.make_directory(root, b"d").unwrap();
        store.rename(root, b"a", directory, b"c").unwrap();
        assert_eq!(store.lookup(directory, b"c"), Ok(file));
        assert_eq!(read(store, file, 0, 9).0, b"of a");
        // What has the new name goes.
        store.rename(directory, b"c", root, b"b").unwrap();
        assert_eq!(store.lookup(root, b"b"), Ok(file));
        assert_eq!(store.attributes(other), Err(Status::Stale));
        assert_eq!(store.rename(root, b"none", root, b"x"), Err(Status::Absent));
        store.rename(root, b"b", root, b"b").unwrap();
        assert_eq!(store.lookup(root, b"b"), Ok(file));
        // A directory cannot be within itself.
        let within = store.rename(root, b"d", directory, b"e");
        assert_eq!(within, Err(Status::Invalid));
        store.make_directory(directory, b"e").unwrap();
        let kept = store.create(directory, b"k", true).unwrap();
        store.rename(root, b"d", root, b"f").unwrap();
        assert_eq!(store.lookup(directory, b"k"), Ok(kept));
    });
}

#[test]
fn listings_go_on_behind_a_place() {
    on_each("list", |store| {
        for at in 0..20 {
            let name = format!("n{at:02}");
            store.create(File::ROOT, name.as_bytes(), true).unwrap();
        }
        let (mut names, mut place) = (Vec::new(), 0);
        loop {
            let some = store.list(File::ROOT, place, 7).unwrap();
            let Some(last) = some.last() else {
                break;
            };
            assert!(some.len() <= 7 && last.place > place);
            place = last.place;
            names.extend(some.into_iter().map(|one| one.name));
        }
        assert_eq!(names.len(), 22);
        assert_eq!((&names[0][..], &names[1][..]), (&b"."[..], &b".."[..]));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 22);
        let file = store.lookup(File::ROOT, b"n00").unwrap();
        assert_eq!(store.list(file, 0, 1), Err(Status::NotDirectory));
    });
}

#[test]
fn a_memory_has_its_bound() {
    let mut store = Memory::new(10_000);
    let file = store.create(File::ROOT, b"a", true).unwrap();
    assert!(store.write(file, 0, &[0; 8_000], Stable::Sync).is_ok());
    let full = store.write(file, 8_000, &[0; 2_000], Stable::Sync);
    assert_eq!(full, Err(Status::Full));
    // Nor does an offset far out take memory.
    let far = store.write(file, 1 << 40, &[0; 1], Stable::Sync);
    assert_eq!(far, Err(Status::Full));
    store.remove(File::ROOT, b"a").unwrap();
    let other = store.create(File::ROOT, b"b", true).unwrap();
    assert!(store.write(other, 0, &[0; 8_000], Stable::Sync).is_ok());
    assert!(store.room().free_bytes < 2_000);
}

#[test]
fn nothing_leads_out_of_a_folder() {
    use std::os::unix::fs::symlink;
    let scratch = Scratch::new("confined");
    let (export, outside) = (scratch.0.join("export"), scratch.0.join("outside"));
    std::fs::create_dir(&export).unwrap();
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("secret"), "secret").unwrap();
    symlink("../outside", export.join("link")).unwrap();
    symlink("../outside/secret", export.join("file")).unwrap();
    let mut store = Folder::open(&export, false).unwrap();
    let root = File::ROOT;
    // Links are seen, and lead nowhere.
    let link = store.lookup(root, b"link").unwrap();
    assert_eq!(store.attributes(link).unwrap().kind, Kind::Other);
    assert!(store.lookup(link, b"secret").is_err());
    assert!(store.create(link, b"new", true).is_err());
    let file = store.lookup(root, b"file").unwrap();
    assert_eq!(store.read(file, 0, 9).err(), Some(Status::Denied));
    assert_eq!(
        store.write(file, 0, b"x", Stable::Sync),
        Err(Status::Denied)
    );
    assert_eq!(store.create(root, b"file", false), Err(Status::Denied));
    for name in [&b"../outside/secret"[..], b"/etc/passwd", b"..\0"] {
        assert!(store.lookup(root, name).is_err());
        assert!(store.create(root, name, false).is_err());
        assert!(store.remove(root, name).is_err());
        assert!(store.rename(root, b"file", root, name).is_err());
    }
    // A directory that becomes a link while it is known leads nowhere either.
    let directory = store.make_directory(root, b"d").unwrap();
    let kept = store.create(directory, b"k", true).unwrap();
    store.write(kept, 0, b"kept", Stable::Sync).unwrap();
    std::fs::rename(export.join("d"), export.join("moved")).unwrap();
    symlink("../outside", export.join("d")).unwrap();
    assert!(store.lookup(directory, b"secret").is_err());
    assert!(store.create(directory, b"new", true).is_err());
    assert!(store.list(directory, 0, 10).is_err());
    assert!(!outside.join("new").exists());
    assert_eq!(std::fs::read(outside.join("secret")).unwrap(), b"secret");
    // What was opened before is the file that it was.
    assert_eq!(store.read(kept, 0, 9).unwrap().0, b"kept");
}

#[test]
fn a_folder_can_be_for_reading_alone() {
    let scratch = Scratch::new("readonly");
    std::fs::write(scratch.0.join("a"), "bytes").unwrap();
    let mut store = Folder::open(Path::new(&scratch.0), true).unwrap();
    let file = store.lookup(File::ROOT, b"a").unwrap();
    assert_eq!(store.read(file, 0, 9).unwrap().0, b"bytes");
    let refused = Err(Status::ReadOnly);
    assert_eq!(store.write(file, 0, b"x", Stable::Sync), refused);
    assert_eq!(store.remove(File::ROOT, b"a"), refused);
    assert_eq!(store.rename(File::ROOT, b"a", File::ROOT, b"b"), refused);
    assert_eq!(store.create(File::ROOT, b"c", true).err(), refused.err());
}

#[test]
fn a_fifo_is_not_opened() {
    let scratch = Scratch::new("fifo");
    let fifo = scratch.0.join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let mut store = scratch.folder();
    let file = store.lookup(File::ROOT, b"fifo").unwrap();
    assert_eq!(store.attributes(file).unwrap().kind, Kind::Other);
    assert_eq!(store.read(file, 0, 1).err(), Some(Status::Denied));
}
