// SPDX-License-Identifier: Apache-2.0
//! An answer that is written while it is read: a slow reader keeps no more than what is written at a time.
//!
//! Owns the way from the writer to the reader, and that it is a question only while it is worked on. Does not know what is written.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::Poll;

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::mpsc;

use super::forms::Answered;
use crate::census::{QuestionTurn, Questions};

/// What an answer is written to.
pub(super) struct Page {
    full: mpsc::Sender<String>,
    text: String,
    turn: QuestionTurn,
}

/// How many bytes are sent at a time.
const FULL: usize = 16 << 10;

impl Page {
    /// Writes a text. Once there is enough, waits until the reader has taken what was sent before.
    pub(super) async fn write(&mut self, text: &str) {
        self.text.push_str(text);
        if self.text.len() >= FULL {
            // Whoever does not read any more lets go of the writer too.
            drop(self.turn.aside(self.full.send(std::mem::take(&mut self.text))).await);
        }
    }
}

/// Answers with what `write` writes on the page that it returns. It goes on only while somebody reads.
pub(super) async fn answer<W>(
    questions: &Questions,
    content_type: &'static str,
    write: impl FnOnce(Page) -> W,
) -> Answered
where
    W: Future<Output = Page> + Send + 'static,
{
    Ok(answer_in(questions.turn().await?, content_type, write))
}

/// Answers in this turn.
pub(super) fn answer_in<W>(turn: QuestionTurn, content_type: &'static str, write: impl FnOnce(Page) -> W) -> Response
where
    W: Future<Output = Page> + Send + 'static,
{
    let (full, mut texts) = mpsc::channel(1);
    let text = String::new();
    let mut writing: Option<Pin<Box<W>>> = Some(Box::pin(write(Page { full, text, turn })));
    let (mut rest, mut is_turn) = (None, true);
    let body = stream::poll_fn(move |cx| {
        is_turn = !is_turn;
        if is_turn {
            // A connection takes all that a reader reads at once: others, probes among them, get their turn after each piece.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(Poll::Ready(page)) = writing.as_mut().map(|writing| writing.as_mut().poll(cx)) {
            writing = None;
            rest = Some(page.text);
        }
        let text = texts.poll_recv(cx).map(|text| text.or_else(|| rest.take()));
        text.map(|text| text.map(Ok::<_, Infallible>))
    });
    ([(header::CONTENT_TYPE, content_type)], Body::from_stream(body)).into_response()
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use futures_util::StreamExt as _;

    use super::*;

    /// However fast a reader reads, others get their turn between two pieces.
    #[tokio::test]
    async fn others_get_their_turn() {
        let questions = Questions::default();
        let written = answer(&questions, "text/plain", async |mut page: Page| {
            for _ in 0..4 {
                page.write(&"x".repeat(FULL)).await;
            }
            page
        });
        let mut pieces = written.await.unwrap().into_body().into_data_stream();
        let (mut cx, mut seen) = (Context::from_waker(Waker::noop()), String::new());
        loop {
            match pieces.poll_next_unpin(&mut cx) {
                Poll::Pending => seen.push('-'),
                Poll::Ready(Some(piece)) => seen.push_str(if piece.unwrap().len() == FULL { "x" } else { "." }),
                Poll::Ready(None) => break,
            }
        }
        assert!(!seen.contains("xx") && seen.matches('x').count() == 4, "{seen}");
    }
}
