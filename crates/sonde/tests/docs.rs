//! The documents against the command: what they show can be typed, and what they list is complete.
//!
//! Model:   every command line of `sonde` in an `sh` block of README.md and docs/*.md, and in the ledger of claims, is parsed by the command itself, with
//!          `--help` put behind its options, so that nothing runs; scripts in quotes are read too. Every network that a line
//!          names, every file in plans/examples/networks and every TOML block that is a network or a site must be accepted by `lab list`.
//!          Fields, knobs and networks that the program has must be named by the document that lists them. `lab_walks.rs` runs the
//!          commands of the tutorial and the how-tos.

use sonde_link::{
    Admission, Class, Ecn, Event, Frame, FrameId, Kind, NetworkSpec, Port, To, Topology,
};
use sonde_units::{Bytes, Instant, Span};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sonde(arguments: &[String]) -> Output {
    let program = std::env::var_os("SONDE_BIN")
        .unwrap_or_else(|| OsString::from(env!("CARGO_BIN_EXE_sonde")));
    let run = Command::new(program)
        .args(arguments)
        .current_dir(root())
        .output();
    run.expect("the command can be started")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// README.md and what lies in docs/, with their names.
fn documents() -> Vec<(String, String)> {
    let mut names: Vec<String> = fs::read_dir(root().join("docs"))
        .expect("there is a folder docs")
        .map(|entry| {
            entry
                .expect("it can be read")
                .file_name()
                .into_string()
                .expect("a name")
        })
        .filter(|name| name.ends_with(".md"))
        .map(|name| format!("docs/{name}"))
        .collect();
    names.push("README.md".into());
    names.sort();
    assert!(names.len() > 4, "{names:?}");
    names
        .into_iter()
        .map(|name| (name.clone(), read(&name)))
        .collect()
}

/// The fenced blocks of one language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let (mut found, mut inside) = (Vec::new(), None::<String>);
    for line in text.lines() {
        match (&mut inside, line.strip_prefix("```")) {
            (None, Some(name)) => inside = Some(format!("{name}\n")),
            (Some(_), Some(_)) => found.extend(inside.take()),
            (Some(block), None) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, None) => {}
        }
    }
    let head = format!("{language}\n");
    found
        .iter()
        .filter_map(|block| block.strip_prefix(&head))
        .map(str::to_owned)
        .collect()
}

/// The simple commands of a shell script, each as its words, without comments, redirections and what quotes mean.
fn commands(script: &str) -> Vec<Vec<String>> {
    let (mut all, mut words) = (Vec::new(), Vec::new());
    let (mut word, mut quote, mut some) = (String::new(), None, false);
    let mut letters = script
        .replace("\\\n", " ")
        .replace("$(", "(")
        .chars()
        .collect::<Vec<_>>()
        .into_iter()
        .peekable();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(mark), _) if mark == letter => quote = None,
            (Some(_), _) => word.push(letter),
            (None, '\'' | '"') => (quote, some) = (Some(letter), true),
            (None, '#') if word.is_empty() => {
                while letters.next_if(|letter| *letter != '\n').is_some() {}
            }
            (None, ' ' | '\n' | ';' | '|' | '&' | '(' | ')') => {
                if some || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                some = false;
                if letter != ' ' {
                    all.push(std::mem::take(&mut words));
                }
            }
            (None, _) => word.push(letter),
        }
    }
    words.extend((some || !word.is_empty()).then_some(word));
    all.push(words);
    for words in &mut all {
        // A redirection has its file in the same word or in the next.
        let opens = |word: &String| matches!(word.as_str(), ">" | "<" | ">>" | "2>");
        while let Some(at) = words.iter().position(opens) {
            words.drain(at..(at + 2).min(words.len()));
        }
        words.retain(|word| !word.starts_with(['>', '<']) && !word.starts_with("2>"));
    }
    all.retain(|words| !words.is_empty());
    all
}

/// The calls of sonde in a script: their arguments. Scripts in quotes are looked through.
fn calls(script: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for words in commands(script) {
        for quoted in words.iter().filter(|word| word.contains("sonde ")) {
            found.extend(calls(quoted));
        }
        if words[0] == "make" {
            let given = words.iter().find_map(|word| word.strip_prefix("ARGS="));
            found.extend(
                given
                    .map(|given| calls(&format!("sonde assess {given}")))
                    .unwrap_or_default(),
            );
        }
        let at = words
            .iter()
            .position(|word| word == "sonde" || word.ends_with("/sonde"));
        // What stands before it is `sudo`, `time`, `do` or a variable.
        if let Some(at) = at.filter(|at| {
            words[..*at]
                .iter()
                .all(|word| matches!(word.as_str(), "sudo" | "time" | "do") || word.contains('='))
        }) {
            found.push(words[at + 1..].to_vec());
        }
    }
    found
}

/// The ledger of what published claims are shown by, some of them by a command.
const LEDGER: &str = "plans/papers/coverage.toml";

/// All calls of all documents and of the ledger, with where they stand.
fn documented() -> Vec<(String, Vec<String>)> {
    let mut all = Vec::new();
    for (name, text) in documents() {
        for block in blocks(&text, "sh") {
            all.extend(calls(&block).into_iter().map(|call| (name.clone(), call)));
        }
    }
    assert!(all.len() > 20, "only {} calls were found", all.len());
    let ledger: toml::Table = toml::from_str(&read(LEDGER)).expect("it is TOML");
    let entries = ledger["requirement"].as_array().expect("a list");
    let evidence = entries
        .iter()
        .filter_map(|entry| entry.get("evidence")?.as_array());
    for command in evidence.flatten().filter_map(|one| one.as_str()) {
        let call = command.strip_prefix("command:").map(calls);
        all.extend(call.into_iter().flatten().map(|call| (LEDGER.into(), call)));
    }
    all
}

#[test]
fn scripts_are_taken_apart() {
    let script = "make assess ARGS=\"--quick --json\"  # why\nsonde lab run --network wire -- \\\n  sh -c 'sonde lab exec h2 -- iperf3 -s; ls' > /tmp/x 2>&1\nFOO=1 sonde lab list | head -3\nls sonde > sonde\n";
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let mut run = words("lab run --network wire -- sh -c");
    run.push("sonde lab exec h2 -- iperf3 -s; ls".into());
    let want = [
        words("assess --quick --json"),
        words("lab exec h2 -- iperf3 -s"),
        run,
        words("lab list"),
    ];
    assert_eq!(calls(script), want);
}

#[test]
fn every_command_line_is_understood() {
    let mut wrong = Vec::new();
    for (name, mut call) in documented() {
        let program = call
            .iter()
            .position(|word| word == "--")
            .unwrap_or(call.len());
        // The number of a loop's host.
        call.iter_mut()
            .for_each(|word| *word = word.replace("h$n", "h2"));
        call.insert(program, "--help".into());
        let output = sonde(&call);
        if !output.status.success() {
            wrong.push(format!(
                "{name}: sonde {}\n{}",
                call.join(" "),
                String::from_utf8_lossy(&output.stderr)
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Requirement X3: of the figures whose data no text prints, only what the text states is checked.
#[test]
fn figures_without_data_are_named_and_not_compared() {
    let requirements = read("plans/papers/requirements.md");
    let (_, rest) = requirements
        .split_once("**X3 — ")
        .expect("X3 is a requirement");
    let (listed, _) = rest
        .split_once("\u{b7} ")
        .and_then(|(_, rest)| rest.split_once(':'))
        .expect("a list of figures");
    let page = read("docs/old-studies.md");
    let (_, table) = page.split_once("## Figures without data").expect("a table");
    let studies = [
        "NASA Lewis 1995",
        "Sandia 1996",
        "UPC SABA",
        "The SCI cluster",
        "HIPPI at Stuttgart",
    ];
    // `N figs. 5 to 15, S figs. 2 and 3, ...`
    let figures = listed.split(" figs. ").skip(1).map(|part| {
        part.trim_end_matches(|letter: char| {
            letter.is_ascii_uppercase() || letter == ' ' || letter == ','
        })
    });
    for (study, figures) in studies.into_iter().zip(figures) {
        assert!(
            table.contains(&format!("| {study} | figs. {figures} |\n")),
            "{study}: {figures}"
        );
    }
    assert_eq!(table.matches(" figs. ").count(), studies.len());
    // What rows are held against is printed in tables.
    let data = read("crates/report/data/papers.toml");
    let cited: Vec<&str> = data
        .lines()
        .filter(|line| line.contains("_in = "))
        .collect();
    assert!(
        !cited.is_empty() && cited.iter().all(|line| line.contains("= \"Table ")),
        "{cited:?}"
    );
}

/// Why `lab list` does not accept a network or site, if so.
fn complaint(kind: &str, selector: &str) -> Option<String> {
    let output = sonde(&["lab", "list", kind, selector].map(str::to_owned));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    (!output.status.success()).then(|| format!("{selector}: {error}"))
}

#[test]
fn every_network_that_is_named_can_be_had() {
    let mut selectors = BTreeSet::new();
    for (_, call) in documented() {
        let mine = call.split(|word| word == "--").next().unwrap_or_default();
        // Those of real hosts are interfaces of theirs.
        if mine.iter().any(|word| word.starts_with("hosts:")) {
            continue;
        }
        selectors.extend(
            mine.windows(2)
                .filter(|pair| pair[0] == "--network")
                .map(|pair| pair[1].clone()),
        );
    }
    // A file that the reader is to write is a block of the same document; a variable is the loop's.
    selectors.retain(|selector| !selector.starts_with("./my-") && !selector.contains('$'));
    assert!(selectors.len() > 5, "{selectors:?}");
    let wrong: Vec<_> = selectors
        .iter()
        .filter_map(|selector| complaint("--network", selector))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The networks in plans/examples, by their paths as a reader types them.
fn examples() -> Vec<String> {
    let folder = root().join("plans/examples/networks");
    let mut paths: Vec<String> = fs::read_dir(folder)
        .expect("there are examples")
        .map(|entry| {
            let name = entry.expect("it can be read").file_name();
            let name = name.into_string().expect("a name");
            format!("./plans/examples/networks/{name}")
        })
        .collect();
    paths.sort();
    paths
}

#[test]
fn every_example_is_a_network() {
    let media = [
        "wire", "ethernet", "bus", "token", "crossbar", "stages", "credit", "sci", "atm", "hosts",
        "loaded", "failing",
    ];
    let layouts = [
        "point-to-point",
        "two-switches",
        "atm-two-switches",
        "ring",
        "mesh",
        "fat-tree",
        "sites",
    ];
    let paths = examples();
    for name in media.iter().chain(&layouts) {
        let path = format!("./plans/examples/networks/{name}.toml");
        assert!(paths.contains(&path), "there is no {path}");
    }
    let catalogue = sonde_link::catalogue();
    for path in paths {
        assert_eq!(complaint("--network", &path), None);
        let text = read(&path);
        assert!(
            text.contains("[cite]") && text.contains(&format!("--network {path}")),
            "{path} cites nothing, or shows no use"
        );
        let name = sonde_link::parse(&path, &text).expect(&path).name;
        assert!(
            catalogue.iter().all(|spec| spec.name != name),
            "{path} has the name {name} of another network"
        );
    }
}

/// A frame of each host to each other, in turn: how many of them arrive.
fn arrivals(spec: &NetworkSpec, hosts: u16) -> usize {
    let mut network = sonde_link::build(spec, hosts, 1).expect("it joins them");
    // Circuits that come up one after the other are up by then.
    let (mut now, mut arrived, mut id) = (Instant::START + Span::secs(1), 0, 0);
    for (from, to) in (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to))) {
        if from == to {
            continue;
        }
        id += 1;
        let frame = Frame {
            id: FrameId(id),
            from: Port(from),
            to: To::One(Port(to)),
            len: Bytes(spec.mtu.min(1000)),
            kind: Kind::Ip,
            class: Class(0),
            ecn: Ecn::NotCapable,
            flow: 0,
        };
        assert_eq!(network.offer(now, frame), Admission::Taken);
        let mut open = true;
        while open {
            now = network.poll_at().expect("a frame is under way").max(now);
            while let Some(event) = network.poll(now) {
                let mine = |event: FrameId| event == FrameId(id);
                match event {
                    Event::Deliver { id, .. } if mine(id) => arrived += 1,
                    Event::Done { id, .. } if mine(id) => open = false,
                    _ => {}
                }
            }
        }
    }
    arrived
}

#[test]
fn every_example_carries_frames() {
    for path in examples() {
        let spec = sonde_link::parse(&path, &read(&path)).expect(&path);
        let hosts = if spec.topology == Topology::Line {
            2
        } else {
            6
        };
        let all = usize::from(hosts) * usize::from(hosts - 1);
        assert_eq!(arrivals(&spec, hosts), all, "{path}");
    }
}

#[test]
fn every_network_in_a_block_is_one() {
    let folder = std::env::temp_dir().join(format!("sonde-docs-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder can be made");
    let (mut count, mut wrong) = (0, Vec::new());
    for (name, text) in documents() {
        for block in blocks(&text, "toml") {
            let kind = match block.contains("[[segment]]") {
                true => "--sites",
                false if block.contains("technology =") => "--network",
                false => continue,
            };
            let file = folder.join("network.toml");
            fs::write(&file, block).expect("it can be written");
            let found = complaint(kind, &file.to_string_lossy());
            wrong.extend(found.map(|why| format!("{name}: {why}")));
            count += 1;
        }
    }
    fs::remove_dir_all(&folder).expect("it can be removed");
    assert!(
        count > 0 && wrong.is_empty(),
        "{count} blocks; {}",
        wrong.join("\n")
    );
}

/// Those of `names` that `document` does not have in backquotes.
fn unnamed<'a>(document: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let text = read(document);
    let absent = names
        .into_iter()
        .filter(|name| !text.contains(&format!("`{name}`")));
    absent.map(str::to_owned).collect()
}

#[test]
fn json_md_names_every_field() {
    let output = sonde(&["report", "schema"].map(str::to_owned));
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let mut fields = BTreeSet::new();
    for definition in schema["$defs"]
        .as_object()
        .expect("it has definitions")
        .values()
    {
        fields.extend(
            definition["properties"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|field| field.0.as_str()),
        );
        fields.extend(
            definition["oneOf"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|word| word["const"].as_str()),
        );
    }
    assert!(fields.len() > 50, "{fields:?}");
    // What a launch saw is in store.md.
    let text = read("docs/store.md");
    let printed = fields.into_iter();
    let printed = printed.filter(|field| !text.contains(&format!("`{field}`")));
    assert_eq!(unnamed("docs/json.md", printed), Vec::<String>::new());
}

#[test]
fn lab_md_names_every_field_of_a_report() {
    let report = serde_json::to_value(sonde_lab::Report::default()).expect("it is JSON");
    let fields = report.as_object().expect("an object");
    let losses = fields["attachment"].as_object().expect("an object");
    let names = fields.keys().chain(losses.keys()).map(String::as_str);
    assert_eq!(unnamed("docs/lab.md", names), Vec::<String>::new());
}

/// The knobs that the command names for a network.
fn knobs(selector: &str) -> Vec<String> {
    let said = complaint("--network", &format!("{selector}:nosuch=1")).expect("it is not a knob");
    let list = said.split_once(" has ").expect("it lists the knobs").1;
    list.trim().split(", ").map(str::to_owned).collect()
}

#[test]
fn networks_md_names_every_network_and_knob() {
    let catalogue = sonde_link::catalogue();
    let names = catalogue.iter().map(|spec| spec.name.clone());
    let mut turned: BTreeSet<String> = names.clone().flat_map(|name| knobs(&name)).collect();
    turned.extend(examples().iter().flat_map(|path| knobs(path)));
    assert!(turned.len() > 90, "{turned:?}");
    let names: Vec<String> = names.chain(turned).collect();
    let names = names.iter().map(String::as_str);
    assert_eq!(unnamed("docs/networks.md", names), Vec::<String>::new());
    let text = read("docs/networks.md");
    for path in examples() {
        let link = format!("(..{})", path.trim_start_matches('.'));
        assert!(text.contains(&link), "docs/networks.md has no link {link}");
    }
}

/// Every key of a network's file that examples and catalogue use is explained in a table.
#[test]
fn networks_md_explains_every_key_in_use() {
    let catalogue = sonde_link::catalogue();
    let mut texts: Vec<String> = examples().iter().map(|path| read(path)).collect();
    texts.extend(
        catalogue
            .iter()
            .map(|spec| read(&format!("crates/link/catalogue/{}.toml", spec.name))),
    );
    let mut keys = BTreeSet::new();
    for text in &texts {
        let table: toml::Table = toml::from_str(text).expect("it is TOML");
        for (place, value) in table.iter().filter(|entry| entry.0 != "cite") {
            match value.as_table() {
                Some(inner) => keys.extend(
                    inner
                        .iter()
                        .filter(|entry| !entry.1.is_array() || place != "atm")
                        .map(|entry| format!("{place}.{}", entry.0)),
                ),
                None if value.is_array() => {}
                None => drop(keys.insert(place.clone())),
            }
        }
    }
    assert!(keys.len() > 60, "{keys:?}");
    let text = read("docs/networks.md");
    let explained = |key: &&String| {
        let (place, leaf) = key.split_once('.').unwrap_or(("", key));
        let row = |line: &str| {
            line.starts_with(&format!("| `{key}`"))
                || (line.starts_with(&format!("| `{place}."))
                    && line.contains(&format!("`{leaf}`")))
        };
        text.lines().any(row)
    };
    let absent: Vec<_> = keys.iter().filter(|key| !explained(key)).collect();
    assert!(absent.is_empty(), "not explained: {absent:?}");
}

/// Bits a second in Mb/s, to the nearest hundredth; a dash for null.
fn mbit(bps: &serde_json::Value) -> String {
    let hundredths = |bps: u64| (bps + 5_000) / 10_000;
    bps.as_u64()
        .map(hundredths)
        .map_or("–".into(), |hundredths| {
            format!("{}.{:02}", hundredths / 100, hundredths % 100)
        })
}

/// What `lab list` prints, as it stands in the document.
#[test]
fn networks_md_shows_the_catalogue_as_it_is() {
    let output = sonde(&["lab", "list", "--json"].map(str::to_owned));
    let list: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let text = read("docs/networks.md");
    let rows = list["networks"].as_array().expect("networks");
    let wrong: Vec<_> = rows
        .iter()
        .zip(sonde_link::catalogue())
        .map(|(network, spec)| {
            let usable = spec.line.usable().map(sonde_units::BitRate::bps);
            let one_way = network["one_way_1b_ns"].as_u64().expect("a time");
            format!(
                "| `{}` | {} | {} | {} | {} | {} | {}.{:02} |",
                spec.name,
                spec.mtu,
                mbit(&network["line_bps"]),
                mbit(&usable.into()),
                mbit(&network["tcp_max_bps"]),
                mbit(&network["tcp_expected_bps"]),
                one_way / 1_000,
                one_way % 1_000 / 10
            )
        })
        .filter(|row| !text.contains(row))
        .collect();
    assert!(
        wrong.is_empty(),
        "docs/networks.md has not the rows\n{}",
        wrong.join("\n")
    );
}

#[test]
fn the_readme_begins_with_what_a_newcomer_needs() {
    let text = read("README.md");
    assert!(
        text.starts_with("# sonde\n"),
        "the title is not the first line"
    );
    let screen = text.lines().take(30).collect::<Vec<_>>().join("\n");
    for word in [
        "sudo apt install git make",
        "make assess",
        "make test",
        "sonde accept ",
        "sonde lab run ",
        "sonde probe latency ",
        "no RDMA verbs, and no GPU",
        "x86-64",
        "no root",
    ] {
        assert!(screen.contains(word), "{word} is not on the first screen");
    }
    let picture = text.lines().take(50).collect::<Vec<_>>().join("\n");
    for word in ["Mb/s", "emulation", "TRUST"] {
        assert!(picture.contains(word), "{word} is not in the picture");
    }
}

/// All test functions of the workspace.
fn tests_named(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder of the workspace") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            tests_named(&path, names);
            continue;
        }
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("source text");
        let mut is_test = false;
        for line in text.lines().map(str::trim) {
            if let Some(name) = line
                .strip_prefix("fn ")
                .and_then(|rest| rest.split('(').next())
                && is_test
            {
                names.insert(name.to_owned());
            }
            is_test = line == "#[test]" || is_test && line.starts_with("#[");
        }
    }
}

#[test]
fn security_md_names_tests_that_are_there() {
    let mut names = BTreeSet::new();
    tests_named(&root().join("crates"), &mut names);
    let text = read("docs/security.md");
    let (_, table) = text
        .split_once("| what failed | test |")
        .expect("the table of defects");
    let mut named = 0;
    let rows = table.lines().skip(2);
    for row in rows.take_while(|line| line.starts_with('|')) {
        let tests = row.rsplit('|').nth(1).expect("a column of tests");
        let words = tests.split('`').skip(1).step_by(2);
        for name in words.filter(|word| word.contains('_') && !word.contains('.')) {
            assert!(names.contains(name), "there is no test `{name}`: {row}");
            named += 1;
        }
        let files = tests
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|word| word.ends_with(".rs"));
        assert!(files.count() > 0, "no test is named: {row}");
    }
    assert!(named >= 20, "{named}");
}
