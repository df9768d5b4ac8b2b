//! A Markdown table that is filled row by row.

use std::fmt;

/// Column heads and rows of the same width.
pub struct Table {
    heads: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(heads: &[&'static str]) -> Self {
        Self {
            heads: heads.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it has not one cell a column.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.heads.len(), "one cell a column");
        self.rows.push(cells);
    }

    /// Adds a row for what could not be measured: its name, and why, in the last cell.
    pub fn broken(&mut self, name: &[&str], why: &anyhow::Error) {
        let mut cells: Vec<String> = name.iter().map(|&word| word.to_owned()).collect();
        cells.resize(self.heads.len() - 1, "–".to_owned());
        cells.push(format!("failed: {why:#}"));
        self.row(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| {} |", self.heads.join(" | "))?;
        writeln!(f, "|{}", "---|".repeat(self.heads.len()))?;
        for row in &self.rows {
            let cells: Vec<_> = row
                .iter()
                .map(|cell| cell.replace('|', "\\|").replace('\n', " "))
                .collect();
            writeln!(f, "| {} |", cells.join(" | "))?;
        }
        Ok(())
    }
}

/// The word of a verdict.
pub fn verdict(is_met: bool) -> String {
    if is_met { "met" } else { "**not met**" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_reads_as_markdown() {
        let mut table = Table::new(&["network", "rate", "verdict"]);
        table.row(vec!["a|b".into(), "1".into(), verdict(true)]);
        table.broken(&["c"], &anyhow::anyhow!("no\nluck"));
        let wanted = "| network | rate | verdict |\n|---|---|---|\n| a\\|b | 1 | met |\n| c | – | failed: no luck |\n";
        assert_eq!(table.to_string(), wanted);
    }
}
