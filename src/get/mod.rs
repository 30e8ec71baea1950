//! One question to an xDS server, and its answer for people: what the relay does for its clients, for one who reads.
//!
//! Owns when a question is answered, and what is said when it is not. Refuses to know the command line; protocol,
//! connections and what is known are those of the relay.

mod found;
mod printed;

use std::future::poll_fn;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::uri::Authority;

pub use printed::{Form, Shown};

use found::Found;
use printed::Printed;

use crate::cache::{Driver, Seat, View, ViewSettings};
use crate::config::Grpc;
use crate::proto::envoy::config::core::v3::Node;
use crate::protocol::ClientSettings;
use crate::telemetry::{Metrics, UpstreamMetrics};
use crate::upstream::{Status, Target as Server, UpstreamSettings, Writer};
use crate::xds::{Class, Name, ServerFeatures, Target, TypeUrl, Types, Want};

/// Who is asked for what.
#[derive(Clone, Debug)]
pub struct Question {
    /// The server as it was written.
    pub server: String,
    /// How it is reached.
    pub grpc: Grpc,
    /// What it is called, where that is not its address.
    pub authority: Option<Authority>,
    /// Who asks.
    pub node: Node,
    /// The type.
    pub type_url: TypeUrl,
    /// The names; none: all that there is.
    pub names: Vec<Name>,
    /// How long the answer may take.
    pub patience: Duration,
}

/// Why a question is not answered in full.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// There is no answer at all.
    #[error("{server}: {error}")]
    Server {
        /// The server.
        server: String,
        /// What is wrong with it.
        error: String,
    },
    /// Something is missing in the answer.
    #[error("{}", .0.join("\n"))]
    Missing(Vec<String>),
    /// More names than one question may have.
    #[error(transparent)]
    Full(#[from] crate::cache::Full),
    /// The file cannot be read.
    #[error(transparent)]
    Snapshot(#[from] crate::snapshot::SnapshotError),
    /// The answer cannot be printed.
    #[error("cannot print the answer: {0}")]
    Print(#[from] io::Error),
}

/// A question on its way.
struct Asked {
    question: Question,
    seat: Seat,
    metrics: Arc<UpstreamMetrics>,
    /// What is wrong with the server just now.
    error: Box<dyn Fn() -> Option<String>>,
}

/// How often it is looked whether the server can be reached at all.
const LOOK: Duration = Duration::from_millis(50);
/// A server that is silent for so long is asked whether it is there.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// What a server may say at once.
const MESSAGE: usize = 1 << 30;

impl Question {
    /// Prints the answer, once it is complete or the time is over.
    ///
    /// # Errors
    /// When not everything that was asked for is there; what is there is printed all the same.
    pub async fn ask(self, shown: &Shown, out: &mut impl Write) -> Result<(), Unanswered> {
        let (asked, writer) = self.begin()?;
        tokio::select! {
            () = writer.run() => Ok(()),
            answer = asked.once(shown, out) => answer,
        }
    }

    /// Prints the answer as it comes, and what changes, until the process ends.
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

    /// Prints what a relay wrote to disk.
    ///
    /// # Errors
    /// When the file cannot be read, or not everything that was asked for is in it.
    pub fn recall(mut self, file: &Path, shown: &Shown, out: &mut impl Write) -> Result<(), Unanswered> {
        let snapshot = crate::snapshot::read(file, &Types::default(), now())?;
        self.server = file.display().to_string();
        self.patience = Duration::ZERO;
        let found = Found::of(&self, &snapshot.cut);
        self.answer(&found, Vec::new(), shown, out)
    }

    /// Prints what was found, and says what is missing.
    fn answer(&self, found: &Found, notes: Vec<String>, shown: &Shown, out: &mut impl Write) -> Result<(), Unanswered> {
        // An empty answer is one only where it is all that there is.
        let all = self.names.is_empty() && found.is_settled();
        let printed = if all || found.resources().next().is_some() {
            shown.all(&self.type_url, found.resources())
        } else {
            Printed::default()
        };
        out.write_all(printed.text.as_bytes())?;
        out.flush()?;
        let mut missing = printed.faults;
        missing.extend(found.missing(self));
        missing.extend(notes);
        if missing.is_empty() {
            return Ok(());
        }
        Err(Unanswered::Missing(missing))
    }

    fn begin(self) -> Result<(Asked, Writer), Unanswered> {
        let view = View::new(
            Class::default(),
            ViewSettings {
                linger: Duration::ZERO,
                names_per_view: 0,
                pinned_bytes_per_view: 0,
            },
        );
        let metrics = Metrics::new([]).upstream(&self.server);
        let target = Server::called(self.authority.clone(), &self.server, self.grpc.clone(), metrics.clone());
        let settings = UpstreamSettings {
            client: Arc::new(ClientSettings {
                types: Types::default(),
                relay_id: format!("get/{:08x}", rand::random::<u32>()),
                does_not_exist: self.patience,
                wildcard_quiet: Duration::from_millis(250),
                features: ServerFeatures::default(),
            }),
            upstream_message: MESSAGE,
            keepalive: KEEPALIVE,
            ping: Duration::ZERO,
            idle: KEEPALIVE,
            reconnect_max: KEEPALIVE,
        };
        let seat = view.enter();
        for target in self.targets() {
            seat.want(&Want {
                type_url: self.type_url.clone(),
                target,
                wanted: true,
                written: None,
            })?;
        }
        let writer = Writer::new(view, &self.node, &target, None, &Arc::new(settings));
        let statuses = writer.statuses();
        let wrong = |status: Status| {
            let unserved = status.unserved.into_values().next();
            status.error.or_else(|| unserved.map(|why| why.to_string()))
        };
        let error = move || statuses().into_iter().find_map(wrong);
        let asked = Asked {
            question: self,
            seat,
            metrics,
            error: Box::new(error),
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
                return self.answer(&found, shown, out);
            }
            // What is known is looked through when it has changed, and not as often as errors are.
            let rung = self.rung();
            tokio::pin!(rung);
            loop {
                tokio::select! {
                    () = &mut rung => break,
                    _ = look.tick() => if let Some(error) = (self.error)() {
                        return self.failed(&self.look(), error, shown, out);
                    },
                    () = &mut deadline => return self.answer(&self.look(), shown, out),
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
                        let error = (self.error)();
                        if let Some(error) = error.as_ref().filter(|_| error != said) {
                            writeln!(notes, "{}: {error}", self.question.server)?;
                        }
                        said = error;
                    }
                }
            }
        }
    }

    /// What is known now.
    fn look(&self) -> Found {
        drop(self.seat.bell().take());
        Found::of(&self.question, &self.seat.view().cut())
    }

    async fn rung(&self) {
        poll_fn(|cx| self.seat.bell().poll(Driver::Reader, cx)).await;
    }

    fn answer(&self, found: &Found, shown: &Shown, out: &mut impl Write) -> Result<(), Unanswered> {
        let refused = self.metrics.nacks.get();
        let note = (refused > 0).then(|| {
            format!(
                "{}: {refused} responses held what is not valid, and were refused; RUST_LOG=warn shows what",
                self.question.server
            )
        });
        self.question.answer(found, note.into_iter().collect(), shown, out)
    }

    /// The server ends it: what came before that is printed all the same.
    fn failed(&self, found: &Found, error: String, shown: &Shown, out: &mut impl Write) -> Result<(), Unanswered> {
        let server = self.question.server.clone();
        if found.resources().next().is_some() {
            out.write_all(shown.all(&self.question.type_url, found.resources()).text.as_bytes())?;
        }
        Err(Unanswered::Server { server, error })
    }

    fn print(&self, printed: &Printed, out: &mut impl Write, notes: &mut impl Write) -> Result<(), Unanswered> {
        out.write_all(printed.text.as_bytes())?;
        out.flush()?;
        for fault in &printed.faults {
            writeln!(notes, "{fault}")?;
        }
        Ok(())
    }
}

/// The time now, at which what is read from disk counts as received.
#[expect(clippy::disallowed_methods, reason = "this shell's one place to read the clock")]
fn now() -> Instant {
    Instant::now()
}
