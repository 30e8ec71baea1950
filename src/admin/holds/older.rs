// SPDX-License-Identifier: Apache-2.0
//! Older content that clients use because they reject the current one, beside the holds: as text, as answers, and the order that ends it.
//!
//! Owns the ids. Who uses what is decided elsewhere.

use std::sync::Arc;

use super::super::Shown;
use super::holding::{each, of_view};
use super::sentence;
use super::shown::counted;
use crate::answers::{HoldGlimpse, OlderContent};
use crate::cache::View;
use crate::clock::WallClock;
use crate::xds::{Name, OLDER_WORDS, Older, TypeUrl, printable};

/// So many clients are named of an older content.
const NAMED_MAX: usize = 10;

/// An older content, and where.
pub(super) struct InUse {
    view: Arc<View>,
    server: String,
    used: Older,
}

/// Returns all that is used, by view.
pub(super) fn all(shown: &Shown) -> Vec<InUse> {
    let used = each(shown, |view| view.rejected().used());
    used.map(|(view, server, used)| InUse { view, server, used }).collect()
}

impl InUse {
    /// Returns the id: view and type.
    fn id(&self) -> String {
        format!("{}-{}", of_view(&self.server, &self.view), self.of_type())
    }

    fn of_type(&self) -> String {
        format!("{}-older", self.used.type_url.word())
    }

    /// Whether an order for `text` is for this: by its id, by its type, or by the type and name of the resource.
    pub(super) fn is_meant(&self, text: &str) -> bool {
        let resource = || {
            let (word, name) = text.split_once('/')?;
            let asked: TypeUrl = word.parse().ok()?;
            Some(asked == self.used.type_url && Name::read(name, &asked) == *self.used.name())
        };
        text == self.id() || text == self.of_type() || resource() == Some(true)
    }

    /// Nobody is sent it any more, and what it names is not kept.
    pub(super) fn release(&self) {
        _ = self.view.release_older(&self.used.type_url, self.used.name());
    }

    /// Returns it in one line.
    pub(super) fn text(&self, clock: WallClock) -> String {
        let Self { view, server, used } = self;
        let refers = if used.refers {
            ""
        } else {
            "; what it names is not kept any more"
        };
        format!(
            "{}  {} {} of {} for {}: {} used by {}, since {}: {}{refers}\n",
            self.id(),
            used.type_url.word(),
            printable(used.name().as_str()),
            printable(server),
            printable(&view.class().to_string()),
            OLDER_WORDS.nouns[0],
            counted(used.keepers.len(), "client"),
            clock.short(used.since),
            OLDER_WORDS.why,
        )
    }

    /// Returns its id, and what `/events` tells of it. That clients reject the current content is told as trouble elsewhere.
    pub(super) fn brief(&self, clock: WallClock) -> (String, HoldGlimpse) {
        let used = &self.used;
        let (word, name) = (used.type_url.word(), used.name());
        // Several names of a type have one id for orders.
        let id = format!("{} {name}", self.id());
        let what = format!("{word} {}", printable(name.as_str()));
        let glimpse = HoldGlimpse {
            server: self.server.clone(),
            class: self.view.class().to_string(),
            type_url: word.to_owned(),
            reason: "older",
            trouble: false,
            count: 1,
            since: Some(clock.time(used.since)),
            until: None,
            some: vec![name.to_string()],
            words: sentence::of_older(&what, &counted(used.keepers.len(), "client")),
            nouns: OLDER_WORDS.nouns,
            order: OLDER_WORDS.order(&self.id()),
        };
        (id, glimpse)
    }

    /// Returns it as it is answered.
    pub(super) fn answer(&self, clock: WallClock) -> OlderContent {
        let used = &self.used;
        OlderContent {
            id: self.id(),
            server: self.server.clone(),
            class: self.view.class().to_string(),
            type_url: used.type_url.full_name().to_owned(),
            name: used.name().to_string(),
            version: used.content.version().to_string(),
            clients: used.keepers.len(),
            nodes: used.keepers.iter().take(NAMED_MAX).map(ToString::to_string).collect(),
            since: clock.time(used.since),
            refers: used.refers,
        }
    }
}
