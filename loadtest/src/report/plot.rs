//! A plot as inline SVG: lines over two axes, with the phases marked. Colours are classes, so that the page sets them for light
//! and dark; lines also differ by their dashes, for readers who cannot tell the colours apart.
//!
//! No crate draws it: plotters writes colours into each element, poloto has no logarithmic axis, and charming needs scripts.

use std::fmt::Write as _;

use super::grid::{Grid, escaped};
use super::scale::Axis;

/// Lines with a title and the figures behind them.
pub(super) struct Plot {
    /// Unique in its page.
    pub(super) id: String,
    pub(super) title: String,
    /// A description for readers who cannot see the plot.
    pub(super) about: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) lines: Vec<Line>,
    pub(super) bands: Vec<Band>,
    /// The same figures as a table, shown beside the plot.
    pub(super) figures: Grid,
}

/// One line; it has a gap where nothing was measured.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<(f64, Option<f64>)>,
}

/// A part of the x axis with a name: a phase.
#[derive(Clone, Debug)]
pub(super) struct Band {
    pub(super) name: String,
    pub(super) from: f64,
    pub(super) to: f64,
}

pub(super) const WIDTH: f64 = 720.0;
/// The width on a phone: letters keep their size there.
const NARROW: f64 = 370.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 24.0;
const HEIGHT: f64 = 230.0;
const BOTTOM: f64 = 46.0;
/// A row of names above the lines.
const NAME_ROW: f64 = 15.0;
const NAME_ROWS_MAX: usize = 5;
/// About as wide as a letter is on average, in the size that names have.
const LETTER: f64 = 6.4;
/// Lines with at most so many points have a mark at each point.
const MARKED_MAX: usize = 40;
/// How many lines can be told apart.
pub(super) const STYLES: usize = 6;

impl Plot {
    /// Whether there is anything to see.
    pub(super) fn is_empty(&self) -> bool {
        self.lines
            .iter()
            .all(|line| line.points.iter().all(|(_, value)| value.is_none()))
    }

    /// Returns the whole figure: title, legend, drawing, and the table.
    pub(super) fn html(&self) -> String {
        let mut out = format!(
            "<figure id=\"{}\">\n<figcaption>{}</figcaption>\n",
            self.id,
            escaped(&self.title)
        );
        out.push_str("<ul class=\"legend\">");
        for (at, line) in self.lines.iter().enumerate() {
            let _ = write!(
                out,
                "<li><svg width=\"30\" height=\"10\" aria-hidden=\"true\"><path class=\"line s{}\" d=\"M1 5H29\"/></svg>{}</li>",
                at % STYLES,
                escaped(&line.name)
            );
        }
        out.push_str("</ul>\n");
        out.push_str(&self.svg());
        let _ = writeln!(
            out,
            "<details><summary>Figures of this plot</summary>{}</details>\n</figure>",
            self.figures.html(&self.title)
        );
        out
    }

    /// Returns the drawing twice, of which the page shows the one that fits.
    fn svg(&self) -> String {
        let (wide, height) = self.drawing(WIDTH);
        let (narrow, lower) = self.drawing(NARROW);
        format!(
            "<svg class=\"broad\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\n\
             <title id=\"{id}-t\">{title}</title><desc id=\"{id}-d\">{about}</desc>\n{wide}</svg>\n\
             <svg class=\"slim\" viewBox=\"0 0 {NARROW} {lower}\" role=\"img\" aria-label=\"{title}\">\n{narrow}</svg>\n",
            title = escaped(&self.title),
            about = escaped(&self.about),
            id = self.id
        )
    }

    /// Returns the drawing and its height.
    pub(super) fn drawing(&self, width: f64) -> (String, f64) {
        let width = width - LEFT - RIGHT;
        let (names, rows) = self.names(width);
        let top = 8.0 + NAME_ROW * rows;
        let (height, base) = (top + HEIGHT + BOTTOM, top + HEIGHT);
        let frame = Frame { top, base, width };
        let mut out = String::new();
        self.draw_bands(&mut out, &frame, &names);
        self.draw_axes(&mut out, &frame);
        // The first lines matter most, so the last ones are drawn below them: a maximum does not hide p99.
        for (at, line) in self.lines.iter().enumerate().rev() {
            self.draw_line(&mut out, &frame, line, at % STYLES);
        }
        (out, height)
    }

    /// Returns the place of each band's name, and the number of rows. No other name and no mark of another band runs through a
    /// name; a name without room has no place.
    fn names(&self, width: f64) -> (Vec<Option<Name>>, f64) {
        // The right end of what is taken in each row.
        let mut rows: Vec<f64> = Vec::new();
        let mut names = Vec::new();
        for band in &self.bands {
            let mark = self.x.place(band.from) * width;
            let letters = u32::try_from(band.name.chars().count()).unwrap_or(u32::MAX);
            let length = f64::from(letters) * LETTER + 8.0;
            // If a name would end beyond the plot, it is written to the left of its mark.
            let leftwards = mark + length > width + RIGHT;
            let (begin, end) = if leftwards {
                (mark - length, mark)
            } else {
                (mark, mark + length)
            };
            // A mark runs down from its name through all rows below.
            let below = rows
                .iter()
                .rposition(|taken| *taken > begin)
                .map_or(0, |taken| taken + 1);
            if below == rows.len() && below < NAME_ROWS_MAX {
                rows.push(0.0);
            }
            // If all rows below are taken, the name uses any free row, without a mark through the others.
            let marked = below < rows.len();
            let free = rows.iter().position(|taken| *taken <= begin);
            let row = if marked { Some(below) } else { free };
            names.push(row.and_then(|row| {
                *rows.get_mut(row)? = end;
                Some(Name {
                    row: float(row),
                    leftwards,
                    marked,
                })
            }));
        }
        (names, float(rows.len()))
    }

    fn draw_bands(&self, out: &mut String, frame: &Frame, names: &[Option<Name>]) {
        for (at, (band, name)) in self.bands.iter().zip(names).enumerate() {
            let (from, to) = (frame.x(self.x.place(band.from)), frame.x(self.x.place(band.to)));
            let above = |name: &Name| 8.0 + NAME_ROW * name.row;
            let marked = name.as_ref().filter(|name| name.marked);
            let top = marked.map_or(frame.top, above);
            let parity = if at.is_multiple_of(2) { "even" } else { "odd" };
            let _ = write!(
                out,
                "<g><title>{name}</title><rect class=\"band {parity}\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{HEIGHT}\"/>\
                 <path class=\"mark\" d=\"M{from:.1} {top:.1}V{:.1}\"/>",
                frame.top,
                (to - from).max(0.5),
                frame.base,
                name = escaped(&band.name)
            );
            if let Some(name) = name {
                let (x, class) = if name.leftwards {
                    (from - 3.0, "name left")
                } else {
                    (from + 3.0, "name")
                };
                let (y, name) = (above(name) + 11.0, escaped(&band.name));
                let _ = write!(out, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{name}</text>");
            }
            out.push_str("</g>\n");
        }
    }

    fn draw_axes(&self, out: &mut String, frame: &Frame) {
        for tick in self.y.ticks() {
            let y = frame.y(tick.place);
            let _ = writeln!(
                out,
                "<path class=\"rule\" d=\"M{LEFT} {y:.1}h{}\"/><text class=\"y\" x=\"{}\" y=\"{:.1}\">{}</text>",
                frame.width,
                LEFT - 6.0,
                y + 4.0,
                escaped(&tick.text)
            );
        }
        // No label runs into the one before.
        let mut taken = f64::NEG_INFINITY;
        for tick in self.x.ticks() {
            let x = frame.x(tick.place);
            let half = float(tick.text.chars().count()) * LETTER / 2.0 + 3.0;
            if x - half < taken {
                continue;
            }
            taken = x + half;
            let _ = writeln!(
                out,
                "<path class=\"axis\" d=\"M{x:.1} {:.1}v4\"/><text class=\"x\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                frame.base,
                frame.base + 17.0,
                escaped(&tick.text)
            );
        }
        let (middle, height) = (LEFT + frame.width / 2.0, (frame.top + frame.base) / 2.0);
        let _ = writeln!(
            out,
            "<path class=\"axis\" d=\"M{LEFT} {:.1}V{:.1}h{}\"/>\
             <text class=\"x\" x=\"{middle:.1}\" y=\"{:.1}\">{}</text>\
             <text class=\"x\" transform=\"translate(13 {height:.1}) rotate(-90)\">{}</text>",
            frame.top,
            frame.base,
            frame.width,
            frame.base + 38.0,
            escaped(&self.x.label),
            escaped(&self.y.label)
        );
    }

    fn draw_line(&self, out: &mut String, frame: &Frame, line: &Line, style: usize) {
        let place = |(x, y): (f64, f64)| (frame.x(self.x.place(x)), frame.y(self.y.place(y)));
        let pieces = line.points.split(|(_, value)| value.is_none());
        let pieces = pieces.map(|piece| piece.iter().filter_map(|(x, y)| Some(place((*x, (*y)?)))));
        let marked = line.points.len() <= MARKED_MAX;
        let (mut path, mut marks) = (String::new(), Vec::new());
        for piece in pieces {
            let piece: Vec<(f64, f64)> = piece.collect();
            for (at, (x, y)) in piece.iter().enumerate() {
                let _ = write!(path, "{}{x:.1} {y:.1}", if at == 0 { 'M' } else { 'L' });
            }
            // A single point would not show as a line.
            if marked || piece.len() == 1 {
                marks.extend(piece);
            }
        }
        let name = escaped(&line.name);
        if !path.is_empty() {
            let _ = write!(
                out,
                "<g><title>{name}</title><path class=\"line s{style}\" d=\"{path}\"/>"
            );
            for (x, y) in marks {
                let _ = write!(
                    out,
                    "<circle class=\"s{style}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\"/>"
                );
            }
            out.push_str("</g>\n");
        }
    }
}

/// The place of a band's name.
struct Name {
    row: f64,
    leftwards: bool,
    /// Whether the band's mark reaches up to it.
    marked: bool,
}

/// The area in which the lines are drawn.
struct Frame {
    top: f64,
    base: f64,
    width: f64,
}

impl Frame {
    fn x(&self, place: f64) -> f64 {
        LEFT + place * self.width
    }

    fn y(&self, place: f64) -> f64 {
        self.base - place * (self.base - self.top)
    }
}

fn float(row: usize) -> f64 {
    u32::try_from(row).map_or(0.0, f64::from)
}
