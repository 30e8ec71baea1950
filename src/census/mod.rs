//! What all client streams say when they are asked.
//!
//! Owns the way of a question: view by view, and some sessions at a time, so that nobody feels it and the answers take little
//! memory. Does not know who asks.

mod answered;
mod cached;
mod csds;
mod entries;
mod pages;
mod service;

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::mpsc;

use crate::cache::{Scopes, View};
use crate::clock;
use crate::inquiry::{ClientStream, Inquiry, Question};
use crate::xds::TypeUrl;
pub use answered::ClientStatus;
pub use cached::Cached;
pub use entries::{Entry, visit, visit_name};
use pages::Extent;
pub use pages::Pages;
pub use service::{Allowed, ClientStatusServer, SERVICE};

/// All client streams.
#[derive(Clone)]
pub struct Census(Arc<Scopes>);

/// A question that goes round.
pub struct Round {
    question: Arc<Question>,
    /// Those whose sessions were not all asked yet; the next one is the last.
    views: Vec<Arc<View>>,
    /// The first session of that view that was not asked yet.
    from: u32,
    asked: Option<Asked>,
    late: usize,
}

/// Sessions that were asked.
struct Asked {
    answers: mpsc::Receiver<ClientStream>,
    /// Those who have not answered keep it alive.
    inquiry: Weak<Inquiry>,
}

/// How many sessions are asked at a time.
const AT_ONCE: usize = 256;
/// How long they may take. Each answers in its next turn, so this is only needed by a relay that has no time at all.
const PATIENCE: Duration = Duration::from_secs(5);

impl Census {
    /// Takes the answers of the sessions at these views.
    #[must_use]
    pub const fn new(scopes: Arc<Scopes>) -> Self {
        Self(scopes)
    }

    /// Returns the views.
    #[must_use]
    pub fn views(&self) -> Vec<Arc<View>> {
        self.0.all()
    }

    /// Calls `tell` with all that the views have, name by name.
    pub fn visit(&self, mut tell: impl FnMut(Entry)) {
        self.views().iter().for_each(|view| visit(view, &mut tell));
    }

    /// Returns the contents of the types that are chosen, to be read some at a time.
    #[must_use]
    pub fn pages(&self, chosen: impl Fn(&TypeUrl) -> bool + Send + 'static) -> Pages {
        Pages::new(&self.views(), Extent::Contents, chosen)
    }

    /// Returns the types of which the views have anything, or of which clients ask for something.
    #[must_use]
    pub fn types(&self) -> BTreeSet<TypeUrl> {
        let mut types = BTreeSet::new();
        for view in self.views() {
            types.extend(view.cut().slots().map(|(type_url, _)| type_url.clone()));
            types.extend(view.lacking().into_iter().map(|(type_url, _)| type_url));
        }
        types
    }

    /// Returns all entries of the chosen types, also those without content, to be read some at a time.
    #[must_use]
    pub fn entries(&self, chosen: impl Fn(&TypeUrl) -> bool + Send + 'static) -> Pages {
        Pages::new(&self.views(), Extent::Entries, chosen)
    }

    /// Asks all sessions.
    #[must_use]
    pub fn ask(&self, question: Question) -> Round {
        let mut views = self.views();
        views.reverse();
        Round {
            question: Arc::new(question),
            views,
            from: 0,
            asked: None,
            late: 0,
        }
    }
}

impl std::fmt::Debug for Census {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Census")
    }
}

impl Round {
    /// Returns the next answer. Sessions that come while the question goes round, or that move to another view, may be missed.
    pub async fn next(&mut self) -> Option<ClientStream> {
        loop {
            if let Some(asked) = &mut self.asked {
                match clock::timeout(PATIENCE, asked.answers.recv()).await {
                    Some(Some(answer)) => return Some(answer),
                    Some(None) => {}
                    None => self.late += asked.inquiry.strong_count(),
                }
            }
            self.asked = Some(self.ask_some()?);
        }
    }

    /// Returns how many sessions did not answer in time.
    #[must_use]
    pub const fn late(&self) -> usize {
        self.late
    }

    fn ask_some(&mut self) -> Option<Asked> {
        let view = self.views.last()?;
        let (inquiry, answers) = Inquiry::new(self.question.clone(), AT_ONCE);
        match view.ask(self.from, AT_ONCE, &inquiry) {
            Some(next) => self.from = next,
            None => {
                self.from = 0;
                self.views.pop();
            }
        }
        Some(Asked {
            answers,
            inquiry: Arc::downgrade(&inquiry),
        })
    }
}
