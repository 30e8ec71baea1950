//! Names that are asked for in several ways of writing them (F-07).
//!
//! Owns what an answer to one of these ways says of the name. Refuses to know which ways there are.

use std::collections::BTreeSet;

use super::Feed;
use crate::protocol::client::entry::Entry;
use crate::protocol::client::ingest::Message;
use crate::xds::{Name, Update};

impl Feed {
    /// A name is wanted and written so; `known`: it was wanted already. What follows, if it was wanted already and this is all that is
    /// new.
    pub(super) fn write(&mut self, name: &Name, written: Option<&Name>, known: bool) -> Option<Vec<Update>> {
        let held = self.kept.canonical(name.as_str()).is_some() || self.kept.has_variants(name.as_str());
        let (new, again) = self.outbound.write(name, written, known, held);
        if again && !name.is_collection() && !held {
            // What the server said to another text says nothing about this one.
            self.names.remove(name);
            self.names.insert(name);
            return Some(vec![Update::Forget(name.clone())]);
        }
        (known && (new || written.is_some())).then(Vec::new)
    }

    /// Whether an entry counts: not if it answers to another text than the one by which its name is held, and goes on to be there.
    pub(super) fn counts(&mut self, entry: &Entry, message: &Message) -> bool {
        if self.outbound.ways.is_empty() {
            return true;
        }
        // A server may write the name in its own way, whatever it was asked for.
        let held = self.kept.key(entry.name.as_str()).map(|name| self.kept.text(name));
        let left_out = entry.version.is_none() && self.type_url.traits().full_state;
        let stays = |text: &Name| !left_out && !message.removes(entry.name.as_str(), text);
        let other = held.is_some_and(|text| text != entry.text() && stays(text));
        self.outbound.ways.heard(&entry.name, entry.written.as_ref(), other)
    }

    /// Whether what the server says to be gone is the name as a whole: it does not if that is asked for in other ways as well.
    pub(super) fn all_absent(&mut self, name: &str, texts: Option<&BTreeSet<String>>) -> bool {
        let Some(asked) = self.names.get(name).cloned() else {
            return true;
        };
        let own = BTreeSet::from([name.to_owned()]);
        let texts = texts.unwrap_or(&own);
        if let Some(held) = self.kept.key(name).map(|name| self.kept.text(name)) {
            return texts.contains(held.as_str());
        }
        // C-23: that nothing is for everybody is no end of what is for some, which answers to the name.
        if self.kept.has_variants(name) {
            return true;
        }
        texts
            .iter()
            .fold(false, |all, text| self.outbound.absent(&asked, text) | all)
    }
}
