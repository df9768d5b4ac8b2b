//! Independent partners: the programs of libnfs against the server here, and the client here against nfs-ganesha, byte for byte.
//!
//! Model:   what is not installed says `skipped:`. Ganesha and rpcbind run in namespaces of their own, which end with the test.

use crate::files_sockets::{LOOPBACK, Running, client_terms, reach};
use sonde_workload::files::mount::{Mount, Over};
use sonde_workload::files::nfs::{Handle, Stable, Version};
use sonde_workload::files::pattern;
use sonde_workload::files::server;
use sonde_workload::files::session::{Job, One, Sink, Terms};
use sonde_workload::files::store::{Folder, Memory};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Output};

pub fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    let found = folders
        .into_iter()
        .any(|folder| folder.join(program).is_file());
    if !found {
        println!("skipped: {program}");
    }
    found
}

pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sonde-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn run(words: &[&str]) -> Output {
    let output = Command::new("timeout").arg("60").args(words).output();
    output.unwrap()
}

pub fn succeeds(words: &[&str]) -> String {
    let output = run(words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{words:?}: {:?} {said}",
        output.status
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn url(server: SocketAddr, file: &str) -> String {
    let port = server.port();
    format!("nfs://{LOOPBACK}/export{file}?version=3&nfsport={port}&mountport={port}")
}

#[test]
fn the_programs_of_libnfs_read_and_write_here() {
    if !has("nfs-cp") || !has("nfs-ls") {
        return;
    }
    let scratch = Scratch::new("libnfs");
    let content = pattern::piece(77, 1_000_003);
    std::fs::write(scratch.path("local"), content).unwrap();
    let exported = scratch.path("exported");
    std::fs::create_dir(&exported).unwrap();
    let folder = Folder::open(exported.as_ref(), false).unwrap();
    let in_memory = Running::start(server::Terms::new(1), Memory::new(1 << 24));
    let on_disk = Running::start(server::Terms::new(1), folder);
    for running in [&in_memory, &on_disk] {
        let address = running.address;
        succeeds(&["nfs-cp", &scratch.path("local"), &url(address, "/there")]);
        let _ = std::fs::remove_file(scratch.path("back"));
        succeeds(&["nfs-cp", &url(address, "/there"), &scratch.path("back")]);
        assert_eq!(std::fs::read(scratch.path("back")).unwrap(), content);
        let listed = succeeds(&["nfs-ls", &url(address, "")]);
        let line = listed.lines().find(|line| line.ends_with(" there"));
        let line = line.unwrap_or_else(|| panic!("{listed}"));
        assert!(line.contains("1000003"), "{line}");
        // The client here sees the same.
        let terms = client_terms(Version::V3, 65_536, 4);
        let mut mount = Mount::open(reach(Over::Tcp, address), terms, 1).unwrap();
        let root = mount.mount(b"/export").unwrap();
        let file = lookup(&mut mount, root, "there");
        assert!(keep(&mut mount, file, content.len()) == content);
        let absent = run(&["nfs-cp", &url(address, "/none"), &scratch.path("back")]);
        assert!(!absent.status.success());
    }
    // And so does the host whose directory it is.
    assert_eq!(
        std::fs::read(scratch.0.join("exported/there")).unwrap(),
        content
    );
}

fn lookup(mount: &mut Mount, root: Handle, name: &str) -> Handle {
    let one = One::Lookup(root, name.into());
    mount.run(Job::One(one)).unwrap().handle.unwrap()
}

fn keep(mount: &mut Mount, file: Handle, size: usize) -> Vec<u8> {
    let job = Job::Read {
        file,
        size_bytes: size as u64,
        sink: Sink::Keep,
    };
    mount.run(job).unwrap().content
}

/// At an address that is not the loopback's: names and numbers are looked up as where a host has a network, and else there are none.
/// It keeps so many bytes of a file, and fills what is beyond.
const GANESHA: &str = "
NFS_CORE_PARAM { Bind_addr=10.9.0.1; NFS_Port=2049; MNT_Port=20048; Enable_NLM=false; Enable_RQUOTA=false; Protocols=3; fsid_device=true; }
NFSV4 { Grace_Period=5; Lease_Lifetime=5; RecoveryBackend=fs; RecoveryRoot=/tmp/gan; Only_Numeric_Owners=true; }
NFS_KRB5 { Active_krb5=false; }
EXPORT_DEFAULTS { Squash=None; SecType=sys,none; Transports=TCP,UDP; Access_Type=RW; }
MEM { Inode_Size=1048576; }
EXPORT { Export_Id=2; Path=/mem; Pseudo=/mem; FSAL { Name=MEM; } }
";

/// In namespaces of its own: rpcbind and ganesha, and then the client here, as a part of this program.
#[test]
fn the_client_here_reads_and_writes_at_ganesha() {
    if !has("ganesha.nfsd") || !has("rpcbind") || !has("unshare") {
        return;
    }
    if !run(&["unshare", "-nmpf", "--mount-proc", "true"])
        .status
        .success()
    {
        println!("skipped: namespaces for ganesha (root)");
        return;
    }
    let scratch = Scratch::new("ganesha");
    std::fs::write(scratch.path("conf"), GANESHA).unwrap();
    let (conf, log) = (scratch.path("conf"), scratch.path("log"));
    let myself = std::env::current_exe().unwrap();
    let myself = myself.to_str().unwrap();
    let script = format!(
        "set -e
mount -t tmpfs none /run; mount -t tmpfs none /var/lib/nfs 2>/dev/null || true
ip link set lo up; ip addr add 10.9.0.1/24 dev lo
mkdir -p /run/rpcbind /run/ganesha /tmp/gan
rpcbind -f -w -h 10.9.0.1 & sleep 0.3
ganesha.nfsd -F -f {conf} -L {log} -p /run/ganesha.pid &
i=0
until (exec 3<>/dev/tcp/10.9.0.1/2049) 2>/dev/null; do i=$((i + 1)); [ $i -lt 100 ] || {{ tail -5 {log}; exit 9; }}; sleep 0.1; done
sleep 0.5
{myself} --ignored --exact files_partners::play_the_client --nocapture"
    );
    let script_file = scratch.path("script");
    std::fs::write(&script_file, script).unwrap();
    let words = [
        "unshare",
        "-nmpf",
        "--mount-proc",
        "--kill-child",
        "bash",
        &script_file,
    ];
    let output = run(&words);
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(9) {
        println!("skipped: ganesha does not start here: {said}");
        return;
    }
    assert!(output.status.success(), "{said}");
    assert!(said.contains("all came back"), "{said}");
}

/// No test: what the one above has run beside ganesha.
#[test]
#[ignore = "played by another test"]
fn play_the_client() {
    let at = |port: u16| SocketAddr::from(([10, 9, 0, 1], port));
    let content = pattern::piece(5, 900_001).to_vec();
    for (over, transfer, outstanding) in [
        (Over::Tcp, 65_536, 1),
        (Over::Tcp, 8_192, 8),
        (Over::Udp, 8_192, 2),
        (Over::Udp, 32_768, 1),
    ] {
        for stable in [Stable::Sync, Stable::Unstable] {
            let terms = Terms {
                stable,
                ..client_terms(Version::V3, transfer, outstanding)
            };
            let mut mount = Mount::open(reach(over, at(20_048)), terms, 1).unwrap();
            let root = mount.mount(b"/mem").unwrap();
            let mut mount = Mount::open(reach(over, at(2_049)), terms, 77).unwrap();
            let name = format!("{over:?}-{transfer}-{stable:?}");
            let create = One::Create(root, name.clone().into());
            let file = mount.run(Job::One(create)).unwrap().handle.unwrap();
            let write = Job::Write {
                file,
                size_bytes: content.len() as u64,
                content: Some(content.clone()),
            };
            let done = mount.run(write).unwrap();
            assert_eq!((done.bytes, done.written_again), (900_001, 0));
            let file = lookup(&mut mount, root, &name);
            assert!(keep(&mut mount, file, content.len()) == content);
            let known = mount.run(Job::One(One::Attributes(file))).unwrap();
            assert_eq!(known.attributes.unwrap().size_bytes, 900_001);
            let entries = mount.run(Job::List { directory: root }).unwrap().entries;
            assert!(entries.iter().any(|entry| entry.name == name.as_bytes()));
            let (old, new) = (name.clone().into_bytes(), b"renamed".to_vec());
            mount
                .run(Job::One(One::Rename(root, old, root, new.clone())))
                .unwrap();
            mount.run(Job::One(One::Remove(root, new))).unwrap();
        }
    }
    println!("all came back");
}
