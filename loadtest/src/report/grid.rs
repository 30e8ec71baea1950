//! A table that can be written as text, CSV or HTML. It only aligns and escapes. Crates such as comfy-table and tabled write the text
//! alone, which is a sixth of this file.

use std::fmt;

/// Rows of cells under headings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Grid {
    pub(super) headings: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// The space between two columns.
const GAP: &str = "  ";
/// So many columns also fit on a phone.
const COLUMNS_NARROW: usize = 3;

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

    /// Returns lines of comma-separated values.
    pub(super) fn csv(&self) -> String {
        let line = |cells: &Vec<String>| {
            let cells: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
            format!("{}\n", cells.join(","))
        };
        std::iter::once(&self.headings).chain(&self.rows).map(line).collect()
    }

    /// Returns an HTML table, with a caption for readers who cannot see it.
    pub(super) fn html(&self, caption: &str) -> String {
        let class = |at, text: &str| match text {
            "held" => " class=\"held\"",
            "FAILED" | "VOID" => " class=\"failed\"",
            _ if self.is_of_figures(at) => " class=\"figure\"",
            _ => "",
        };
        let cell = |tag: &str, scope: &str, at: usize, text: &str| {
            format!("<{tag}{scope}{}>{}</{tag}>", class(at, text), escaped(text))
        };
        // On a narrow page each row of a wide table becomes a list, in which each cell says its heading.
        let wide = if self.headings.len() > COLUMNS_NARROW {
            " class=\"wide\""
        } else {
            ""
        };
        let label = |at: usize| match self.headings.get(at) {
            Some(heading) if !wide.is_empty() => format!(" data-label=\"{}\"", escaped(heading)),
            Some(_) | None => String::new(),
        };
        let mut out = format!(
            "<div class=\"scroll\" tabindex=\"0\"><table{wide}><caption>{}</caption><thead><tr>",
            escaped(caption)
        );
        let headings = self.headings.iter().enumerate();
        out.extend(headings.map(|(at, heading)| cell("th", " scope=\"col\"", at, heading)));
        out.push_str("</tr></thead><tbody>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            for (at, text) in row.iter().enumerate() {
                let (tag, scope) = match at {
                    0 => ("th", " scope=\"row\"".to_owned()),
                    _ => ("td", label(at)),
                };
                out.push_str(&cell(tag, &scope, at, text));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
        out
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

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", cell.replace('"', "\"\""));
    }
    cell.to_owned()
}

/// Escapes text for HTML, also within quoted attributes.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // A page must not contain other control characters.
            control if control.is_control() && !matches!(control, '\n' | '\t') => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}
