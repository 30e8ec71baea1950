// SPDX-License-Identifier: Apache-2.0
//! What all client streams say when they are asked.
//!
//! Owns the way of a question: view by view, and some sessions at a time, whoever else asks, so that nobody feels it and the answers
//! take little memory. Does not know who asks.

mod answered;
mod cached;
mod configs;
mod csds;
mod document;
mod entries;
mod hung;
mod pages;
mod questions;
mod service;
mod standings;
mod unserved;
mod whole_answer;

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};

use crate::cache::{Respondents, Scopes, View};
use crate::clock;
use crate::inquiry::{ClientStream, Depth, Inquiry, Question, StreamNumber};
use crate::xds::TypeUrl;
pub use answered::ClientStatus;
pub use cached::Cached;
pub use document::Document;
pub use entries::{Entry, visit, visit_name};
pub use hung::{CutOff, Hung};
pub use pages::Pages;
use pages::{ChosenTypes, PageExtent};
pub use questions::{Busy, QuestionTurn, Questions};
pub use service::{Allowed, ClientStatusServer, SERVICE, StatusMethod};
use standings::LastStandings;
pub use standings::{ClientState, Standings, TypeStandings};
pub use unserved::{Caller, Unserved};

/// All client streams.
#[derive(Clone)]
pub struct Census {
    scopes: Arc<Scopes>,
    /// Whose turn it is to ask some sessions.
    turn: Arc<Semaphore>,
    standings: Arc<LastStandings>,
    unserved: Arc<Unserved>,
    hung: Arc<Hung>,
}

/// A question that goes round.
pub struct Round {
    question: Arc<Question>,
    turn: Arc<Semaphore>,
    /// Those whose sessions are asked later, the next one last.
    views: Vec<Arc<View>>,
    /// The sessions of the view that is asked.
    respondents: Option<Respondents>,
    asked: Option<AskedSessions>,
    answers: std::vec::IntoIter<ClientStream>,
    /// Whether a session may be asked at several views.
    repeats: bool,
    /// Who has answered, if so.
    heard: HashSet<StreamNumber>,
    late: usize,
}

/// Sessions that were asked.
struct AskedSessions {
    /// Those who have not answered keep it alive.
    inquiry: Weak<Inquiry>,
    answers: oneshot::Receiver<Vec<ClientStream>>,
}

/// How many sessions are asked at a time.
const AT_ONCE: usize = 128;
/// The same if they tell each resource: a stream may have a hundred thousand.
const AT_ONCE_IN_FULL: usize = 8;
/// How long they may take, and how long others wait for them. Each answers in its next turn, so this is only needed by a relay that
/// has no time at all.
const PATIENCE: Duration = Duration::from_secs(5);

impl Census {
    /// Takes the answers of the sessions at these views.
    #[must_use]
    pub fn new(scopes: Arc<Scopes>) -> Self {
        Self {
            scopes,
            turn: Arc::new(Semaphore::new(1)),
            standings: Arc::default(),
            unserved: Arc::default(),
            hung: Arc::default(),
        }
    }

    /// Returns the views.
    pub fn views(&self) -> Vec<Arc<View>> {
        self.scopes.all()
    }

    /// Returns the clients that wait and have no stream, because their last one ended unanswered.
    pub fn unserved(&self) -> &Unserved {
        &self.unserved
    }

    /// Returns the clients that hung and were cut off.
    pub fn hung(&self) -> &Hung {
        &self.hung
    }

    /// Returns the contents of the types that are chosen, to be read some at a time.
    pub fn pages(&self, chosen: impl Fn(&TypeUrl) -> bool + Send + 'static) -> Pages {
        Pages::new(
            &self.views(),
            PageExtent::Contents,
            ChosenTypes::Those(Box::new(chosen)),
        )
    }

    /// Returns the types of which the views have anything, or of which clients ask for something.
    pub fn types(&self) -> BTreeSet<TypeUrl> {
        let mut types = BTreeSet::new();
        for view in self.views() {
            types.extend(view.cut().slots().map(|(type_url, _)| type_url.clone()));
            types.extend(view.lacking().into_iter().map(|(type_url, _)| type_url));
        }
        types
    }

    /// Returns all entries of the chosen types, also those without content, to be read some at a time.
    pub fn entries(&self, chosen: impl Fn(&TypeUrl) -> bool + Send + 'static) -> Pages {
        Pages::new(&self.views(), PageExtent::Entries, ChosenTypes::Those(Box::new(chosen)))
    }

    /// Returns the same of one type.
    pub fn entries_of(&self, type_url: TypeUrl) -> Pages {
        Pages::new(&self.views(), PageExtent::Entries, ChosenTypes::One(type_url))
    }

    /// Asks all sessions that the question is for.
    pub fn ask(&self, question: Question) -> Round {
        let mut views = self.views();
        views.reverse();
        Round {
            repeats: question.is_about_one() && views.len() > 1,
            question: Arc::new(question),
            turn: self.turn.clone(),
            views,
            respondents: None,
            asked: None,
            answers: Vec::new().into_iter(),
            heard: HashSet::new(),
            late: 0,
        }
    }
}

impl Round {
    /// Returns the next answer. Sessions that come while the question goes round, or that move to another view, may be missed.
    pub async fn next(&mut self) -> Option<ClientStream> {
        loop {
            if let Some(answer) = self.answers.next() {
                return Some(answer);
            }
            let asked = match self.asked.take() {
                Some(asked) => asked,
                None => self.ask_some().await?,
            };
            self.answers = self.collect(asked).await.into_iter();
            // These answer while the answers before are read.
            self.asked = self.ask_some().await;
        }
    }

    /// Returns how many sessions did not answer in time.
    pub const fn late(&self) -> usize {
        self.late
    }

    /// Asks the next sessions. Returns nothing if all were asked.
    async fn ask_some(&mut self) -> Option<AskedSessions> {
        let turn = clock::timeout(PATIENCE, self.turn.clone().acquire_owned()).await;
        let at_once = match self.question.depth {
            Depth::Resources => AT_ONCE_IN_FULL,
            Depth::Types | Depth::Resource(..) => AT_ONCE,
        };
        let (inquiry, answers) = Inquiry::new(self.question.clone(), at_once, turn.and_then(Result::ok));
        while !(self.respondents.as_mut()).is_some_and(|respondents| respondents.ask_some(at_once, &inquiry)) {
            self.respondents = Some(self.views.pop()?.respondents(&self.question));
        }
        let inquiry = Arc::downgrade(&inquiry);
        Some(AskedSessions { inquiry, answers })
    }

    /// Collects the answers of those who were asked.
    async fn collect(&mut self, asked: AskedSessions) -> Vec<ClientStream> {
        let mut answers = match clock::timeout(PATIENCE, asked.answers).await {
            Some(answers) => answers.unwrap_or_default(),
            None => {
                self.late += asked.inquiry.strong_count();
                let left = asked.inquiry.upgrade();
                left.map(|inquiry| inquiry.take()).unwrap_or_default()
            }
        };
        if self.repeats {
            answers.retain(|answer| self.heard.insert(answer.number));
        }
        answers
    }
}
