//! The recipes of docs/clusters.md, unmodified, and those of docs/accept-a-cluster.md on a Slurm cluster whose nodes are hosts of a lab.
//!
//! Model:   h1 to h4 run Debian's munged and slurmd, h1 slurmctld too, set up by `tests/slurm.sh`. Every `sh` block of the
//!          page is run as it stands, by `sh` on h1 in a folder that all hosts see; Open MPI reaches the hosts by the lab's
//!          own exec where there is no allocation. After each the nodes must be idle, and nothing of sonde's be left on any. The scripts of
//!          docs/accept-a-cluster.md are run with a node that loses frames, and with this lab's folder and rate in place of theirs.
//!          Needs root, as whom Slurm's daemons run.

use crate::lab;
use crate::lab::{Case, Stage, path_of};
use std::fmt::Write;

const PAGE: &str = include_str!("../../../docs/clusters.md");
const ACCEPT_PAGE: &str = include_str!("../../../docs/accept-a-cluster.md");

const BEGIN: &str = r#"
set -u
PATH=/run/sonde/bin:$PATH:/usr/sbin:/sbin
slurm=DIR/slurm.sh cluster=DIR/cluster
cd DIR
export OMPI_MCA_plm_rsh_agent=DIR/rsh.sh
printf 'h1\nh2\nh3\nh4\n' >hosts
sh $slurm setup $cluster h1 h2 h3 h4
for host in h1 h2 h3 h4; do sonde lab exec --detach --root $host -- sh $slurm serve $cluster >/dev/null 2>&1; done
export SLURM_CONF=$cluster/slurm.conf
sh $slurm wait 4 || { tail -n 5 $cluster/*.log; exit 1; }
echo "up: $(sinfo --version), $(sinfo -h -o %D) nodes"
programs() {
    for host in h1 h2 h3 h4; do
        sonde lab exec --root $host -- ps -eo args | grep -E '[s]onde (agent|assess|probe)|[-]-sonde-worker|[s]lurmstepd:|[o]rted|[h]ydra_pmi' | sed "s/^/left on $host: /"
    done
}
# Slurm itself takes a moment to notice that a step has ended.
left() {
    tries=0
    while [ -n "$(programs)" ] && [ $tries -lt 60 ]; do tries=$((tries + 1)); sleep 0.5; done
    programs
}
"#;

/// Runs that are killed without a word, in the middle; meanwhile no command line on any host may show the token.
const KILLED: &str = r#"
killed() {
    "$@" >killed.log 2>&1 &
    until sonde lab exec --root h3 -- pgrep -f 'sonde agent' >/dev/null; do sleep 0.1; done
    sleep 1
    token=$(sonde lab exec --root h3 -- sh -c 'tr "\0" "\n" </proc/$(pgrep -xf ".*sonde agent.*" | head -n 1)/environ' | sed -n 's/^SONDE_TOKEN=//p')
    [ ${#token} = 32 ] || echo "no token was found: $token"
    for host in h1 h2 h3 h4; do
        sonde lab exec --root $host -- ps -eo args | grep -F -e "$token" | grep -v 'grep -F' | sed "s/^/shown on $host: /"
    done
    kill -9 $(cat victim)
    wait
    sh $slurm wait 4
    left
    echo "killed: $1"
}
killed salloc -N4 sh -c 'sonde probe latency --launches 1000 & echo $! >victim; wait'
"#;
const KILLED_MPI: &str = r#"
killed sh -c 'sonde probe latency --testbed "mpirun:--hostfile hosts" --launches 1000 & echo $! >victim; wait'
"#;

/// The `sh` blocks of the page.
fn recipes() -> Vec<&'static str> {
    let blocks = PAGE.split("```sh\n").skip(1);
    blocks
        .map(|rest| rest.split("```").next().unwrap())
        .collect()
}

#[test]
fn the_recipes_run_as_they_stand_and_leave_nothing() {
    let programs = [
        "slurmctld",
        "slurmd",
        "munged",
        "srun",
        "sbatch",
        "salloc",
        "sbcast",
        "ps",
        "pgrep",
        "openssl",
    ];
    let Some(stage) = Stage::of_root(&programs) else {
        return;
    };
    let folder = stage.folder.to_str().unwrap().to_owned();
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slurm.sh");
    stage.copy_in(&script);
    let rsh = stage.path("rsh.sh");
    lab::write_script(
        std::path::Path::new(&rsh),
        "#!/bin/sh\nhost=$1\nshift\nexec sonde lab exec --root \"$host\" -- sh -c \"$*\"\n",
    );

    let has_mpi = path_of("mpirun.openmpi").is_some();
    if !has_mpi {
        println!("left out: the recipes of mpirun, for want of Open MPI (mpirun.openmpi)");
    }
    let mut text = BEGIN.replace("DIR", &folder);
    let mut expected = Vec::new();
    for (number, recipe) in recipes().into_iter().enumerate() {
        if recipe.contains("mpirun") && !has_mpi {
            continue;
        }
        expected.push((number, recipe));
        let file = stage.path(&format!("recipe{number}.sh"));
        std::fs::write(&file, recipe).unwrap();
        writeln!(
            text,
            "sh {file} >out{number} 2>err{number}; echo \"recipe {number} ended with $?\"; sh $slurm wait 4; left"
        )
        .unwrap();
    }
    text.push_str(KILLED);
    if has_mpi {
        text.push_str(KILLED_MPI);
    }
    let all = stage.path("all.sh");
    std::fs::write(&all, &text).unwrap();
    let outcome = stage
        .run(
            &["--hosts", "4", "--network", "ethernet-1g", "--root"],
            &["sh", &all],
        )
        .limit(300)
        .output();
    let mut told = String::new();
    for (number, recipe) in recipes().into_iter().enumerate() {
        for kind in ["out", "err"] {
            let said =
                std::fs::read_to_string(stage.path(&format!("{kind}{number}"))).unwrap_or_default();
            writeln!(told, "== {kind} of {recipe}{said}").unwrap();
        }
    }
    assert_eq!(outcome.code, 0, "{outcome}{told}");
    assert!(outcome.out.contains(", 4 nodes\n"), "{outcome}");
    assert!(expected.len() >= 5, "{outcome}");
    for (number, recipe) in expected {
        // Beside other tests a pair may stand out or a flow fail: what an assessment finds is not asked here.
        let codes: &[u8] = match recipe.contains("sonde assess") {
            true => &[0, 1, 3],
            false => &[0],
        };
        let ended = |code: &u8| {
            let line = format!("recipe {number} ended with {code}\n");
            outcome.out.contains(&line)
        };
        assert!(codes.iter().any(ended), "{recipe}: {outcome}{told}");
    }
    assert!(
        outcome.out.contains("killed: salloc\n") && outcome.out.contains("killed: sh\n") == has_mpi,
        "{outcome}"
    );
    for bad in ["left on", "shown on", "no token was found"] {
        assert!(!outcome.out.contains(bad), "{outcome}");
    }
    assert!(
        told.contains("measuring the 4 nodes of Slurm job"),
        "{told}"
    );
    assert!(told.contains("task 0 measures"), "{told}");
    let json = std::fs::read_to_string(stage.path("assessment.json")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    let rows = document["results"].as_array().unwrap();
    assert!(
        rows.iter()
            .any(|row| row["quantity"] == "throughput_bps" && row["status"] == "measured")
    );
    assert!(rows.iter().all(|row| row["testbed"] == "hosts"
        && row["src"].as_str().is_none_or(|src| src.starts_with('h'))));
}

/// After the cluster is up: the acceptance drains the node that loses frames, and the health check keeps it out.
const ACCEPTED: &str = r#"
code=0
salloc -N4 sh DIR/sonde-accept.sh DIR/acceptance.json >accept.out 2>accept.err || code=$?
echo "accepted with $code"
state() { sinfo -h -n "$1" -o %T; }
echo "named: $(jq -r '.acceptance.all_pairs.hosts[]' DIR/acceptance.json | tr '\n' ' ')"
echo "after the acceptance h3 is $(state h3)"
scontrol update NodeName=h3 State=RESUME
tries=0
until [ "$(state h3)" = drained ] || [ $tries = 300 ]; do tries=$((tries + 1)); sleep 0.1; done
echo "after the health check h3 is $(state h3)"
jq '.acceptance.all_pairs.hosts = []' DIR/acceptance.json >good.json && mv good.json DIR/acceptance.json
# A check that had read the old file may still drain the node: it is given back again, and must stay.
tries=0
until [ "$(state h3)" = idle ] || [ $tries = 10 ]; do
	tries=$((tries + 1))
	scontrol update NodeName=h3 State=RESUME
	sleep 6
done
echo "once it is found good h3 is $(state h3)"
left
"#;

/// The scripts of a page: its `sh` blocks that begin as scripts do.
fn scripts(page: &str) -> Vec<String> {
    let blocks = page.split("```sh\n").skip(1);
    let blocks = blocks.map(|rest| rest.split("```").next().unwrap());
    let scripts = blocks.filter(|block| block.starts_with("#!/bin/sh\n"));
    scripts.map(str::to_owned).collect()
}

#[test]
fn an_acceptance_drains_what_it_names_and_the_health_check_keeps_it_out() {
    let programs = [
        "slurmctld",
        "slurmd",
        "munged",
        "salloc",
        "scontrol",
        "sinfo",
        "jq",
        "ps",
    ];
    let Some(stage) = Stage::of_root(&programs) else {
        return;
    };
    let folder = stage.folder.to_str().unwrap().to_owned();
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slurm.sh");
    stage.copy_in(&script);
    let [accept, health] = <[String; 2]>::try_from(scripts(ACCEPT_PAGE)).unwrap();
    for (name, text) in [("sonde-accept.sh", accept), ("sonde-health.sh", health)] {
        // The lab's configuration is not in its usual place.
        let here = format!("export SLURM_CONF={folder}/cluster/slurm.conf\nPATH=/usr");
        let text = text.replace("/shared/", &format!("{folder}/"));
        let text = text.replacen("PATH=/usr", &here, 1);
        lab::write_script(
            std::path::Path::new(&stage.path(name)),
            &text.replace("--line-rate 25Gbit", "--line-rate 20Mbit"),
        );
    }
    let settings = format!(
        "printf 'HealthCheckProgram={folder}/sonde-health.sh\\nHealthCheckInterval=2\\nHealthCheckNodeState=IDLE\\n' >>$cluster/slurm.conf\n"
    );
    // Before the daemons read it.
    let at = "for host in h1 h2 h3 h4; do sonde lab exec --detach";
    assert!(BEGIN.contains(at) && ACCEPT_PAGE.contains("HealthCheckNodeState=IDLE"));
    let begin = BEGIN.replacen(at, &(settings + at), 1);
    let all = stage.path("all.sh");
    let text = begin + ACCEPTED;
    std::fs::write(&all, text.replace("DIR", &folder)).unwrap();
    std::fs::write(stage.path("rsh.sh"), "").unwrap();
    let faults = stage.path("faults");
    std::fs::write(&faults, "0s loss h3 10%\n").unwrap();
    let options = [
        "--hosts",
        "4",
        "--network",
        "ethernet-100:rate=20Mbit",
        "--root",
        "--script",
        &faults,
    ];
    let outcome = stage.run(&options, &["sh", &all]).limit(300).output();
    let said = |name: &str| std::fs::read_to_string(stage.path(name)).unwrap_or_default();
    let told = format!("{outcome}{}{}", said("accept.out"), said("accept.err"));
    for line in [
        "accepted with 1\n",
        "named: h3 \n",
        "after the acceptance h3 is drain",
        "after the health check h3 is drained\n",
        "once it is found good h3 is idle\n",
    ] {
        assert!(outcome.out.contains(line), "{line}: {told}");
    }
    assert!(!outcome.out.contains("left on"), "{told}");
}

#[test]
fn outside_an_allocation_the_way_into_one_is_told() {
    let stage = Stage::new(Case::own("veth"));
    let mut call = stage.sonde(&["assess", "--testbed", "slurm"]);
    for name in ["SLURM_JOB_ID", "SLURM_JOBID"] {
        call.command.env_remove(name);
    }
    let outcome = call.output();
    assert_eq!(outcome.code, 2, "{outcome}");
    outcome.tells(&["SLURM_JOB_ID", "salloc -N4 sonde assess", "hosts:"]);
}
