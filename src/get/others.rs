// SPDX-License-Identifier: Apache-2.0
//! The other names of the type, of which one may be meant by a name that does not exist.
//!
//! Owns how they are learned: from the server, which is asked for all resources of the type, and has a moment to answer.

use std::collections::BTreeSet;
use std::time::Duration;

use super::SentQuestion;
use crate::xds::{Cut, Name, Slot, Target, TypeUrl, meant};

/// The names of one type that exist.
#[derive(Debug, Default)]
pub(super) struct Others(BTreeSet<Name>);

/// What is only a hint is not waited for any longer.
const SOON: Duration = Duration::from_secs(1);

impl Others {
    /// Returns the names in a state.
    pub(super) fn of(type_url: &TypeUrl, cut: &Cut) -> Self {
        let states = cut.slot(type_url).into_iter().flat_map(Slot::halves);
        Self(
            states
                .flat_map(|state| state.resources())
                .map(|one| one.name().clone())
                .collect(),
        )
    }

    /// Returns which of them was probably meant, as the end of a sentence; empty if none is close.
    pub(super) fn meant(&self, name: &Name) -> String {
        let meant = meant(name.as_str(), self.0.iter().map(Name::as_str));
        meant.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"))
    }
}

impl SentQuestion {
    /// Returns the names that the server has, as far as it tells them soon.
    pub(super) async fn others(&self) -> Others {
        let type_url = &self.question.type_url;
        let told = async {
            self.line.want(type_url, Target::Wildcard, true).ok()?;
            loop {
                self.line.rest();
                let cut = self.line.cut();
                let state = cut.slot(type_url).and_then(|slot| slot.wildcard.as_ref());
                if state.is_some_and(|state| state.complete()) {
                    return Some(Others::of(type_url, &cut));
                }
                self.line.rung().await;
            }
        };
        tokio::time::timeout(SOON, told)
            .await
            .ok()
            .flatten()
            .unwrap_or_default()
    }
}
