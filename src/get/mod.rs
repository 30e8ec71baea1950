// SPDX-License-Identifier: Apache-2.0
//! One question to an xDS server, and its answer in a readable form.
//!
//! Owns when a question is answered, and the error if it is not. Knows nothing of the command line. Protocol, connections and
//! cache are those of the relay.

mod differing;
mod found;
mod others;
mod peer;
mod printed;
mod table;
mod walk;
mod written;

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::Interval;

pub use differing::{Contents, DifferingField, Sides, differing};
pub use peer::AskedPeer;
use peer::PeerLine;
pub use printed::{Form, Shown};
pub(crate) use table::{PrintedTable, Tone, short};
pub use walk::{Reached, ReadKey, Walk, Ways, roots};
pub use written::{header, locality, metadata};

use found::Found;
use others::Others;
use printed::Printed;

use crate::classes::ASKS_ONCE;
use crate::upstream::Writer;
use crate::xds::{Name, Resource, ServerWords, Target, TypeUrl, Types, printable};

/// A question: the server, and the resources to ask for.
#[derive(Clone, Debug)]
pub struct GetQuestion {
    /// The server, and as whom it is asked.
    pub peer: AskedPeer,
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
struct SentQuestion {
    question: GetQuestion,
    line: PeerLine,
}

/// What is known beside the resources that were found.
#[derive(Default)]
struct BesideFound {
    /// What the server said about each of them.
    words: Vec<Option<ServerWords>>,
    /// Other names of the type that exist.
    others: Others,
    /// What else there is to say.
    note: Option<String>,
    /// The error of the server, in the place of what is missing.
    error: Option<String>,
}

/// How often to check for errors of the server.
const LOOK: Duration = Duration::from_millis(50);

impl GetQuestion {
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
        self.peer.server = file.display().to_string();
        self.patience = Duration::ZERO;
        let found = Found::of(&self, &snapshot.cut);
        let beside = BesideFound {
            others: Others::of(&self.type_url, &snapshot.cut),
            ..BesideFound::default()
        };
        self.answer(&found, beside, shown, out)
    }

    /// Prints what was found, and returns what is missing as an error.
    fn answer(
        &self,
        found: &Found,
        beside: BesideFound,
        shown: &Shown,
        out: &mut impl Write,
    ) -> Result<(), Unanswered> {
        // An empty answer is printed only if it is the complete answer to a question for all resources.
        let all = self.names.is_empty() && found.is_settled() && beside.error.is_none();
        let printed = if all || found.resources().next().is_some() {
            shown.all(&self.type_url, said(found, beside.words))
        } else {
            Printed::default()
        };
        out.write_all(printed.text.as_bytes())?;
        out.flush()?;
        if let Some(error) = beside.error {
            let server = self.peer.server.clone();
            return Err(Unanswered::Server { server, error });
        }
        let mut missing = printed.faults;
        missing.extend(found.missing(self, &beside.others));
        missing.extend(beside.note);
        if missing.is_empty() {
            return Ok(());
        }
        Err(Unanswered::Missing(missing))
    }

    fn begin(mut self) -> Result<(SentQuestion, Writer), Unanswered> {
        // A relay that has nothing to say then says at once why.
        self.peer.node.client_features.push(ASKS_ONCE.to_owned());
        let (line, writer) = self.peer.call(self.patience);
        for target in self.targets() {
            line.want(&self.type_url, target, true)?;
        }
        Ok((SentQuestion { question: self, line }, writer))
    }

    fn targets(&self) -> Vec<Target> {
        if self.names.is_empty() {
            return vec![Target::Wildcard];
        }
        self.names.iter().cloned().map(Target::Name).collect()
    }
}

impl SentQuestion {
    async fn once(&self, shown: &Shown, out: &mut impl Write) -> Result<(), Unanswered> {
        let deadline = tokio::time::sleep(self.question.patience);
        tokio::pin!(deadline);
        let mut look = tokio::time::interval(LOOK);
        loop {
            let found = self.look();
            if found.is_settled() {
                return self.answer(&found, None, shown, out).await;
            }
            let error = tokio::select! {
                error = self.news(&mut look, None) => match error {
                    None => continue,
                    Some(error) => error,
                },
                () = &mut deadline => self.line.unanswered(self.question.patience),
            };
            return self.answer(&self.look(), error, shown, out).await;
        }
    }

    /// Waits until the answer has changed, or the server has another error than `said`, and returns that. The answer is checked when it
    /// has changed, errors at every tick.
    async fn news(&self, look: &mut Interval, said: Option<&String>) -> Option<Option<String>> {
        let rung = self.line.rung();
        tokio::pin!(rung);
        loop {
            tokio::select! {
                () = &mut rung => return None,
                _ = look.tick() => {
                    let error = self.error();
                    if error.as_ref() != said {
                        return Some(error);
                    }
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
            while let Some(error) = self.news(&mut look, said.as_ref()).await {
                if let Some(error) = &error {
                    writeln!(notes, "{}: {}", self.question.peer.server, printable(error))?;
                }
                said = error;
            }
        }
    }

    /// Returns the current error of the server, if there is one.
    fn error(&self) -> Option<String> {
        let unserved = || self.line.unserved().into_values().next();
        self.line.error().or_else(|| unserved().map(|why| why.to_string()))
    }

    /// Returns the answer so far.
    fn look(&self) -> Found {
        self.line.rest();
        Found::of(&self.question, &self.line.cut())
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
        self.line.view().mailbox().words(&self.question.type_url, names).await
    }

    async fn answer(
        &self,
        found: &Found,
        error: Option<String>,
        shown: &Shown,
        out: &mut impl Write,
    ) -> Result<(), Unanswered> {
        let refused = self.line.refusals();
        let note = (refused > 0).then(|| {
            format!(
                "{}: responses rejected as invalid: {refused}; set RUST_LOG=warn to see why",
                self.question.peer.server
            )
        });
        let others = match error.is_none() && found.is_told_of_none() {
            true => self.others().await,
            false => Others::default(),
        };
        let beside = BesideFound {
            words: self.words(found.resources(), shown).await,
            others,
            note,
            error,
        };
        self.question.answer(found, beside, shown, out)
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
