//! The other side of a ledger that learns: a control plane that is told from outside what it has, as a recording is played; and an ear
//! at what clients are told. Knows nothing of files.

use std::sync::mpsc::SyncSender;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_128;

use super::learning::Learned;
use super::{Bell, Content, Ledger};
use crate::wire::kind::Kind;

/// What a client was told about one resource.
#[derive(Debug)]
pub(crate) struct Heard {
    /// Which ear it was.
    pub(crate) client: usize,
    pub(crate) kind: Kind,
    pub(crate) name: String,
    /// None if it was removed.
    pub(crate) body: Option<Bytes>,
    pub(crate) at: Instant,
}

/// Where it goes. A client waits while there is no room.
#[derive(Clone, Debug)]
pub(crate) struct Ear {
    pub(crate) client: usize,
    pub(crate) heard: SyncSender<Heard>,
}

impl Ledger {
    /// Creates a ledger that learns, and passes on everything that it learns.
    pub(crate) fn listening(kind: Kind, bell: Arc<Bell>, ear: Ear) -> Self {
        Self {
            learned: Some(RwLock::new(Learned::heard_by(ear))),
            ..Self::learning(kind, bell)
        }
    }

    /// Passes on what a client was told.
    pub(super) fn overhear(&self, index: u32, body: Option<&[u8]>, at: Instant) {
        let Some(ear) = self.learned().and_then(|learned| learned.ear().cloned()) else {
            return;
        };
        let heard = Heard {
            client: ear.client,
            kind: self.kind,
            name: self.name(index),
            body: body.map(Bytes::copy_from_slice),
            at,
        };
        // Nobody listens any more when the recording is over.
        let _ = ear.heard.send(heard);
    }

    /// Gives a resource this content without announcing it; none removes it. Returns its index.
    pub(crate) fn tell(&self, name: &[u8], body: Option<Bytes>, now: Instant) -> Option<u32> {
        let index = self.index(name)?;
        let slot = self.slots.get(usize::try_from(index).ok()?)?;
        let mut slot = slot.write().unwrap_or_else(PoisonError::into_inner);
        let (serial, hash) = (slot.history.len(), body.as_ref().map(|body| xxh3_128(body)));
        let content = Content::new(u32::try_from(serial).ok()?, hash, now);
        slot.history.push(Arc::new(content));
        slot.current = body;
        Some(index)
    }
}
