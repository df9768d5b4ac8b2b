//! Any process of any command that measures ends by a signal at a random moment: nothing is left on this machine, no result is lost.
//!
//! Model:   command, victim, signal and moment come from a seeded generator (`SONDE_SEED`); `SONDE_KILLS` says how many. What ended
//!          before its moment is drawn again. After each: no process of the run or of its hosts, no network namespace, device, mount,
//!          IPC object, file in /dev/shm, /tmp and /run, and no changed setting is left; what the store had, it has.

use crate::lab::{
    Call, Case, Draws, Process, Stage, Traces, cases, eventually, has, is_long, is_root, members,
    number, of_run,
};
use crate::paired::lab_commands::{COMMANDS, Kept};
use crate::paired::lab_npb;
use std::collections::BTreeMap;
use std::time::Duration;

/// By each path, on this machine and in a lab.
const LATENCY: [(&str, &str); 2] = [
    (
        "--testbed local --size 8..64KiB --launches 3 --budget 300ms",
        "tcp udp unix shm native:shm native:tcp openmpi:sm openmpi:tcp mpich:sm mpich:tcp pvm:default pvm:direct ucx:posix",
    ),
    (
        "--network atm-oc3c --hosts 3 --size 8,1KiB --launches 3 --budget 300ms",
        "tcp udp packet xdp native:tcp openmpi:tcp mpich:tcp pvm:default pvm:direct",
    ),
];

/// Others than those of [`COMMANDS`].
const MORE: [&str; 5] = [
    "probe files --testbed local --size 8KiB --launches 3",
    "probe sweep --testbed local --with rmem=64KiB,256KiB --size 64KiB --launches 2",
    "npb cg --testbed local --class W --ranks 2 --path native:shm,openmpi,mpich,pvm:direct --launches 3",
    "assess --testbed local --quick",
    "accept --testbed lab --hosts 3 --network ethernet-1g --require latency.p99<=1s --quick",
];

/// On hosts that ssh reaches.
const BY_SSH: [&str; 3] = [
    "probe latency --testbed hosts:h[2-4] --size 8,1KiB --launches 3 --budget 200ms",
    "probe pattern natural-ring --testbed hosts:h[2-4] --launches 3 --window 300ms --lead 100ms",
    "probe latency --testbed hosts:h[2-4] --path native:tcp,openmpi:tcp,pvm:default --size 8 --launches 2 --budget 100ms",
];

const SSH: &str = r#"
set -u
PATH=/run/sonde/bin:$PATH:/usr/sbin:/sbin
ssh_setup=SSHD keys=DIR/KEYS
on() { host=$1; shift; sonde lab exec --root "$host" -- "$@"; }
mount -t tmpfs tmpfs /root && mkdir -m 700 /root/.ssh || exit 9
sh "$ssh_setup" keys "$keys" h2 h3 h4
cp "$keys/ssh_config" /root/.ssh/config
printf '    ServerAliveInterval 2\n    ServerAliveCountMax 3\n' >>/root/.ssh/config
for host in h2 h3 h4; do
    sonde lab exec --detach --root $host -- sh "$ssh_setup" serve "$keys" >/dev/null 2>&1
    until ssh -o BatchMode=yes $host true 2>/dev/null; do sleep 0.1; done
done
echo up
code=0
sonde COMMAND || code=$?
sleep 1
for host in h2 h3 h4; do
    on $host ps -eo args | grep -E ' agent$|--sonde-worker|sonde-rank|pvmd' | sed "s/^/left on $host: /"
done
exit $code
"#;

/// What a command is, for the table at the end.
fn kind(process: &Process) -> String {
    let words: Vec<&str> = process.line.split_whitespace().collect();
    let own = words.iter().find(|word| word.starts_with("--sonde-"));
    let name = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    match (own, words.as_slice()) {
        (Some(own), _) => name(own),
        (None, [first, "agent", ..]) => format!("{} agent", name(first)),
        (None, [first, ..]) => name(first).trim_end_matches(':').to_owned(),
        (None, []) => "a process that ends".into(),
    }
}

/// A command that is to be struck.
struct Work {
    words: Vec<String>,
    /// Its hosts are reached by ssh.
    is_by_ssh: bool,
    /// `--resume` completes it.
    goes_on: bool,
}

impl Work {
    fn drawn(draws: &mut Draws, case: Case) -> Self {
        let of = |text: &str, goes_on| Self {
            words: text.split(' ').map(str::to_owned).collect(),
            is_by_ssh: false,
            goes_on,
        };
        let may_ssh = is_root() && !case.is_user && has("sshd");
        match draws.below(if may_ssh { 6 } else { 5 }) {
            0 | 1 => {
                let (command, options, goes_on) = draws.one(&COMMANDS);
                of(&format!("{command} {options}"), goes_on)
            }
            2 | 3 => {
                let (options, paths) = draws.one(&LATENCY);
                let paths: Vec<&str> = paths.split(' ').collect();
                of(
                    &format!("probe latency {options} --path {}", draws.one(&paths)),
                    true,
                )
            }
            4 => of(draws.one(&MORE), false),
            _ => Self {
                is_by_ssh: true,
                ..of(draws.one(&BY_SSH), false)
            },
        }
    }

    fn is_in_lab(&self) -> bool {
        self.words.iter().any(|word| word == "--network")
    }
}

/// Where the commands of one case run, each with a store of its own.
struct Scene {
    stage: Stage,
    number: u64,
}

impl Scene {
    fn out(&self) -> String {
        self.stage.path(&format!("runs-{}", self.number))
    }

    /// What is kept when nothing runs; a store that is there can be read.
    fn kept(&self, story: &str) -> Kept {
        let out = self.out();
        if let Some(kept) = Kept::of(&self.stage, &out) {
            return kept;
        }
        let export = self
            .stage
            .sonde(&["report", "export", "--json", "--out", &out]);
        let said = export.output();
        let has_none = ["there is no run in", "there is no store at"]
            .iter()
            .any(|none| said.err.contains(none));
        assert!(has_none, "the store cannot be read: {said}: {story}");
        Kept::default()
    }

    fn call(&self, work: &Work) -> Call {
        let mut words: Vec<&str> = work.words.iter().map(String::as_str).collect();
        let out = self.out();
        words.extend(["--out", &out]);
        let call = if work.is_by_ssh {
            let script = self
                .stage
                .with_sshd(SSH)
                .replace("KEYS", &format!("keys-{}", self.number))
                .replace("COMMAND", &words.join(" "));
            self.stage.run(
                &["--hosts", "4", "--network", "ethernet-1g", "--root"],
                &["sh", "-c", &script],
            )
        } else {
            let mut call = self.stage.sonde(&words);
            if work.is_in_lab() {
                call.command
                    .args(["--attachment", self.stage.case.attachment]);
                if let Some(tun) = self.stage.tun() {
                    call.command.arg("--tun").arg(tun);
                }
            }
            call
        };
        call.env("SONDE_RANK", self.stage.path("sonde-rank"))
            .env("SONDE_ADAPTERS", self.stage.path("adapters"))
            .limit(150)
    }

    /// Starts a command, and one of its processes gets a signal; what that was, or none where it had ended before.
    fn strike(&self, work: &Work, draws: &mut Draws) -> Option<(String, i32)> {
        let traces = Traces::of_all();
        let signal = draws.one(&[9, 9, 9, 9, 9, 15, 2, 1]);
        let after = Duration::from_millis(draws.below(2_500));
        let (which, pick) = (draws.below(1 << 20), draws.below(1 << 20));
        let mut running = self.call(work).start();
        let mark = running.mark.clone();
        if work.is_by_ssh {
            running.wait_for("up\n");
        }
        std::thread::sleep(after);
        let kept = Kept::of(&self.stage, &self.out()).unwrap_or_default();
        let seen = members(&mark);
        let mut kinds: BTreeMap<String, Vec<&Process>> = BTreeMap::new();
        for process in &seen {
            kinds.entry(kind(process)).or_default().push(process);
        }
        let drawn = kinds.iter().nth(which as usize % kinds.len().max(1));
        let struck = drawn.filter(|_| running.is_alive()).map(|(kind, all)| {
            let process = all[pick as usize % all.len()];
            // It may have ended just now.
            drop(sonde_sys::process::kill(process.pid, signal));
            (kind.clone(), signal)
        });
        let outcome = running.finish();
        let what = struck.as_ref().map_or("nothing", |(what, _)| what);
        let story = format!("{what} got signal {signal} after {after:?}: {outcome}");
        assert!(!outcome.err.contains("panicked"), "{story}");
        assert!(![70, 101, 134, 139].contains(&outcome.code), "{story}");
        assert!(!outcome.out.contains("left on"), "{story}");
        let namespaces: Vec<u64> = seen.iter().map(|process| process.netns).collect();
        let left = eventually(|| of_run(&mark, &namespaces), Vec::is_empty);
        assert!(left.is_empty(), "{left:#?} are left: {story}");
        traces.assert_nothing_new(&story);
        let after = self.kept(&story);
        let is_there = |one| after.all.contains(one);
        assert!(kept.all.iter().all(is_there), "results are lost: {story}");
        println!(
            "    {what}, signal {signal}: ended with {}, {} results before, {} after",
            outcome.code,
            kept.all.len(),
            after.all.len()
        );
        struck
    }

    /// Completes what was struck; nothing is lost, and the folder holds the store alone.
    fn complete(&self, work: &Work) {
        let before = self.kept("");
        if before.id.is_empty() || before.state == "complete" {
            return;
        }
        let taken = match work.words[0].as_str() {
            "probe" | "lab" => 2,
            _ => 1,
        };
        let resume = Work {
            words: (work.words.iter().take(taken).cloned())
                .chain(["--resume".into()])
                .collect(),
            is_by_ssh: false,
            goes_on: true,
        };
        let mut call = self.call(&resume);
        // It takes the attachment from the run, and where the devices are from here.
        if let Some(tun) = self.stage.tun().filter(|_| work.is_in_lab()) {
            call.command.arg("--tun").arg(tun);
        }
        let ended = call.limit(300).output();
        assert!([0, 1].contains(&ended.code), "{ended}");
        let after = self.kept(&ended.to_string());
        assert_eq!(after.state, "complete", "{ended}");
        assert!(before.all.iter().all(|one| after.all.contains(one)));
        let mut names = std::fs::read_dir(self.out())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert!(
            names.all(|name| name == "sonde.db" || name.ends_with(".html")),
            "{ended}"
        );
        println!(
            "    completed: {} results of {}",
            after.all.len(),
            before.all.len()
        );
    }
}

#[test]
fn any_process_of_any_command_ends_at_any_moment_and_nothing_is_left_or_lost() {
    let mut draws = Draws::seeded(3);
    let count = number("SONDE_KILLS", if is_long() { 60 } else { 6 });
    let cases = cases();
    let stages = cases.iter().map_while(|case| lab_npb::stage(*case));
    let mut scenes: Vec<Scene> = stages.map(|stage| Scene { stage, number: 0 }).collect();
    for scene in &scenes {
        let build = scene.stage.sonde(&["doctor", "--build-adapters"]);
        let build = build.env("SONDE_ADAPTERS", scene.stage.path("adapters"));
        drop(build.limit(120).output());
    }
    let mut table: BTreeMap<(String, i32), u64> = BTreeMap::new();
    let (mut hits, mut tries) = (0, 0);
    while hits < count && !scenes.is_empty() {
        tries += 1;
        assert!(tries < 4 * count, "{hits} of {tries} were in time");
        let at = tries as usize % scenes.len();
        let scene = &mut scenes[at];
        scene.number += 1;
        let work = Work::drawn(&mut draws, scene.stage.case);
        println!("{hits}: {:?}: {}", scene.stage.case, work.words.join(" "));
        if let Some(struck) = scene.strike(&work, &mut draws) {
            *table.entry(struck).or_default() += 1;
            hits += 1;
            if work.goes_on && hits % 3 == 0 {
                scene.complete(&work);
            }
        }
        drop(std::fs::remove_dir_all(scene.out()));
    }
    println!("{hits} of {tries} commands were struck:");
    for ((what, signal), count) in table {
        println!("{count:5}  {what}, signal {signal}");
    }
}
