//! With which code a command ends: one rule for all commands.
//!
//! Model:   what became of what was asked for is an [`Outcome`]; [`code`] is the first that applies of: 70 a defect of sonde; 128
//!          and the number of the signal that interrupted it; 2 nothing could be measured; 1 a requirement, a check or a verdict
//!          failed, cells are missing, or a launch failed for good; 3 what was required, compared or asked for as a verdict is
//!          inconclusive, or a figure is uncertain under `--strict`; else 0. Besides these: 64 the command line was not
//!          understood; 74 output cannot be written; 141 its reader is gone. A command that passes a program on ends with the
//!          program's own code, and with 125 for a failure of its own.
//! Source:  sysexits.h for 64, 70 and 74; 128 + n as shells say it. Deviations: none.
//! Checked: `the_first_that_applies`; `cargo xtask corpus inventory`, in `exit-codes.txt`.

/// What a program ended with that did not say it.
pub const PASSING: i32 = 125;

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It did what was asked for, as far as it could.
    Tried(Outcome),
    /// The command line was not understood.
    Usage,
    /// Nothing could be measured.
    Nothing,
    /// Output cannot be written.
    Unwritten,
    /// Nobody reads the output any more.
    Unread,
    /// A command that passes a program on failed by itself.
    Passing,
    /// A program that it passed on ended with this code, or sonde's part of it did.
    Program(i32),
    /// A defect of sonde.
    Defect,
}

/// What became of what was asked for. The reasons are sentences for a person.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Whether anything was measured, compared or looked at.
    pub is_measured: bool,
    /// Whether there is a judgement: something was required, checked or compared.
    pub is_judged: bool,
    /// Requirements, checks and verdicts that failed; cells and launches that are missing.
    pub failed: Vec<String>,
    /// What is required, compared or asked for as a verdict, and cannot be told.
    pub inconclusive: Vec<String>,
    /// Figures not to be relied on, of which nothing was required.
    pub uncertain: Vec<String>,
    /// Whether uncertain figures count (`--strict`).
    pub is_strict: bool,
    /// The signal that interrupted it.
    pub signal: Option<i32>,
}

/// The exit code.
pub fn code(ending: &Ending) -> i32 {
    match ending {
        Ending::Defect => 70,
        Ending::Usage => 64,
        Ending::Nothing => 2,
        Ending::Unwritten => 74,
        Ending::Unread => 141,
        Ending::Passing => PASSING,
        Ending::Program(code) => *code,
        Ending::Tried(outcome) => match outcome {
            Outcome {
                signal: Some(signal),
                ..
            } => 128 + signal,
            outcome if !outcome.is_measured => code(&Ending::Nothing),
            outcome if !outcome.failed.is_empty() => 1,
            outcome if !outcome.inconclusive.is_empty() => 3,
            outcome if outcome.is_strict && !outcome.uncertain.is_empty() => 3,
            _ => 0,
        },
    }
}

impl Outcome {
    /// Its exit code.
    pub fn code(self) -> i32 {
        code(&Ending::Tried(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_applies() {
        let all = |words: &str| {
            let why = |word: &str| words.contains(word).then(|| word.to_owned());
            let outcome = Outcome {
                is_measured: !words.contains("nothing"),
                is_judged: true,
                failed: why("failed").into_iter().collect(),
                inconclusive: why("inconclusive").into_iter().collect(),
                uncertain: why("uncertain").into_iter().collect(),
                is_strict: words.contains("strict"),
                signal: words.contains("SIGINT").then_some(2),
            };
            Ending::Tried(outcome)
        };
        let table = [
            (Ending::Defect, 70),
            (all("SIGINT nothing failed"), 130),
            (all("nothing failed inconclusive"), 2),
            (all("failed inconclusive uncertain strict"), 1),
            (all("inconclusive"), 3),
            (all("inconclusive uncertain"), 3),
            (all("uncertain strict"), 3),
            (all("uncertain"), 0),
            (all("strict"), 0),
            (all(""), 0),
            (Ending::Usage, 64),
            (Ending::Nothing, 2),
            (Ending::Unwritten, 74),
            (Ending::Unread, 141),
            (Ending::Passing, 125),
            (Ending::Program(127), 127),
        ];
        for (ending, wanted) in table {
            assert_eq!(code(&ending), wanted, "{ending:?}");
        }
    }
}
