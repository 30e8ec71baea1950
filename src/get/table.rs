// SPDX-License-Identifier: Apache-2.0
//! Tables for terminals, as other command lines of operators print them.
//!
//! Owns the layout, and that no text of a peer steers the terminal. Does not know what is in them.

use crate::xds::printable;

/// A table. Its first columns are for everybody, the others for `-o wide`.
#[derive(Debug)]
pub(crate) struct PrintedTable {
    head: Vec<&'static str>,
    narrow: usize,
    rows: Vec<(Tone, Vec<String>)>,
}

/// How a row is: its colour on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Busy,
    Wrong,
}

impl Tone {
    /// Returns a line in its colour.
    pub(crate) fn coloured(self, line: &str) -> String {
        match self {
            Self::Plain => line.to_owned(),
            Self::Busy => format!("\x1b[33m{line}\x1b[0m"),
            Self::Wrong => format!("\x1b[31m{line}\x1b[0m"),
        }
    }
}

/// Between two columns.
const GAP: &str = "   ";
/// What stands in an empty cell.
const NOTHING: &str = "-";
/// The most characters of a cell, unless the table is wide.
const CELL_MAX: usize = 80;

impl PrintedTable {
    /// Creates a table without rows.
    pub(crate) fn new(narrow: &'static str, wide: &'static str) -> Self {
        let narrow = narrow.split_ascii_whitespace();
        Self {
            narrow: narrow.clone().count(),
            head: narrow.chain(wide.split_ascii_whitespace()).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: impl IntoIterator<Item = String>) {
        self.push_in(Tone::Plain, row);
    }

    /// Adds a row in this tone.
    pub(crate) fn push_in(&mut self, tone: Tone, row: impl IntoIterator<Item = String>) {
        let mut row: Vec<String> = row.into_iter().collect();
        row.resize(self.head.len(), String::new());
        self.rows.push((tone, row));
    }

    /// Returns the lines; the last column is not padded. With `room`, there are as many columns as so many characters have room for,
    /// but all that are for everybody.
    pub(crate) fn lines(&self, wide: bool, room: Option<usize>) -> Vec<(String, Tone)> {
        let head = (Tone::Plain, self.head.iter().map(|title| (*title).to_owned()).collect());
        let cells = |(tone, row): &(Tone, Vec<String>)| (*tone, row.iter().map(|text| cell(text, wide)).collect());
        let rows: Vec<(Tone, Vec<String>)> = std::iter::once(head).chain(self.rows.iter().map(cells)).collect();
        let width = |at: usize| {
            let cells = rows.iter().filter_map(|(_, row)| Some(row.get(at)?.chars().count()));
            cells.max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let fits = |columns: usize| {
            let all: usize = widths.iter().take(columns).map(|width| width + GAP.len()).sum();
            room.is_some_and(|room| all <= room + GAP.len())
        };
        let more = (self.narrow..=self.head.len()).rev().find(|columns| fits(*columns));
        let columns = match wide {
            true => self.head.len(),
            false => more.unwrap_or(self.narrow),
        };
        let line = |(tone, row): &(Tone, Vec<String>)| {
            let padded = row.iter().zip(&widths).take(columns);
            let padded = padded.map(|(text, width)| format!("{text:width$}"));
            let line = padded.collect::<Vec<_>>().join(GAP);
            (line.trim_end().to_owned(), *tone)
        };
        rows.iter().map(line).collect()
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
pub(crate) fn short(version: &str) -> String {
    version.chars().take(8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_steer_nothing() {
        let mut table = PrintedTable::new("NAME STATE", "REASON");
        let row = |cells: [&str; 3]| cells.map(str::to_owned);
        table.push(row(["ä\u{1b}[2J\nb", "up", "none"]));
        table.push(row(["", &"x".repeat(100), "long"]));
        let texts = |wide, room| -> Vec<String> {
            let lines = table.lines(wide, room).into_iter();
            lines.map(|(line, _)| line).collect()
        };
        let lines = texts(false, None);
        assert_eq!(lines[0], "NAME            STATE");
        assert_eq!(lines[1], "ä\\u{1b}[2J\\nb   up");
        assert_eq!(lines[2], format!("-               {}...", "x".repeat(80)));
        let wide = texts(true, None);
        assert!(wide[2].ends_with(&format!("{}   long", "x".repeat(100))), "{wide:?}");
        // A terminal that is wide enough shows more.
        assert!(texts(false, Some(108))[2].ends_with("   long"));
        assert!(texts(false, Some(107))[2].ends_with("..."));
    }
}
