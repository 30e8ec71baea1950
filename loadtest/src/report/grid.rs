// SPDX-License-Identifier: Apache-2.0
//! A table as text. It only aligns.

use std::fmt;

/// Rows of cells under headings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Grid {
    pub(super) headings: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// The space between two columns.
const GAP: &str = "  ";

impl Grid {
    pub(crate) fn new(headings: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            headings: headings.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }

    /// Removes columns in which all cells are empty, but never the first.
    pub(super) fn without_empty_columns(self) -> Self {
        let said = |at: usize| {
            self.rows
                .iter()
                .any(|row| row.get(at).is_some_and(|cell| !cell.is_empty()))
        };
        let kept: Vec<bool> = (0..self.headings.len()).map(|at| at == 0 || said(at)).collect();
        let keep = |cells: Vec<String>| {
            let kept_cells = cells.into_iter().zip(&kept).filter(|(_, kept)| **kept);
            kept_cells.map(|(cell, _)| cell).collect()
        };
        Self {
            headings: keep(self.headings),
            rows: self.rows.into_iter().map(keep).collect(),
        }
    }

    /// Whether every cell of a column is a figure or empty.
    fn is_of_figures(&self, at: usize) -> bool {
        let mut cells = self.rows.iter().filter_map(|row| row.get(at));
        at > 0 && cells.all(|cell| cell.is_empty() || is_figure(cell))
    }
}

/// Aligns words left and figures right.
impl fmt::Display for Grid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = || std::iter::once(&self.headings).chain(&self.rows);
        let widths: Vec<usize> = (0..self.headings.len())
            .map(|at| {
                let cells = rows().filter_map(|row| row.get(at));
                cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
            })
            .collect();
        let figures: Vec<bool> = (0..self.headings.len()).map(|at| self.is_of_figures(at)).collect();
        for row in rows() {
            let mut line = String::new();
            for (at, ((cell, width), figure)) in row.iter().zip(&widths).zip(&figures).enumerate() {
                let gap = if at == 0 { "" } else { GAP };
                if *figure {
                    line.push_str(&format!("{gap}{cell:>width$}"));
                } else {
                    line.push_str(&format!("{gap}{cell:<width$}"));
                }
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

fn is_figure(text: &str) -> bool {
    let amount = text.trim_start_matches(['≤', '≥', '=', ' ']);
    amount.starts_with(|first: char| first.is_ascii_digit() || first == '-')
}
