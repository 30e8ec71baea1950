// SPDX-License-Identifier: Apache-2.0
//! What is shown again and again.
//!
//! Owns the terminal: as much as fits is drawn over what was there. Into a file or a pipe, only what is new is written, and
//! nothing that steers a terminal.

use std::fmt::Write as _;
use std::io::{self, Write};

use rustix::termios::tcgetwinsize;

/// A terminal, or a file or a pipe.
#[derive(Debug)]
pub(super) struct Screen {
    terminal: bool,
    shown: Option<String>,
}

/// Moves to the upper left corner and clears the screen.
const CLEAR: &str = "\x1b[H\x1b[J";
/// The size of a terminal that does not tell it.
const SIZE: (usize, usize) = (24, 80);

impl Screen {
    pub(super) const fn new(terminal: bool) -> Self {
        Self { terminal, shown: None }
    }

    /// Returns how many columns a terminal has.
    pub(super) fn width(&self) -> Option<usize> {
        self.terminal.then(|| size().1)
    }

    pub(super) fn show(&mut self, text: &str, out: &mut impl Write) -> io::Result<()> {
        if self.terminal {
            out.write_all(fitted(text, size()).as_bytes())?;
        } else if self.shown.as_deref() != Some(text) {
            let gap = if self.shown.is_some() { "\n" } else { "" };
            write!(out, "{gap}{text}")?;
            self.shown = Some(text.to_owned());
        }
        out.flush()
    }
}

/// Returns how many lines and columns the terminal has.
fn size() -> (usize, usize) {
    let size = tcgetwinsize(io::stdout()).ok();
    let size = size.filter(|size| size.ws_row > 0 && size.ws_col > 0);
    size.map_or(SIZE, |size| (size.ws_row.into(), size.ws_col.into()))
}

/// Returns what can be seen of a line in so many columns, with all that steers colours.
fn cut(line: &str, columns: usize) -> String {
    let (mut seen, mut steers) = (0, false);
    let shown = line.chars().filter(|c| {
        if *c == '\x1b' {
            steers = true;
            return true;
        }
        if steers {
            steers = *c != 'm';
            return true;
        }
        seen += 1;
        seen <= columns
    });
    shown.collect()
}

/// Returns what fits into so many lines and columns.
fn fitted(text: &str, (rows, columns): (usize, usize)) -> String {
    let all = text.lines().count();
    let room = rows.saturating_sub(1);
    let shown = if all > room { room.saturating_sub(1) } else { all };
    let mut fitted = CLEAR.to_owned();
    for line in text.lines().take(shown) {
        fitted.push_str(&cut(line, columns));
        fitted.push('\n');
    }
    if shown < all {
        // Writing to memory cannot fail.
        let _ = writeln!(fitted, "... and {} more lines", all - shown);
    }
    fitted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_fits() {
        assert_eq!(fitted("ab\ncde\n", (3, 2)), format!("{CLEAR}ab\ncd\n"));
        assert_eq!(cut("\x1b[31mabc\x1b[0m", 2), "\x1b[31mab\x1b[0m");
        assert_eq!(
            fitted("a\nb\nc\nd\n", (4, 80)),
            format!("{CLEAR}a\nb\n... and 2 more lines\n")
        );
    }

    #[test]
    fn a_file_gets_what_is_new() {
        let mut screen = Screen::new(false);
        let mut out = Vec::new();
        for text in ["a\n", "a\n", "b\n"] {
            screen.show(text, &mut out).unwrap();
        }
        assert_eq!(String::from_utf8(out).unwrap(), "a\n\nb\n");
    }
}
