//! The options by which results are printed and shown, the same for every command that has some.
//!
//! Checked: `a_files_name_says_the_form`; `tests/typed.rs`.

use super::typed;
use crate::failure::Failure;
use crate::output::{self, Print};
use clap::Args;
use std::path::PathBuf;

/// In which form results are printed, and where to.
#[derive(Debug, Clone, Default, Args)]
pub struct OutputOptions {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Print the rows as comma-separated values.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Write the results to this file instead of standard output; an ending .json or .csv says the form too.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

/// The run's page.
#[derive(Debug, Clone, Default, Args)]
pub struct PageOptions {
    /// Write the report of the run as one HTML file.
    #[arg(long, value_name = "FILE", value_parser = typed::page)]
    html: Option<PathBuf>,
    /// Open that report in the browser.
    #[arg(long)]
    open: bool,
}

impl OutputOptions {
    /// The form that is asked for.
    ///
    /// # Errors
    /// The file's name says another than the options, or none that is printed.
    pub fn form(&self) -> Result<Print, Failure> {
        let ending = self.to.as_ref().and_then(|path| path.extension());
        let ending = ending
            .and_then(|ending| ending.to_str())
            .unwrap_or_default();
        let by_name = match ending {
            "html" | "htm" => {
                return Err(Failure::usage(
                    "`--to` takes what is printed: write the report by `--html FILE`",
                ));
            }
            "json" => Print::Json,
            "csv" => Print::Csv,
            _ => Print::Text,
        };
        let by_option = match (self.json, self.csv) {
            (true, _) => Print::Json,
            (_, true) => Print::Csv,
            _ => by_name,
        };
        if by_name != Print::Text && by_option != by_name {
            return Err(Failure::usage(format!(
                "`--to` names a file that ends in .{ending}, and `--{}` is another form: leave one of them out",
                if self.json { "json" } else { "csv" }
            )));
        }
        Ok(by_option)
    }

    /// The same, and from now on what is printed goes to the file, where one is named.
    ///
    /// # Errors
    /// Those of [`Self::form`]; the file cannot be written.
    pub fn take(&self) -> Result<Print, Failure> {
        let form = self.form()?;
        if let Some(path) = &self.to {
            output::to_file(path).map_err(|error| {
                Failure::unwritten(format!("cannot write {}: {error}", path.display()))
            })?;
        }
        Ok(form)
    }
}

impl PageOptions {
    /// Whether a page is written or opened.
    pub fn is_wanted(&self) -> bool {
        self.html.is_some() || self.open
    }

    /// What is to be done.
    pub fn taken(self) -> output::Page {
        output::Page {
            file: self.html,
            open: self.open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_name_says_the_form() {
        let form = |json, csv, to: &str| {
            let to = Some(to.into());
            OutputOptions { json, csv, to }.form()
        };
        assert_eq!(form(false, false, "a.json").unwrap(), Print::Json);
        assert_eq!(form(false, false, "a.csv").unwrap(), Print::Csv);
        assert_eq!(form(false, false, "a").unwrap(), Print::Text);
        assert_eq!(form(true, false, "a.txt").unwrap(), Print::Json);
        assert_eq!(form(false, true, "a.csv").unwrap(), Print::Csv);
        let said = |json, csv, to| form(json, csv, to).unwrap_err().to_string();
        assert!(said(true, false, "a.csv").contains("`--json` is another form"));
        assert!(said(false, false, "a.html").contains("`--html FILE`"));
    }
}
