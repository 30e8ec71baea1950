//! Tables for terminals, as other command lines of operators print them.
//!
//! Owns the layout, and that no text of a peer steers the terminal. Does not know what is in them.

use crate::xds::printable;

/// A table. Its first columns are for everybody, the others for `-o wide`.
#[derive(Debug)]
pub(super) struct Table {
    head: Vec<&'static str>,
    narrow: usize,
    rows: Vec<Vec<String>>,
}

/// Between two columns.
const GAP: &str = "   ";
/// What stands in an empty cell.
const NOTHING: &str = "-";
/// The most characters of a cell, unless the table is wide.
const CELL_MAX: usize = 80;

impl Table {
    /// Creates a table without rows.
    pub(super) fn new(narrow: &[&'static str], wide: &[&'static str]) -> Self {
        Self {
            head: [narrow, wide].concat(),
            narrow: narrow.len(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub(super) fn push(&mut self, row: impl IntoIterator<Item = String>) {
        let row: Vec<String> = row.into_iter().collect();
        debug_assert_eq!(row.len(), self.head.len());
        self.rows.push(row);
    }

    /// Returns the lines; the last column is not padded.
    pub(super) fn lines(&self, wide: bool) -> Vec<String> {
        let columns = if wide { self.head.len() } else { self.narrow };
        let head = self.head.iter().map(|title| (*title).to_owned()).collect();
        let rows = self
            .rows
            .iter()
            .map(|row| row.iter().take(columns).map(|text| cell(text, wide)).collect());
        let cells: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
        let width = |at: usize| cells.iter().filter_map(|row| Some(row.get(at)?.chars().count())).max();
        let widths: Vec<usize> = (0..columns).filter_map(width).collect();
        let line = |row: &Vec<String>| {
            let padded = row.iter().zip(&widths).map(|(text, width)| format!("{text:width$}"));
            let line = padded.collect::<Vec<_>>().join(GAP);
            line.trim_end().to_owned()
        };
        cells.iter().map(line).collect()
    }
}

fn cell(text: &str, wide: bool) -> String {
    let text = printable(text);
    let end = text.char_indices().nth(CELL_MAX).filter(|_| !wide);
    match (text.is_empty(), end.and_then(|(at, _)| text.get(..at))) {
        (true, _) => NOTHING.to_owned(),
        (false, Some(start)) => format!("{start}..."),
        (false, None) => text.into_owned(),
    }
}

/// Returns the first digits of a version or a digest, by which people tell them apart.
pub(super) fn short(version: &str) -> String {
    version.chars().take(8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_steer_nothing() {
        let mut table = Table::new(&["NAME", "STATE"], &["REASON"]);
        let row = |cells: [&str; 3]| cells.map(str::to_owned);
        table.push(row(["ä\u{1b}[2J\nb", "up", "none"]));
        table.push(row(["", &"x".repeat(100), "long"]));
        let lines = table.lines(false);
        assert_eq!(lines[0], "NAME            STATE");
        assert_eq!(lines[1], "ä\\u{1b}[2J\\nb   up");
        assert_eq!(lines[2], format!("-               {}...", "x".repeat(80)));
        let wide = table.lines(true);
        assert!(wide[2].ends_with(&format!("{}   long", "x".repeat(100))), "{wide:?}");
    }
}
