//! `docs/performance.md`, made of the files of `bench/` and of what was recorded: nothing in it is written by hand.
//!
//! Model:   three questions: how fast, how true, how it scales. Each begins with a table of its benches, what each found in a line; then
//!          a section for each bench: what was measured, when, where and beside which noise, its rows, and what was not run.
//! Checked: `a_document_answers_three_questions`, `what_was_carried_over_says_so`; `cargo xtask tidy`, that the file is what is made.

use crate::bench::Known;
use crate::bench::file::{Bench, FOLDER, Question};
use crate::bench::result::Recorded;
use crate::bench::row::{Line, heads, lines, median};

/// What is made.
pub const DOCUMENT: &str = "docs/performance.md";

const HEAD: &str = "\
# Performance

How fast, how true and how scalable sonde is, on the machines that each section names; `sonde lab check` gives the figures of
yours. `cargo xtask bench --write` makes all of this file of `bench/` (what is run, what is wanted) and `bench/results/` (what
came of it): change these, not this. A row is one population: the rounds of one case, on one machine, in one state of it. Two
virtual CPUs may share a cache at one time (*near*) and none at another (*far*); where that matters, each has its own row.
Members of a bench take turns, a ratio is of two figures of the same round, and the interval is that of the median, by ranks, at
95 %: six rounds or more have one. Rounds beside which the machine was not quiet are dropped and counted. *Carried over*
are figures that were printed before rounds were kept: the tables are those of that commit, and the next run replaces them.
";

const QUESTIONS: [(Question, &str); 3] = [
    (Question::Fast, "How fast"),
    (Question::True, "How true"),
    (Question::Scale, "How it scales"),
];

/// The whole document.
pub fn made(benches: &[Known]) -> String {
    let mut text = HEAD.to_owned();
    for (question, title) in QUESTIONS {
        let of: Vec<_> = benches
            .iter()
            .filter(|(bench, _)| bench.answers == question)
            .collect();
        text.push_str(&format!(
            "\n## {title}\n\n| bench | found | met | measured |\n|---|---|---|---|\n"
        ));
        for (bench, recorded) in &of {
            text.push_str(&format!(
                "| [{}](#{}) | {} |\n",
                bench.title.get_ref(),
                anchor(bench.title.get_ref()),
                summary(bench, recorded.as_ref())
            ));
        }
        for (bench, recorded) in of {
            text.push('\n');
            text.push_str(&section(bench, recorded.as_ref()));
        }
    }
    text
}

/// As a page of Markdown makes it of a heading.
fn anchor(title: &str) -> String {
    let letters = title.to_lowercase();
    let kept = letters
        .chars()
        .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.collect::<String>().replace(' ', "-")
}

/// Three cells: what it found, how many rows are met, and when.
fn summary(bench: &Bench, recorded: Option<&Recorded>) -> String {
    let Some(recorded) = recorded else {
        return "– | – | not yet".into();
    };
    let when = format!("{}, {}", recorded.date, recorded.commit);
    if let Some(carried) = &recorded.carried {
        let rows = |word: &str| {
            carried
                .text
                .lines()
                .filter(|line| line.trim_end().ends_with(word))
                .count()
        };
        let (met, missed) = (
            rows("| met |") + rows("| passed |"),
            rows("| **not met** |"),
        );
        let met = if met + missed == 0 {
            "–".into()
        } else {
            format!("{met} of {}", met + missed)
        };
        return format!("carried over | {met} | {when}");
    }
    let all = lines(bench, recorded);
    let judged: Vec<bool> = all.iter().filter_map(Line::is_met).collect();
    let met = match judged.len() {
        0 => "–".into(),
        of => format!(
            "{} of {of}",
            judged.iter().filter(|is_met| **is_met).count()
        ),
    };
    format!("{} | {met} | {when}", headline(&all))
}

/// The medians of the first row over all its cases.
fn headline(all: &[Line]) -> String {
    let Some(first) = all.first() else {
        return "–".into();
    };
    let same = all.iter().filter(|line| line.what == first.what);
    let mut medians: Vec<(f64, String)> = same
        .filter_map(|line| {
            let place = line.cells().len().checked_sub(5)?;
            Some((median(&line.values)?, line.cells().swap_remove(place)))
        })
        .collect();
    medians.sort_by(|a, b| a.0.total_cmp(&b.0));
    let what = first.what.replace('|', "\\|");
    match &medians[..] {
        [] => "–".into(),
        [(_, one)] => format!("{what}: {one}"),
        [(_, low), .., (_, high)] => format!("{what}: {low} to {high}"),
    }
}

/// The section of one bench.
pub fn section(bench: &Bench, recorded: Option<&Recorded>) -> String {
    let mut text = format!("### {}\n\n{}\n", bench.title.get_ref(), bench.note.trim());
    let Some(recorded) = recorded else {
        text.push_str(&format!(
            "\nNot measured yet: `cargo xtask bench {} --write`.\n",
            bench.name
        ));
        return text;
    };
    let machine = &recorded.machine;
    if let Some(carried) = &recorded.carried {
        text.push_str(&format!(
            "\n*Carried over* from commit {} ({}), {machine}:\n\n{}\n\n    {}\n",
            recorded.commit,
            recorded.date,
            carried.text.trim(),
            carried.command
        ));
        return text;
    }
    let causes = match recorded.causes.is_empty() {
        true => String::new(),
        false => format!(" ({})", recorded.causes.join("; ")),
    };
    text.push_str(&format!(
        "\nMeasured on {} at commit {}, {machine}; {} of {} rounds were dropped as disturbed, {:.0} %{causes}.\n\n",
        recorded.date,
        recorded.commit,
        recorded.dropped,
        recorded.tried,
        100.0 * recorded.dropped as f64 / recorded.tried.max(1) as f64,
    ));
    let heads = heads(bench);
    text.push_str(&format!(
        "| {} |\n|{}\n",
        heads.join(" | "),
        "---|".repeat(heads.len())
    ));
    for line in lines(bench, recorded) {
        let cells: Vec<String> = line
            .cells()
            .iter()
            .map(|cell| cell.replace('|', "\\|"))
            .collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    for what in &recorded.absent {
        text.push_str(&format!("\n- Not run: {what}."));
    }
    text.push_str(if recorded.absent.is_empty() { "" } else { "\n" });
    text.push_str(&format!("\n    cargo xtask bench {}\n", bench.name));
    text
}

/// Where what is run stands.
pub fn place(name: &str) -> String {
    format!("{FOLDER}/results/{name}.toml")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::result::{Carried, Case};

    fn bench(name: &str, answers: &str) -> Bench {
        let text = format!(
            "title = \"Of {name}, beside: it\"\nanswers = \"{answers}\"\nnote = \"What is run.\"\nrounds = 3\n[[member]]\nname = \"a\"\nrun = \"a\"\nread = \"values\"\n[[row]]\nwhat = \"a | b\"\nof = \"a.x\"\nmost = 2\n"
        );
        Bench::parse(name, &text).unwrap()
    }

    fn recorded() -> Recorded {
        let mut case = Case::default();
        case.add(vec![("a.x".into(), 1.5)], None);
        Recorded {
            commit: "0123abc".into(),
            date: "2026-11-26".into(),
            machine: "Linux".into(),
            tried: 4,
            dropped: 3,
            causes: vec!["gap of ms".into()],
            absent: vec!["b: it broke".into()],
            case: vec![case],
            ..Recorded::default()
        }
    }

    #[test]
    fn a_document_answers_three_questions() {
        let all = [
            (bench("one", "fast"), Some(recorded())),
            (bench("two", "scale"), None),
        ];
        let text = made(&all);
        let at = |words: &str| {
            text.find(words)
                .unwrap_or_else(|| panic!("no {words} in {text}"))
        };
        assert!(at("## How fast") < at("### Of one") && at("### Of one") < at("## How true"));
        assert!(at("## How it scales") < at("### Of two"));
        at(
            "| [Of one, beside: it](#of-one-beside-it) | a \\| b: 1.500 | 1 of 1 | 2026-11-26, 0123abc |",
        );
        at("3 of 4 rounds were dropped as disturbed, 75 % (gap of ms).");
        at("| what | rounds | median |");
        at(
            "| a \\| b | 1 | 1.500 | – | 1.500 to 1.500 | at most 2 | met |\n\n- Not run: b: it broke.\n\n    cargo xtask bench one\n",
        );
        at("| – | – | not yet |");
        at("Not measured yet: `cargo xtask bench two --write`.");
    }

    #[test]
    fn what_was_carried_over_says_so() {
        let carried = Carried {
            command: "cargo xtask prove one --runs 10".into(),
            text: "| a | verdict |\n|---|---|\n| 1 | met |\n| 2 | **not met** |\n".into(),
        };
        let recorded = Recorded {
            carried: Some(carried),
            ..recorded()
        };
        let text = made(&[(bench("one", "true"), Some(recorded))]);
        for wanted in [
            "| carried over | 1 of 2 | 2026-11-26, 0123abc |",
            "*Carried over* from commit 0123abc (2026-11-26), Linux:\n\n| a | verdict |",
            "    cargo xtask prove one --runs 10\n",
        ] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
    }
}
