// SPDX-License-Identifier: Apache-2.0
//! The relay: its settings, its views, its shared answers, and its rules about what clients may have.
//!
//! Owns what the relay's process has. Knows nothing of the streams of clients.

use std::sync::Arc;

use ::classes::Classes;
use cache::{Library, Rejecter, Routes, Scopes};
use identity::Identity;
use protocol::StreamSettings;
use xds::{Target, Want};

use super::access::{Permits, Permitted};
use super::body::Type;
use super::classes;
use super::course::Course;
use super::event::Event;
use super::origins::Origins;
use super::stream::Stream;
use super::tally::{Broken, Rule, Tally};

/// The relay.
pub(crate) struct Relay {
    pub(crate) settings: Arc<StreamSettings>,
    /// The shared answers.
    pub(crate) answers: Library,
    /// What clients may have, in worlds with rules about that.
    permits: Option<Permits>,
    pub(crate) scopes: Scopes,
    /// The most views that there may be; 0: no bound.
    pub(crate) views: usize,
}

impl Relay {
    pub(crate) fn new(rules: &Classes, chunk: usize, views: usize) -> Self {
        Self {
            settings: Arc::new(classes::stream_settings(rules)),
            answers: Library::new(1 << 16, chunk),
            permits: None,
            scopes: classes::scopes(rules, Routes::default(), views),
            views,
        }
    }

    /// The same relay for lists of servers, and with these classes of clients.
    pub(crate) fn divide(&mut self, classes: Classes, routes: Routes) {
        self.views = 0;
        Arc::make_mut(&mut self.settings).classes = classes;
        self.restart(routes);
    }

    /// Forgets all views.
    pub(crate) fn restart(&mut self, routes: Routes) {
        self.scopes = classes::scopes(&self.settings.classes, routes, self.views);
    }

    /// From now on these rules hold.
    pub(crate) fn enact(&mut self, permits: Permits) {
        Arc::make_mut(&mut self.settings).access = Arc::new(permits.access());
        self.permits = Some(permits);
    }

    /// Makes other rules, where there are any.
    pub(crate) fn amend(&mut self) {
        if let Some(mut permits) = self.permits.take() {
            permits.amend();
            self.enact(permits);
        }
    }

    /// What a client may have, in a world with rules.
    pub(crate) fn permitted(&self, client: usize) -> Option<Permitted> {
        self.permits.as_ref().map(|permits| permits.of(client))
    }

    /// What the relay has checked about a client.
    pub(crate) fn identity(&self, client: usize) -> Identity {
        let permitted = self.permitted(client);
        permitted.as_ref().map(Permitted::identity).unwrap_or_default()
    }

    /// S-03: nothing is asked for that the client may not have.
    fn check_allowed(&self, client: usize, want: &Want, tally: &mut Tally) -> Result<(), Broken> {
        let Some(permitted) = self.permitted(client) else {
            return Ok(());
        };
        let kind = Type::ALL.into_iter().find(|kind| *kind.type_url() == want.type_url);
        let denied = match (kind, &want.target) {
            (Some(kind), Target::Name(name)) => want.wanted && !permitted.allows(kind, name.as_str()),
            (None, _) | (_, Target::Wildcard) => false,
        };
        tally.hit(Rule::S03);
        if denied {
            return broken!(S03, "{want:?}");
        }
        Ok(())
    }

    /// Tells the views what a client has begun and ceased to want.
    pub(crate) fn say_wants(&self, stream: &mut Stream, origins: &Origins, course: &mut Course) -> Result<(), Broken> {
        while let Some(told) = stream.server.poll_stance() {
            let (Some(place), Some(node)) = (&stream.place, stream.server.node()) else {
                break;
            };
            let now = course.clock.instant();
            let rejecter = told.stance.map(|stance| Rejecter {
                node: node.clone(),
                stream: "1.1".parse().expect("a number"),
                stance,
            });
            place.tell((&told.type_url, told.name.as_ref()), rejecter, now);
            if let Some(name) = told.name.filter(|_| told.asks) {
                let contents = place.older(&told.type_url, &name, now);
                stream
                    .server
                    .handle_older(&told.type_url, &name, contents, &place.sight());
            }
            place.rest_stances();
        }
        let mut wanted = false;
        while let Some(want) = stream.server.poll_want() {
            wanted = true;
            self.check_allowed(stream.client, &want, &mut course.tally)?;
            if let Some(place) = &mut stream.place {
                let said = place.want(&self.scopes, &want);
                said.map_err(|full| Broken::new(Rule::K21, full.to_string()))?;
            }
        }
        if let Some(place) = stream.place.as_ref().filter(|_| wanted) {
            place.rest();
        }
        if wanted && origins.lists.is_none() {
            course.soon(0, 5, Event::Upstream(stream.zone));
        }
        Ok(())
    }
}
