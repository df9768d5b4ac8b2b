//! What the command makes of a frozen run: tables, findings, documents, the data of the page.
//!
//! Model:   a store is copied and read in its folder as `--out .`, so that no path shows. JSON is printed anew, a value a line;
//!          histograms and lists of samples stand as their length and checksum, which differ where they do.
//! Source:  the checksum: FNV-1a, 64 bits (draft-eastlake-fnv-21 §2). Deviations: none.
//! Checked: `samples_become_checksums`, `the_data_of_a_page_is_found`, `the_shape_of_json_is_its_names`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::frozen::{Stores, folded};
use super::program::{Folder, Program, Said};
use super::{Entry, Files};

/// Longer lists of samples are shortened.
const SAMPLES_MAX: usize = 8;
const LIST: [&str; 4] = ["report", "list", "--out", "."];

/// All views of the runs in a store.
///
/// # Errors
/// The store cannot be read, or the program not started.
pub fn of_store(program: &Program, entry: &Entry, stores: &Stores) -> Result<Files> {
    let mut files = Files::new();
    let ids = stores.runs(&entry.name)?;
    let folder = stores.copy(&entry.name)?;
    let mut add = |file: &str, text: &str| files.entry(file.into()).or_default().push_str(text);
    add(
        "show.txt",
        &told(program, &folder, &LIST.map(String::from))?,
    );
    for id in &ids {
        let report = |words: &str| -> Vec<String> {
            let all = format!("report {words} {id} --out .");
            all.split(' ').map(String::from).collect()
        };
        let document = |words: &str| -> Result<String> {
            let said = program.call(&folder, &report(words))?;
            Ok(documented(said))
        };
        add("show.txt", &told(program, &folder, &report("show"))?);
        add("rows.txt", &told(program, &folder, &report("show --rows"))?);
        add(
            "rows.csv",
            &told(program, &folder, &report("export --csv"))?,
        );
        add("show.json", &document("show --json")?);
        add("export.json", &document("export --json")?);
        let itself = format!("compare {id}");
        add("compare.txt", &told(program, &folder, &report(&itself))?);
        let said = program.call(&folder, &report("html --to page.html"))?;
        let page = std::fs::read_to_string(folder.join("page.html")).unwrap_or_default();
        let data = match data_of(&page) {
            Some(data) => documented(Said {
                out: data.into(),
                ..said
            }),
            None => transcript(&said),
        };
        add("page.json", &data);
    }
    for view in &entry.views {
        let mut words = Vec::new();
        for word in view.split_whitespace() {
            words.push(
                match word
                    .strip_prefix("{other:")
                    .and_then(|rest| rest.strip_suffix('}'))
                {
                    Some(other) => stores.copy(other)?.to_string_lossy().into_owned(),
                    None => word
                        .strip_prefix('#')
                        .and_then(|number| number.parse::<usize>().ok())
                        .and_then(|number| ids.get(number.wrapping_sub(1)).cloned())
                        .unwrap_or_else(|| word.to_owned()),
                },
            );
        }
        let said = program.call(&folder, &words)?;
        add(
            "views.txt",
            &format!("$ sonde {view}\n{}", transcript(&said)),
        );
    }
    Ok(files)
}

/// A command with all that it says.
fn told(program: &Program, folder: &Path, words: &[String]) -> Result<String> {
    let said = program.call(folder, words)?;
    Ok(format!(
        "$ sonde {}\n{}",
        words.join(" "),
        transcript(&said)
    ))
}

/// What was said, with its exit code where that is not 0.
pub fn transcript(said: &Said) -> String {
    let mut text = said.out.clone();
    for line in said.err.lines() {
        // A String takes everything.
        let _ = writeln!(text, "stderr: {line}");
    }
    if said.code != 0 {
        let _ = writeln!(text, "exit {}", said.code);
    }
    text
}

/// JSON, a value a line; what is none, as it is.
fn documented(said: Said) -> String {
    match serde_json::from_str::<Value>(&said.out) {
        Ok(mut value) if said.code == 0 => {
            shorten(&mut value, "");
            pretty(&value)
        }
        _ => transcript(&said),
    }
}

fn pretty(value: &Value) -> String {
    // A value that was read can be written.
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

/// Lists of samples and histograms as their length and checksum.
fn shorten(value: &mut Value, name: &str) {
    match value {
        Value::Array(list) => {
            let is_pair = |one: &Value| {
                let pair = one.as_array().filter(|pair| pair.len() == 2);
                pair.is_some_and(|pair| pair.iter().all(Value::is_number))
            };
            let is_samples =
                list.iter().all(is_pair) || (name == "first" && list.iter().all(Value::is_number));
            if list.len() > SAMPLES_MAX && is_samples {
                let sum = checksum(Value::Array(list.clone()).to_string().as_bytes());
                *value = format!("{} values, checksum {sum:016x}", list.len()).into();
            } else {
                list.iter_mut().for_each(|one| shorten(one, name));
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                shorten(value, name);
            }
        }
        _ => {}
    }
}

/// Of bytes, in 64 bits.
pub fn checksum(bytes: &[u8]) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The JSON in a page.
fn data_of(page: &str) -> Option<&str> {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"view\">")?;
    Some(rest.split_once("</script>")?.0)
}

/// Of a command that stored nothing: its code and the names in its JSON.
///
/// # Errors
/// What was frozen is no JSON.
pub fn shape_of_said(frozen: &Files, exit: &toml::Value) -> Result<Files> {
    let mut text = format!("exit {exit}\n");
    if let Some(json) = frozen.get("out.json") {
        text += &shape(&serde_json::from_str(json).context("in out.json")?);
    }
    Ok([("shape.txt".to_owned(), text)].into())
}

/// The same, run again from the root of the repository, by which plans name their networks.
///
/// # Errors
/// The program cannot be started, or prints no JSON.
pub fn said_again(program: &Program, entry: &Entry, root: &Path) -> Result<Files> {
    let folder = Folder::new("corpus-said")?;
    let dir = folder.path().to_string_lossy().into_owned();
    let words: Vec<String> = entry
        .again
        .iter()
        .map(|word| word.replace("{dir}", &dir))
        .collect();
    let said = program.call(root, &words)?;
    let json: Value = serde_json::from_str(&said.out)
        .with_context(|| format!("{}: no JSON: {}", entry.name, transcript(&said)))?;
    let text = format!("exit {}\n{}", said.code, shape(&json));
    Ok([("shape.txt".to_owned(), text)].into())
}

/// The names in JSON, a path a line; numbers in names are folded.
pub fn shape(value: &Value) -> String {
    let mut paths = BTreeSet::new();
    walk(value, "", &mut paths);
    paths.into_iter().map(|path| path + "\n").collect()
}

fn walk(value: &Value, path: &str, paths: &mut BTreeSet<String>) {
    match value {
        Value::Array(list) => list
            .iter()
            .for_each(|one| walk(one, &format!("{path}[]"), paths)),
        Value::Object(fields) => {
            for (name, value) in fields {
                walk(value, &format!("{path}.{}", folded(name)), paths);
            }
        }
        _ => drop(paths.insert(path.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn samples_become_checksums() {
        let of = |last: u64| {
            let pairs: Vec<[u64; 2]> = (0..9).map(|n| [n, last]).collect();
            let mut value = json!({"buckets": pairs, "first": vec![last; 9], "sizes": vec![1; 9], "few": [[1, 2]]});
            shorten(&mut value, "");
            value
        };
        let (one, two) = (of(1), of(2));
        assert_ne!(one["buckets"], two["buckets"]);
        assert_ne!(one["first"], two["first"]);
        assert!(one["first"].as_str().unwrap().starts_with("9 values"));
        assert_eq!(
            (one["sizes"].as_array().unwrap().len(), &one["few"]),
            (9, &json!([[1, 2]]))
        );
        assert_eq!(checksum(b"a"), 0xaf63_dc4c_8601_ec8c);
    }

    #[test]
    fn the_data_of_a_page_is_found() {
        let page = "<p><script type=\"application/json\" id=\"view\">{\"a\":1}</script></p>";
        assert_eq!(data_of(page), Some("{\"a\":1}"));
        assert_eq!(data_of("<p>"), None);
    }

    #[test]
    fn the_shape_of_json_is_its_names() {
        let value = json!({"a": [{"b": 1}, {"c": null, "load.h12": "x"}], "d": []});
        assert_eq!(shape(&value), ".a[].b\n.a[].c\n.a[].load.hN\n");
    }
}
