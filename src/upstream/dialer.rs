// SPDX-License-Identifier: Apache-2.0
//! How one stream of a view reaches its server.
//!
//! Owns what an attempt needs: the server, the credentials and the settings. Does not decide when one is made, nor what follows.

use std::pin::Pin;
use std::sync::Arc;

use super::access::ServerAccess;
use super::channel::Channel;
use super::doors::{Doors, OpenPlace};
use super::failure::Failure;
use super::target::{ServerTarget, UpstreamSettings};
use crate::protocol::LegKind;

/// Opens connections for one stream of a view.
#[derive(Clone)]
pub(super) struct Dialer {
    which: LegKind,
    target: Arc<ServerTarget>,
    access: Arc<ServerAccess>,
    settings: Arc<UpstreamSettings>,
}

/// An attempt, until there is a connection or a failure.
pub(super) type Dialing = Pin<Box<dyn Future<Output = (OpenPlace, Result<Channel, Failure>)> + Send>>;

impl Dialer {
    pub(super) const fn new(
        which: LegKind,
        target: Arc<ServerTarget>,
        access: Arc<ServerAccess>,
        settings: Arc<UpstreamSettings>,
    ) -> Self {
        Self {
            which,
            target,
            access,
            settings,
        }
    }

    /// Returns which of the view's two streams it is for.
    pub(super) const fn which(&self) -> LegKind {
        self.which
    }

    pub(super) const fn target(&self) -> &Arc<ServerTarget> {
        &self.target
    }

    /// Returns the settings with which it dials.
    pub(super) fn settings(&self) -> &UpstreamSettings {
        &self.settings
    }

    /// Takes up newer settings, if there are any.
    pub(super) fn renew(&mut self) {
        self.settings = self.target.record.settings(&self.settings);
    }

    /// Connects once, at this place among the opening streams; without one, waits for a place first. With `refused`, the server had no
    /// room for the stream at its last attempt.
    pub(super) fn dial(&self, place: Option<OpenPlace>, refused: bool) -> Dialing {
        let (target, access, settings) = (self.target.clone(), self.access.clone(), self.settings.clone());
        Box::pin(async move {
            let place = match place {
                Some(place) => place,
                None => Doors::enter(target.doors.clone(), refused).await,
            };
            let opened = Channel::open(&target, &access, &settings).await;
            (place, opened.map_err(|failure| target.explained(failure)))
        })
    }
}
