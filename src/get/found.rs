// SPDX-License-Identifier: Apache-2.0
//! The answer to a question so far.
//!
//! Owns when the answer is complete, and the error texts for missing resources. Does not print.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::GetQuestion;
use super::others::Others;
use super::printed::Change;
use crate::xds::{Cut, Known, Name, Reason, Resource, ResourceError};

/// The answer at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    resources: BTreeMap<Name, Arc<Resource>>,
    /// The names that do not exist, why the relay knows that, and the error of the server, if there is one.
    absent: Vec<(Name, Reason, Option<Arc<ResourceError>>)>,
    /// The names without an answer so far; `None` stands for all resources of the type.
    open: Vec<Option<Name>>,
}

impl Found {
    pub(super) fn of(question: &GetQuestion, cut: &Cut) -> Self {
        let mut found = Self::default();
        let slot = cut.slot(&question.type_url);
        if question.names.is_empty() {
            let state = slot.and_then(|slot| slot.wildcard.as_ref());
            found.put_all(state.iter().flat_map(|state| state.resources()));
            if !state.is_some_and(|state| state.complete()) {
                found.open.push(None);
            }
            return found;
        }
        for name in &question.names {
            let known = slot.and_then(|slot| slot.known(name));
            match known {
                Some(Known::Present(resource)) => found.put_all(std::iter::once(resource)),
                Some(Known::Absent(reason)) => {
                    let error = slot.and_then(|slot| slot.named.error(name));
                    found.absent.push((name.clone(), *reason, error.cloned()));
                }
                None | Some(Known::Held(_)) => match slot.filter(|_| name.is_collection()) {
                    Some(slot) => {
                        found.put_all(slot.named.members(name));
                        if !slot.named.whole(name) {
                            found.open.push(Some(name.clone()));
                        }
                    }
                    None => found.open.push(Some(name.clone())),
                },
            }
        }
        found
    }

    /// Whether the answer is complete.
    pub(super) const fn is_settled(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values()
    }

    /// Returns the changes since `before`: first added and changed resources, then removed ones.
    pub(super) fn since<'a>(
        &'a self,
        before: &'a Self,
    ) -> impl Iterator<Item = (Change, String, Option<&'a Arc<Resource>>)> {
        let there = self.resources.iter().filter_map(|(name, resource)| {
            let change = match before.resources.get(name) {
                None => Change::Added,
                Some(old) if old.version() != resource.version() => Change::Changed,
                Some(_) => return None,
            };
            Some((change, name.to_string(), Some(resource)))
        });
        let lost = before.resources.iter();
        let lost = lost.filter(|(name, _)| !self.resources.contains_key(*name));
        let lost = lost.map(|(name, _)| (Change::Removed, name.to_string(), None));
        let absent = self.absent.iter().filter(|absent| !before.absent.contains(absent));
        let absent = absent.filter(|(name, _, _)| !before.resources.contains_key(name));
        there
            .chain(lost)
            .chain(absent.map(|(name, _, _)| (Change::Removed, name.to_string(), None)))
    }

    /// Whether the server said of a name that it does not exist, so that the name may be wrong.
    pub(super) fn is_told_of_none(&self) -> bool {
        self.absent.iter().any(|(_, reason, _)| *reason == Reason::Said)
    }

    /// Returns one sentence for each missing resource. `others` are names that exist.
    pub(super) fn missing(&self, question: &GetQuestion, others: &Others) -> Vec<String> {
        let (server, patience) = (&question.peer.server, question.patience);
        let kind = question.type_url.word();
        let absent = self.absent.iter().map(|(name, reason, error)| match (reason, error) {
            (Reason::Said, _) => format!("{name}: {server} has no such {kind} resource{}", others.meant(name)),
            (Reason::Expired, _) => format!("{name}: its time to live ended, and {server} did not send it again"),
            (Reason::TimedOut, Some(error)) => format!("{name}: {}", error.message),
            (Reason::TimedOut, None) => {
                format!("{name}: {server} did not send this {kind} resource within {patience:?}")
            }
        });
        let open = self.open.iter().map(|name| match name {
            Some(name) if patience.is_zero() => {
                format!("{name}: {server} does not contain this {kind} resource{}", others.meant(name))
            }
            None if patience.is_zero() => format!("{server} does not hold all {kind} resources"),
            Some(name) => format!("{name}: {server} did not send this {kind} resource within {patience:?}"),
            None if self.resources.is_empty() && !question.type_url.traits().wildcard => format!(
                "{server} sent no {kind} resources within {patience:?}; many servers send this type by name only: write \
                 the names, or raise --timeout"
            ),
            None => format!(
                "{server} did not send all {kind} resources within {patience:?}; is this node known to it? See \
                 --node-id, or raise --timeout"
            ),
        });
        absent.chain(open).collect()
    }

    fn put_all<'a>(&mut self, resources: impl Iterator<Item = &'a Arc<Resource>>) {
        let named = resources.map(|resource| (resource.name().clone(), resource.clone()));
        self.resources.extend(named);
    }
}
