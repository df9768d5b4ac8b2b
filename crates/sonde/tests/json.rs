//! What each command prints as JSON, held to the schema that `sonde report schema` prints.
//!
//! Model:   a validator of the parts of JSON Schema 2020-12 that the schema uses, strict: a field that no part of the schema names
//!          is wrong. Commands that need a lab are tried where one can be started, else they say `skipped:`.
//! Checked: `the_validator_refuses`.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output};

fn sonde(words: &str) -> Output {
    let program =
        std::env::var_os("SONDE_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_sonde").into());
    let mut command = Command::new(program);
    command.args(words.split_whitespace());
    command.output().expect("the command can be started")
}

fn json_of(words: &str) -> Value {
    let output = sonde(words);
    let err = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{words}: {e}: {err}"))
}

/// A folder outside /tmp: what labs leave there is looked for by tests that run beside these.
fn folder(name: &str) -> PathBuf {
    PathBuf::from(format!(
        "/var/tmp/sonde-test-json-{name}-{}",
        std::process::id()
    ))
}

/// Holds values to a schema.
struct Validator {
    root: Value,
}

/// What is wrong, and where.
type Wrong = String;

impl Validator {
    /// The fields that the schema names of a value that it allows.
    fn check(&self, schema: &Value, value: &Value, at: &str) -> Result<BTreeSet<String>, Wrong> {
        let mut named = BTreeSet::new();
        if let Some(whole) = schema.as_bool() {
            return whole.then_some(named).ok_or(format!("{at}: never allowed"));
        }
        if let Some(reference) = schema["$ref"].as_str() {
            let pointer = reference.trim_start_matches('#');
            let target = self.root.pointer(pointer);
            let target = target.ok_or_else(|| format!("{at}: no {reference}"))?;
            named.extend(self.check(target, value, at)?);
        }
        plain(schema, value, at)?;
        for kind in ["anyOf", "oneOf"] {
            let Some(all) = schema[kind].as_array() else {
                continue;
            };
            let tried = all.iter().map(|one| self.check(one, value, at));
            let (good, bad): (Vec<_>, Vec<_>) = tried.partition(Result::is_ok);
            if good.is_empty() {
                let bad: Vec<String> = bad.into_iter().filter_map(Result::err).collect();
                return Err(format!("{at}: none of {kind}: {}", bad.join("; ")));
            }
            named.extend(good.into_iter().flatten().flatten());
        }
        for one in schema["allOf"].as_array().into_iter().flatten() {
            named.extend(self.check(one, value, at)?);
        }
        if let Some(items) = value.as_array() {
            for (index, item) in items.iter().enumerate() {
                let of = match schema["prefixItems"].get(index) {
                    Some(of) => of,
                    None => schema.get("items").unwrap_or(&Value::Bool(true)),
                };
                self.closed(of, item, &format!("{at}[{index}]"))?;
            }
        }
        if let Some(fields) = value.as_object() {
            for (name, field) in fields {
                let at = format!("{at}.{name}");
                if let Some(of) = schema["properties"].get(name) {
                    self.closed(of, field, &at)?;
                    named.insert(name.clone());
                } else if let Some(of) = numbered(schema, name) {
                    self.closed(of, field, &at)?;
                    named.insert(name.clone());
                } else if let Some(of) = schema.get("additionalProperties") {
                    self.closed(of, field, &at)?;
                    named.insert(name.clone());
                }
            }
        }
        Ok(named)
    }

    /// The same of a value as a whole: an object has no field that is not named.
    fn closed(&self, schema: &Value, value: &Value, at: &str) -> Result<(), Wrong> {
        let named = self.check(schema, value, at)?;
        let fields = value.as_object().into_iter().flatten();
        let is_open = schema.as_bool() == Some(true);
        match fields
            .map(|field| field.0)
            .find(|name| !named.contains(*name))
        {
            Some(name) if !is_open => Err(format!("{at}.{name}: not in the schema")),
            _ => Ok(()),
        }
    }

    fn assert(&self, value: &Value, what: &str) {
        let kinds = self.root["anyOf"].as_array().expect("several kinds");
        // The kind is known by its fields: what is wrong is told of that one alone.
        let of = match value {
            _ if value.get("event").is_some() => &kinds[1],
            _ if value.get("document").is_some() => &kinds[2],
            _ => &kinds[0],
        };
        let of = match (of["$ref"].as_str(), value.get("command")) {
            (Some(reference), Some(command)) if value.get("event").is_none() => {
                let document = self.root.pointer(reference.trim_start_matches('#'));
                self.of_command(document.expect("it is there"), command)
            }
            _ => of.clone(),
        };
        if let Err(wrong) = self.closed(&of, value, "") {
            panic!("{what}: {wrong}");
        }
    }

    /// The schema of a document with the variant of this command alone.
    fn of_command(&self, document: &Value, command: &Value) -> Value {
        let mut document = document.clone();
        if let Some(all) = document["oneOf"].as_array_mut() {
            all.retain(|one| one["properties"]["command"]["const"] == *command);
            assert_eq!(all.len(), 1, "{command} is in the schema once");
        }
        document
    }
}

/// What a schema says of fields whose names are numbers, which is the one pattern that it has.
fn numbered<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let is_number = name.bytes().all(|digit| digit.is_ascii_digit());
    let of = schema["patternProperties"].as_object()?;
    of.values().next().filter(|_| is_number)
}

/// What a schema says of a value without looking into it.
fn plain(schema: &Value, value: &Value, at: &str) -> Result<(), Wrong> {
    let is = |kind: &str| match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    };
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !kinds.is_empty() && !kinds.iter().any(|kind| is(kind)) {
        return Err(format!("{at}: {value} is not {kinds:?}"));
    }
    if schema.get("const").is_some_and(|one| one != value) {
        return Err(format!("{at}: {value} is not {}", schema["const"]));
    }
    let words = schema["enum"].as_array();
    if words.is_some_and(|words| !words.contains(value)) {
        return Err(format!("{at}: {value} is not one of {}", schema["enum"]));
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().unwrap_or_default();
        if value.get(name).is_none() {
            return Err(format!("{at}.{name} is absent"));
        }
    }
    Ok(())
}

fn validator() -> Validator {
    Validator {
        root: json_of("report schema"),
    }
}

#[test]
fn the_validator_refuses() {
    let validator = validator();
    let list = json_of("lab list --json --network wire");
    validator.assert(&list, "as it is");
    let wrong = |change: &dyn Fn(&mut Value)| {
        let mut other = list.clone();
        change(&mut other);
        let kinds = &validator.root["anyOf"][0];
        validator.closed(kinds, &other, "").is_err()
    };
    assert!(wrong(&|list| list["schema"] = "sonde/1".into()));
    assert!(wrong(&|list| list["command"] = "doctor".into()));
    assert!(wrong(&|list| list["extra"] = 1.into()));
    assert!(wrong(&|list| list["networks"][0]["extra"] = 1.into()));
    assert!(wrong(&|list| list["networks"][0]["mtu_bytes"] = json!(null)));
    assert!(wrong(&|list| {
        list.as_object_mut().expect("an object").remove("verdict");
    }));
}

#[test]
fn every_document_is_as_the_schema_says() {
    let validator = validator();
    let runs = folder("runs");
    let out = format!("--out {}", runs.display());
    let small = "--testbed local --size 1,64 --launches 2 --budget 20ms --samples 20";
    std::fs::create_dir_all(&runs).expect("a folder");
    let plan = runs.join("plan.toml");
    let text = "[testbed]\nkind = \"local\"\n[repeat]\nlaunches = 2\nmax = 2\n\
        [[probe]]\nkind = \"startup\"\nsize = [\"8\"]\n[[probe]]\nkind = \"latency\"\nsize = [\"8\"]\n";
    std::fs::write(&plan, text).expect("a plan");
    let assess = format!("assess {} --json {out}", plan.display());
    let assessed = json_of(&assess);
    let facts = &assessed["assessment"]["networks"][0];
    assert!(facts["one_way"][0]["whole_ns"].is_u64(), "{facts}");
    validator.assert(&assessed, &assess);
    for words in [
        "lab list --json",
        "lab list --sites --json",
        "lab compare-sites sandia-engineering sandia-hybrid --json",
        "lab downtime ethernet-10 fddi --json",
        "doctor --json",
        "place --pattern ring --ranks 4 --network ethernet-100 --hosts 2 --slots 2 --topology ring --json",
        "assess --dry-run --json",
        "probe pattern all-pairs --dry-run --json",
        &format!("probe latency {small} --json {out}"),
        &format!("probe throughput --testbed local --quick --json {out}"),
        &format!("probe check --testbed local --path native:shm --cases 3 --json {out}"),
        &format!("npb is --testbed local --class S --path native:shm --launches 1 --json {out}"),
        &format!(
            "probe messages upc:cg --testbed local --path native:shm --ranks 4 --launches 1 --json {out}"
        ),
        "suits --list --json",
        &format!("suits web --json {out}"),
        &format!("contend latency stream --testbed local --for 1s --launches 1 --json {out}"),
        &format!(
            "stage is --testbed local --input 64K --output 16K -t 50ms --launches 1 --json {out}"
        ),
        &format!("load --testbed local --of 1Gbit --rho 0.01 --for 1s --json {out}"),
        &format!("tune --testbed local --quick --json {out}"),
        &format!("report show --json {out}"),
        &format!("report export --json {out}"),
    ] {
        validator.assert(&json_of(words), words);
    }
    let stream = sonde(&format!("probe latency {small} --json-stream {out}"));
    let text = String::from_utf8(stream.stdout).expect("text");
    let events: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert!(events.len() > 3, "{text}");
    events
        .iter()
        .for_each(|event| validator.assert(event, "an event"));
    let id = events[0]["run"].as_str().expect("the run's name");
    let words = format!("report compare {id} {id} --json {out}");
    validator.assert(&json_of(&words), &words);
    drop(std::fs::remove_dir_all(runs));
}

#[test]
fn documents_of_a_lab_are_as_the_schema_says() {
    let tried = sonde("lab run --hosts 2 -- true");
    if tried.status.code() != Some(0) {
        println!("skipped: {}", String::from_utf8_lossy(&tried.stderr));
        return;
    }
    let validator = validator();
    let runs = folder("lab");
    let out = format!("--out {}", runs.display());
    let mut calls = vec![
        format!("lab check --quick --json {out}"),
        format!("probe pattern shift:1 --network ethernet-100 --hosts 3 --launches 1 --json {out}"),
        format!("probe sweep --network ethernet-100 --size 64KiB --launches 1 --json {out}"),
    ];
    let compiler = Command::new("mpicc.openmpi").arg("--version").output();
    if compiler.is_ok() {
        let words = "place --pattern ring --network ethernet-100 --hosts 2 --ranks 2 --verify";
        calls.push(format!("{words} --json {out}"));
    }
    for words in calls {
        validator.assert(&json_of(&words), &words);
    }
    drop(std::fs::remove_dir_all(runs));
}
