//! Changes of a control plane that is not part of this program: a command or an HTTP request that makes one, how often, and how it is
//! timed. Owns the keys and the bounds of what runs. Knows nothing of what the control plane does with it.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use tokio::time::{sleep, sleep_until};

use super::command;
use super::now;
use super::play::Play;
use crate::measure::quantities::Time;
use crate::measure::record::{Fleets, Schedule};
use crate::measure::tally::Feed;

/// A command, run by `sh -c`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Exec {
    command: String,
    pub(crate) repeat: Repeat,
}

/// A POST request.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "HttpShape")]
pub(crate) struct Http {
    post: String,
    body: Value,
    pub(crate) repeat: Repeat,
}

/// How often something is done, and how it is timed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Repeat {
    pub(crate) times: u32,
    /// Times a second. Without it, each waits until all clients have content that differs.
    pub(crate) rate: Option<f64>,
    timed_from: Moment,
    /// How long it may take each time.
    within: Time,
}

/// From when a change is timed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Moment {
    /// When the command or the request starts; with a `rate`, when that was due.
    #[default]
    Start,
    /// When it has ended.
    End,
}

/// What makes a change; `{n}` in it is the number of the change, from 1.
#[derive(Clone, Debug)]
pub(super) enum Cause {
    Command(String),
    Post { url: String, body: Value },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecShape {
    command: String,
    #[serde(default = "once")]
    times: u32,
    rate: Option<f64>,
    #[serde(default)]
    timed_from: Moment,
    #[serde(default = "patience")]
    within: Time,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HttpShape {
    post: String,
    #[serde(default)]
    body: Value,
    #[serde(default = "once")]
    times: u32,
    rate: Option<f64>,
    #[serde(default)]
    timed_from: Moment,
    #[serde(default = "patience")]
    within: Time,
}

const fn once() -> u32 {
    1
}

const fn patience() -> Time {
    Time(Duration::from_secs(30))
}

/// What runs may take no longer.
const WITHIN_MAX: Duration = Duration::from_secs(600);
/// Before a change that waits for the one before, nothing comes for this long, or this long is waited.
const QUIET: Duration = Duration::from_millis(100);
const RESTLESS_MAX: Duration = Duration::from_secs(2);

impl<'de> Deserialize<'de> for Exec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ExecVisitor)
    }
}

struct ExecVisitor;

impl<'de> Visitor<'de> for ExecVisitor {
    type Value = Exec;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a command, or an object with `command`")
    }

    fn visit_str<E: serde::de::Error>(self, command: &str) -> Result<Exec, E> {
        Ok(Exec {
            command: command.to_owned(),
            repeat: Repeat {
                times: once(),
                rate: None,
                timed_from: Moment::Start,
                within: patience(),
            },
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Exec, A::Error> {
        let shape = ExecShape::deserialize(MapAccessDeserializer::new(map))?;
        let ExecShape {
            command,
            times,
            rate,
            timed_from,
            within,
        } = shape;
        Ok(Exec {
            command,
            repeat: Repeat {
                times,
                rate,
                timed_from,
                within,
            },
        })
    }
}

impl From<HttpShape> for Http {
    fn from(shape: HttpShape) -> Self {
        let HttpShape {
            post,
            body,
            times,
            rate,
            timed_from,
            within,
        } = shape;
        Self {
            post,
            body,
            repeat: Repeat {
                times,
                rate,
                timed_from,
                within,
            },
        }
    }
}

impl Exec {
    pub(super) fn cause(&self) -> Cause {
        Cause::Command(self.command.clone())
    }

    /// Returns what is wrong with it.
    pub(super) fn fault(&self) -> Option<String> {
        let empty = self.command.trim().is_empty();
        let empty = empty.then(|| "runs an empty command: write one such as `kubectl apply -f new.yaml`".to_owned());
        empty.or_else(|| self.repeat.fault())
    }
}

impl Http {
    pub(super) fn cause(&self) -> Cause {
        Cause::Post {
            url: self.post.clone(),
            body: self.body.clone(),
        }
    }

    /// Returns what is wrong with it.
    pub(super) fn fault(&self) -> Option<String> {
        let fault = command::address(&self.post).err();
        fault
            .map(|fault| format!("posts to `{}`: {fault:#}", self.post))
            .or_else(|| self.repeat.fault())
    }
}

impl Repeat {
    fn fault(&self) -> Option<String> {
        if self.times == 0 {
            return Some("has `times: 0`: use 1 or more".to_owned());
        }
        if self.rate.is_some_and(|rate| !rate.is_finite() || rate <= 0.0) {
            return Some(
                "has a `rate` that is not positive: use times a second, such as 2, or leave it out".to_owned(),
            );
        }
        let within = self.within.0;
        (within.is_zero() || within > WITHIN_MAX)
            .then(|| format!("has `within: {within:?}`: use more than 0 and at most {WITHIN_MAX:?}"))
    }
}

impl Cause {
    async fn run(&self, number: u32, within: Duration) -> anyhow::Result<()> {
        let digits = number.to_string();
        let numbered = |text: &str| text.replace("{n}", &digits);
        match self {
            Self::Command(text) => command::run(&numbered(text), within).await,
            Self::Post { url, body } => {
                let (kind, body) = match body.as_str() {
                    Some(text) => ("text/plain", numbered(text)),
                    None if body.is_null() => ("text/plain", String::new()),
                    None => ("application/json", numbered(&body.to_string())),
                };
                command::post(&numbered(url), kind, &body, within).await
            }
        }
    }
}

impl Play<'_> {
    /// Makes changes from outside, and times each until every client has content that differs.
    pub(super) async fn change_outside(
        &mut self,
        cause: &Cause,
        repeat: Repeat,
        limit: Duration,
    ) -> anyhow::Result<()> {
        let world = self.cast.main.world();
        ensure!(
            world.is_foreign(),
            "`exec` and `http` are for a control plane that is not this program's: use `change`, or --server or --upstream"
        );
        let bell = std::sync::Arc::clone(&world.bell);
        bell.trials.set_active(true);
        let done = self.cause(cause, repeat, limit).await;
        // What is still to come belongs to the last change.
        self.settle().await;
        bell.trials.set_active(false);
        bell.trials.clear();
        done
    }

    async fn cause(&mut self, cause: &Cause, repeat: Repeat, limit: Duration) -> anyhow::Result<()> {
        let clients = self.cast.main.steady();
        ensure!(
            clients > 0,
            "there are no clients that changes could be timed at: let some `join` before"
        );
        let feed = Feed::new()?;
        self.recorder.attach(vec![feed.clone()], Fleets::default);
        let bell = std::sync::Arc::clone(&self.cast.main.world().bell);
        let schedule = repeat.rate.map(|rate| Schedule::new(now(), rate));
        let mut trials = Vec::new();
        for turn in 0..repeat.times {
            let due = match &schedule {
                Some(schedule) => schedule.due(turn),
                None => {
                    self.settle().await;
                    now()
                }
            };
            sleep_until(due.into()).await;
            let number = turn + 1;
            let trial = bell
                .trials
                .begin(clients, (repeat.timed_from == Moment::Start).then_some(due));
            self.turns += 1;
            self.wanted += u64::from(clients);
            let ran = cause.run(number, repeat.within.0).await;
            ran.with_context(|| format!("change {number} of {}", repeat.times))?;
            trial.set_base(now());
            trials.push(trial);
            if schedule.is_none() || number == repeat.times {
                let missing = || trials.iter().map(|trial| trial.missing()).max().unwrap_or_default();
                let waited = self.cast.main.wait(limit, || missing() == 0).await;
                waited.with_context(|| {
                    format!(
                        "{} of {clients} clients still have what they had before change {number}",
                        missing()
                    )
                })?;
                let early: u32 = trials.drain(..).map(|trial| trial.take_early()).sum();
                (0..early).for_each(|_| feed.tally().deliver(Duration::ZERO));
            }
        }
        Ok(())
    }

    /// Waits until what belongs to the change before has come.
    async fn settle(&self) {
        let progress = &self.cast.main.fleet.progress;
        let begin = now();
        let mut before = None;
        while before != Some(progress.messages()) && begin.elapsed() < RESTLESS_MAX {
            before = Some(progress.messages());
            sleep(QUIET).await;
        }
    }
}
