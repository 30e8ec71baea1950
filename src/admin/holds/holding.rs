// SPDX-License-Identifier: Apache-2.0
//! One hold, and where it is.
//!
//! Owns its id, which is equal on all replicas, and how many clients it is about. What is held is decided elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::Shown;
use crate::cache::View;
use crate::xds::{Hasher, HeldRemoval, Hold, HoldTarget, Name, Target, TypeUrl};

/// How many characters of a view's hash are in an id.
const VIEW_CHARS: usize = 8;
/// How many removals are looked at before others who ask get their turn.
const PIECE: usize = 1024;

/// A hold, and where it is.
pub(super) struct Holding {
    pub(super) view: Arc<View>,
    pub(super) server: String,
    pub(super) hold: Hold,
}

/// Returns all holds, by view and type.
pub(super) fn all(shown: &Shown) -> Vec<Holding> {
    let holds = each(shown, |view| Vec::clone(&view.head().holds()));
    holds
        .map(|(view, server, hold)| Holding { view, server, hold })
        .collect()
}

/// Returns what is found in each view, with the view and its server.
pub(super) fn each<T>(shown: &Shown, find: impl Fn(&View) -> Vec<T>) -> impl Iterator<Item = (Arc<View>, String, T)> {
    let views = shown.status.census().views().into_iter();
    let found: Vec<_> = views
        .map(|view| (find(&view), view))
        .filter(|(found, _)| !found.is_empty())
        .collect();
    // The names take long to find.
    let names = if found.is_empty() {
        BTreeMap::new()
    } else {
        shown.overview.look().names
    };
    found.into_iter().flat_map(move |(found, view)| {
        let server = names.get(&view.server()).cloned().unwrap_or_default();
        found.into_iter().map(move |one| (view.clone(), server.clone(), one))
    })
}

/// Returns the beginning of ids of a view, which is equal on all relays that have the same servers and classes.
pub(super) fn of_view(server: &str, view: &View) -> String {
    let mut hasher = Hasher::new(0);
    hasher.field(server.as_bytes());
    hasher.field(view.class().to_string().as_bytes());
    hasher.finish().to_string().chars().take(VIEW_CHARS).collect()
}

impl Holding {
    /// Returns the id: view, type, reason, and the number of a judgement.
    pub(super) fn id(&self) -> String {
        let id = format!("{}-{}", self.of_view(), self.of_type());
        self.hold
            .judgement
            .map_or(id.clone(), |number| format!("{id}-{number}"))
    }

    fn of_view(&self) -> String {
        of_view(&self.server, &self.view)
    }

    /// Returns what names all holds of the type for this reason, in any view.
    fn of_type(&self) -> String {
        format!("{}-{}", self.hold.type_url.word(), self.hold.reason.word())
    }

    /// Returns what an order for `text` is for, as far as this hold goes: the hold itself, all judgements of the type in this view or
    /// in any, or one resource.
    pub(super) fn meant(&self, text: &str) -> Option<HoldTarget> {
        let Hold {
            type_url,
            reason,
            judgement,
            removals,
            ..
        } = &self.hold;
        let of_type = self.of_type();
        let whole = |judgement| HoldTarget::Hold(type_url.clone(), *reason, judgement);
        if text == self.id() {
            return Some(whole(*judgement));
        }
        if text == of_type || text == format!("{}-{of_type}", self.of_view()) {
            return Some(whole(None));
        }
        let (word, name) = text.split_once('/')?;
        let asked: TypeUrl = word.parse().ok()?;
        let name = Name::read(name, &asked);
        let held = asked == *type_url && removals.contains_key(&name);
        held.then(|| HoldTarget::Resource(asked, name))
    }

    /// Returns how many sessions want any of the resources.
    pub(super) async fn clients(&self) -> usize {
        let mut clients = BTreeSet::new();
        each_piece(&self.hold, |piece| {
            let wanted = piece.iter().map(|(name, removal)| {
                let target = match removal.wildcard {
                    true => Target::Wildcard,
                    false => Target::Name((*name).clone()),
                };
                (self.hold.type_url.clone(), target)
            });
            let mut wanted: Vec<_> = wanted.collect();
            wanted.dedup();
            clients.append(&mut self.view.demand().sessions_of(&wanted));
        })
        .await;
        clients.len()
    }
}

/// Looks at the removals of a hold, some at a time: there may be very many, and others who ask get their turn.
async fn each_piece(hold: &Hold, mut look: impl FnMut(&[(&Name, &HeldRemoval)])) {
    let mut removals = hold.removals.iter();
    loop {
        let piece: Vec<_> = removals.by_ref().take(PIECE).collect();
        if piece.is_empty() {
            return;
        }
        look(&piece);
        tokio::task::yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::clock;
    use crate::xds::HoldReason;

    /// However many removals there are, others get their turn after some of them.
    #[test]
    fn others_get_their_turn() {
        let removal = HeldRemoval {
            since: clock::now(),
            until: None,
            by: None,
            emptied: false,
            wildcard: true,
            extended: None,
        };
        let names = (0..5 * PIECE / 2).map(|number| Name::from(&*number.to_string()));
        let hold = Hold {
            type_url: "cds".parse().unwrap(),
            reason: HoldReason::Mass,
            judgement: Some(1),
            clock: None,
            removals: names.map(|name| (name, removal.clone())).collect(),
        };
        let mut pieces = Vec::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let _entered = runtime.enter();
        let mut turns = 0;
        {
            let mut looking = pin!(each_piece(&hold, |piece| pieces.push(piece.len())));
            let mut cx = Context::from_waker(Waker::noop());
            while looking.as_mut().poll(&mut cx) == Poll::Pending {
                turns += 1;
            }
        }
        assert_eq!((pieces, turns), (vec![PIECE, PIECE, PIECE / 2], 3));
    }
}
