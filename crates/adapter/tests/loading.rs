//! Adapters that are wrong, each refused with file, reason and remedy; and the null adapter, which is right.
//!
//! Model:   the C compiler makes each of a few lines; a rank that hangs is a process of its own, this program again.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use sonde_adapter::{Loaded, Options, open};
use sonde_message::{Call, Comm, Error, Messenger, Op, Source, Status, Tagged};

const ADAPTERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../adapters");
/// Names the adapter that this program, started again, shall open.
const HANGS: &str = "SONDE_TEST_HANGS";

/// A folder that goes with its test.
struct Folder(PathBuf);

impl Folder {
    /// None where there is no C compiler.
    fn new(name: &str) -> Option<Self> {
        if Command::new("cc").arg("--version").output().is_err() {
            println!("skipped: no C compiler `cc`");
            return None;
        }
        let folder = std::env::temp_dir().join(format!("sonde-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Some(Self(folder))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Compiles `text` into a shared object.
    fn object(&self, name: &str, text: &str, more: &[&OsStr]) -> PathBuf {
        let (source, object) = (self.file(&format!("{name}.c")), self.file(name));
        std::fs::write(&source, text).unwrap();
        let status = Command::new("cc")
            .args(["-shared", "-fPIC", "-w", "-I", ADAPTERS, "-o"])
            .args([&object, &source])
            .args(more)
            .status();
        assert!(status.unwrap().success(), "{text}");
        object
    }

    fn null(&self) -> PathBuf {
        let text = std::fs::read_to_string(Path::new(ADAPTERS).join("null.c")).unwrap();
        self.object("sonde-null.so", &text, &[])
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// What is said of it; each refusal names the file and the remedy.
fn refusal(file: &Path) -> String {
    let said = match open(file, Options::default()) {
        Ok(_) => panic!("{} was taken", file.display()),
        Err(error) => error.to_string(),
    };
    assert!(said.contains(&file.display().to_string()), "{said}");
    assert!(said.contains("sonde doctor --build-adapters"), "{said}");
    said
}

/// A table in C with `head` and with the functions of the null adapter, changed by `change`.
fn changed(head: &str, change: &str) -> String {
    format!(
        "#define sonde_adapter(abi) null_adapter(abi)\n#include \"null.c\"\n#undef sonde_adapter\n\
         static struct sonde_adapter mine;\n\
         const struct sonde_adapter *sonde_adapter(uint32_t abi) {{ mine = table; {head} {change} return &mine; }}\n"
    )
}

#[test]
fn what_is_no_adapter_is_refused() {
    let Some(folder) = Folder::new("no-adapter") else {
        return;
    };
    assert!(refusal(&folder.file("nowhere.so")).contains("cannot be read: No such file"));
    let text = folder.file("text.so");
    std::fs::write(&text, "#!/bin/sh\necho hello, this is not an adapter\n").unwrap();
    assert!(refusal(&text).contains("not an ELF file"));
    std::fs::write(&text, "").unwrap();
    assert!(refusal(&text).contains("not an ELF file"));
    let other = folder.object("other.so", "int answer(void) { return 42; }", &[]);
    assert!(refusal(&other).contains("no function `sonde_adapter`"));
    // Cut short behind its head: the dynamic loader finds it out.
    let mut bytes = std::fs::read(&other).unwrap();
    bytes.truncate(100);
    std::fs::write(&text, bytes).unwrap();
    assert!(refusal(&text).contains("cannot be loaded"));
}

#[test]
fn one_of_another_machine_is_refused() {
    let Some(folder) = Folder::new("machine") else {
        return;
    };
    let mut bytes = std::fs::read(folder.null()).unwrap();
    let other = folder.file("other.so");
    let foreign = if cfg!(target_arch = "s390x") { 62 } else { 22 };
    let at = if cfg!(target_endian = "big") { 19 } else { 18 };
    bytes[at] = foreign;
    std::fs::write(&other, &bytes).unwrap();
    let said = refusal(&other);
    let name = if foreign == 22 { "s390x" } else { "x86_64" };
    assert!(said.contains(&format!("for {name}")), "{said}");
    assert!(said.contains(std::env::consts::ARCH), "{said}");
    let relocatable = folder.file("part.o");
    std::fs::write(folder.file("part.c"), "int answer = 42;").unwrap();
    let status = Command::new("cc")
        .args(["-c", "-o"])
        .args([&relocatable, &folder.file("part.c")])
        .status();
    assert!(status.unwrap().success());
    assert!(refusal(&relocatable).contains("an ELF file of another kind"));
}

#[test]
fn one_of_another_table_is_refused() {
    let Some(folder) = Folder::new("table") else {
        return;
    };
    let none = "#include \"sonde_adapter.h\"\nconst struct sonde_adapter *sonde_adapter(uint32_t abi) { return 0; }";
    assert!(refusal(&folder.object("none.so", none, &[])).contains("another table"));
    let newer = folder.object("newer.so", &changed("mine.abi = 7;", ""), &[]);
    assert!(refusal(&newer).contains("speaks table 7"));
    let shorter = folder.object("shorter.so", &changed("mine.size = 48;", ""), &[]);
    assert!(refusal(&shorter).contains("has 48 bytes, and must have"));
    let longer = folder.object("longer.so", &changed("mine.size += 8;", ""), &[]);
    assert!(
        open(&longer, Options::default()).is_ok(),
        "what is added later stands at the end"
    );
    for function in ["open", "recv", "split", "abort", "finish"] {
        let change = format!("mine.{function} = 0;");
        let lacking = folder.object(&format!("no-{function}.so"), &changed("", &change), &[]);
        let said = refusal(&lacking);
        assert!(
            said.contains(&format!("lacks the function `{function}`")),
            "{said}"
        );
    }
}

#[test]
fn one_whose_library_is_gone_is_refused() {
    let Some(folder) = Folder::new("library") else {
        return;
    };
    let library = folder.object("libgone.so", "int gone(void) { return 1; }", &[]);
    let text = changed("", "extern int gone(void); mine.abi += gone() - 1;");
    let adapter = folder.object("sonde-gone.so", &text, &[library.as_os_str()]);
    std::fs::remove_file(&library).unwrap();
    let said = refusal(&adapter);
    assert!(
        said.contains("libgone.so") && said.contains("still installed"),
        "{said}"
    );
    let unknown = changed(
        "",
        "extern int nobody_has_this(void); mine.abi = nobody_has_this();",
    );
    let said = refusal(&folder.object("unknown.so", &unknown, &[]));
    assert!(said.contains("nobody_has_this"), "{said}");
}

#[test]
fn a_rank_that_is_none_of_its_library_is_refused() {
    let Some(folder) = Folder::new("rank") else {
        return;
    };
    let open_with = |name: &str, rank: i32, ranks: i32| {
        let text = format!(
            "#include \"sonde_adapter.h\"\nstatic int32_t all(struct sonde_rank *r, struct sonde_about *a);\n{}\
             static int32_t all(struct sonde_rank *r, struct sonde_about *a) \
             {{ null_about(r, a); a->rank = {rank}; a->ranks = {ranks}; return 0; }}\n",
            changed("", "mine.about = all;")
        );
        open(&folder.object(name, &text, &[]), Options::default()).map(drop)
    };
    assert!(open_with("last.so", 2, 3).is_ok());
    for (name, rank, ranks) in [("high.so", 3, 3), ("low.so", -1, 3), ("none.so", 0, 0)] {
        assert!(open_with(name, rank, ranks).is_err(), "{rank} of {ranks}");
    }
}

fn null(folder: &Folder) -> Loaded {
    open(&folder.null(), Options::default()).unwrap()
}

const WORLD: Comm = Comm::WORLD;

#[test]
fn an_unknown_option_is_refused_by_the_library() {
    let Some(folder) = Folder::new("option") else {
        return;
    };
    let options = Options {
        settings: vec![("speed".into(), "high".into())],
        ..Options::default()
    };
    let said = open(&folder.null(), options).err().unwrap();
    let why = std::error::Error::source(&said).unwrap().to_string();
    assert!(
        why.contains("`speed`") && why.contains("no options"),
        "{why}"
    );
    let options = Options {
        settings: vec![("a\0b".into(), "c".into())],
        ..Options::default()
    };
    let said = open(&folder.null(), options).err().unwrap().to_string();
    assert!(said.contains("a?b") && said.contains("zero byte"), "{said}");
}

#[test]
fn the_null_adapter_hands_back_what_it_is_given() {
    let Some(folder) = Folder::new("null") else {
        return;
    };
    let mut messenger = null(&folder);
    assert_eq!((messenger.rank(WORLD), messenger.size(WORLD)), (0, 1));
    messenger.send(WORLD, 0, 3, b"one").unwrap();
    messenger.send(WORLD, 0, 4, b"other").unwrap();
    messenger.send(WORLD, 0, 3, b"second").unwrap();
    let mut room = [0; 8];
    let seen = messenger
        .iprobe(WORLD, Source::Any, Tagged::With(4))
        .unwrap();
    assert_eq!(seen.unwrap().bytes, 5);
    let status = messenger.recv(WORLD, Source::Any, Tagged::With(4), &mut room);
    assert_eq!(status.unwrap().tag, 4);
    for wanted in [&b"one"[..], b"second"] {
        let status = messenger
            .recv(WORLD, Source::Rank(0), Tagged::Any, &mut room)
            .unwrap();
        assert_eq!(&room[..status.bytes], wanted, "in the order of sending");
    }
    // The receive that was posted first is served first.
    let first = messenger
        .irecv(WORLD, Source::Any, Tagged::Any, vec![0; 8])
        .unwrap();
    let second = messenger
        .irecv(WORLD, Source::Any, Tagged::With(5), vec![0; 8])
        .unwrap();
    let Err(second) = messenger.test(second).unwrap() else {
        panic!("nothing was sent");
    };
    let sent = messenger.isend(WORLD, 0, 5, b"first".to_vec()).unwrap();
    assert_eq!(messenger.wait(sent).unwrap().buffer, b"first");
    messenger.send(WORLD, 0, 5, b"then").unwrap();
    let done = messenger.wait(second).unwrap();
    assert_eq!(&done.buffer[..done.status.bytes], b"then");
    let Ok(done) = messenger.test(first).unwrap() else {
        panic!("it was sent");
    };
    assert_eq!(&done.buffer[..done.status.bytes], b"first");
    let facts = messenger.facts().unwrap();
    assert_eq!(facts.library, Some("null".into()));
    assert!(!messenger.collective(WORLD, &mut Call::Barrier).unwrap());
    messenger.finish().unwrap();
    assert_eq!(messenger.facts().unwrap(), facts, "also afterwards");
    let said = messenger.progress().unwrap_err().to_string();
    assert!(said.contains("it has ended"), "{said}");
}

#[test]
fn groups_are_kept_apart() {
    let Some(folder) = Folder::new("groups") else {
        return;
    };
    let mut messenger = null(&folder);
    assert_eq!(messenger.split(WORLD, None, 0).unwrap(), None);
    let one = messenger.split(WORLD, Some(3), 0).unwrap().unwrap();
    let two = messenger.split(one, Some(0), -1).unwrap().unwrap();
    assert_eq!((messenger.rank(two), messenger.size(two)), (0, 1));
    messenger.send(one, 0, 1, b"to one").unwrap();
    messenger.send(two, 0, 1, b"to two").unwrap();
    let mut room = [0; 6];
    for (group, wanted) in [(two, b"to two"), (one, b"to one")] {
        messenger
            .recv(group, Source::Any, Tagged::Any, &mut room)
            .unwrap();
        assert_eq!(&room, wanted);
    }
    let said = messenger.send(Comm(9), 0, 1, b"").unwrap_err().to_string();
    assert!(said.contains("the group is 9"), "{said}");
}

#[test]
fn wrong_arguments_reach_no_library() {
    let Some(folder) = Folder::new("arguments") else {
        return;
    };
    let mut messenger = null(&folder);
    let said = messenger.send(WORLD, 1, 0, b"").unwrap_err().to_string();
    assert!(said.contains("the receiver is 1"), "{said}");
    let said = messenger
        .send(WORLD, 0, u32::MAX, b"")
        .unwrap_err()
        .to_string();
    assert!(said.contains("the tag"), "{said}");
    let blank = Status {
        from: 0,
        tag: 0,
        bytes: 0,
    };
    let mut ops = [Op::Send {
        to: 0,
        tag: 0,
        payload: b"",
    }];
    let said = messenger.exchange(WORLD, &mut ops, &mut [blank; 2]);
    assert!(
        said.unwrap_err()
            .to_string()
            .contains("that of the transfers, 1")
    );
    // A message that does not fit is told, and the rank goes on.
    messenger.send(WORLD, 0, 9, &[1; 10]).unwrap();
    let error = messenger
        .recv(WORLD, Source::Any, Tagged::Any, &mut [0; 4])
        .unwrap_err();
    let Error::Truncated {
        tag: 9,
        bytes: 10,
        room: 4,
        ..
    } = error
    else {
        panic!("{error}");
    };
    let under_way = messenger
        .irecv(WORLD, Source::Any, Tagged::Any, vec![0; 4])
        .unwrap();
    let said = messenger.finish().unwrap_err().to_string();
    assert!(said.contains("under way"), "{said}");
    messenger.send(WORLD, 0, 1, &[7]).unwrap();
    assert_eq!(messenger.wait(under_way).unwrap().buffer[0], 7);
    // Nobody else could send: it is silent, and afterwards nothing reaches the library.
    let error = messenger
        .recv(WORLD, Source::Any, Tagged::Any, &mut [0; 4])
        .unwrap_err();
    assert!(
        matches!(error, Error::Silent { rank: Some(0), .. }),
        "{error}"
    );
    let said = messenger.send(WORLD, 0, 1, &[7]).unwrap_err().to_string();
    assert!(said.contains("it failed before"), "{said}");
}

/// Not a test of its own: what `a_library_that_hangs_is_ended` starts.
#[test]
fn a_rank_that_hangs() {
    let Some(file) = std::env::var_os(HANGS) else {
        return;
    };
    let options = Options {
        timeout: Duration::from_millis(500),
        ..Options::default()
    };
    let mut messenger = open(Path::new(&file), options).unwrap();
    drop(messenger.collective(WORLD, &mut Call::Barrier));
    panic!("the library came back");
}

#[test]
fn a_library_that_hangs_is_ended() {
    let Some(folder) = Folder::new("hangs") else {
        return;
    };
    let text = format!(
        "#include <unistd.h>\n#include \"sonde_adapter.h\"\n\
         static int32_t hang(struct sonde_rank *r, uint32_t c, struct sonde_collective *k) {{ for (;;) pause(); }}\n\
         static int32_t all(struct sonde_rank *r, struct sonde_about *a);\n{}\
         static int32_t all(struct sonde_rank *r, struct sonde_about *a) {{ null_about(r, a); a->collectives = 511; return 0; }}\n",
        changed("", "mine.collective = hang; mine.about = all;")
    );
    let file = folder.object("sonde-hangs.so", &text, &[]);
    let begin = Instant::now();
    let ended = Command::new(std::env::current_exe().unwrap())
        .args(["loading::a_rank_that_hangs", "--exact", "--nocapture"])
        .env(HANGS, &file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(
        said.contains("null did not come back for 500ms while a collective call"),
        "{said}"
    );
    assert!(begin.elapsed() >= Duration::from_millis(500));
}
