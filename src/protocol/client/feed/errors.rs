//! What a server says is wrong with names (E-09), and what follows by what it says of itself (G-13, G-14).
//!
//! Owns the errors that are remembered. Refuses to know how they are passed on.

use std::sync::Arc;

use super::Feed;
use crate::protocol::client::ingest::Message;
use crate::xds::{Name, Reason, ResourceError, Update};

impl Feed {
    /// Takes the errors of a response, and the names of its entries that are not sound.
    pub(super) fn complain(&mut self, message: &mut Message, updates: &mut Vec<Update>) {
        // G-13: what is wrong takes nothing from anybody, unless the server entry says so.
        if self.features.fail_on_data_errors {
            for text in &message.spoiled {
                if let Some(canonical) = self.kept.canonical(text).cloned() {
                    self.gone(&canonical, Reason::Said, updates);
                }
            }
        }
        for (text, error) in std::mem::take(&mut message.errors) {
            self.complain_of(&text, error, updates);
        }
    }

    /// E-09: an error ends the wait. NOT_FOUND and PERMISSION_DENIED are about the resource, everything else passes.
    fn complain_of(&mut self, text: &str, error: ResourceError, updates: &mut Vec<Update>) {
        let asked = self.names.get(text).filter(|_| !self.line.is_leaving(text)).cloned();
        let kept = self.kept.canonical(text).cloned();
        self.names.known(text);
        match (kept, &asked) {
            (Some(kept), _) if error.is_final() && self.features.fail_on_data_errors => {
                self.gone(&kept, Reason::Said, updates);
            }
            (None, Some(collection)) if error.is_final() && collection.is_collection() => {
                self.empty(collection, updates);
            }
            (None, Some(name)) if error.is_final() => updates.push(Update::Absent(name.clone(), Reason::Said)),
            (Some(_), _) | (None, _) => {}
        }
        if let Some(name) = asked {
            self.remember(name, error, updates);
        }
    }

    fn remember(&mut self, name: Name, error: ResourceError, updates: &mut Vec<Update>) {
        let error = Arc::new(error);
        self.errors.insert(name.clone(), error.clone());
        updates.push(Update::Error(name, Some(error)));
    }

    /// The server has said something else of a name.
    pub(super) fn absolve(&mut self, text: &str, updates: &mut Vec<Update>) {
        if let Some((name, _)) = self.errors.remove_entry(text) {
            updates.push(Update::Error(name, None));
        }
    }

    /// E-08: a name for which the server has not answered in time. Of a collection it has, if anything of it is held.
    pub(super) fn overdue(&mut self, name: Name, updates: &mut Vec<Update>) {
        let spoken = self.collections.whole(&name) || self.kept.within(&name).next().is_some();
        if spoken {
            return;
        }
        // G-14: of a server that reports errors itself silence says nothing about the resource.
        if self.features.resource_timer_is_transient_error {
            return self.remember(name, ResourceError::silence(), updates);
        }
        match self.kept.canonical(name.as_str()).cloned() {
            Some(canonical) => self.gone(&canonical, Reason::TimedOut, updates),
            None => updates.push(Update::Absent(name, Reason::TimedOut)),
        }
    }
}
