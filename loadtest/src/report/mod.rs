//! The reports: a record as a table, JSON, CSV, a page or a picture; live progress; and two runs side by side. They only format.

mod charts;
mod columns;
mod compare;
mod csv;
mod grid;
mod growth;
mod live;
mod page;
mod picture;
mod plot;
mod scale;
mod table;
#[cfg(test)]
mod tests;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use compare::Comparison;
pub(crate) use live::Progress;

use crate::record::{FORM, Record};

/// Where the report goes besides the terminal.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Outputs {
    /// Write the record of the run to this file: everything that was measured, for programs and for `--compare`.
    #[arg(long, global = true, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a CSV file with a row for each phase and each second.
    #[arg(long, global = true, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write an HTML page with plots to this file; the page needs no other file and no network.
    #[arg(long, global = true, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write an SVG picture to this file, with the plots of a fleet that grows.
    #[arg(long, global = true, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Run nothing, but show the records of two runs side by side; with `--html` also as a page.
    #[arg(long, global = true, num_args = 2, value_names = ["A.json", "B.json"], conflicts_with_all = ["json", "csv", "svg"])]
    pub(crate) compare: Vec<PathBuf>,
}

impl Outputs {
    /// Writes the report to all places that were asked for. If one of them fails, the others are still written.
    pub(crate) fn tell(&self, record: &Record) -> anyhow::Result<()> {
        let table = table::table(record);
        let written = [
            self.json
                .as_deref()
                .map(|file| write(file, &serde_json::to_string_pretty(record)?)),
            self.csv.as_deref().map(|file| write(file, &csv::csv(record))),
            self.html.as_deref().map(|file| write(file, &page::page(record))),
            self.svg.as_deref().map(|file| write(file, &picture::picture(record)?)),
            // Last, so that the files are written even if the terminal is closed.
            Some(write!(std::io::stdout().lock(), "\n{table}").context("cannot write the table")),
        ];
        written.into_iter().flatten().collect()
    }

    /// Checks, before the run, that there is a folder for every file that will be written.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        for (flag, file) in [
            ("json", &self.json),
            ("csv", &self.csv),
            ("html", &self.html),
            ("svg", &self.svg),
        ] {
            let Some(file) = file else { continue };
            let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
            let there = folder.is_none_or(Path::is_dir) && !file.is_dir() && file.file_name().is_some();
            anyhow::ensure!(
                there,
                "--{flag} {}: the folder does not exist, or this is itself a folder; name a file in a folder that exists",
                file.display()
            );
        }
        Ok(())
    }

    /// Writes the comparison of two runs.
    pub(crate) fn compare(&self) -> anyhow::Result<()> {
        let records = self
            .compare
            .iter()
            .map(|file| read(file))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let [a, b] = records.as_slice() else {
            anyhow::bail!("--compare takes two records");
        };
        let comparison = Comparison::of(a, b);
        if let Some(file) = &self.html {
            write(file, &page::compared(&comparison))?;
        }
        write!(std::io::stdout().lock(), "{}", comparison.table()).context("cannot write the table")
    }
}

fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// Reads a record that `--json` wrote.
fn read(file: &Path) -> anyhow::Result<Record> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let record: Record = serde_json::from_str(&text).with_context(|| {
        format!(
            "{} is not the record of a run; such a file is written with --json",
            file.display()
        )
    })?;
    anyhow::ensure!(
        record.form == FORM,
        "{} has format {}, but this program reads format {FORM}: record both runs with the same version of this program",
        file.display(),
        record.form
    );
    Ok(record)
}
