// SPDX-License-Identifier: Apache-2.0
//! Older content that clients use because they reject the current one, beside the holds: as text, as JSON, and the order that ends it.
//!
//! Owns the ids. Who uses what is decided elsewhere.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::{Clusters, Shown};
use super::holding::of_view;
use super::sentence;
use super::shown::counted;
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
    let views = shown.status.census().views().into_iter();
    let used: Vec<(Arc<View>, Vec<Older>)> = views.map(|view| (view.clone(), view.rejected().used())).collect();
    if used.iter().all(|(_, used)| used.is_empty()) {
        return Vec::new();
    }
    let Clusters { names, .. } = shown.overview.look();
    let all = used.into_iter().flat_map(|(view, used)| {
        let server = names.get(&view.server()).cloned().unwrap_or_default();
        used.into_iter().map(move |used| InUse {
            view: view.clone(),
            server: server.clone(),
            used,
        })
    });
    all.collect()
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
    pub(super) fn brief(&self, clock: WallClock) -> (String, Value) {
        let used = &self.used;
        let (word, name) = (used.type_url.word(), used.name());
        // Several names of a type have one id for orders.
        let id = format!("{} {name}", self.id());
        let what = format!("{word} {}", printable(name.as_str()));
        let json = json!({
            "server": self.server,
            "class": self.view.class().to_string(),
            "type": word,
            "reason": "older",
            "trouble": false,
            "count": 1,
            "since": clock.time(used.since),
            "until": null,
            "some": [name.as_str()],
            "words": sentence::of_older(&what, &counted(used.keepers.len(), "client")),
            "nouns": OLDER_WORDS.nouns,
            "order": OLDER_WORDS.order(&self.id()),
        });
        (id, json)
    }

    /// Returns it as JSON.
    pub(super) fn json(&self, clock: WallClock) -> Value {
        let used = &self.used;
        json!({
            "id": self.id(),
            "server": self.server,
            "class": self.view.class().to_string(),
            "type": used.type_url.full_name(),
            "name": used.name().as_str(),
            "version": used.content.version().to_string(),
            "clients": used.keepers.len(),
            "nodes": used.keepers.iter().take(NAMED_MAX).map(|id| &**id).collect::<Vec<_>>(),
            "since": clock.time(used.since),
            "refers": used.refers,
        })
    }
}
