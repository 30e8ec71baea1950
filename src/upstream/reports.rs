//! What a view's server is told of the rejections of its clients (E-24).
//!
//! Owns the questions to the clients that are under way. Decides nothing: the machines say what is to be asked and said.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

use super::leg::Leg;
use super::writer::Talk;
use crate::cache::View;
use crate::xds::{Rejection, TypeUrl};

/// Asks the clients of a view what they reject of a type.
pub type AskClients = Arc<dyn Fn(Arc<View>, TypeUrl) -> BoxFuture<'static, Vec<Rejection>> + Send + Sync>;

/// The questions of one view.
pub(super) struct Reports {
    /// `None`: the server is told nothing.
    ask: Option<AskClients>,
    asked: FuturesUnordered<BoxFuture<'static, (TypeUrl, Vec<Rejection>)>>,
}

impl Reports {
    pub(super) fn new(ask: Option<AskClients>) -> Self {
        let asked = FuturesUnordered::new();
        Self { ask, asked }
    }

    /// Tells the streams what clients have rejected, asks the clients what the streams want to know, and notes what the server was told.
    pub(super) fn turn<L: Talk>(&mut self, view: &Arc<View>, talks: [&mut L; 2]) {
        let rejected = view.verdicts().rejected().take();
        let Some(ask) = &self.ask else { return };
        let mut questions = Vec::new();
        for talk in talks {
            talk.each_stream(&mut |leg: &mut Leg| {
                rejected.iter().for_each(|type_url| leg.rejected(type_url));
                questions.extend(leg.take_questions());
                for reported in leg.take_reported() {
                    view.verdicts().rejected().note_reported(
                        &view.cut(),
                        &reported.type_url,
                        reported.contents,
                        reported.at,
                    );
                }
            });
        }
        questions.sort_unstable();
        questions.dedup();
        for type_url in questions {
            let answer = ask(view.clone(), type_url.clone());
            self.asked.push(Box::pin(async move { (type_url, answer.await) }));
        }
    }

    /// Hands the clients' answers to the streams.
    pub(super) fn poll<L: Talk>(&mut self, cx: &mut Context<'_>, talks: [&mut L; 2]) -> Poll<()> {
        if self.asked.is_empty() {
            return Poll::Pending;
        }
        let mut answers = Vec::new();
        while let Poll::Ready(Some(answer)) = self.asked.poll_next_unpin(cx) {
            answers.push(answer);
        }
        for talk in talks {
            talk.each_stream(&mut |leg: &mut Leg| {
                for (type_url, rejections) in &answers {
                    leg.take_rejections(type_url, rejections);
                }
            });
        }
        if answers.is_empty() {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }
}
