// SPDX-License-Identifier: Apache-2.0
//! The sessions of a view that an operator's question is for.
//!
//! Owns that each is asked once, and some at a time. Does not know whom the question concerns, nor the answers.

use std::sync::Arc;

use super::View;
use inquiry::Inquiry;

/// Sessions of a view that a question is for, and that were not asked yet.
pub struct Respondents {
    view: Arc<View>,
    seats: std::vec::IntoIter<u32>,
}

impl Respondents {
    /// The sessions at these seats.
    pub(super) fn at(view: &Arc<View>, seats: impl IntoIterator<Item = u32>) -> Self {
        Self {
            view: view.clone(),
            seats: seats.into_iter().collect::<Vec<_>>().into_iter(),
        }
    }

    /// Asks some of them the question. Returns whether there were any.
    #[must_use]
    pub fn ask_some(&mut self, most: usize, inquiry: &Arc<Inquiry>) -> bool {
        let before = self.seats.len();
        self.view.demand().ask(&mut self.seats, most, inquiry);
        before > 0
    }
}
