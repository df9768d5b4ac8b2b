//! Rounds of a bench: who takes a turn when, which rounds count, and when no further one begins.
//!
//! Model:   cases whose members have the same commands are a group: each command runs once for all of them. A round of a group runs each
//!          member once, forwards and backwards in turns (AB, BA), and the groups take turns in the same way, so that a busy minute falls on
//!          all. Before and after it the machine is looked at ([`sonde_sys::noise`]); a round beside which it was not quiet is dropped and
//!          played again, as is one during which the way of a cache line changed by 15 % where that makes populations. A group has at
//!          most twice as many rounds and two, or, with a budget, as many as that has time for: none begins after its end. A member that
//!          fails twice in a row takes no turn any more, and the others go on.
//! Checked: `members_take_turns_and_commands_run_once`, `disturbed_rounds_are_dropped_and_played_again`, `a_budget_ends_it`,
//!          `who_fails_twice_is_left_out`, `rounds_that_were_recorded_count`, `a_round_without_a_figure_is_none`, `lines_of_two_states_are_two_populations`.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};

use crate::bench::file::{Bench, LAB_FIGURES, Member, Values, filled, is_in};
use crate::bench::read::Figures;
use crate::bench::result::Case;

/// Ways of a line within one round may differ by this.
const STEADY: f64 = 1.15;
/// Ways that lie so far apart, with none between, are of two states.
const APART: f64 = 1.5;

/// What a program printed, and the lab's figures where it had one, in the order of [`LAB_FIGURES`].
#[derive(Debug, Clone, Default)]
pub struct Printed {
    pub text: String,
    pub lab: Option<[f64; LAB_FIGURES.len()]>,
    /// How it ended, and its last words on standard error.
    pub said: String,
}

/// Where rounds are played.
pub trait Machine {
    /// What disturbs timings at this moment; empty where it is quiet.
    fn causes(&mut self) -> Result<Vec<String>>;
    /// The way of a cache line from core to core.
    fn line_ns(&mut self) -> Result<f64>;
    /// Runs a member, its texts filled in.
    fn run(&mut self, member: &Member, values: &Values) -> Result<Printed>;
    /// Whether there is no time for another round; `None` where no budget was given.
    fn is_over(&self) -> Option<bool>;
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Played {
    pub cases: Vec<Case>,
    /// Rounds of groups that were begun.
    pub tried: usize,
    /// Those of them that were disturbed.
    pub dropped: usize,
    /// What disturbed them, each once.
    pub causes: Vec<String>,
    /// What was not run, and why.
    pub absent: Vec<String>,
}

/// Cases that are measured at once.
struct Group {
    /// Their places among the cases.
    cases: Vec<usize>,
    /// The members that take turns.
    members: Vec<usize>,
    tried: usize,
    /// Why no further round is played.
    ended: bool,
}

/// Plays a bench; `members` are those whose programs are there, `cases` with the values of the givens, and what was recorded of them
/// before: those rounds count.
pub fn play(
    bench: &Bench,
    members: &[usize],
    (cases, recorded): (&[Values], &[Case]),
    rounds: usize,
    machine: &mut dyn Machine,
) -> Result<Played> {
    let begun = |case: &Values| {
        let case = Case::of(bench, case);
        let before = recorded.iter().find(|one| one.of == case.of);
        before.cloned().unwrap_or(case)
    };
    let mut played = Played {
        cases: cases.iter().map(begun).collect(),
        ..Played::default()
    };
    let mut groups = groups(bench, members, cases);
    for turn in 0.. {
        let open: Vec<usize> = (0..groups.len()).filter(|at| !groups[*at].ended).collect();
        if open.is_empty() {
            break;
        }
        let order: Vec<usize> = if turn % 2 == 0 {
            open
        } else {
            open.into_iter().rev().collect()
        };
        for at in order {
            let group = &mut groups[at];
            let kept = kept(bench, &played.cases[group.cases[0]]);
            let most = 2 * rounds + 2;
            let is_over = machine.is_over();
            if kept >= rounds || group.members.is_empty() {
                group.ended = true;
            } else if is_over.unwrap_or(group.tried >= most) {
                group.ended = true;
                let why = if is_over.is_some() {
                    "the budget was spent"
                } else {
                    "the other rounds were disturbed"
                };
                played.absent.push(format!(
                    "{}: {} of {rounds} rounds: {why}",
                    named(bench, &cases[group.cases[0]], group.cases.len()),
                    kept
                ));
            } else {
                round(bench, group, cases, machine, &mut played)?;
            }
        }
    }
    Ok(played)
}

/// A case in words, or the first of several.
fn named(bench: &Bench, case: &Values, count: usize) -> String {
    let values: Vec<&str> = bench
        .heads()
        .iter()
        .filter_map(|head| case.get(*head).map(String::as_str))
        .collect();
    match (values.is_empty(), count) {
        (true, _) => bench.name.clone(),
        (_, 1) => values.join(", "),
        _ => format!("{} and {} more", values.join(", "), count - 1),
    }
}

fn groups(bench: &Bench, members: &[usize], cases: &[Values]) -> Vec<Group> {
    let mut by_commands: BTreeMap<Vec<(usize, String)>, Vec<usize>> = BTreeMap::new();
    for (at, case) in cases.iter().enumerate() {
        let own = members
            .iter()
            .filter(|member| is_in(&bench.member[**member].only, case));
        let commands = own.map(|member| (*member, command(&bench.member[*member], case)));
        by_commands.entry(commands.collect()).or_default().push(at);
    }
    let mut groups: Vec<Group> = by_commands
        .into_iter()
        .map(|(commands, cases)| Group {
            cases,
            members: commands.into_iter().map(|(member, _)| member).collect(),
            tried: 0,
            ended: false,
        })
        .collect();
    groups.sort_by_key(|group| group.cases[0]);
    groups
}

/// All that a member's run depends on.
fn command(member: &Member, case: &Values) -> String {
    let lab = member
        .lab
        .iter()
        .flat_map(|lab| [&lab.network, &lab.attachment, &lab.cpus, &lab.options]);
    let texts = lab
        .chain([member.run.get_ref()])
        .map(|text| filled(text, case));
    texts.collect::<Vec<_>>().join("\n")
}

/// How many rounds count: of the largest population.
fn kept(bench: &Bench, case: &Case) -> usize {
    if !bench.by_line {
        return case.rounds;
    }
    let counts = populations(&case.lines_ns);
    counts
        .iter()
        .map(|(_, rounds)| rounds.len())
        .max()
        .unwrap_or(0)
}

fn round(
    bench: &Bench,
    group: &mut Group,
    cases: &[Values],
    machine: &mut dyn Machine,
    played: &mut Played,
) -> Result<()> {
    let mut causes = machine.causes()?;
    let before = if bench.by_line {
        machine.line_ns()?
    } else {
        1.0
    };
    let mut order = group.members.clone();
    if group.tried % 2 == 1 {
        order.reverse();
    }
    let mut figures: Vec<Figures> = group.cases.iter().map(|_| Vec::new()).collect();
    for at in order {
        let member = &bench.member[at];
        let first = &cases[group.cases[0]];
        let read = |machine: &mut dyn Machine| -> Result<Vec<Figures>> {
            let printed = machine.run(member, first)?;
            let each = group
                .cases
                .iter()
                .map(|case| figures_of(member, &printed, &cases[*case]));
            each.collect()
        };
        match read(machine).or_else(|_| read(machine)) {
            Ok(found) => {
                for (all, found) in figures.iter_mut().zip(found) {
                    all.extend(found);
                }
            }
            Err(error) => {
                let what = named(bench, first, group.cases.len());
                played
                    .absent
                    .push(format!("{}, {what}: {error:#}", member.name.get_ref()));
                group.members.retain(|other| *other != at);
            }
        }
    }
    let after = if bench.by_line {
        machine.line_ns()?
    } else {
        1.0
    };
    causes.extend(machine.causes()?);
    if before.max(after) > STEADY * before.min(after) {
        causes.push(format!(
            "a cache line took {before:.0} ns before and {after:.0} ns after"
        ));
    }
    group.tried += 1;
    played.tried += 1;
    if figures.iter().all(Vec::is_empty) {
        causes.push("nobody could be measured".into());
    }
    let is_kept = causes.is_empty();
    played.dropped += usize::from(!is_kept);
    for (case, figures) in group.cases.iter().zip(figures).filter(|_| is_kept) {
        let line_ns = bench.by_line.then_some((before + after) / 2.0);
        played.cases[*case].add(figures, line_ns);
    }
    let shown = if is_kept {
        "counts".to_owned()
    } else {
        format!("dropped: {}", causes.join("; "))
    };
    eprintln!(
        "bench {}: {}: round {} {shown}",
        bench.name,
        named(bench, &cases[group.cases[0]], group.cases.len()),
        group.tried
    );
    for cause in causes {
        // The figures of a cause differ each time; its kind is what counts.
        let kind: String = cause
            .chars()
            .filter(|letter| !letter.is_ascii_digit() && *letter != '.')
            .collect();
        let kind = kind.split_whitespace().collect::<Vec<_>>().join(" ");
        if !played.causes.contains(&kind) {
            played.causes.push(kind);
        }
    }
    Ok(())
}

fn figures_of(member: &Member, printed: &Printed, case: &Values) -> Result<Figures> {
    let wanted: Vec<(String, String)> = member
        .figures
        .0
        .iter()
        .map(|(name, what)| (name.clone(), filled(what, case)))
        .collect();
    let found = member.read.read(&printed.text, &wanted);
    let found = found.map_err(|error| anyhow!("{error:#} ({})", printed.said))?;
    let lab = printed
        .lab
        .iter()
        .flat_map(|lab| LAB_FIGURES.iter().zip(lab));
    let lab = lab.map(|(name, value)| ((*name).to_owned(), *value));
    let all = found.into_iter().chain(lab);
    Ok(all
        .map(|(figure, value)| (format!("{}.{figure}", member.name.get_ref()), value))
        .collect())
}

/// Rounds by the state in which they were played: one state, or two, `near` and `far`, where ways of a line lie in two groups.
pub fn populations(lines_ns: &[f64]) -> Vec<(&'static str, Vec<usize>)> {
    let mut sorted = lines_ns.to_vec();
    sorted.sort_by(f64::total_cmp);
    let gaps = sorted
        .windows(2)
        .map(|two| (two[1] / two[0], (two[0] * two[1]).sqrt()));
    let widest = gaps
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(ratio, _)| *ratio >= APART);
    let all = || 0..lines_ns.len();
    match widest {
        None => vec![("one", all().collect())],
        Some((_, parting)) => vec![
            ("near", all().filter(|at| lines_ns[*at] < parting).collect()),
            ("far", all().filter(|at| lines_ns[*at] >= parting).collect()),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    const TEXT: &str = r#"title = "t"
answers = "true"
note = "n"
rounds = 3
[[axis]]
size = ["1", "2"]
[[member]]
name = "a"
run = "a"
read = "text"
figures = { x = "x{size}" }
[[member]]
name = "b"
run = "b {size}"
read = "values"
only = { size = ["1"] }
[[row]]
what = "x"
of = "a.x"
"#;

    /// A machine of a script: the causes before and after each round, and what fails.
    #[derive(Default)]
    struct Scripted {
        causes: Vec<&'static str>,
        lines_ns: Vec<f64>,
        fails: &'static str,
        ran: Vec<String>,
        /// Runs after which the budget is spent.
        budget: Option<usize>,
    }

    impl Machine for Scripted {
        fn causes(&mut self) -> Result<Vec<String>> {
            let next = if self.causes.is_empty() {
                ""
            } else {
                self.causes.remove(0)
            };
            Ok([next]
                .into_iter()
                .filter(|cause| !cause.is_empty())
                .map(str::to_owned)
                .collect())
        }
        fn line_ns(&mut self) -> Result<f64> {
            Ok(if self.lines_ns.is_empty() {
                50.0
            } else {
                self.lines_ns.remove(0)
            })
        }
        fn run(&mut self, member: &Member, values: &Values) -> Result<Printed> {
            let run = filled(member.run.get_ref(), values);
            self.ran.push(run.clone());
            if run == self.fails {
                bail!("it broke");
            }
            let count = self.ran.len();
            Ok(Printed {
                text: format!("x1 {count}\nx2 {count}\n"),
                lab: None,
                said: "exit 1".into(),
            })
        }
        fn is_over(&self) -> Option<bool> {
            self.budget.map(|budget| self.ran.len() >= budget)
        }
    }

    fn played(machine: &mut Scripted, text: &str) -> Played {
        let bench = Bench::parse("t", text).unwrap();
        let cases = bench.cases();
        play(&bench, &[0, 1], (&cases, &[]), bench.rounds, machine).unwrap()
    }

    #[test]
    fn members_take_turns_and_commands_run_once() {
        let mut machine = Scripted::default();
        let found = played(&mut machine, TEXT);
        // Size 2 has only `a`: a group of its own.
        let wanted = ["a", "b 1", "a", "a", "b 1", "a", "a", "b 1", "a"];
        assert_eq!(machine.ran, wanted);
        assert_eq!((found.tried, found.dropped, found.cases.len()), (6, 0, 2));
        assert_eq!(found.cases[0].figures["a.x"].len(), 3);
        // One command for both cases.
        let mut machine = Scripted::default();
        let found = played(
            &mut machine,
            &TEXT
                .replace("only = { size = [\"1\"] }", "")
                .replace("b {size}", "b"),
        );
        assert_eq!(machine.ran, ["a", "b", "b", "a", "a", "b"]);
        assert_eq!(found.cases[1].figures["b.x2"], [2.0, 3.0, 6.0]);
    }

    #[test]
    fn disturbed_rounds_are_dropped_and_played_again() {
        let text = TEXT.replace("\"1\", \"2\"", "\"1\"");
        let mut machine = Scripted {
            causes: vec!["", "", "gap of 7.2 ms", "", "", "gap of 9 ms"],
            ..Scripted::default()
        };
        let found = played(&mut machine, &text);
        assert_eq!(
            (found.tried, found.dropped, found.cases[0].rounds),
            (5, 2, 3)
        );
        assert_eq!(found.causes, ["gap of ms"]);
        let mut machine = Scripted {
            causes: vec!["gap"; 99],
            ..Scripted::default()
        };
        let found = played(&mut machine, &text);
        assert_eq!(
            (found.tried, found.dropped, found.cases[0].rounds),
            (8, 8, 0)
        );
        assert_eq!(
            found.absent,
            ["1: 0 of 3 rounds: the other rounds were disturbed"]
        );
    }

    #[test]
    fn a_budget_ends_it() {
        let text = TEXT.replace("\"1\", \"2\"", "\"1\"");
        // With a budget disturbed rounds are repeated until it is spent.
        let mut machine = Scripted {
            causes: vec!["gap"; 99],
            budget: Some(40),
            ..Scripted::default()
        };
        let found = played(&mut machine, &text);
        assert_eq!((found.tried, found.dropped), (20, 20));
        assert_eq!(found.absent, ["1: 0 of 3 rounds: the budget was spent"]);
        let mut machine = Scripted {
            budget: Some(4),
            ..Scripted::default()
        };
        let found = played(&mut machine, &text);
        assert_eq!((found.tried, found.cases[0].rounds), (2, 2));
        assert_eq!(found.absent, ["1: 2 of 3 rounds: the budget was spent"]);
    }

    #[test]
    fn who_fails_twice_is_left_out() {
        let text = TEXT.replace("\"1\", \"2\"", "\"1\"");
        let mut machine = Scripted {
            fails: "b 1",
            ..Scripted::default()
        };
        let found = played(&mut machine, &text);
        assert_eq!(machine.ran, ["a", "b 1", "b 1", "a", "a"]);
        assert_eq!(found.absent, ["b, 1: it broke"]);
        assert_eq!(found.cases[0].figures["a.x"].len(), 3);
        let mut machine = Scripted::default();
        let found = played(&mut machine, &text.replace("x{size}", "y"));
        let why = "a, 1: the figure x: no line has 1 numbers after `y` (exit 1)";
        assert_eq!(found.absent, [why]);
    }

    #[test]
    fn rounds_that_were_recorded_count() {
        let bench = Bench::parse("t", TEXT).unwrap();
        let cases = bench.cases();
        let mut recorded = Case::of(&bench, &cases[0]);
        for value in [7.0, 8.0] {
            recorded.add(vec![("a.x".into(), value)], None);
        }
        let mut machine = Scripted::default();
        let found = play(&bench, &[0, 1], (&cases, &[recorded]), 3, &mut machine).unwrap();
        assert_eq!(found.cases[0].figures["a.x"], [7.0, 8.0, 1.0]);
        assert_eq!((found.cases[1].rounds, found.tried), (3, 4));
    }

    #[test]
    fn a_round_without_a_figure_is_none() {
        let text = TEXT.replace("\"1\", \"2\"", "\"2\"");
        let mut machine = Scripted {
            fails: "a",
            ..Scripted::default()
        };
        let found = played(&mut machine, &text);
        assert_eq!(
            (found.tried, found.dropped, found.cases[0].rounds),
            (1, 1, 0)
        );
        assert_eq!(found.causes, ["nobody could be measured"]);
    }

    #[test]
    fn lines_of_two_states_are_two_populations() {
        assert_eq!(populations(&[50.0, 55.0, 60.0]), [("one", vec![0, 1, 2])]);
        assert_eq!(
            populations(&[50.0, 280.0, 60.0]),
            [("near", vec![0, 2]), ("far", vec![1])]
        );
        let text = TEXT
            .replace("\"1\", \"2\"", "\"1\"")
            .replace("rounds = 3", "rounds = 2\nby_line = true");
        // A round in which the state changed is dropped; one of the other state does not count towards the first.
        let lines_ns = vec![50.0, 51.0, 50.0, 200.0, 200.0, 210.0, 52.0, 50.0];
        let mut machine = Scripted {
            lines_ns,
            ..Scripted::default()
        };
        let found = played(&mut machine, &text);
        assert_eq!((found.tried, found.dropped), (4, 1));
        assert_eq!(found.cases[0].lines_ns, [50.5, 205.0, 51.0]);
        assert!(
            found.causes[0].starts_with("a cache line took"),
            "{:?}",
            found.causes
        );
    }
}
