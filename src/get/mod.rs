//! One question to an xDS server, and its answer in a readable form.
//!
//! Owns when a question is answered, and the error if it is not. Knows nothing of the command line. Protocol, connections and
//! cache are those of the relay.

mod found;
mod others;
mod printed;
mod written;

use std::future::poll_fn;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::HeaderMap;
use http::uri::Authority;

pub use printed::{Form, Shown};
pub use written::{header, locality, metadata};

use found::Found;
use others::Others;
use printed::Printed;

use crate::cache::{Seat, View, ViewSettings};
use crate::classes::{ASKS_ONCE, Class};
use crate::config::{Grpc, Timers};
use crate::proto::envoy::config::core::v3::Node;
use crate::protocol::{ClientSettings, Why};
use crate::telemetry::{Metrics, UpstreamMetrics};
use crate::upstream::{CallHead, Phase, Status, Target as Server, UpstreamSettings, Writer};
use crate::xds::{Name, Resource, ServerFeatures, ServerWords, Target, TypeUrl, Types, Want, printable};

/// A question: the server, and the resources to ask for.
#[derive(Clone, Debug)]
pub struct Question {
    /// The server's address as given.
    pub server: String,
    /// How to connect to it.
    pub grpc: Grpc,
    /// Its name in the request and for TLS, if that differs from its address.
    pub authority: Option<Authority>,
    /// Further headers of the request.
    pub headers: HeaderMap,
    /// The node in the request.
    pub node: Node,
    /// The type.
    pub type_url: TypeUrl,
    /// The names; if empty, all resources of the type.
    pub names: Vec<Name>,
    /// How long to wait for the answer.
    pub patience: Duration,
}

/// Why a question is not answered in full.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// The server gave no answer.
    #[error("{server}: {}", printable(error))]
    Server {
        /// The server.
        server: String,
        /// What went wrong.
        error: String,
    },
    /// The answer lacks some resources, or could not be shown in full.
    #[error("{}", .0.iter().map(|one| printable(one)).collect::<Vec<_>>().join("\n"))]
    Missing(Vec<String>),
    /// The question has too many names.
    #[error(transparent)]
    Full(#[from] cache::Full),
    /// The snapshot file cannot be read.
    #[error(transparent)]
    Snapshot(#[from] crate::snapshot::SnapshotError),
    /// The answer cannot be printed.
    #[error("cannot print the answer: {0}")]
    Print(#[from] io::Error),
}

/// A question that was sent.
struct Asked {
    question: Question,
    seat: Seat,
    metrics: Arc<UpstreamMetrics>,
    /// Returns the state of the streams to the server.
    statuses: Box<dyn Fn() -> Vec<Status>>,
}

/// What is known beside the resources that were found.
#[derive(Default)]
struct Beside {
    /// What the server said about each of them.
    words: Vec<Option<ServerWords>>,
    /// Other names of the type that exist.
    others: Others,
    /// What else there is to say.
    note: Option<String>,
}

/// How often to check for errors of the server.
const LOOK: Duration = Duration::from_millis(50);
/// The largest message of a server.
const MESSAGE: usize = 1 << 30;

impl Question {
    /// Prints the answer once it is complete or the time is over.
    ///
    /// # Errors
    /// When resources are missing. The others are printed nevertheless.
    pub async fn ask(self, shown: &Shown, out: &mut impl Write) -> Result<(), Unanswered> {
        let (asked, writer) = self.begin()?;
        tokio::select! {
            () = writer.run() => Ok(()),
            answer = asked.once(shown, out) => answer,
        }
    }

    /// Prints the answer as it arrives, and all changes, until the process ends.
    ///
    /// # Errors
    /// When it cannot be printed.
    pub async fn watch(self, shown: &Shown, out: &mut impl Write, notes: &mut impl Write) -> Result<(), Unanswered> {
        let (asked, writer) = self.begin()?;
        tokio::select! {
            () = writer.run() => Ok(()),
            answer = asked.all(shown, out, notes) => answer,
        }
    }

    /// Prints the answer from a snapshot that a relay has written.
    ///
    /// # Errors
    /// When the file cannot be read, or lacks resources that were asked for.
    pub fn recall(mut self, file: &Path, shown: &Shown, out: &mut impl Write) -> Result<(), Unanswered> {
        let snapshot = crate::snapshot::read(file, &Types::default(), now())?;
        self.server = file.display().to_string();
        self.patience = Duration::ZERO;
        let found = Found::of(&self, &snapshot.cut);
        let beside = Beside {
            others: Others::of(&self.type_url, &snapshot.cut),
            ..Beside::default()
        };
        self.answer(&found, beside, shown, out)
    }

    /// Prints what was found, and returns what is missing as an error.
    fn answer(&self, found: &Found, beside: Beside, shown: &Shown, out: &mut impl Write) -> Result<(), Unanswered> {
        // An empty answer is printed only if it is the complete answer to a question for all resources.
        let all = self.names.is_empty() && found.is_settled();
        let printed = if all || found.resources().next().is_some() {
            shown.all(&self.type_url, said(found, beside.words))
        } else {
            Printed::default()
        };
        out.write_all(printed.text.as_bytes())?;
        out.flush()?;
        let mut missing = printed.faults;
        missing.extend(found.missing(self, &beside.others));
        missing.extend(beside.note);
        if missing.is_empty() {
            return Ok(());
        }
        Err(Unanswered::Missing(missing))
    }

    fn begin(mut self) -> Result<(Asked, Writer), Unanswered> {
        let view = View::new(
            Class::default(),
            ViewSettings {
                linger: Duration::ZERO,
                names_per_view: 0,
                pinned_bytes_per_view: 0,
            },
        );
        let metrics = Metrics::new([]).upstream(&self.server);
        let call = CallHead {
            authority: self.authority.clone(),
            headers: self.headers.clone(),
        };
        let target = Server::asked_once(call, &self.server, self.grpc.clone(), metrics.clone());
        let usual = Timers::default();
        let settings = UpstreamSettings {
            client: Arc::new(ClientSettings {
                types: Types::default(),
                relay_id: format!("get/{:08x}", rand::random::<u32>()),
                does_not_exist: self.patience,
                wildcard_quiet: usual.wildcard_quiet,
                features: ServerFeatures::default(),
            }),
            upstream_message: MESSAGE,
            keepalive: usual.keepalive,
            ping: Duration::ZERO,
            idle: usual.keepalive,
            reconnect_max: usual.reconnect_max,
            removal_quiet: Duration::ZERO,
            order_gate: Duration::ZERO,
        };
        // A relay that has nothing to say then says at once why.
        self.node.client_features.push(ASKS_ONCE.to_owned());
        let seat = view.enter();
        for target in self.targets() {
            seat.want(&Want {
                type_url: self.type_url.clone(),
                target,
                wanted: true,
                written: None,
            })?;
        }
        let writer = Writer::new(view, &Arc::new(self.node.clone()), &target, None, &Arc::new(settings));
        let asked = Asked {
            question: self,
            seat,
            metrics,
            statuses: Box::new(writer.statuses()),
        };
        Ok((asked, writer))
    }

    fn targets(&self) -> Vec<Target> {
        if self.names.is_empty() {
            return vec![Target::Wildcard];
        }
        self.names.iter().cloned().map(Target::Name).collect()
    }
}

impl Asked {
    async fn once(&self, shown: &Shown, out: &mut impl Write) -> Result<(), Unanswered> {
        let deadline = tokio::time::sleep(self.question.patience);
        tokio::pin!(deadline);
        let mut look = tokio::time::interval(LOOK);
        loop {
            let found = self.look();
            if found.is_settled() {
                return self.answer(&found, shown, out).await;
            }
            // The answer is checked when it has changed, errors at every tick.
            let rung = self.rung();
            tokio::pin!(rung);
            loop {
                tokio::select! {
                    () = &mut rung => break,
                    _ = look.tick() => if let Some(error) = self.error() {
                        return self.failed(&self.look(), error, shown, out).await;
                    },
                    () = &mut deadline => return match self.unanswered() {
                        Some(error) => self.failed(&self.look(), error, shown, out).await,
                        None => self.answer(&self.look(), shown, out).await,
                    },
                }
            }
        }
    }

    async fn all(&self, shown: &Shown, out: &mut impl Write, notes: &mut impl Write) -> Result<(), Unanswered> {
        let mut look = tokio::time::interval(LOOK);
        let (mut before, mut said) = (Found::default(), None);
        loop {
            let found = self.look();
            for (change, name, resource) in found.since(&before) {
                let words = self.words(resource, shown).await.into_iter().flatten().next();
                let resource = resource.map(|resource| (resource, words.unwrap_or_default()));
                let printed = shown.changed(&self.question.type_url, change, &name, resource);
                self.print(&printed, out, notes)?;
            }
            before = found;
            let rung = self.rung();
            tokio::pin!(rung);
            loop {
                tokio::select! {
                    () = &mut rung => break,
                    _ = look.tick() => {
                        let error = self.error();
                        if let Some(error) = error.as_ref().filter(|_| error != said) {
                            writeln!(notes, "{}: {}", self.question.server, printable(error))?;
                        }
                        said = error;
                    }
                }
            }
        }
    }

    /// Returns the current error of the server, if there is one.
    fn error(&self) -> Option<String> {
        let wrong = |status: Status| {
            let unserved = status.unserved.into_values().next();
            status.error.or_else(|| unserved.map(|why| why.to_string()))
        };
        (self.statuses)().into_iter().find_map(wrong)
    }

    /// Returns why the server has not answered in time, as far as it is known.
    fn unanswered(&self) -> Option<String> {
        let within = self.question.patience;
        let why = |status: Status| match (status.phase, status.why) {
            (Phase::Answering, _) => None,
            (_, Some(Why::Refused(words) | Why::Unanswered(words))) => Some(format!(
                "{words}; in the other dialect it did not answer within {within:?}"
            )),
            (Phase::Connecting, _) => Some(format!("there was no connection within {within:?}")),
            _ => None,
        };
        (self.statuses)().into_iter().find_map(why)
    }

    /// Returns the answer so far.
    fn look(&self) -> Found {
        drop(self.seat.bell().take());
        Found::of(&self.question, &self.seat.view().cut())
    }

    async fn rung(&self) {
        poll_fn(|cx| self.seat.bell().poll(cx)).await;
    }

    /// Returns what the server said about these resources, if that is shown.
    async fn words(
        &self,
        resources: impl IntoIterator<Item = &Arc<Resource>>,
        shown: &Shown,
    ) -> Vec<Option<ServerWords>> {
        if shown.form != Form::Wide {
            return Vec::new();
        }
        let names = resources.into_iter().map(|resource| resource.name().clone()).collect();
        self.seat.view().mailbox().words(&self.question.type_url, names).await
    }

    async fn answer(&self, found: &Found, shown: &Shown, out: &mut impl Write) -> Result<(), Unanswered> {
        let refused = self.metrics.nacks.get();
        let note = (refused > 0).then(|| {
            format!(
                "{}: responses rejected as invalid: {refused}; set RUST_LOG=warn to see why",
                self.question.server
            )
        });
        let others = match found.is_told_of_none() {
            true => self.others().await,
            false => Others::default(),
        };
        let words = self.words(found.resources(), shown).await;
        self.question.answer(found, Beside { words, others, note }, shown, out)
    }

    /// Prints what was found, and returns the error of the server.
    async fn failed(
        &self,
        found: &Found,
        error: String,
        shown: &Shown,
        out: &mut impl Write,
    ) -> Result<(), Unanswered> {
        let server = self.question.server.clone();
        if found.resources().next().is_some() {
            let words = self.words(found.resources(), shown).await;
            let printed = shown.all(&self.question.type_url, said(found, words));
            out.write_all(printed.text.as_bytes())?;
        }
        Err(Unanswered::Server { server, error })
    }

    fn print(&self, printed: &Printed, out: &mut impl Write, notes: &mut impl Write) -> Result<(), Unanswered> {
        out.write_all(printed.text.as_bytes())?;
        out.flush()?;
        for fault in &printed.faults {
            writeln!(notes, "{}", printable(fault))?;
        }
        Ok(())
    }
}

/// Returns the resources, each with what the server said about it.
fn said(found: &Found, words: Vec<Option<ServerWords>>) -> impl Iterator<Item = (&Arc<Resource>, ServerWords)> {
    let words = words.into_iter().map(Option::unwrap_or_default);
    found
        .resources()
        .zip(words.chain(std::iter::repeat(ServerWords::default())))
}

/// Returns the current time, which is the time of receipt of what is read from disk.
#[expect(clippy::disallowed_methods, reason = "this shell's one place to read the clock")]
fn now() -> Instant {
    Instant::now()
}
