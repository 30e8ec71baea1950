//! The report as one SVG picture, for places that cannot show a page: how figures grow with the fleet.

use std::fmt::Write as _;

use super::grid::escaped;
use super::growth;
use super::page::STYLE;
use super::plot::{Plot, STYLES, WIDTH};
use crate::measure::record::{Record, float};

const COLUMNS: usize = 2;
/// The space between plots, and around all of them.
const GAP: f64 = 24.0;
const TITLE: f64 = 22.0;
const ROW: f64 = 16.0;

/// Returns the plots of growth; fails for a fleet that does not grow.
pub(super) fn picture(record: &Record) -> anyhow::Result<String> {
    let plots = growth::plots(record);
    anyhow::ensure!(
        !plots.is_empty(),
        "--svg shows growth, but this fleet had fewer than three sizes: play a scenario such as `growth`"
    );
    let (mut body, mut top) = (String::new(), GAP);
    for row in plots.chunks(COLUMNS) {
        let mut left = GAP;
        let drawn: Vec<_> = row.iter().map(panel).collect();
        for (text, _) in &drawn {
            let _ = writeln!(body, "<g transform=\"translate({left} {top})\">{text}</g>");
            left += WIDTH + GAP;
        }
        top += drawn.iter().map(|(_, height)| *height).fold(0.0, f64::max) + GAP;
    }
    let columns = float(u64::try_from(COLUMNS.min(plots.len()))?);
    let width = columns * (WIDTH + GAP) + GAP;
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {top}\" width=\"{width}\" height=\"{top}\">\n\
         <style>\n{STYLE}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"var(--page)\"/>\n{body}</svg>\n"
    ))
}

/// Returns a plot under its title and legend, and the height of it all.
fn panel(plot: &Plot) -> (String, f64) {
    let mut out = format!("<text y=\"12\" font-weight=\"600\">{}</text>", escaped(&plot.title));
    let mut top = TITLE;
    for (at, line) in plot.lines.iter().enumerate() {
        let _ = write!(
            out,
            "<path class=\"line s{}\" d=\"M1 {mark}H29\"/><text x=\"36\" y=\"{text}\">{}</text>",
            at % STYLES,
            escaped(&line.name),
            mark = top + 6.0,
            text = top + 10.0,
        );
        top += ROW;
    }
    let (drawing, height) = plot.drawing(WIDTH);
    let _ = write!(out, "<g transform=\"translate(0 {top})\">{drawing}</g>");
    (out, top + height)
}
