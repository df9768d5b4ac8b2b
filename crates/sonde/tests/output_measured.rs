//! Measurements that print: they outlive their reader, are found by their name, and write and open their page.
//!
//! Checked: nothing here asserts a time.

use crate::lab::{eventually, skip, sonde};
use serde_json::Value;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SMALL: &str = "--testbed local --size 1,64 --launches 2 --budget 20ms --samples 20";

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(format!(
        "/var/tmp/sonde-test-output-{name}-{}",
        std::process::id()
    ));
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn command(line: &str, folder: &Path) -> Command {
    let mut command = Command::new(sonde());
    command.args(line.split_whitespace()).current_dir(folder);
    command.stdin(Stdio::null());
    command
}

fn json_of(line: &str, folder: &Path) -> Value {
    let output = command(line, folder).output().unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{line}: {error}: {output:?}"))
}

#[test]
fn a_measurement_outlives_its_reader() {
    let folder = folder("reader");
    let lines = [
        format!("probe latency {SMALL}"),
        format!("probe latency {SMALL} --json"),
        format!("probe latency {SMALL} --csv"),
        format!("probe latency {SMALL} --json-stream"),
        "npb is --testbed local --class S --path native:shm --launches 2".into(),
        "probe check --testbed local --path native:shm --cases 3".into(),
        "load --testbed local --of 1Gbit --rho 0.01 --for 1s".into(),
    ];
    let mut runs = 0;
    for line in &lines {
        for (wanted, is_full) in [(141, false), (74, true)] {
            let output: Stdio = if is_full {
                File::options()
                    .write(true)
                    .open("/dev/full")
                    .unwrap()
                    .into()
            } else {
                let (reader, writer) = UnixStream::pair().unwrap();
                drop(reader);
                OwnedFd::from(writer).into()
            };
            let mut call = command(line, &folder);
            let child = call.stdout(output).stderr(Stdio::piped()).spawn().unwrap();
            let ended = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&ended.stderr);
            assert_eq!(ended.status.code(), Some(wanted), "{line}: {said}");
            assert_eq!(
                said.matches("cannot write to standard output").count(),
                usize::from(is_full),
                "{line}: {said}"
            );
            runs += 1;
            let list = json_of("report list --json", &folder);
            let list = list["runs"].as_array().unwrap();
            assert_eq!(list.len(), runs, "{line}: {list:?}");
            assert_eq!(list[0]["state"], "complete", "{line}: {list:?}");
        }
    }
    drop(fs::remove_dir_all(folder));
}

#[test]
fn a_run_is_found_by_its_name() {
    let folder = folder("name");
    let measure = |options: &str| {
        let output = command(&format!("probe latency {SMALL} {options}"), &folder)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    };
    measure("--name before");
    measure("--name after");
    measure("");
    measure("--tag before");
    let ids: Vec<Value> = json_of("report list --json", &folder)["runs"]
        .as_array()
        .unwrap()
        .clone();
    let names: Vec<&Value> = ids.iter().map(|run| &run["name"]).collect();
    assert_eq!(
        names,
        [
            &"before".into(),
            &Value::Null,
            &"after".into(),
            &"before".into()
        ]
    );
    let run_of =
        |name: &str| json_of(&format!("report show {name} --json"), &folder)["run"].clone();
    assert_eq!(run_of("before"), ids[0]["run"]);
    assert_eq!(run_of("before~1"), ids[3]["run"]);
    assert_eq!(run_of("after"), ids[2]["run"]);
    assert_eq!(run_of("latest~1"), ids[1]["run"]);
    let list = json_of("report list --name before --json", &folder);
    assert_eq!(list["runs"].as_array().unwrap().len(), 2);
    let last = json_of("report list -n 1 --json", &folder);
    assert_eq!(last["runs"], Value::Array(vec![ids[0].clone()]));
    let none = command("report show before~2", &folder).output().unwrap();
    let said = String::from_utf8_lossy(&none.stderr);
    assert!(
        none.status.code() == Some(2) && said.contains("there is no run before~2"),
        "{said}"
    );
    let compared = command("report compare before~1 after", &folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&compared.stdout);
    assert!(said.starts_with("Too few repetitions"), "{said}");
    drop(fs::remove_dir_all(folder));
}

#[test]
fn a_page_is_written_and_opened() {
    let folder = folder("page");
    let measured = command(&format!("probe latency {SMALL} --html page.html"), &folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&measured.stderr);
    if said.contains("no HTML report") {
        skip("the report page, which is built with node");
        return;
    }
    assert_eq!(measured.status.code(), Some(0), "{said}");
    assert!(said.contains("sonde: the report is page.html"), "{said}");
    let browser = folder.join("browser");
    crate::lab::write_script(
        &browser,
        "#!/bin/sh\nprintf '%s' \"$1\" >opened.new; mv opened.new opened\n",
    );
    for line in [
        "report show --open",
        "report html --open",
        "report html --html other.html --open",
    ] {
        drop(fs::remove_file(folder.join("opened")));
        let output = command(line, &folder)
            .env("BROWSER", &browser)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let opened = eventually(
            || fs::read_to_string(folder.join("opened")).ok(),
            Option::is_some,
        );
        let opened = opened.unwrap_or_default();
        assert!(
            folder.join(&opened).is_file() && opened.ends_with(".html"),
            "{line}: {opened}"
        );
    }
    let none = command("report show --open", &folder)
        .env_remove("BROWSER")
        .env("PATH", "/nowhere")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&none.stderr);
    assert!(
        none.status.code() == Some(0) && said.contains("set BROWSER, or open "),
        "{said}"
    );
    drop(fs::remove_dir_all(folder));
}
