//! The reports: a record as a table or JSON; live progress; and two runs side by side.
//!
//! Owns how figures are shown. Refuses to know how they were measured.

mod columns;
mod compare;
pub(crate) mod exposition;
mod gate;
pub(crate) mod grid;
mod limit;
mod live;
pub(crate) mod table;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use compare::Comparison;
use gate::Gate;
use limit::Limit;
pub(crate) use live::Progress;

use crate::measure::record::{FORM, Record};

/// The heading of these flags in the help.
pub(crate) const REPORT: &str = "Reports and gates";

/// Where the report goes besides the terminal.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = REPORT)]
pub(crate) struct Outputs {
    /// Write the record of the run to this file: everything that was measured, for programs and for `--compare`. With `-` it
    /// goes to the standard output, and everything else to the standard error.
    #[arg(long, global = true, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Fail with exit code 1 if a figure of a phase is above or below a value: a heading of the tables, > or <, and a value with its
    /// unit; repeat for more.
    #[arg(long, global = true, value_name = "FIGURE>VALUE", conflicts_with = "compare")]
    fail_if: Vec<Limit>,
    /// Run nothing, but show the records of two runs side by side.
    #[arg(long, global = true, num_args = 2, value_names = ["A.json", "B.json"], conflicts_with = "json")]
    pub(crate) compare: Vec<PathBuf>,
    /// With --compare: the exit code is 1 if a figure of a phase of B is more than this multiple of A's, such as 1.2.
    #[arg(long, global = true, value_name = "TIMES", requires = "compare", value_parser = multiple, allow_negative_numbers = true)]
    fail_above: Option<f64>,
    /// With --fail-above: which figure, by its heading in the tables, such as p50, join-p99, per-change or per-client.
    #[arg(
        long,
        global = true,
        value_name = "FIGURE",
        default_value = "p99",
        requires = "fail_above"
    )]
    metric: String,
    /// Print no progress and no tables; at the end, only what did not hold, to the standard error.
    #[arg(long, global = true)]
    quiet: bool,
}

/// Where progress and tables go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    Output,
    /// The output is for the record alone.
    Error,
    Silent,
}

impl Voice {
    /// Writes a text. If its reader is gone, the run goes on for its files.
    fn say(self, text: &str) -> std::io::Result<()> {
        match self {
            Self::Output => write!(std::io::stdout().lock(), "{text}"),
            Self::Error => write!(std::io::stderr().lock(), "{text}"),
            Self::Silent => Ok(()),
        }
    }
}

/// The name of a file that means the standard output.
const STDOUT: &str = "-";

fn multiple(text: &str) -> Result<f64, String> {
    let times = text
        .parse()
        .ok()
        .filter(|times: &f64| *times > 0.0 && times.is_finite());
    times.ok_or_else(|| "expected a positive number, such as 1.2 for a fifth more".to_owned())
}

impl Outputs {
    /// Returns where progress and tables go.
    pub(crate) fn voice(&self) -> Voice {
        match self.json.as_deref() {
            _ if self.quiet => Voice::Silent,
            Some(file) if file == Path::new(STDOUT) => Voice::Error,
            Some(_) | None => Voice::Output,
        }
    }

    /// Judges the record by the limits of the command line, and writes the report.
    pub(crate) fn tell(&self, record: &mut Record) -> anyhow::Result<()> {
        let failed: Vec<String> = self.fail_if.iter().flat_map(|limit| limit.judge(record)).collect();
        let record = &*record;
        let written = self.json.as_deref().map_or(Ok(()), |file| {
            write(file, &(serde_json::to_string_pretty(record)? + "\n"))
        });
        // Last, so that the file is written even if the terminal is closed.
        self.say(record, &failed).context("cannot write the table")?;
        written
    }

    /// Prints the table; if nothing is to be printed, what did not hold all the same. Then what `--fail-if` says.
    fn say(&self, record: &Record, failed: &[String]) -> std::io::Result<()> {
        match self.voice() {
            Voice::Silent if record.held() => {}
            Voice::Silent => Voice::Error.say(&table::failures(record))?,
            voice @ (Voice::Output | Voice::Error) => voice.say(&format!("\n{}", table::table(record)))?,
        }
        failed
            .iter()
            .try_for_each(|line| Voice::Error.say(&format!("{line}\n")))
    }

    /// Checks, before the run, that there is a folder for the file that will be written.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let Some(file) = self.json.as_deref().filter(|file| *file != Path::new(STDOUT)) else {
            return Ok(());
        };
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let there = folder.is_none_or(Path::is_dir) && !file.is_dir() && file.file_name().is_some();
        anyhow::ensure!(
            there,
            "--json {}: the folder does not exist, or this is itself a folder; name a file in a folder that exists",
            file.display()
        );
        Ok(())
    }

    /// Adds up the records of several shares of a run, and writes the report. Returns whether everything held everywhere.
    pub(crate) fn merge(&self, files: &[PathBuf]) -> anyhow::Result<bool> {
        self.check()?;
        let named = files.iter().map(|file| Ok((file.display().to_string(), read(file)?)));
        let mut record = Record::merged(named.collect::<anyhow::Result<Vec<_>>>()?)?;
        self.tell(&mut record)?;
        Ok(record.held())
    }

    /// Writes the comparison of two runs: its tables to `out`, warnings to `err`. Returns whether the figure that must not grow did
    /// not.
    pub(crate) fn compare(&self, out: &mut impl Write, err: &mut impl Write) -> anyhow::Result<bool> {
        let records = self
            .compare
            .iter()
            .map(|file| read(file))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let [a, b] = records.as_slice() else {
            anyhow::bail!("--compare takes two records");
        };
        let comparison = Comparison::of(a, b);
        let gate = self
            .fail_above
            .map(|above| Gate::new(&self.metric, above))
            .transpose()?;
        let judged = gate.map(|gate| gate.judge(&comparison)).transpose()?;
        let mut text = comparison.table();
        if let Some(judged) = &judged {
            text.push_str(&format!("\ngate\n{}", table::indented(&judged.grid.to_string())));
        }
        if !self.quiet {
            write!(out, "{text}").context("cannot write the table")?;
        }
        let held = judged.as_ref().is_none_or(|judged| judged.held);
        if let Some(judged) = judged.filter(|_| self.quiet && !held) {
            write!(err, "{}", judged.grid)?;
        }
        for difference in gate::unlike(&comparison) {
            writeln!(err, "warning: {difference}")?;
        }
        Ok(held)
    }
}

fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    if file == Path::new(STDOUT) {
        return Voice::Output.say(text).context("cannot write the record");
    }
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
