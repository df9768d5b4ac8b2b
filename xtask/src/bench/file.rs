//! A file of `bench/`: what is run, how its output is read, in how many rounds, and what is wanted of it.
//!
//! Model:   a bench has axes, members and rows. A case is one value of each axis (the first key of an axis names it in tables, the others go
//!          along with it); its values stand for `{KEY}` in commands and figures. A member is a command and a reader. A row is a term over
//!          the figures of one round, with the range that its median is to lie in, or (`holds`) that this share of the rounds is to
//!          lie in. Whatever is wrong with a file is found when it is read, with its line and what to do.
//! Checked: `a_bench_is_read`, `faults_have_a_line_and_a_remedy`, `every_bench_of_the_repository_is_read`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use toml::Spanned;

use crate::bench::given;
use crate::bench::read::Reader;
use crate::bench::term::Term;
use crate::finding::Finding;

/// Where they are.
pub const FOLDER: &str = "bench";

/// The values of a case, and what else stands for `{KEY}`.
pub type Values = BTreeMap<String, String>;

/// What the figures answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Question {
    /// How fast sonde is beside others.
    Fast,
    /// How true its networks and its figures are.
    True,
    /// How it scales.
    Scale,
}

/// Entries of a table, in the order in which the file has them.
#[derive(Debug, Clone, PartialEq)]
pub struct Pairs<T>(pub Vec<(String, T)>);

impl<T> Default for Pairs<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for InOrder<T> {
            type Value = Vec<(Spanned<String>, T)>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut all = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    all.push(entry);
                }
                Ok(all)
            }
        }
        let mut all = deserializer.deserialize_map(InOrder(std::marker::PhantomData))?;
        all.sort_by_key(|(key, _)| key.span().start);
        let plain = all
            .into_iter()
            .map(|(key, value)| (key.into_inner(), value));
        Ok(Self(plain.collect()))
    }
}

/// A bench, as its file has it.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bench {
    /// The name of its file.
    #[serde(skip)]
    pub name: String,
    pub title: Spanned<String>,
    pub answers: Question,
    /// What its columns mean and where the bound comes from.
    pub note: String,
    pub rounds: usize,
    /// Whether it takes more than some ten minutes: it runs only where it is named.
    #[serde(default)]
    pub long: bool,
    /// Whether the way of a cache line between two cores makes populations of their own.
    #[serde(default)]
    pub by_line: bool,
    #[serde(default)]
    pub axis: Vec<Pairs<Vec<String>>>,
    #[serde(default)]
    pub given: Vec<Given>,
    pub member: Vec<Member>,
    pub row: Vec<Row>,
}

/// A figure of a model, by its name.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Given {
    pub name: String,
    pub is: Spanned<String>,
    pub network: String,
    #[serde(default)]
    pub bytes: String,
    #[serde(default)]
    pub seconds: String,
}

/// Who takes a turn.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    pub name: Spanned<String>,
    /// A script of the shell.
    pub run: Spanned<String>,
    /// The lab on whose first host it runs.
    pub lab: Option<Lab>,
    pub read: Reader,
    /// What the reader looks for, by the figure's name.
    #[serde(default)]
    pub figures: Pairs<String>,
    /// Programs and the package of each; `$NAME` is a variable of the environment and what it holds.
    #[serde(default)]
    pub needs: Pairs<String>,
    /// The cases that it is in, by values of an axis.
    #[serde(default)]
    pub only: Pairs<Vec<String>>,
    /// After so many seconds it is ended.
    #[serde(default = "two_minutes")]
    pub seconds: u64,
}

const fn two_minutes() -> u64 {
    120
}

/// A lab for a script.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lab {
    pub network: String,
    #[serde(default = "tap")]
    pub attachment: String,
    #[serde(default = "split")]
    pub cpus: String,
    #[serde(default = "two")]
    pub hosts: usize,
    /// Further options.
    #[serde(default)]
    pub options: String,
}

fn tap() -> String {
    "tap".into()
}

fn split() -> String {
    "split".into()
}

const fn two() -> usize {
    2
}

/// The figures that a lab's report adds to those of its member.
pub const LAB_FIGURES: [&str; 3] = ["passed", "late_us", "ports_lost"];

/// What is worked out of each round.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub what: Spanned<String>,
    #[serde(default)]
    pub of: String,
    /// A member of whose figures each is a row.
    #[serde(default)]
    pub every: String,
    pub least: Option<f64>,
    pub most: Option<f64>,
    /// The share of the rounds that must lie in the range, each by itself, 0 to 1.
    pub holds: Option<f64>,
    /// An axis over which the geometric mean is a row as well, and what that is to be at least.
    pub mean: Option<String>,
    pub mean_least: Option<f64>,
    #[serde(default = "three")]
    pub digits: usize,
    /// The cases that it is of, by values of an axis, where it is not of all in which its members are.
    #[serde(default)]
    pub only: Pairs<Vec<String>>,
    #[serde(skip)]
    pub term: Option<Term>,
}

const fn three() -> usize {
    3
}

/// Whether a case is among those of an `only`.
pub fn is_in(only: &Pairs<Vec<String>>, case: &Values) -> bool {
    let fits = |(axis, values): &(String, Vec<String>)| {
        case.get(axis).is_some_and(|value| values.contains(value))
    };
    only.0.iter().all(fits)
}

/// Text with its `{KEY}` filled in; other braces, and the shell's `${KEY}`, stay.
pub fn filled(text: &str, values: &Values) -> String {
    let mut whole = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        whole.push_str(before);
        let value = after.split_once('}').filter(|_| !before.ends_with('$'));
        let value = value.and_then(|(key, after)| Some((values.get(key)?, after)));
        whole.push_str(value.map_or("{", |(value, _)| value));
        rest = value.map_or(after, |(_, after)| after);
    }
    whole + rest
}

impl Bench {
    /// Reads `bench/NAME.toml`.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(name: &str, text: &str) -> Result<Self, Vec<Finding>> {
        let path = PathBuf::from(format!("{FOLDER}/{name}.toml"));
        let mut bench: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_of(text, span.start));
            let what = error.message().replace('\n', " ");
            vec![Finding::new(
                &path,
                line,
                what,
                "see the section on benchmarks of CONTRIBUTING.md",
            )]
        })?;
        bench.name = name.to_owned();
        let mut faults = Faults {
            path: &path,
            text,
            found: Vec::new(),
        };
        bench.check(&mut faults);
        match faults.found.is_empty() {
            true => Ok(bench),
            false => Err(faults.found),
        }
    }

    fn check(&mut self, faults: &mut Faults<'_>) {
        let head = self.title.span().start;
        if self.rounds == 0 {
            faults.add(
                head,
                "no rounds are wanted".into(),
                "set `rounds` to 1 or more",
            );
        }
        let mut keys: Vec<&str> = vec!["src", "dst"];
        for axis in &self.axis {
            let lengths: Vec<usize> = axis.0.iter().map(|(_, values)| values.len()).collect();
            if lengths
                .iter()
                .any(|length| *length == 0 || Some(length) != lengths.first())
            {
                faults.add(
                    head,
                    format!("an axis has {lengths:?} values"),
                    "give each key of an axis as many values, one or more",
                );
            }
            keys.extend(axis.0.iter().map(|(key, _)| key.as_str()));
        }
        for given in &self.given {
            if !given::KINDS.contains(&given.is.get_ref().as_str()) {
                let what = format!("there is no given `{}`", given.is.get_ref());
                faults.add(
                    given.is.span().start,
                    what,
                    &format!("write one of {}", given::KINDS.join(", ")),
                );
            }
            keys.push(&given.name);
        }
        for member in &self.member {
            member.check(&keys, faults);
        }
        let names: Vec<String> = self
            .given
            .iter()
            .map(|given| given.name.clone())
            .chain(self.member.iter().flat_map(Member::figures))
            .collect();
        let open: Vec<&str> = self
            .member
            .iter()
            .filter(|member| member.read.names().is_none() && !member.read.is_told())
            .map(|member| member.name.get_ref().as_str())
            .collect();
        for row in &mut self.row {
            let at = row.what.span().start;
            let is_member = |name: &str| {
                self.member
                    .iter()
                    .any(|member| member.name.get_ref() == name)
            };
            match (row.of.is_empty(), row.every.is_empty()) {
                (true, false) if is_member(&row.every) => {}
                (false, true) => match Term::parse(&row.of) {
                    Ok(term) => {
                        let is_known = |name: &&str| {
                            let of_open = name
                                .split_once('.')
                                .is_some_and(|(member, _)| open.contains(&member));
                            of_open || names.iter().any(|known| known == name)
                        };
                        for unknown in term.names().into_iter().filter(|name| !is_known(name)) {
                            faults.add(
                                at,
                                format!("there is no figure `{unknown}`"),
                                &format!("write one of {}", names.join(", ")),
                            );
                        }
                        row.term = Some(term);
                    }
                    Err(error) => faults.add(
                        at,
                        format!("`{}` is not a term: {error}", row.of),
                        "write figures with + - * / and min, max, abs",
                    ),
                },
                _ => faults.add(
                    at,
                    "a row is of a term or of a member".into(),
                    "give either `of`, a term, or `every`, the name of a member",
                ),
            }
            if row
                .mean
                .as_ref()
                .is_some_and(|axis| !keys.contains(&axis.as_str()))
            {
                faults.add(
                    at,
                    "the mean is over no axis".into(),
                    "name an axis in `mean`",
                );
            }
        }
    }

    /// The cases, in order: one value of each axis.
    pub fn cases(&self) -> Vec<Values> {
        let mut cases = vec![Values::new()];
        for axis in &self.axis {
            let count = axis.0.first().map_or(0, |(_, values)| values.len());
            let with = |case: &Values, at: usize| {
                let mut case = case.clone();
                let own = axis
                    .0
                    .iter()
                    .filter_map(|(key, values)| Some((key.clone(), values.get(at)?.clone())));
                case.extend(own);
                case
            };
            cases = cases
                .iter()
                .flat_map(|case| (0..count).map(|at| with(case, at)).collect::<Vec<_>>())
                .collect();
        }
        cases
    }

    /// Whether all members that a row is of are in a case.
    pub fn takes_part(&self, row: &Row, case: &Values) -> bool {
        let names = row.term.iter().flat_map(Term::names);
        let of = names.filter_map(|name| Some(name.split_once('.')?.0));
        let mut of = of.chain([row.every.as_str()]);
        of.all(|name| {
            let mut members = self.member.iter();
            let member = members.find(|member| member.name.get_ref() == name);
            member.is_none_or(|member| is_in(&member.only, case))
        })
    }

    /// The keys by which tables name a case.
    pub fn heads(&self) -> Vec<&str> {
        self.axis
            .iter()
            .filter_map(|axis| Some(axis.0.first()?.0.as_str()))
            .collect()
    }
}

impl Member {
    fn check(&self, keys: &[&str], faults: &mut Faults<'_>) {
        let (name, at) = (self.name.get_ref(), self.name.span().start);
        if name.is_empty()
            || !name
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
            || name.starts_with(|letter: char| letter.is_ascii_digit())
        {
            faults.add(
                at,
                format!("`{name}` is not a name of a member"),
                "use letters, digits and _, a letter first: rows name its figures",
            );
        }
        if self.read.is_told() == self.figures.0.is_empty() {
            let remedy = match self.read.is_told() {
                true => "say in `figures` what is read, by its name",
                false => "leave `figures` out: this reader has names of its own",
            };
            faults.add(
                at,
                format!("the figures of `{name}` do not fit its reader"),
                remedy,
            );
        }
        let lab = self
            .lab
            .iter()
            .flat_map(|lab| [&lab.network, &lab.attachment, &lab.cpus, &lab.options]);
        let texts = lab
            .chain(self.figures.0.iter().map(|(_, what)| what))
            .chain([self.run.get_ref()]);
        for unknown in texts
            .flat_map(|text| placeholders(text))
            .filter(|key| !keys.contains(key))
        {
            faults.add(
                self.run.span().start,
                format!("`{{{unknown}}}` stands for nothing"),
                &format!(
                    "write one of {}, or ${{{unknown}}} for a variable of the shell",
                    keys.join(", ")
                ),
            );
        }
        for (axis, _) in self
            .only
            .0
            .iter()
            .filter(|(axis, _)| !keys.contains(&axis.as_str()))
        {
            faults.add(
                at,
                format!("`only` names `{axis}`, which is no axis"),
                "name an axis",
            );
        }
    }

    /// The names of its figures, as rows have them.
    fn figures(&self) -> Vec<String> {
        let fixed = self
            .read
            .names()
            .unwrap_or_default()
            .iter()
            .map(|name| (*name).to_owned());
        let lab = LAB_FIGURES
            .iter()
            .filter(|_| self.lab.is_some())
            .map(|name| (*name).to_owned());
        let told = self.figures.0.iter().map(|(name, _)| name.clone());
        fixed
            .chain(lab)
            .chain(told)
            .map(|figure| format!("{}.{figure}", self.name.get_ref()))
            .collect()
    }
}

/// The `{KEY}` of a text; not those of the shell, `${KEY}`.
fn placeholders(text: &str) -> Vec<&str> {
    let parts = text.match_indices('{').filter_map(|(at, _)| {
        let (key, _) = text[at + 1..].split_once('}')?;
        let is_shell = text[..at].ends_with('$');
        let is_key = !key.is_empty()
            && key
                .chars()
                .all(|letter| letter.is_ascii_lowercase() || letter == '_');
        (is_key && !is_shell).then_some(key)
    });
    parts.collect()
}

/// What is wrong with a file.
struct Faults<'a> {
    path: &'a Path,
    text: &'a str,
    found: Vec<Finding>,
}

impl Faults<'_> {
    fn add(&mut self, at: usize, what: String, remedy: &str) {
        self.found.push(Finding::new(
            self.path,
            line_of(self.text, at),
            what,
            remedy,
        ));
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or_default().matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"title = "Streams"
answers = "fast"
note = "n"
rounds = 6

[[axis]]
size = ["1B", "1KiB"]
bytes = ["1", "1024"]
[[axis]]
attachment = ["tap", "veth"]

[[given]]
name = "bound"
is = "tcp-max"
network = "ethernet-100"

[[member]]
name = "iperf3"
run = "iperf3 -l {bytes}; echo ${home}"
lab = { network = "ethernet-100", attachment = "{attachment}" }
read = "iperf3"
needs = { iperf3 = "iperf3" }

[[member]]
name = "own"
run = "sonde probe throughput --size {size}"
read = "sonde"
figures = { b = "throughput_bps.p50", a = "throughput_bps.mean" }

[[row]]
what = "own / iperf3"
of = "own.b / iperf3.bps"
least = 0.97
"#;

    #[test]
    fn a_bench_is_read() {
        let bench = Bench::parse("streams", TEXT).unwrap();
        assert_eq!(
            (bench.name.as_str(), bench.heads()),
            ("streams", vec!["size", "attachment"])
        );
        let cases = bench.cases();
        assert_eq!(cases.len(), 4);
        assert_eq!(
            filled("{size} {bytes} ${size} {attachment} {no}", &cases[1]),
            "1B 1 ${size} veth {no}"
        );
        let figures: Vec<&str> = bench.member[1]
            .figures
            .0
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(figures, ["b", "a"], "in the file's order");
        assert!(is_in(
            &Pairs(vec![("size".into(), vec!["1B".into()])]),
            &cases[0]
        ));
        assert!(!is_in(
            &Pairs(vec![("size".into(), vec!["1B".into()])]),
            &cases[2]
        ));
    }

    #[test]
    fn faults_have_a_line_and_a_remedy() {
        let said = |from: &str, to: &str| {
            assert!(TEXT.contains(from), "{from}");
            let faults = Bench::parse("streams", &TEXT.replace(from, to)).unwrap_err();
            faults
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("\n")
        };
        for (from, to, wanted) in [
            (
                "rounds = 6",
                "rounds = 0",
                "bench/streams.toml:1: no rounds are wanted; set `rounds` to 1 or more",
            ),
            (
                "rounds = 6",
                "round = 6",
                "bench/streams.toml:4: unknown field `round`",
            ),
            (
                "\"1\", \"1024\"",
                "\"1\"",
                "bench/streams.toml:1: an axis has [2, 1] values; give each key",
            ),
            (
                "tcp-max",
                "tcp-least",
                "bench/streams.toml:14: there is no given `tcp-least`; write one of tcp-expected",
            ),
            (
                "{bytes}",
                "{byte}",
                "bench/streams.toml:19: `{byte}` stands for nothing; write one of src, dst, size, bytes",
            ),
            (
                "read = \"iperf3\"",
                "read = \"iperf\"",
                "bench/streams.toml:21: unknown variant `iperf`",
            ),
            (
                "read = \"sonde\"",
                "read = \"ping\"",
                "bench/streams.toml:25: the figures of `own` do not fit its reader; leave `figures` out",
            ),
            (
                "name = \"own\"",
                "name = \"o-n\"",
                "bench/streams.toml:25: `o-n` is not a name of a member; use letters",
            ),
            (
                "own.b /",
                "own.c /",
                "bench/streams.toml:31: there is no figure `own.c`; write one of bound, iperf3.bps",
            ),
            ("own.b /", "own.b \\", "bench/streams.toml:32:"),
            (
                "own.b /",
                "own.b",
                "bench/streams.toml:31: `own.b iperf3.bps` is not a term",
            ),
            (
                "of = \"own.b / iperf3.bps\"",
                "every = \"nobody\"",
                "bench/streams.toml:31: a row is of a term or of a member; give either",
            ),
            (
                "least",
                "mean = \"x\"\nleast",
                "bench/streams.toml:31: the mean is over no axis; name an axis",
            ),
            (
                "needs",
                "only = { x = [] }\nneeds",
                "bench/streams.toml:18: `only` names `x`, which is no axis; name an axis",
            ),
        ] {
            let said = said(from, to);
            assert!(said.contains(wanted), "{to}: {said}");
        }
    }

    #[test]
    fn every_bench_of_the_repository_is_read() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let (benches, faults) = crate::bench::all(&root).unwrap();
        assert!(faults.is_empty(), "{}", faults[0]);
        assert!(benches.len() > 5);
    }
}
