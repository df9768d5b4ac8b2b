//! After a run: what it says, in the form that was asked for, the results of the requirements, and the exit code.
//!
//! Model:   warnings go to standard error, results to standard output; a screen comes last and names the report itself. The result of
//!          the requirements follows the results as text, and is in the document's verdict, as is the verdict on all pairs of hosts.
//! Checked: the end-to-end tests of `assess` and `probe`; `lab_accept.rs`.

use super::{Task, not_kept, say_report, say_where, write_report};
use crate::document::{self, Command, Document, Probed};
use crate::events::Event;
use crate::exit::Outcome;
use crate::failure::Failure;
use crate::output::{self, Print, say};
use crate::require::{self, Judgements};
use crate::shown::{self, Form};
use crate::verify::Verified;
use crate::wanted::{too_few, too_wide};
use sonde_measure::{Judged, Run};
use sonde_record::Judgement;
use sonde_report::matrix::AllPairs;
use sonde_report::{COLUMNS, Place};
use sonde_sys::tell;
use sonde_units::plain;

impl Outcome {
    /// With the results of requirements.
    pub fn require(&mut self, judgements: &Judgements) {
        self.is_judged |= !judgements.all.is_empty();
        self.failed.extend(judgements.reasons(Judged::Fail));
        let open = judgements.reasons(Judged::Inconclusive);
        self.inconclusive.extend(open);
    }

    /// What is judged, with each requirement.
    pub fn judgement_with(&self, judgements: &Judgements) -> Judgement {
        Judgement {
            requirements: judgements.listed(),
            ..self.judgement()
        }
    }
}

/// The results of the requirements, as text; nothing where there are none.
pub fn requirements_text(judgements: &Judgements, columns: usize) -> Option<String> {
    let lines = require::lines(judgements, columns);
    let text = lines.iter().map(|line| plain(line).to_string());
    let text: Vec<String> = text.collect();
    (!text.is_empty()).then(|| text.join("\n"))
}

impl Task {
    /// Prints what was measured, writes the report, and says how it went.
    pub(super) fn finish(
        &self,
        run: &Run,
        trouble: Option<String>,
        verified: Option<&Verified>,
    ) -> Result<i32, Failure> {
        let rows = run.rows();
        let mut warnings = run.warnings.clone();
        let mut outcome = Outcome::of(run, self.strict);
        outcome.is_measured &= self.plan.all_skipped(run).is_none();
        let all_pairs = AllPairs::of(run);
        outcome.judge(all_pairs.as_ref());
        let judgements = Judgements::of(&self.plan, run);
        outcome.require(&judgements);
        let wide = too_wide(&rows, self.plan.repeat.precision_per_mille);
        warnings.extend(wide.clone());
        outcome.uncertain.extend(wide);
        let is_text = self.print == Print::Text && !self.json_stream;
        if self.print == Print::Json {
            // The tables say it beside the figures.
            warnings.extend(too_few(&rows));
        }
        if !is_text {
            let blamed = all_pairs.filter(|all| all.state != Judged::Pass);
            warnings.extend(blamed.into_iter().flat_map(|all| all.reasons));
            warnings.extend(judgements.reasons(Judged::Fail));
            warnings.extend(judgements.reasons(Judged::Inconclusive));
        }
        if self.is_screen(run) {
            return self.finish_on_screen(run, &warnings, &judgements, trouble, outcome);
        }
        if self.json_stream {
            for warning in &warnings {
                Event::Warning { text: warning }.say()?;
            }
        } else if self.print == Print::Csv {
            output::rows(run)?;
        } else if self.print == Print::Json {
            let command = match verified {
                Some(_) => Command::Probe(Probed { verified }),
                None => Command::of(run),
            };
            let verdict = outcome.judgement_with(&judgements);
            document::print(&Document {
                warnings: warnings.clone(),
                ..document::of_run(command, run, verdict)
            })?;
        } else {
            shown::print(run, self.form, output::width(), &Place::default());
            if let Some(verified) = verified {
                say!("\n{}", verified.text(output::width()));
            }
            let columns = output::width().min(COLUMNS);
            if let Some(text) = requirements_text(&judgements, columns) {
                say!("\n{text}");
            }
        }
        for warning in &warnings {
            tell!("sonde: {warning}");
        }
        if let Some(trouble) = trouble {
            return Err(not_kept(&trouble));
        }
        if self.form != Form::Rows {
            say_report(run, &self.out.join(format!("{}.html", run.head.id)));
        }
        say_where(&run.head.id, &self.out);
        self.ended(run, outcome)
    }

    /// Whether the run ends in the screen.
    fn is_screen(&self, run: &Run) -> bool {
        let is_text = self.print == Print::Text && !self.json_stream;
        is_text && self.form.for_run(run) == Form::Screen
    }

    /// The same where it is a screen: it comes last, and names the report and the run itself.
    fn finish_on_screen(
        &self,
        run: &Run,
        warnings: &[String],
        judgements: &Judgements,
        trouble: Option<String>,
        outcome: Outcome,
    ) -> Result<i32, Failure> {
        for warning in warnings {
            tell!("sonde: {warning}");
        }
        let mut place = crate::report::place(&run.head.id, &self.out);
        let page = self.out.join(format!("{}.html", run.head.id));
        if let Err(why) = write_report(run, &page) {
            tell!("sonde: {why}");
            place.page = None;
        }
        shown::print(run, self.form, output::width(), &place);
        if let Some(text) = requirements_text(judgements, output::width().min(COLUMNS)) {
            say!("{text}");
        }
        match trouble {
            Some(trouble) => Err(not_kept(&trouble)),
            None => self.ended(run, outcome),
        }
    }
}
