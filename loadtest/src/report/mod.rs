//! The answers: what a record says, as a table, JSON, CSV and a page, live or of two runs side by side. Each of them only formats.

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

/// Where the answers go besides the terminal.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Outputs {
    /// Write the record of the run to this file: all that was measured, for programs and for `--compare`.
    #[arg(long, global = true, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a row for each phase and each second to this file.
    #[arg(long, global = true, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write a page with plots to this file; it needs no other file and no network.
    #[arg(long, global = true, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the plots of a fleet that grows to this file, as one picture.
    #[arg(long, global = true, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Run nothing: show the records of two runs side by side (with `--html`, as a page too).
    #[arg(long, global = true, num_args = 2, value_names = ["A.json", "B.json"], conflicts_with_all = ["json", "csv", "svg"])]
    pub(crate) compare: Vec<PathBuf>,
}

impl Outputs {
    /// Tells what a run found, everywhere where it was asked for. One place that cannot be written to keeps it from no other.
    pub(crate) fn tell(&self, record: &Record) -> anyhow::Result<()> {
        let table = table::table(record);
        let written = [
            self.json
                .as_deref()
                .map(|file| write(file, &serde_json::to_string_pretty(record)?)),
            self.csv.as_deref().map(|file| write(file, &csv::csv(record))),
            self.html.as_deref().map(|file| write(file, &page::page(record))),
            self.svg.as_deref().map(|file| write(file, &picture::picture(record)?)),
            // Last, so that nothing is lost when the terminal is gone.
            Some(write!(std::io::stdout().lock(), "\n{table}").context("cannot write the table")),
        ];
        written.into_iter().flatten().collect()
    }

    /// Whether there is a folder for every file that is to be written: before the run, not after it.
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
                "--{flag} {}: there is no such folder, or it is one; name a file in a folder that exists",
                file.display()
            );
        }
        Ok(())
    }

    /// Shows two runs side by side.
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

/// A record that was written by `--json`.
fn read(file: &Path) -> anyhow::Result<Record> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let record: Record = serde_json::from_str(&text).with_context(|| {
        format!(
            "{} is no record of a run; such files are written by --json",
            file.display()
        )
    })?;
    anyhow::ensure!(
        record.form == FORM,
        "{} is of form {}, but this program reads form {FORM}: take both records with one version",
        file.display(),
        record.form
    );
    Ok(record)
}
