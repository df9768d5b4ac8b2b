//! What a program in a lab may try against the machine and other users, and that it is refused: in labs of root's, under sudo, and
//! of an ordinary user's, as a program and as the lab's root.
//!
//! Model:   an attempt is a line of shell that ends with 0 where a power was gained. What it would gain is harmless: a file is opened
//!          for writing and not written, a setting is given the value that it has.
//! Checked: `docs/security.md` has a row for each attempt; before the lab was bounded, root's and sudo's gained a dozen.

use crate::lab::{Case, Outcome, Stage, USER, has, is_root, path_of, skip};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// A user of nobody's.
const STRANGER: u32 = 2_002;

/// Who starts the lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Root,
    Sudo,
    User,
}

/// Where an attempt may succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Allowed {
    Nowhere,
    /// The host's own network, name and processes are the lab's root's.
    LabRoot,
    /// Files of root's are root's, in root's own lab.
    OwnFiles,
}

use Allowed::{LabRoot, Nowhere, OwnFiles};

/// The name of an attempt as `docs/security.md` has it, where it may succeed, and the attempt. `open` opens a file for writing,
/// `call` makes a system call and succeeds unless it is refused for want of rights.
const ATTEMPTS: &[(&str, Allowed, &str)] = &[
    ("write a file of root's", OwnFiles, "open $D/roots"),
    (
        "write into /root",
        OwnFiles,
        ": > /root/.lab-powers && rm /root/.lab-powers",
    ),
    (
        "read /etc/shadow",
        OwnFiles,
        "grep -qxF \"$SHADOW\" /etc/shadow",
    ),
    (
        "kernel.core_pattern",
        Nowhere,
        "open /proc/sys/kernel/core_pattern",
    ),
    (
        "any sysctl but those of the host's own namespaces",
        Nowhere,
        "find /proc/sys -type f | grep -vE '^/proc/sys/(net|user|fs/mqueue)/|/(sem|shm|msg)[a-z_]*$|/auto_msgmni$|/(ns_last_pid|pid_max)$|_next_id$' | { found=1; while read -r file; do open $file && { echo $file; found=0; }; done; exit $found; }",
    ),
    ("/proc/sysrq-trigger", Nowhere, "open /proc/sysrq-trigger"),
    (
        "/proc/irq and /proc/bus",
        Nowhere,
        "open /proc/irq/default_smp_affinity || open $(find /proc/bus -type f -perm -u=w | head -n 1)",
    ),
    (
        "/sys",
        Nowhere,
        "find /sys/kernel /sys/module /sys/power /sys/devices/system -maxdepth 4 -type f -perm -u=w | { found=1; while read -r file; do open $file && { echo $file; found=0; }; done; exit $found; }",
    ),
    (
        "control groups",
        Nowhere,
        "for group in /sys/fs/cgroup /sys/fs/cgroup/*; do mkdir $group/powers && rmdir $group/powers && exit 0; done; exit 1",
    ),
    (
        "control groups mounted anew",
        Nowhere,
        "mkdir /tmp/g && for by in -Cm -UrCm; do unshare $by sh -c 'for kind in cgroup2 \"cgroup -o freezer\"; do mount -t $kind none /tmp/g && mkdir /tmp/g/powers && rmdir /tmp/g/powers && exit 0; done; exit 1' && exit 0; done; exit 1",
    ),
    (
        "uncover what is read-only",
        Nowhere,
        "for by in 'env' 'unshare -Urm'; do $by sh -c 'mount -o remount,bind,rw /proc/sys; mount -o remount,rw /proc/sys; umount -l /proc/sys /proc/sysrq-trigger; umount -l /proc; (: >> /proc/sys/kernel/core_pattern) && exit 0; (: >> /proc/sysrq-trigger) && exit 0; umount /proc; mount --move /proc/sys /mnt; (: >> /proc/sys/kernel/core_pattern)' && exit 0; done; exit 1",
    ),
    (
        "a new proc or sysfs",
        Nowhere,
        "mkdir /tmp/p /tmp/s && for by in 'unshare -m' 'unshare -Urm' 'unshare -pfm' 'unshare -Urpfnm' 'unshare -nm'; do $by sh -c 'mount -t proc none /tmp/p && (: >> /tmp/p/sysrq-trigger) && exit 0; mount -t sysfs none /tmp/s && (: >> $(find /tmp/s/kernel /tmp/s/module -type f -perm -u=w | head -n 1)) && exit 0; exit 1' && exit 0; done; exit 1",
    ),
    (
        "devices of the machine",
        Nowhere,
        "for file in vda sda nvme0n1 loop0 zram0 mem port kmsg kvm hwrng cpu_dma_latency fuse tty1; do test $(stat -c %a /dev/$file) -le 640 && (exec < /dev/$file) && exit 0; done; exit 1",
    ),
    (
        "a device file that lies about",
        Nowhere,
        "test -e $D/device || exit 1; (exec < $D/device)",
    ),
    (
        "mknod",
        Nowhere,
        "mknod /tmp/n c 1 5 || mknod $D/open/n c 1 5",
    ),
    (
        "mount a disk",
        Nowhere,
        "mkdir /tmp/d && for disk in /dev/vda /dev/sda /dev/nvme0n1 /dev/loop0; do mount -t ext4 $disk /tmp/d && exit 0; done; exit 1",
    ),
    (
        "the host's network",
        LabRoot,
        "ip link set dev eth0 txqueuelen 78",
    ),
    (
        "the host's network by a namespace of one's own",
        Nowhere,
        "test $(id -u) = 0 && exit 1; unshare -Ur ip link set dev eth0 txqueuelen 79",
    ),
    ("raw sockets", LabRoot, "call socket 41 2 3 1"),
    ("sethostname", LabRoot, "hostname renamed"),
    (
        "signals to the machine's processes",
        Nowhere,
        "kill -0 $OUTSIDE",
    ),
    (
        "look into the machine's processes",
        Nowhere,
        "test -e /proc/$OUTSIDE/status",
    ),
    (
        "signals to another host's processes",
        Nowhere,
        "other=$(sonde lab exec h2 -- sh -c 'sleep 7 >/dev/null 2>&1 & echo $!'); grep -qs sleep /proc/$other/comm && kill -0 $other",
    ),
    (
        "ptrace the host's init",
        LabRoot,
        "call ptrace 101 0x4206 1 0 0",
    ),
    (
        "join the init's namespaces",
        LabRoot,
        "nsenter -t 1 -m -n true",
    ),
    (
        "load a kernel module",
        Nowhere,
        "call init_module 175 0 0 0",
    ),
    (
        "unload a kernel module",
        Nowhere,
        "perl -e 'my $n = \"no_such_module\"; syscall(176, $n, 0) == 0 and exit 0; exit($! == 1 || $! == 38)'",
    ),
    (
        "reboot",
        Nowhere,
        "call reboot 169 0xfee1dead 672274793 0 0",
    ),
    ("kexec", Nowhere, "call kexec_load 246 0 0 0 0x3e0000"),
    (
        "set the clock",
        Nowhere,
        "perl -e 'my $t = pack(\"Lx84q\", 0x4000, 10000) . \"\\0\" x 120; syscall(159, $t) >= 0 and exit 0; exit 1'",
    ),
    ("the console's log", Nowhere, "call syslog 103 0 0 0"),
    ("I/O ports", Nowhere, "call ioperm 173 0x80 1 1"),
    ("raise a priority", Nowhere, "renice -n -5 $$"),
    (
        "keys of who started the lab",
        Nowhere,
        "perl -e 'my ($t, $n) = (\"user\", \"sonde-test\"); syscall(250, 10, -3, $t, $n, 0) >= 0 or exit 1'",
    ),
    (
        "bpf",
        Nowhere,
        "perl -e 'my $i = pack(\"H32\", \"b7000000000000009500000000000000\"); my $l = \"GPL\\0\"; my $a = pack(\"LLPP\", 2, 2, $i, $l) . \"\\0\" x 96; syscall(321, 5, $a, 48) >= 0 or exit 1'",
    ),
    (
        "perf of the whole machine",
        Nowhere,
        "perl -e 'my $a = pack(\"LLQ\", 1, 64, 0) . \"\\0\" x 48; syscall(298, $a, -1, 0, -1, 0) >= 0 or exit 1'",
    ),
];

/// What comes before each attempt.
const TOOLS: &str = "open() { ( : >> \"$1\" ); }
call() { shift; perl -e '$! = 0; my @a = map { /^0x/ ? oct($_) : int($_) } @ARGV; my $r = syscall(shift @a, @a); exit($r == -1 && ($! == 1 || $! == 13 || $! == 38) ? 1 : 0)' \"$@\"; }
";

/// Has a key in a session of its own, and starts what follows.
const KEY: &str = "my ($t, $n, $v) = ('user', 'sonde-test', 'x'); syscall(250, 1, 0); syscall(248, $t, $n, $v, 1, -3); exec @ARGV";

impl Way {
    fn stage(self) -> Stage {
        Stage::new(match self {
            Self::User => Case::user("veth"),
            _ => Case::own("veth"),
        })
    }

    /// Runs `script` on h1, as its name says.
    fn run(self, stage: &Stage, options: &[&str], script: &str) -> Outcome {
        let id = if self == Self::Sudo {
            USER.to_string()
        } else {
            String::new()
        };
        let options = [&["--hosts", "2"], options].concat();
        let shadow = std::fs::read_to_string("/etc/shadow").unwrap();
        let mut call = stage
            .run(&options, &["sh", "-c", script])
            .env("SHADOW", shadow.lines().next().unwrap());
        // Behind a process that has a key in its session.
        let mut command = Command::new(path_of("perl").unwrap());
        command
            .args(["-e", KEY, "--"])
            .arg(call.command.get_program())
            .args(call.command.get_args());
        for (name, value) in call.command.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command.current_dir(&stage.folder);
        call.command = command;
        let call = call.env("SUDO_UID", &id).env("SUDO_GID", &id);
        call.env("D", &stage.folder)
            .env("OUTSIDE", std::process::id().to_string())
            .output()
    }
}

/// The ways that there are here.
fn ways() -> Vec<Way> {
    if !is_root() || !has("setpriv") {
        skip("root, who starts labs for others");
        return Vec::new();
    }
    vec![Way::Root, Way::Sudo, Way::User]
}

/// The attempts that gained something, with what they said.
fn gained(way: Way, stage: &Stage, root: bool) -> BTreeSet<String> {
    let mut script = String::from("cd /tmp || exit 70\n");
    for (number, (_, _, attempt)) in ATTEMPTS.iter().enumerate() {
        let file = stage.folder.join(format!("attempt-{number}"));
        std::fs::write(&file, format!("{TOOLS}{attempt}\n")).unwrap();
        script += &format!(
            "timeout 20 sh {} </dev/null >said 2>&1 && {{ echo gained {number} $(tail -c 200 said); }}\n",
            file.display()
        );
    }
    let options: &[&str] = if root { &["--root"] } else { &[] };
    let outcome = way.run(stage, options, &(script + "echo tried"));
    assert!(
        outcome.code == 0 && outcome.out.contains("tried"),
        "{way:?} {outcome}"
    );
    let lines = outcome
        .out
        .lines()
        .filter_map(|line| line.strip_prefix("gained "));
    let name = |line: &str| {
        let (number, said) = line.split_once(' ').unwrap_or((line, ""));
        let (name, ..) = ATTEMPTS[number.parse::<usize>().unwrap()];
        println!("{way:?}, root {root}: {name}: {said}");
        name.to_owned()
    };
    lines.map(name).collect()
}

#[test]
fn no_program_gets_more_than_who_started_the_lab() {
    if !has("perl") || !has("unshare") || !has("ip") {
        return;
    }
    let mut wrong = Vec::new();
    for way in ways() {
        let stage = way.stage();
        let file = |name: &str| stage.folder.join(name);
        std::fs::write(file("roots"), "root's").unwrap();
        std::fs::set_permissions(file("roots"), PermissionsExt::from_mode(0o600)).unwrap();
        std::fs::create_dir(file("open")).unwrap();
        std::fs::set_permissions(file("open"), PermissionsExt::from_mode(0o777)).unwrap();
        let device = file("device");
        drop(
            Command::new("mknod")
                .args(["-m", "600"])
                .arg(&device)
                .args(["c", "1", "5"])
                .status(),
        );
        let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        for root in [false, true] {
            let expected = ATTEMPTS.iter().filter(|(_, allowed, _)| match allowed {
                Nowhere => false,
                LabRoot => root,
                OwnFiles => way == Way::Root,
            });
            let expected: BTreeSet<_> = expected.map(|(name, ..)| (*name).to_owned()).collect();
            let found = gained(way, &stage, root);
            if found != expected {
                let more: Vec<_> = found.difference(&expected).collect();
                let less: Vec<_> = expected.difference(&found).collect();
                wrong.push(format!(
                    "{way:?}, root {root}: gained {more:?}, wanted but not had {less:?}"
                ));
            }
        }
        assert_eq!(
            std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap(),
            machine
        );
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A set-user-id program that the lab's root leaves in a folder of the machine's gives nothing that its starter has not.
#[test]
fn a_set_user_id_file_of_the_labs_root_gives_nothing_outside() {
    for way in ways().into_iter().filter(|way| *way != Way::Root) {
        let stage = way.stage();
        let open = stage.folder.join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
        let make = "cp \"$(command -v id)\" $D/open/id && chmod 6755 $D/open/id && $D/open/id -u";
        let made = way.run(&stage, &["--root"], make);
        assert_eq!((made.code, made.out.trim()), (0, "0"), "{made}");
        let ids = |option: &str| -> u32 {
            let mut call = Command::new("setpriv");
            let stranger = STRANGER.to_string();
            call.args(["--reuid", &stranger, "--regid", &stranger, "--clear-groups"]);
            let seen = call.arg(open.join("id")).arg(option).output().unwrap();
            String::from_utf8(seen.stdout)
                .unwrap()
                .trim()
                .parse()
                .unwrap()
        };
        let wanted = |id| match way {
            Way::User => id == USER,
            _ => id >= 0x7000_0000,
        };
        let (uid, gid) = (ids("-u"), ids("-g"));
        assert!(wanted(uid) && wanted(gid), "{way:?}: {uid} {gid}");
    }
}

/// Another user of the lab, as after a login by ssh, has nothing started and changes nothing, unless the lab is shared; and never as
/// root.
#[test]
fn the_labs_sockets_are_its_users() {
    for way in ways() {
        let stage = way.stage();
        let modes = "stat -c '%a %u' /run/sonde/h1 /run/sonde/h2 /run/sonde/switch; id -u";
        let owner = if way == Way::Sudo { USER } else { 0 };
        let seen = way.run(&stage, &["--root"], modes);
        assert_eq!(
            seen.out,
            format!("600 {owner}\n").repeat(3) + "0\n",
            "{seen}"
        );
        // An ordinary user's lab has other users only with ranges of ids.
        if way == Way::User {
            continue;
        }
        let other = format!(
            "as() {{ setpriv --reuid {STRANGER} --regid {STRANGER} --clear-groups \"$@\"; }}
            as sonde lab exec h2 -- id -u; as sonde lab tell loss all 0; echo told $?
            as sonde lab exec --root h2 -- id -u; sonde lab exec --root h2 -- id -u"
        );
        let alone = way.run(&stage, &["--root"], &other);
        assert_eq!(alone.out, "told 2\n0\n", "{way:?} {alone}");
        assert_eq!(alone.err.matches("with `--share`").count(), 3, "{alone}");
        let shared = way.run(&stage, &["--root", "--share"], &other);
        let user = if way == Way::Sudo { USER } else { 1_000 };
        assert_eq!(
            shared.out,
            format!("{user}\ntold 0\n0\n"),
            "{way:?} {shared}"
        );
        shared.tells(&["the lab's root is for who started the lab"]);
    }
}

/// SUDO_UID alone says whose the lab is: a caller whose group is root's was taken for root.
#[test]
fn a_caller_of_roots_group_is_not_root() {
    for way in ways().into_iter().filter(|way| *way == Way::Sudo) {
        let stage = way.stage();
        let ask = "id -u; id -g; touch /root/powers || echo refused; sonde lab exec --root h1 -- touch /root/powers || echo refused";
        let call = stage.run(&["--hosts", "2"], &["sh", "-c", ask]);
        let call = call.env("SUDO_UID", USER.to_string()).env("SUDO_GID", "0");
        let outcome = call.expect(0);
        assert_eq!(
            outcome.out,
            format!("{USER}\n0\nrefused\nrefused\n"),
            "{outcome}"
        );
    }
}

/// By the real `sudo`, called by an ordinary user: in mounts of its own, where a file says that the user may.
#[test]
fn a_caller_of_sudo_is_no_root_in_the_lab() {
    if !is_root() || !has("sudo") || !has("setpriv") || !has("unshare") {
        return;
    }
    let stage = Stage::new(Case::own("veth"));
    let script = format!(
        "set -e; mount --make-rprivate /
        cp /etc/passwd passwd; echo 'caller:x:{USER}:{USER}::/tmp:/bin/sh' >> passwd; mount --bind passwd /etc/passwd
        cp /etc/group group; echo 'caller:x:{USER}:' >> group; mount --bind group /etc/group
        cp /etc/shadow shadow; echo 'caller:*:19000:0:99999:7:::' >> shadow; mount --bind shadow /etc/shadow
        echo 'caller ALL=(ALL) NOPASSWD: ALL' > sudoers; chmod 440 sudoers; mount --bind sudoers /etc/sudoers
        exec setpriv --reuid {USER} --regid {USER} --clear-groups sudo -n {} lab run --hosts 2 -- sh -c \
        'id -u; sonde lab exec --root h1 -- sh -c \"id -u; touch /root/powers || echo refused; (: >> /proc/sys/kernel/core_pattern) || echo refused; cat /proc/self/uid_map\"'",
        crate::lab::sonde().display()
    );
    let mut call = stage.call(&path_of("unshare").unwrap());
    call.command.args(["-m", "sh", "-c", &script]);
    let outcome = call.expect(0);
    assert!(
        outcome
            .out
            .starts_with(&format!("{USER}\n0\nrefused\nrefused\n")),
        "{outcome}"
    );
}

#[test]
fn the_manual_lists_every_attempt() {
    let page = include_str!("../../../docs/security.md");
    for (name, ..) in ATTEMPTS {
        assert!(page.contains(&format!("| {name} |")), "{name}");
    }
}
