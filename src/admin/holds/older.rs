//! Older content that clients use because they reject the current one, beside the holds: as text, as JSON, and the order that ends it.
//!
//! Owns the ids. Who uses what is decided elsewhere.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::{Clusters, Shown};
use super::holding::of_view;
use super::sentence;
use super::shown::counted;
use crate::cache::{Used, View};
use crate::clock::WallClock;
use crate::xds::{Name, OLDER_WORDS, TypeUrl, printable};

/// An older content, and where.
pub(super) struct InUse {
    view: Arc<View>,
    server: String,
    used: Used,
}

/// Returns all that is used, by view.
pub(super) fn all(shown: &Shown) -> Vec<InUse> {
    let views = shown.status.census().views().into_iter();
    let used: Vec<(Arc<View>, Vec<Used>)> = views.map(|view| (view.clone(), view.rejected().used())).collect();
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
            Some(asked == self.used.type_url && Name::read(name, &asked) == self.used.name)
        };
        text == self.id() || text == self.of_type() || resource() == Some(true)
    }

    /// Nobody is sent it any more, and what it names is not kept.
    pub(super) fn release(&self) {
        _ = self.view.release_older(&self.used.type_url, &self.used.name);
    }

    /// Returns it in one line.
    pub(super) fn text(&self, clock: WallClock) -> String {
        let Used {
            type_url,
            name,
            clients,
            since,
            refers,
            ..
        } = &self.used;
        let refers = if *refers {
            ""
        } else {
            "; what it names is not kept any more"
        };
        format!(
            "{}  {} {} of {} for {}: {} used by {}, since {}: {}{refers}\n",
            self.id(),
            type_url.word(),
            printable(name.as_str()),
            printable(&self.server),
            printable(&self.view.class().to_string()),
            OLDER_WORDS.nouns[0],
            counted(*clients, "client"),
            clock.short(*since),
            OLDER_WORDS.why,
        )
    }

    /// Returns its id, and what `/events` tells of it. That clients reject the current content is told as trouble elsewhere.
    pub(super) fn brief(&self, clock: WallClock) -> (String, Value) {
        let Used {
            type_url,
            name,
            clients,
            since,
            ..
        } = &self.used;
        // Several names of a type have one id for orders.
        let id = format!("{} {name}", self.id());
        let what = format!("{} {}", type_url.word(), printable(name.as_str()));
        let json = json!({
            "server": self.server,
            "class": self.view.class().to_string(),
            "type": type_url.word(),
            "reason": "older",
            "trouble": false,
            "count": 1,
            "since": clock.time(*since),
            "until": null,
            "some": [name.as_str()],
            "words": sentence::of_older(&what, &counted(*clients, "client")),
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
            "name": used.name.as_str(),
            "version": used.version.to_string(),
            "clients": used.clients,
            "nodes": used.nodes.iter().map(|id| &**id).collect::<Vec<_>>(),
            "since": clock.time(used.since),
            "refers": used.refers,
        })
    }
}
