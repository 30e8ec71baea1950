// SPDX-License-Identifier: Apache-2.0
//! The configuration, read again while the relay runs: at SIGHUP, when its file has changed, and when an operator asks for it.
//!
//! Owns when it is read, and that a bad one changes nothing. `changes` decides which keys can change, and `live` swaps them.

mod changes;
mod live;

pub(super) use live::Live;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use xxhash_rust::xxh3::xxh3_128;

use super::Inspection;
use crate::admin::{ReloadAnswer, ReloadOrder, SentText};
use crate::clock;
use crate::config::{self, Config, ConfigError, Flags};
use crate::shutdown::Hangups;
use crate::supervisor::Supervisor;
use crate::telemetry::{FaultSource, Health, Metrics};
use crate::watch::Watcher;
use changes::ChangedKeys;

/// Where the configuration comes from.
#[derive(Debug)]
pub struct Origin {
    /// Its file, if there is one.
    pub file: Option<PathBuf>,
    /// What overrides the file.
    pub flags: Flags,
    /// The signal that asks to read it again.
    pub hang_ups: Hangups,
    /// The hash of the file as last read. A file that was touched and is the same is not read further.
    seen: Option<u128>,
}

/// Reads the configuration again.
pub(super) struct Reload {
    origin: Origin,
    orders: mpsc::Receiver<ReloadOrder>,
    live: Arc<Live>,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    supervisor: Arc<Supervisor>,
    watcher: Option<Watcher>,
}

/// What was found by reading the configuration.
struct ReadConfig {
    hash: Option<u128>,
    /// The configuration, or all that is wrong with it.
    config: Result<Config, String>,
    warnings: Vec<String>,
}

/// Why it is read.
enum Cause {
    Signal,
    File,
    Order(ReloadOrder),
}

/// The shortest time between two looks at the file.
const PACE: Duration = Duration::from_millis(100);
/// A changed file counts once it has been the same for so long: somebody may still write it.
const SETTLED: Duration = Duration::from_millis(300);
/// How many problems are logged; the answer to an order has all of them.
const PROBLEMS_LOGGED: usize = 16;

impl Origin {
    /// Returns the name of its file, or what it is without one.
    pub(super) fn name(&self) -> String {
        name(self.file.as_deref())
    }

    /// Reads the configuration for the first time.
    ///
    /// # Errors
    /// It cannot be read, or it is bad.
    pub fn load(file: Option<PathBuf>, flags: Flags, hang_ups: Hangups) -> Result<(Self, Config), ConfigError> {
        let text = file.as_deref().map(config::read).transpose()?;
        let (config, problems) = Config::check(text.as_deref().unwrap_or_default(), &name(file.as_deref()), &flags)?;
        if !problems.is_empty() {
            return Err(ConfigError::Invalid(problems));
        }
        let origin = Self {
            seen: text.as_deref().map(xxh3_128),
            file,
            flags,
            hang_ups,
        };
        Ok((origin, config))
    }
}

impl Reload {
    pub(super) fn new(
        origin: Origin,
        orders: mpsc::Receiver<ReloadOrder>,
        live: Arc<Live>,
        metrics: Arc<Metrics>,
        health: Arc<Health>,
        supervisor: Arc<Supervisor>,
    ) -> Self {
        metrics.configuration.good(0);
        Self {
            origin,
            orders,
            live,
            metrics,
            health,
            supervisor,
            watcher: None,
        }
    }

    /// Reads the configuration whenever there is a cause, one reading after the other.
    pub(super) async fn run(mut self) {
        self.file_changed().await;
        loop {
            match self.next().await {
                Cause::Signal => drop(self.read("SIGHUP").await),
                Cause::File => self.file_changed().await,
                Cause::Order(order) => {
                    let answer = match order.sent {
                        Some(sent) => self.judge(sent).await,
                        None => self.read("POST /reload").await,
                    };
                    // Whoever asked may be gone.
                    let _ = answer.map(|answer| order.answer.send(answer));
                }
            }
        }
    }

    async fn next(&mut self) -> Cause {
        let watcher = &mut self.watcher;
        let touched = async {
            match watcher {
                Some(watcher) => watcher.next(PACE, None).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.origin.hang_ups.next() => Cause::Signal,
            Some(order) = self.orders.recv() => Cause::Order(order),
            () = touched => Cause::File,
        }
    }

    /// Reads the file if it has changed, once nobody writes it any more.
    async fn file_changed(&mut self) {
        let mut hash = self.look().await;
        while hash.is_some() && hash != self.origin.seen {
            clock::sleep(SETTLED).await;
            let before = hash;
            hash = self.look().await;
            if hash == before {
                drop(self.read("its file has changed").await);
                return;
            }
        }
    }

    /// Returns the hash of the file. Changes that follow are noticed.
    async fn look(&mut self) -> Option<u128> {
        let path = self.origin.file.clone()?;
        let watcher = self.watcher.take();
        let watcher = watcher.unwrap_or_else(|| Watcher::new(std::slice::from_ref(&path)));
        let hash = move || {
            let text = is_file(&path).then(|| config::read(&path).ok()).flatten();
            text.map(|text| xxh3_128(&text))
        };
        let (watcher, hash) = watcher.look(hash).await;
        self.watcher = Some(watcher);
        hash.ok().flatten()
    }

    /// Reads the configuration, and puts it into effect. None if the relay is stopping.
    async fn read(&mut self, cause: &str) -> Option<ReloadAnswer> {
        if self.health.watch().borrow().is_last() {
            tracing::warn!(cause, "the relay is stopping and does not read its configuration again");
            return None;
        }
        self.supervisor.reloading();
        let found = self.reading(None).await;
        if self.origin.file.is_some() {
            self.origin.seen = found.hash;
        }
        let answer = match found.config {
            Ok(config) => self.take(cause, &config, &found.warnings),
            Err(problems) => self.refuse(cause, problems),
        };
        self.supervisor.ready();
        Some(answer)
    }

    /// Returns what was found by reading the file, or in its place a text that somebody has sent.
    async fn reading(&self, sent: Option<SentText>) -> ReadConfig {
        let (file, flags) = (self.origin.file.clone(), self.origin.flags.clone());
        let read = tokio::task::spawn_blocking(move || ReadConfig::read(file, sent, &flags));
        read.await.unwrap_or_else(|error| ReadConfig {
            hash: None,
            config: Err(format!("reading it failed: {error}")),
            warnings: Vec::new(),
        })
    }

    /// Says what a text would change if it were the file, and how many streams of clients end then. Nothing is changed.
    async fn judge(&self, sent: SentText) -> Option<ReloadAnswer> {
        let found = self.reading(Some(sent)).await;
        let new = match found.config {
            Ok(new) => new,
            Err(problems) => return Some(ReloadAnswer::Bad(format!("{problems}\n"))),
        };
        let running = self.live.config();
        let changes = ChangedKeys::adopt(&mut Config::clone(&running), &new);
        let mut text = told(&changes, "nothing would change", &found.warnings);
        if !changes.is_empty() {
            let ended = match running.access == new.access {
                true => 0,
                false => self.live.ended_by(&new).await,
            };
            text.push_str(&format!("a reload would end {ended} streams of clients\n"));
        }
        Some(ReloadAnswer::Good(text))
    }

    fn take(&self, cause: &str, new: &Config, warnings: &[String]) -> ReloadAnswer {
        let mut running = Config::clone(&self.live.config());
        let changes = ChangedKeys::adopt(&mut running, new);
        if changes.any_live() {
            self.live.swap(running);
        }
        let metrics = &self.metrics.configuration;
        let waiting = changes.waiting();
        metrics.good(waiting.len());
        let waits = (!waiting.is_empty()).then(|| {
            let keys = waiting.join(" ");
            format!("the configuration has changed; these keys take effect after a restart: {keys}")
        });
        let faults = &self.metrics.faults;
        faults.show(FaultSource::Configuration, waits.into_iter().collect());
        if changes.is_empty() {
            metrics.unchanged.inc();
            tracing::info!(cause, "configuration read again: nothing has changed");
        } else {
            metrics.changed.inc();
            tracing::info!(cause, keys = changes.keys().join(" "), "configuration read again");
        }
        if !waiting.is_empty() {
            tracing::warn!(
                keys = waiting.join(" "),
                "these settings have changed and take effect after a restart"
            );
        }
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        ReloadAnswer::Good(told(&changes, "nothing has changed", warnings))
    }

    fn refuse(&self, cause: &str, problems: String) -> ReloadAnswer {
        let metrics = &self.metrics.configuration;
        metrics.bad.inc();
        metrics.current.set(0);
        tracing::error!(cause, "the configuration is bad; the earlier one stays in effect");
        for problem in problems.lines().take(PROBLEMS_LOGGED) {
            tracing::error!("{problem}");
        }
        self.metrics
            .faults
            .show(FaultSource::Configuration, vec![refused(&problems)]);
        let more = problems.lines().count().saturating_sub(PROBLEMS_LOGGED);
        if more > 0 {
            tracing::error!(more, "there are more problems; `distributary validate` lists all");
        }
        ReloadAnswer::Bad(format!("{problems}\nthe earlier configuration stays in effect\n"))
    }
}

impl ReadConfig {
    /// Reads the configuration, and all files that it names except those of resources, which report their faults themselves.
    fn read(file: Option<PathBuf>, sent: Option<SentText>, flags: &Flags) -> Self {
        let mut found = Self {
            hash: None,
            config: Err(String::new()),
            warnings: Vec::new(),
        };
        let checked = match sent {
            Some(sent) => found.check_sent(file, &sent, flags),
            None => found.check(file, flags),
        };
        found.config = checked.map_err(|problems| problems.join("\n"));
        found
    }

    fn check(&mut self, file: Option<PathBuf>, flags: &Flags) -> Result<Config, Vec<String>> {
        let said = |error: ConfigError| vec![error.to_string()];
        let text = match &file {
            Some(path) if !is_file(path) => {
                return Err(vec![format!("{}: only a file can be read again", path.display())]);
            }
            Some(path) => config::read(path).map_err(said)?,
            None => Vec::new(),
        };
        self.hash = Some(xxh3_128(&text));
        let (config, problems) = Config::check(&text, &name(file.as_deref()), flags).map_err(said)?;
        let inspection = Inspection::without_resources(file.as_deref(), &config);
        self.end(config, problems, inspection)
    }

    fn check_sent(
        &mut self,
        file: Option<PathBuf>,
        SentText { name, text }: &SentText,
        flags: &Flags,
    ) -> Result<Config, Vec<String>> {
        let checked = Config::check_sent(text, name, file.as_deref(), flags);
        let (mut config, problems) = checked.map_err(|error| vec![error.to_string()])?;
        let inspection = Inspection::of_sent(name, &mut config);
        self.end(config, problems, inspection)
    }

    fn end(
        &mut self,
        config: Config,
        mut problems: Vec<String>,
        inspection: Inspection,
    ) -> Result<Config, Vec<String>> {
        problems.extend(inspection.problems);
        self.warnings.extend(config.warnings.iter().cloned());
        self.warnings.extend(inspection.warnings);
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }
}

/// Returns in one line that the configuration is bad, and its first problem.
fn refused(problems: &str) -> String {
    let first = problems.lines().next().unwrap_or_default();
    let more = match problems.lines().count() {
        0 | 1 => String::new(),
        all => format!(" (and {} more)", all - 1),
    };
    format!("the configuration is bad; the earlier one stays in effect: {first}{more}")
}

/// Whether the path can be read again. A pipe has nothing more to say.
fn is_file(path: &Path) -> bool {
    // What cannot be found is said by whoever reads it.
    std::fs::metadata(path).map_or(true, |found| found.is_file())
}

/// Returns what problems with the file begin with.
fn name(file: Option<&Path>) -> String {
    file.map_or_else(|| "command line".to_owned(), |path| path.display().to_string())
}

/// Returns the answer to an order: what has changed, or in these words that nothing has, and warnings.
fn told(changes: &ChangedKeys, nothing: &str, warnings: &[String]) -> String {
    let mut text = match changes.is_empty() {
        true => format!("{nothing}\n"),
        false => changes.to_string(),
    };
    for warning in warnings {
        text.push_str("warning: ");
        text.push_str(warning);
        text.push('\n');
    }
    text
}
