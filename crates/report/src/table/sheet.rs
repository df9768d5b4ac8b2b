//! How every table of the command is laid out.
//!
//! Model:   the first columns name a line, the others are figures of it. Text is left-aligned, numbers are right-aligned below a head with
//!          their unit. A table wider than the terminal is given in parts, each with the first columns. What is text and still too
//!          wide is wrapped within its column; figures never are. No colours: it reads the same in a file.
//! Units:   columns of a terminal.
//! Checked: `a_narrow_terminal_has_two_tables`, `every_part_fits`, `the_last_text_is_wrapped`.

use std::ops::Range;

use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, Table, TableComponent, presets,
};
use sonde_units::plain;

/// A last column of text gets at least so much, or stands in a part of its own.
const LOOSE: usize = 24;
/// In a part of its own it gets at least so much before what names a line is wrapped.
const NARROW: usize = 10;

/// A table in the making.
#[derive(Debug, Clone, Default)]
pub struct Sheet {
    pub(crate) heads: Vec<String>,
    pub(crate) lines: Vec<Vec<String>>,
    /// How many columns name a line.
    pub(crate) keys: usize,
    /// How many of the next columns stand in the first part where the table is too wide and two parts are enough.
    pub(crate) first: usize,
    /// How many of the first columns are text.
    pub(crate) words: usize,
    /// Whether the last column is text too.
    pub(crate) loose: bool,
}

/// A table whose first column names a line and whose others are numbers. What is in it from outside cannot harm a terminal.
pub fn sheet(heads: &[&str], lines: impl IntoIterator<Item = Vec<String>>) -> Sheet {
    let lines = lines.into_iter();
    let lines = lines.map(|line| line.iter().map(|cell| plain(cell)).collect());
    Sheet {
        heads: heads.iter().map(|head| (*head).into()).collect(),
        lines: lines.collect(),
        keys: 1,
        first: heads.len(),
        words: 1,
        loose: false,
    }
}

impl Sheet {
    /// The same, of which so many columns name a line; they are text.
    pub fn keyed(mut self, keys: usize) -> Self {
        (self.keys, self.words) = (keys, keys);
        self
    }

    /// The same, of which so many of the first columns are text.
    pub fn worded(mut self, words: usize) -> Self {
        self.words = words;
        self
    }

    /// The same with text in its last column.
    pub fn loose(mut self) -> Self {
        self.loose = true;
        self
    }

    /// One part, or as many as the terminal makes of it.
    pub fn text(&self, width: usize) -> String {
        let all = self.heads.len();
        if self.natural(0..all) <= width {
            return self.part(0..all, width);
        }
        let parts: Vec<String> = self.parts(width);
        parts.join("\n\n")
    }

    fn parts(&self, width: usize) -> Vec<String> {
        let all = self.heads.len();
        let last = all - usize::from(self.loose && all > self.keys);
        let room = width.saturating_sub(self.natural(0..last) + 1);
        if last < all && room >= LOOSE {
            return vec![self.part(0..all, width)];
        }
        let cut = self.keys + self.first;
        let two = [self.keys..cut, cut..all];
        if cut < all && two.iter().all(|range| self.natural(range.clone()) <= width) {
            return two.into_iter().map(|part| self.part(part, width)).collect();
        }
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for column in self.keys..all {
            match ranges.last_mut() {
                Some(range) if self.natural(range.start..column + 1) <= width => {
                    range.end = column + 1;
                }
                _ => ranges.push(column..column + 1),
            }
        }
        if ranges.is_empty() {
            ranges.push(0..all);
        }
        ranges
            .into_iter()
            .map(|part| self.part(part, width))
            .collect()
    }

    /// Takes a column of text out of those that name a line.
    pub(super) fn leave_out(&mut self, column: usize) {
        self.heads.remove(column);
        for line in &mut self.lines {
            line.remove(column);
        }
        self.keys -= usize::from(column < self.keys);
        self.words -= usize::from(column < self.words);
    }

    /// Takes out the columns that are marked; the last ones come first.
    pub(crate) fn leave_out_marked<const N: usize>(&mut self, columns: [(usize, bool); N]) {
        for (column, _) in columns.into_iter().filter(|(_, marked)| *marked) {
            self.leave_out(column);
        }
    }

    /// Leaves out the last columns.
    pub(super) fn cut(&mut self, columns: usize) {
        let left = self.heads.len() - columns;
        self.heads.truncate(left);
        self.lines.iter_mut().for_each(|line| line.truncate(left));
    }

    /// The columns that name a line, and those of `range`.
    fn columns(&self, range: Range<usize>) -> Vec<usize> {
        let others = range.filter(|column| *column >= self.keys);
        (0..self.keys).chain(others).collect()
    }

    /// As wide as it is where nothing is wrapped.
    fn natural(&self, range: Range<usize>) -> usize {
        let table = self.laid_out(&self.columns(range));
        let widths = table.column_max_content_widths();
        // Two between columns; what would follow the last is trimmed.
        let gaps = 2 * widths.len().saturating_sub(1);
        widths
            .iter()
            .map(|width| usize::from(*width))
            .sum::<usize>()
            + gaps
    }

    fn is_text(&self, column: usize) -> bool {
        column < self.words || (self.loose && column + 1 == self.heads.len())
    }

    fn laid_out(&self, columns: &[usize]) -> Table {
        let pick = |cells: &[String]| -> Vec<String> {
            let cell = |column: &usize| cells.get(*column).cloned().unwrap_or_default();
            columns.iter().map(cell).collect()
        };
        let mut table = Table::new();
        table
            .load_preset(presets::NOTHING)
            .set_style(TableComponent::HeaderLines, '─')
            .set_style(TableComponent::MiddleHeaderIntersections, '─')
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(pick(&self.heads));
        for line in &self.lines {
            table.add_row(pick(line));
        }
        for (column, place) in table.column_iter_mut().zip(columns) {
            column.set_padding((0, 1));
            if !self.is_text(*place) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }

    fn part(&self, range: Range<usize>, width: usize) -> String {
        let columns = self.columns(range.clone());
        let mut table = self.laid_out(&columns);
        if self.natural(range.clone()) > width {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            // One more, which is trimmed.
            table.set_width(u16::try_from(width + 1).unwrap_or(u16::MAX));
            let last = self.heads.len() - 1;
            // Where the last text has room, it alone is wrapped.
            let has_room = self.loose
                && range.end > last
                && self.natural(range.start..last) + 2 + NARROW <= width;
            for (column, place) in table.column_iter_mut().zip(&columns) {
                if !self.is_text(*place) || (has_room && *place != last) {
                    column.set_constraint(ColumnConstraint::ContentWidth);
                }
            }
        }
        let lines = table.lines().map(|line| line.trim_end().to_owned());
        let lines: Vec<String> = lines.map(|line| cut_rule(line, width)).collect();
        lines.join("\n")
    }
}

/// The rule below the heads is one wider than these.
fn cut_rule(line: String, width: usize) -> String {
    match line.starts_with('─') && line.chars().count() == width + 1 {
        true => line.chars().take(width).collect(),
        false => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widest(text: &str) -> usize {
        let widths = text.lines().map(|line| line.chars().count());
        widths.max().unwrap_or(0)
    }

    fn wide() -> Sheet {
        let heads = [
            "network",
            "rate\nMb/s",
            "latency\nµs",
            "lost\n%",
            "what it is",
        ];
        let line = |name: &str| {
            let about = "a network of an office: all stations share one line, and wait for it";
            [name, "94.15", "1 234.5", "0.031", about]
                .map(String::from)
                .to_vec()
        };
        sheet(&heads, [line("ethernet-10"), line("wan-100m-20ms")]).loose()
    }

    #[test]
    fn every_part_fits() {
        for width in [30, 40, 60, 80, 132, 200] {
            let text = wide().text(width);
            assert!(widest(&text) <= width, "{width}:\n{text}");
            for word in ["94.15", "1 234.5", "0.031", "ethernet-10", "wan-100m-20ms"] {
                assert!(text.contains(word), "{width}: {word} is whole\n{text}");
            }
        }
        assert_eq!(wide().text(132).matches("network").count(), 3, "one part");
    }

    #[test]
    fn the_last_text_is_wrapped() {
        let text = wide().text(80);
        assert_eq!(text.matches("rate").count(), 1, "{text}");
        assert!(text.lines().count() > 5, "{text}");
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| line.contains("a network of"))
            .collect();
        assert_eq!(lines.len(), 2, "{text}");
    }

    #[test]
    fn a_table_harms_no_terminal() {
        let text = sheet(&["run"], [vec!["\u{1b}[31mred\nline".to_owned()]]).text(80);
        assert!(text.contains("\\u{1b}[31mred\\u{a}line"), "{text}");
    }
}
