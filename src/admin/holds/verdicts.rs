//! What is condemned, beside the holds: as text, as JSON, and the orders that end it.
//!
//! Owns the ids. What is condemned is decided elsewhere.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::{Clusters, Shown};
use super::holding::of_view;
use super::shown::counted;
use crate::cache::View;
use crate::clock::WallClock;
use crate::xds::{Condemned, Name, TypeUrl, printable};

/// A content that is condemned, and where.
pub(super) struct Verdict {
    view: Arc<View>,
    server: String,
    condemned: Arc<Condemned>,
}

/// Returns all that is condemned, by view.
pub(super) fn all(shown: &Shown) -> Vec<Verdict> {
    let views = shown.status.census().views();
    if views.iter().all(|view| view.head().condemned().is_empty()) {
        return Vec::new();
    }
    let Clusters { names, .. } = shown.overview.look();
    let verdicts = views.into_iter().flat_map(|view| {
        let server = names.get(&view.server()).cloned().unwrap_or_default();
        let condemned = Vec::clone(&view.head().condemned()).into_iter();
        condemned.map(move |condemned| Verdict {
            view: view.clone(),
            server: server.clone(),
            condemned,
        })
    });
    verdicts.collect()
}

impl Verdict {
    /// Returns the id: view and type.
    fn id(&self) -> String {
        format!("{}-{}", of_view(&self.server, &self.view), self.of_type())
    }

    fn of_type(&self) -> String {
        format!("{}-condemned", self.condemned.type_url.word())
    }

    /// Whether an order for `text` is for this: by its id, by its type, or by the type and name of the resource.
    pub(super) fn is_meant(&self, text: &str) -> bool {
        let resource = || {
            let (word, name) = text.split_once('/')?;
            let asked: TypeUrl = word.parse().ok()?;
            Some(asked == self.condemned.type_url && Name::read(name, &asked) == *self.condemned.name())
        };
        text == self.id() || text == self.of_type() || resource() == Some(true)
    }

    /// From now on everybody is served the content.
    pub(super) fn release(&self) {
        self.view.release_condemned(self.condemned.clone());
    }

    /// Returns it in one line.
    pub(super) fn text(&self, clock: WallClock) -> String {
        let one = &self.condemned;
        format!(
            "{}  {} {} of {} for {}: condemned for {}: {} of {} rejected it since {}, newcomers are served what the kind accepted \
             before; {}\n",
            self.id(),
            one.type_url.word(),
            printable(one.name().as_str()),
            printable(&self.server),
            printable(&self.view.class().to_string()),
            one.kind(),
            one.clients,
            counted(one.of, "client"),
            clock.short(one.since),
            printable(one.objection.words()),
        )
    }

    /// Returns it as JSON.
    pub(super) fn json(&self, clock: WallClock) -> Value {
        let one = &self.condemned;
        json!({
            "id": self.id(),
            "server": self.server,
            "class": self.view.class().to_string(),
            "type": one.type_url.full_name(),
            "name": one.name().as_str(),
            "version": one.version.to_string(),
            "served": one.stands_in.version().to_string(),
            "kind": one.kind(),
            "clients": one.clients,
            "of": one.of,
            "since": clock.time(one.since),
            "words": one.objection.words(),
        })
    }
}
