//! Names that are requested in several spellings (F-07).
//!
//! Owns the meaning of an answer to one spelling for the name. Does not know which spellings there are.

use std::collections::BTreeSet;

use super::Feed;
use crate::client::entry::Entry;
use crate::client::ingest::Message;
use xds::{Name, Update};

impl Feed {
    /// A name is wanted in this spelling; `known`: it was wanted already. Returns the updates if only the spelling may be new;
    /// `None` if the caller must handle the name.
    pub(super) fn write(&mut self, name: &Name, written: Option<&Name>, known: bool) -> Option<Vec<Update>> {
        let held = self.kept.canonical(name.as_str()).is_some();
        let (new, again) = self.outbound.write(name, written, known, held);
        if again && !name.is_collection() && !held {
            // What the server said to another spelling says nothing about this one.
            self.names.remove(name);
            self.names.insert(name);
            return Some(vec![Update::Forget(name.clone())]);
        }
        (known && (new || written.is_some())).then(Vec::new)
    }

    /// Whether an entry counts. It does not if the name is held under another spelling that stays valid.
    pub(super) fn counts(&mut self, entry: &Entry, message: &Message) -> bool {
        if self.outbound.ways().is_empty() {
            return true;
        }
        // A server may use its own spelling, whatever it was asked for.
        let held = self.kept.key(entry.name.as_str()).map(|name| self.kept.text(name));
        let left_out = entry.version.is_none() && self.type_url.traits().full_state;
        let stays = |text: &Name| !left_out && !message.removes(entry.name.as_str(), text);
        let other = held.is_some_and(|text| text != entry.text() && stays(text));
        let ways = self.outbound.ways_mut();
        ways.heard(&entry.name, entry.written.as_ref(), other)
    }

    /// Whether a removal in these spellings removes the whole name. It does not if other spellings may still exist.
    pub(super) fn all_absent(&mut self, name: &str, texts: Option<&BTreeSet<String>>) -> bool {
        let Some(asked) = self.names.get(name).cloned() else {
            return true;
        };
        let own = BTreeSet::from([name.to_owned()]);
        let texts = texts.unwrap_or(&own);
        if let Some(held) = self.kept.key(name).map(|name| self.kept.text(name)) {
            return texts.contains(held.as_str());
        }
        texts
            .iter()
            .fold(false, |all, text| self.outbound.absent(&asked, text) | all)
    }
}
