//! The package, as `make package` makes it, on a root that has a shell, the C library and nothing else.
//!
//! Model:   `package/bare.sh` installs it there by dpkg, with its dependences checked, and makes that root its own; nothing of the machine's
//!          files is left to be found. The tarball is unpacked into a folder.

use crate::lab::{Stage, skip};
use std::path::Path;

const BARE: &str = include_str!("package/bare.sh");
/// What is tried there: this machine, ranks, a lab.
const TRIED: &str = "
cd /tmp
echo /usr/bin/*
sonde --version
sonde probe latency --testbed local --path tcp,native --size 8 --launches 6 --budget 300ms
sonde probe latency --network ethernet-100 --path tcp,native --size 8 --launches 6 --budget 500ms --html page.html
read -r first <page.html
echo \"$first\"
for file in /usr/share/man/man1/sonde-assess.1.gz /usr/share/bash-completion/completions/sonde /usr/share/doc/sonde/README.md \\
    /usr/share/doc/sonde/copyright; do
    [ -s $file ] || echo \"no $file\"
done
";

#[test]
fn a_package_measures_where_nothing_else_is() {
    let Some(stage) = Stage::of_root(&["dpkg", "dpkg-deb", "unshare", "dash", "gzip", "xz"]) else {
        return;
    };
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if !tree.join("target/static/sonde").exists() {
        skip("target/static/sonde (make build)");
        return;
    }
    let to = stage.path("packages");
    // Packing takes all CPUs, which other tests have labs on: a session of its own, to which the kernel gives the least share.
    let mut pack = stage.call(Path::new("setsid"));
    let least = r#"{ echo 19 >/proc/self/autogroup; } 2>/dev/null; exec nice -n19 "$@""#;
    pack.command.args(["--wait", "sh", "-c", least, "sh"]);
    pack.command.arg(tree.join("scripts/package.sh")).arg(&to);
    let packed = pack.limit(300).expect(0);
    let files: Vec<&str> = packed.out.lines().collect();
    let [tarball, deb] = files[..] else {
        panic!("a tarball and a package: {packed}")
    };
    let root = stage.path("root");
    std::fs::create_dir(&root).unwrap();
    let mut bare = stage.call(Path::new("unshare"));
    let script = ["--mount", "--propagation", "private", "sh", "-c", BARE];
    bare.command.args(script);
    let bare = bare.env("ROOT", &root).env("DEB", deb);
    let tried = bare.input(TRIED.as_bytes()).limit(120).expect(0);
    println!("{}", tried.out);
    assert!(
        tried
            .out
            .starts_with("/usr/bin/sh /usr/bin/sonde /usr/bin/sonde-rank\nsonde 0."),
        "{tried}"
    );
    // Here and in the lab.
    let rows = tried
        .out
        .lines()
        .filter(|line| line.starts_with("native:tcp  warm   latency"));
    assert_eq!(rows.count(), 2, "{tried}");
    assert!(
        tried.out.ends_with("<!doctype html>\n") && !tried.out.contains("\nno "),
        "{tried}"
    );
    let mut unpack = stage.call(Path::new("tar"));
    unpack.command.args(["-xzf", tarball, "-C", &root]);
    unpack.expect(0);
    let folder = std::fs::read_dir(&root).unwrap().next().unwrap().unwrap();
    let mut unpacked = stage.call(&folder.path().join("bin/sonde"));
    unpacked.command.arg("--version");
    assert!(unpacked.expect(0).out.starts_with("sonde 0."));
}
