// SPDX-License-Identifier: Apache-2.0
//! What the control plane says about the resources of a view.
//!
//! Owns the way of a question to the writer, who alone knows the answer. Keeps no words.

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use xds::{Name, ServerWords, TypeUrl};

/// A question about some names of a type.
#[derive(Debug)]
pub struct WordsQuestion {
    type_url: TypeUrl,
    names: Vec<Name>,
    answer: oneshot::Sender<Vec<Option<ServerWords>>>,
}

/// How many questions may wait for the writer.
const QUESTIONS_MAX: usize = 16;

impl WordsQuestion {
    /// Answers with what `find` returns for each name.
    pub fn answer(self, find: impl Fn(&TypeUrl, &Name) -> Option<ServerWords>) {
        let words = self.names.iter().map(|name| find(&self.type_url, name)).collect();
        // Whoever asked may have gone.
        drop(self.answer.send(words));
    }
}

/// The way of questions to the writer, if it takes any.
#[derive(Default)]
pub(super) struct Words(Mutex<Option<mpsc::Sender<WordsQuestion>>>);

impl Words {
    /// Returns the questions for the writer, from now on. A view whose writer does not call this answers none.
    pub(super) fn questions(&self) -> mpsc::Receiver<WordsQuestion> {
        let (sender, questions) = mpsc::channel(QUESTIONS_MAX);
        *self.0.lock() = Some(sender);
        questions
    }

    /// Asks the writer what the control plane says about these names of a type. None: it has said nothing about the name.
    pub(super) async fn ask(&self, type_url: &TypeUrl, names: Vec<Name>) -> Vec<Option<ServerWords>> {
        let nothing = vec![None; names.len()];
        let Some(writer) = self.0.lock().clone() else {
            return nothing;
        };
        let (answer, answered) = oneshot::channel();
        let question = WordsQuestion {
            type_url: type_url.clone(),
            names,
            answer,
        };
        match writer.send(question).await {
            Ok(()) => answered.await.unwrap_or(nothing),
            Err(_) => nothing,
        }
    }
}
