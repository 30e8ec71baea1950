// SPDX-License-Identifier: Apache-2.0
//! Questions to the control plane, one at a time and not too many.
//!
//! Owns what a question is about, what is kept of its answer (hashes), and the line that is written before it. Decides nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::Duration;

use anyhow::anyhow;
use tokio::runtime::Runtime;

use super::node::NodeFields;
use super::search::Unclear;
use crate::classes::ASKS_ONCE;
use crate::cli::asking::now;
use crate::get::{AskedPeer, ReadKey, Walk, Ways, roots};
use crate::json::Schemas;
use crate::proto::envoy::config::core::v3::Node;
use crate::xds::{Target, TypeUrl, Version, printable};

/// How many questions are asked at most.
pub(super) const QUESTIONS_MAX: usize = 64;
/// How the words begin with which nothing is found out.
pub(super) const UNCLEAR: &str = "it cannot be told what the answer depends on";
/// How often to look whether the answer is there.
const LOOK: Duration = Duration::from_millis(10);

/// What a node was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// The hashes of the contents; none: it does not exist.
    given: BTreeMap<ReadKey, Option<Version>>,
    /// The types of which not all has come in time.
    silent: BTreeSet<TypeUrl>,
    /// Whether the stream was refused, or ended.
    refused: bool,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Stop {
    /// There were too many questions.
    Spent,
    Unclear,
    Failed(anyhow::Error),
}

/// Asks.
pub(super) struct Asker<'a, W> {
    runtime: Runtime,
    peer: AskedPeer,
    patience: Duration,
    ways: Ways,
    /// All resources of which types are asked for.
    types: Vec<TypeUrl>,
    notes: &'a mut W,
    /// What the ids of mixtures begin with. Each has another one, because control planes keep what they have said by the id.
    prefix: String,
    asked: usize,
    /// How many questions are kept for the end.
    kept: usize,
    /// Why the last stream was refused.
    words: String,
}

impl<'a, W: Write> Asker<'a, W> {
    pub(super) fn new(
        runtime: Runtime,
        peer: AskedPeer,
        types: &[TypeUrl],
        patience: Duration,
        notes: &'a mut W,
    ) -> Self {
        let (ways, types) = match types {
            [] => {
                let usual = roots(&[]).into_iter().map(|(type_url, _)| type_url);
                (Ways::new(Schemas::standard()), usual.collect())
            }
            types => (Ways::nowhere(), types.to_vec()),
        };
        Self {
            runtime,
            peer,
            patience,
            ways,
            types,
            notes,
            prefix: format!("survey-{:08x}", rand::random::<u32>()),
            asked: 0,
            kept: 0,
            words: String::new(),
        }
    }

    /// Asks as a mixture.
    pub(super) fn mixture(&mut self, fields: &NodeFields) -> Result<Told, Stop> {
        let id = format!("{}-{}", self.prefix, self.asked + 1);
        let mut names = fields.names().map(ToString::to_string);
        let mut with = names.by_ref().take(3).collect::<Vec<_>>().join(", ");
        match names.count() {
            0 if with.is_empty() => with.push_str("nothing else"),
            0 => {}
            more => with.push_str(&format!(" and {more} more fields")),
        }
        let node = fields.node(&id)?;
        self.ask(node, &format!("{id}, with {with}"))
    }

    /// Asks as this node.
    pub(super) fn ask(&mut self, mut node: Node, called: &str) -> Result<Told, Stop> {
        if self.asked + self.kept >= QUESTIONS_MAX {
            return Err(Stop::Spent);
        }
        self.asked += 1;
        let line = format!("question {} of at most {QUESTIONS_MAX}: as {called}", self.asked);
        writeln!(self.notes, "{}", printable(&line)).map_err(|error| Stop::Failed(error.into()))?;
        node.client_features.push(ASKS_ONCE.to_owned());
        self.peer.node = node;
        let roots = self.types.iter().map(|type_url| (type_url.clone(), Target::Wildcard));
        let (mut walk, writer) = Walk::begin(&self.peer, roots.collect(), self.patience, now());
        let ways = &mut self.ways;
        let answered = self.runtime.block_on(async {
            let looked = async {
                loop {
                    walk.look(ways, now()).map_err(anyhow::Error::from)?;
                    if let Some(words) = walk.trouble(now()) {
                        return Ok(Err(words));
                    }
                    if walk.is_settled(now()) {
                        return Ok(Ok(()));
                    }
                    tokio::time::sleep(LOOK).await;
                }
            };
            tokio::select! {
                () = writer => Ok(Err("it is not asked any more".to_owned())),
                looked = looked => looked,
            }
        });
        match answered {
            Ok(Ok(())) => {
                let reached = walk.reached();
                let given = reached.keys().filter_map(|key| {
                    let version = reached.known(key)?.map(|resource| resource.version());
                    Some((key.clone(), version))
                });
                Ok(Told {
                    given: given.collect(),
                    silent: reached.unfinished().cloned().collect(),
                    refused: false,
                })
            }
            Ok(Err(words)) => {
                self.words = words;
                Ok(Told {
                    refused: true,
                    ..Told::default()
                })
            }
            Err(error) => Err(Stop::Failed(error)),
        }
    }

    /// How many questions were asked.
    pub(super) const fn asked(&self) -> usize {
        self.asked
    }

    /// Keeps so many questions for later.
    pub(super) const fn keep(&mut self, questions: usize) {
        self.kept = questions;
    }

    /// Asks no more for types of which nobody was told: that would be waited for each time.
    pub(super) fn forget_silent(&mut self, answers: &mut [Told]) -> Result<(), Stop> {
        let silent = |type_url: &TypeUrl| answers.iter().all(|told| told.silent.contains(type_url));
        let (silent, types) = std::mem::take(&mut self.types).into_iter().partition(silent);
        self.types = types;
        for type_url in silent {
            let line = format!(
                "none of these clients is told of {}: mixtures do not ask for it",
                type_url.word()
            );
            writeln!(self.notes, "{line}").map_err(|error| Stop::Failed(error.into()))?;
            for told in &mut *answers {
                told.silent.remove(&type_url);
            }
        }
        Ok(())
    }

    /// Why the last question was not answered.
    pub(super) fn why(&self) -> String {
        match self.words.as_str() {
            "" => format!(
                "it did not answer within {:?}; raise --timeout if it needs longer",
                self.patience
            ),
            words => words.to_owned(),
        }
    }
}

impl Stop {
    /// Returns it as an error.
    pub(super) fn told(self) -> anyhow::Error {
        match self {
            Self::Failed(error) => error,
            Self::Spent => anyhow!("{QUESTIONS_MAX} questions were not enough"),
            Self::Unclear => anyhow!(
                "{UNCLEAR}: nodes with equal fields were answered otherwise; by a hash of the id, or as it changed meanwhile"
            ),
        }
    }
}

impl Told {
    /// Whether nothing was given.
    pub(super) fn is_nothing(&self) -> bool {
        self.given.is_empty() && (self.refused || !self.silent.is_empty())
    }

    /// Says of which types two answers differ, and how many resources of each.
    pub(super) fn difference(&self, other: &Self) -> String {
        let mut types: BTreeMap<&str, usize> = BTreeMap::new();
        for key in self.given.keys().chain(other.given.keys()).collect::<BTreeSet<_>>() {
            if self.given.get(key) != other.given.get(key) {
                *types.entry(key.0.word()).or_default() += 1;
            }
        }
        let types = types.into_iter().map(|(word, count)| format!("{count} of {word}"));
        match types.collect::<Vec<_>>().as_slice() {
            [] => "whether and in time".to_owned(),
            types => types.join(", "),
        }
    }
}

impl From<Unclear> for Stop {
    fn from(_: Unclear) -> Self {
        Self::Unclear
    }
}

impl From<anyhow::Error> for Stop {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}
