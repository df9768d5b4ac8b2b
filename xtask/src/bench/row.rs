//! The rows of a bench, worked out of what was recorded.
//!
//! Model:   a row has one value for each round of one case in one state of the machine: one population. Of it the median, the rank interval
//!          of the median at 95 % (none of fewer than six), the lowest and the highest are shown. It is met where the median lies in the range,
//!          or, with `holds`, where that share of the values does. A geometric mean over an axis is worked out round by round, of
//!          the rounds that all its cases have.
//! Source:  rank intervals: [`sonde_stats::median_rank_interval`].
//! Checked: `rows_are_worked_out`, `a_row_is_of_the_cases_in_which_its_members_are`, `each_state_has_its_row`,
//!          `means_are_of_whole_rounds`, `a_share_of_the_rounds_may_hold`.

use sonde_stats::median_rank_interval;

use crate::bench::file::{Bench, Row, Values, is_in};
use crate::bench::play::populations;
use crate::bench::result::{Case, Recorded};

/// A dash, where there is nothing.
const NONE: &str = "–";

/// A row with its values.
#[derive(Debug, PartialEq)]
pub struct Line {
    /// The case, by the heads of the bench.
    pub case: Vec<String>,
    pub what: String,
    /// Of the machine, where that makes populations.
    pub state: Option<&'static str>,
    pub values: Vec<f64>,
    pub least: Option<f64>,
    pub most: Option<f64>,
    pub holds: Option<f64>,
    digits: usize,
}

/// The one in the middle; of an even number the mean of the two there. None of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let low = sorted.get(sorted.len().checked_sub(1)? / 2)?;
    Some((low + sorted.get(sorted.len() / 2)?) / 2.0)
}

/// Of the median, at 95 %.
fn interval(values: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ranks: Vec<u64> = (0..sorted.len() as u64).collect();
    let ranks = median_rank_interval(&ranks, 0.95)?;
    let at = |rank: u64| sorted.get(usize::try_from(rank).ok()?).copied();
    at(ranks.low).zip(at(ranks.high))
}

/// The lowest and the highest.
fn range(values: &[f64]) -> Option<(f64, f64)> {
    let low = values.iter().copied().reduce(f64::min)?;
    Some((low, values.iter().copied().reduce(f64::max)?))
}

/// All rows of a bench.
pub fn lines(bench: &Bench, recorded: &Recorded) -> Vec<Line> {
    let mut all = Vec::new();
    for row in &bench.row {
        let takes_part =
            |case: &&Case| is_in(&row.only, &case.of) && bench.takes_part(row, &case.of);
        let cases: Vec<&Case> = recorded.case.iter().filter(takes_part).collect();
        for case in &cases {
            all.extend(of_case(bench, row, case));
        }
        all.extend(means(bench, row, &cases));
    }
    all
}

fn of_case(bench: &Bench, row: &Row, case: &Case) -> Vec<Line> {
    let states = match bench.by_line {
        true => populations(&case.lines_ns),
        false => vec![("", (0..case.rounds).collect())],
    };
    let line = |what: &str,
                state: &'static str,
                rounds: &[usize],
                value: &dyn Fn(usize) -> Option<f64>| Line {
        case: named(bench, &case.of),
        what: what.to_owned(),
        state: bench.by_line.then_some(state),
        values: rounds.iter().filter_map(|round| value(*round)).collect(),
        least: row.least,
        most: row.most,
        holds: row.holds,
        digits: row.digits,
    };
    let mut all = Vec::new();
    for (state, rounds) in states {
        match &row.term {
            Some(term) => {
                let value = |round| term.value(&|name| case.figure(name, round));
                all.push(line(row.what.get_ref(), state, &rounds, &value));
            }
            None => {
                let of = format!("{}.", row.every);
                for name in case.figures.keys() {
                    if let Some(short) = name.strip_prefix(&of) {
                        let what = format!("{}{short}", row.what.get_ref());
                        all.push(line(&what, state, &rounds, &|round| {
                            case.figure(name, round)
                        }));
                    }
                }
            }
        }
    }
    all
}

fn named(bench: &Bench, case: &Values) -> Vec<String> {
    let value = |head: &&str| case.get(*head).cloned().unwrap_or_default();
    bench.heads().iter().map(value).collect()
}

/// The geometric means over an axis: one for each value of the others.
fn means(bench: &Bench, row: &Row, cases: &[&Case]) -> Vec<Line> {
    let (Some(axis), Some(term)) = (&row.mean, &row.term) else {
        return Vec::new();
    };
    let mut groups: Vec<(Values, Vec<&Case>)> = Vec::new();
    for case in cases {
        let mut of = case.of.clone();
        of.insert(axis.clone(), "all".into());
        match groups.iter_mut().find(|(other, _)| *other == of) {
            Some((_, group)) => group.push(case),
            None => groups.push((of, vec![case])),
        }
    }
    let mean = |group: &[&Case], round: usize| {
        let values = group
            .iter()
            .map(|case| term.value(&|name| case.figure(name, round)));
        let logarithms: Option<Vec<f64>> = values.map(|value| Some(value?.ln())).collect();
        let logarithms = logarithms?;
        Some((logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp())
    };
    let line = |(of, group): (Values, Vec<&Case>)| {
        let rounds = group.iter().map(|case| case.rounds).max().unwrap_or(0);
        Line {
            case: named(bench, &of),
            what: format!("{}, geometric mean", row.what.get_ref()),
            state: None,
            values: (0..rounds)
                .filter_map(|round| mean(&group, round))
                .collect(),
            least: row.mean_least,
            most: None,
            holds: None,
            digits: row.digits,
        }
    };
    groups.into_iter().map(line).collect()
}

impl Line {
    /// Whether it is met; none where nothing is wanted of it.
    pub fn is_met(&self) -> Option<bool> {
        let (least, most) = (
            self.least.unwrap_or(f64::NEG_INFINITY),
            self.most.unwrap_or(f64::INFINITY),
        );
        let is_within = |value: &f64| (least..=most).contains(value);
        (least.is_finite() || most.is_finite()).then(|| match self.holds {
            None => median(&self.values).is_some_and(|median| is_within(&median)),
            Some(share) => {
                let within = self.values.iter().filter(|value| is_within(value)).count();
                within > 0 && within as f64 >= share * self.values.len() as f64
            }
        })
    }

    fn wanted(&self) -> String {
        let range = match (self.least, self.most) {
            (None, None) => return NONE.into(),
            (Some(least), None) => format!("at least {least}"),
            (None, Some(most)) => format!("at most {most}"),
            (Some(least), Some(most)) => format!("{least} to {most}"),
        };
        match self.holds {
            None => range,
            Some(share) if share >= 1.0 => format!("{range}, in every round"),
            Some(share) => format!("{range}, in {:.0} % of the rounds", 100.0 * share),
        }
    }

    /// From one figure to another, in words.
    fn words(&self, range: Option<(f64, f64)>) -> String {
        let digits = self.digits;
        range.map_or(NONE.into(), |(low, high)| {
            format!("{low:.digits$} to {high:.digits$}")
        })
    }

    /// The cells of a table, in the order of [`heads`].
    pub fn cells(&self) -> Vec<String> {
        let mut cells = self.case.clone();
        cells.push(self.what.clone());
        cells.extend(self.state.map(str::to_owned));
        let digits = self.digits;
        cells.extend([
            self.values.len().to_string(),
            median(&self.values).map_or(NONE.into(), |median| format!("{median:.digits$}")),
            self.words(interval(&self.values)),
            self.words(range(&self.values)),
            self.wanted(),
            match self.is_met() {
                None => NONE.into(),
                Some(true) => "met".into(),
                Some(false) if self.values.is_empty() => "**not measured**".into(),
                Some(false) => "**not met**".into(),
            },
        ]);
        cells
    }
}

/// The heads of the table of a bench.
pub fn heads(bench: &Bench) -> Vec<&str> {
    let mut heads = bench.heads();
    heads.push("what");
    heads.extend(bench.by_line.then_some("state"));
    heads.extend([
        "rounds",
        "median",
        "95 % interval",
        "lowest to highest",
        "wanted",
        "verdict",
    ]);
    heads
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"title = "t"
answers = "true"
note = "n"
rounds = 3
[[axis]]
kernel = ["ep", "cg"]
[[axis]]
ranks = ["1"]
[[member]]
name = "a"
run = "a"
read = "values"
[[row]]
what = "a / b"
of = "a.x / a.y"
least = 0.9
most = 1.1
"#;

    fn bench(more: &str) -> Bench {
        Bench::parse("t", &format!("{TEXT}{more}")).unwrap()
    }

    fn case(kernel: &str, x: &[f64]) -> Case {
        let mut case = Case {
            of: [
                ("kernel".to_owned(), kernel.to_owned()),
                ("ranks".to_owned(), "1".to_owned()),
            ]
            .into(),
            ..Case::default()
        };
        for x in x {
            case.add(vec![("a.x".into(), *x), ("a.y".into(), 1.0)], None);
        }
        case
    }

    fn shown(bench: &Bench, case: Vec<Case>) -> Vec<String> {
        let recorded = Recorded {
            case,
            ..Recorded::default()
        };
        lines(bench, &recorded)
            .iter()
            .map(|line| line.cells().join(" | "))
            .collect()
    }

    #[test]
    fn rows_are_worked_out() {
        let rounds = [1.0, 0.95, 1.3, 1.02, 0.98, 1.01];
        let cases = vec![
            case("ep", &rounds),
            case("cg", &[0.5, f64::NAN]),
            case("mg", &[]),
        ];
        let wanted = [
            "ep | 1 | a / b | 6 | 1.005 | 0.950 to 1.300 | 0.950 to 1.300 | 0.9 to 1.1 | met",
            "cg | 1 | a / b | 1 | 0.500 | – | 0.500 to 0.500 | 0.9 to 1.1 | **not met**",
            "mg | 1 | a / b | 0 | – | – | – | 0.9 to 1.1 | **not measured**",
        ];
        assert_eq!(shown(&bench(""), cases), wanted);
        let every = bench("").name;
        assert_eq!(every, "t");
        let all = Bench::parse(
            "t",
            &TEXT
                .replace("of = \"a.x / a.y\"", "every = \"a\"")
                .replace("a / b", "of a: "),
        )
        .unwrap();
        let found = shown(&all, vec![case("ep", &[2.0])]);
        assert_eq!(
            found[0],
            "ep | 1 | of a: x | 1 | 2.000 | – | 2.000 to 2.000 | 0.9 to 1.1 | **not met**"
        );
        assert!(found[1].contains("| of a: y | 1 | 1.000 |"), "{found:?}");
        // Nine values: the interval is between the second and the eighth.
        let nine: Vec<f64> = (1..10).map(f64::from).collect();
        assert_eq!(interval(&nine), Some((2.0, 8.0)));
        assert_eq!(
            (interval(&nine[..5]), median(&[]), range(&[])),
            (None, None, None)
        );
    }

    #[test]
    fn a_row_is_of_the_cases_in_which_its_members_are() {
        let text = TEXT.replace("run = \"a\"", "run = \"a\"\nonly = { kernel = [\"cg\"] }");
        let bench = Bench::parse("t", &text).unwrap();
        let found = shown(&bench, vec![case("ep", &[1.0]), case("cg", &[1.0])]);
        assert!(
            found.len() == 1 && found[0].starts_with("cg | 1 |"),
            "{found:?}"
        );
    }

    #[test]
    fn each_state_has_its_row() {
        let mut ep = case("ep", &[1.0, 0.5, 1.0]);
        ep.lines_ns = vec![50.0, 280.0, 55.0];
        let by_line = Bench::parse(
            "t",
            &TEXT.replace("rounds = 3", "rounds = 3\nby_line = true"),
        )
        .unwrap();
        let wanted = [
            "ep | 1 | a / b | near | 2 | 1.000 | – | 1.000 to 1.000 | 0.9 to 1.1 | met",
            "ep | 1 | a / b | far | 1 | 0.500 | – | 0.500 to 0.500 | 0.9 to 1.1 | **not met**",
        ];
        assert_eq!(shown(&by_line, vec![ep]), wanted);
        assert_eq!(heads(&by_line)[..4], ["kernel", "ranks", "what", "state"]);
    }

    #[test]
    fn means_are_of_whole_rounds() {
        let bench = bench("mean = \"kernel\"\nmean_least = 2.5\n");
        let cases = vec![case("ep", &[1.0, 2.0, 9.0]), case("cg", &[4.0, 8.0])];
        let found = shown(&bench, cases);
        let wanted =
            "all | 1 | a / b, geometric mean | 2 | 3.000 | – | 2.000 to 4.000 | at least 2.5 | met";
        assert_eq!(found[2], wanted);
    }

    #[test]
    fn a_share_of_the_rounds_may_hold() {
        let verdict = |holds: &str, x: &[f64]| {
            let found = shown(&bench(holds), vec![case("ep", x)]);
            found[0].rsplit(" | ").next().unwrap().to_owned()
        };
        let five = [1.0, 1.0, 1.0, 1.0, 2.0];
        assert_eq!(verdict("holds = 0.8\n", &five), "met");
        assert_eq!(verdict("holds = 1\n", &five), "**not met**");
        assert_eq!(verdict("holds = 0.8\n", &[]), "**not measured**");
    }
}
