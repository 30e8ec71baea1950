//! The report as one HTML page without scripts or external files. A sentence and a plot come first, then the assertions, then the
//! figures, then the other plots, each with its figures as a table.

use std::fmt::Write as _;

use super::compare::Comparison;
use super::grid::{Grid, escaped};
use super::plot::Plot;
use super::{charts, growth, summary, table};
use crate::measure::record::Record;

pub(super) const STYLE: &str = include_str!("page.css");

/// Returns the page of one run.
pub(crate) fn page(record: &Record) -> String {
    let (mut growth, mut plots) = (growth::plots(record), charts::plots(record));
    let shown = if growth.is_empty() { &mut plots } else { &mut growth };
    let first = summary::take_plot(shown);
    let mut body = heading(&record.scenario, record);
    body.push_str(&first.as_ref().map(Plot::html).unwrap_or_default());
    body.push_str(&section(
        "Assertions",
        &table::verdicts(record),
        "What must hold, and whether it did",
    ));
    body.push_str(&breaches(record));
    body.push_str(&figures(record));
    body.push_str(&section(
        "Ratios to the floor",
        &table::ratios(record),
        "Figures as multiples of the floor's",
    ));
    for (title, plots) in [("Growth", growth), ("Plots", plots)] {
        if !plots.is_empty() {
            let _ = writeln!(body, "<h2>{title}</h2>\n<div class=\"plots\">{}</div>", drawn(&plots));
        }
    }
    body.push_str(&section(
        "Counted",
        &table::counters(record),
        "Counters of the whole run",
    ));
    body.push_str(&section("Besides", &table::notes(record), "Notes"));
    document(&record.scenario, &body)
}

/// Returns the page of two runs side by side.
pub(crate) fn compared(comparison: &Comparison<'_>) -> String {
    let [a, b] = comparison.records;
    let title = format!("{} and {}", a.scenario, b.scenario);
    let mut body = format!("<h1>{}</h1>\n<div class=\"pair\">\n", escaped(&title));
    for (name, record) in [("A", a), ("B", b)] {
        let heading = heading(name, record).replace("h1>", "h2>");
        let verdicts = section(
            "Assertions",
            &table::verdicts(record),
            "What must hold, and whether it did",
        );
        let _ = writeln!(body, "<div>{heading}{}</div>", verdicts.replace("h2>", "h3>"));
    }
    body.push_str("</div>\n");
    body.push_str("<h2>Figures</h2>\n<div class=\"tables\">\n");
    for (what, grid) in comparison.grids() {
        let _ = writeln!(body, "<div>{}</div>", grid.html(&what));
    }
    body.push_str("</div>\n");
    let spreads = comparison.spreads();
    if !spreads.is_empty() {
        let _ = writeln!(
            body,
            "<h2>How times are spread</h2>\n<div class=\"plots\">{}</div>",
            drawn(&spreads)
        );
    }
    body.push_str("<h2>Over time</h2>\n<div class=\"pair\">\n");
    for (name, plots) in [("A", 0), ("B", 1)].map(|(name, at)| (name, comparison.plots(at))) {
        let _ = writeln!(body, "<div><h3>{name}</h3>{}</div>", drawn(&plots));
    }
    body.push_str("</div>\n");
    document(&title, &body)
}

fn document(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n<title>{} - distributary-load</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        escaped(title)
    )
}

fn heading(title: &str, record: &Record) -> String {
    let class = if record.held() { "held" } else { "failed" };
    format!(
        "<h1>{}</h1>\n<p class=\"verdict {class}\">{}</p>\n<p>{}</p>\n<p class=\"quiet\">{}</p>\n\
         <p class=\"quiet\"><code>{}</code></p>\n",
        escaped(title),
        escaped(&summary::sentence(record)),
        escaped(&record.setup),
        escaped(&table::surroundings(record)),
        escaped(&record.command.join(" "))
    )
}

/// Returns a table under a title; an empty text if it has no rows.
fn section(title: &str, grid: &Grid, caption: &str) -> String {
    if grid.rows.is_empty() {
        return String::new();
    }
    format!("<h2>{}</h2>\n{}", escaped(title), grid.html(caption))
}

/// Returns the figures of the phases: a table for each group of columns, so that none is wider than a page.
fn figures(record: &Record) -> String {
    let mut out = String::new();
    for (what, columns) in table::GROUPS {
        let grid = table::phases(record, columns).without_empty_columns();
        if grid.headings.len() > 1 && !grid.rows.is_empty() {
            let _ = writeln!(out, "<div>{}</div>", grid.html(what));
        }
    }
    if out.is_empty() {
        return out;
    }
    format!("<h2>Phases</h2>\n<div class=\"tables\">\n{out}</div>\n")
}

fn breaches(record: &Record) -> String {
    if record.breached == 0 && record.breaches.is_empty() {
        return String::new();
    }
    let mut out = format!("<h2>Breaches of the protocol: {}</h2>\n", record.breached);
    for breach in &record.breaches {
        let phase = breach.phase.as_deref().unwrap_or("no phase");
        let lines = breach.transcript.iter().map(|line| escaped(line)).collect::<Vec<_>>();
        let _ = writeln!(
            out,
            "<details><summary>client {} ({}): {}</summary><pre>{}</pre></details>",
            breach.client,
            escaped(phase),
            escaped(&breach.what),
            lines.join("\n")
        );
    }
    out
}

fn drawn(plots: &[Plot]) -> String {
    plots.iter().map(Plot::html).collect()
}
