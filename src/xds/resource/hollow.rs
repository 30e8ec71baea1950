// SPDX-License-Identifier: Apache-2.0
//! Copies of resources: without their bytes, for what a client holds, and with them, for what has been replaced.
//!
//! Owns what a copy has. Does not know who keeps it.

use std::sync::atomic::AtomicU16;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::{Resource, Substance};
use crate::Version;

impl Resource {
    /// Returns a copy that shares all that is large. Of the resource itself it is counted how many sessions still have it.
    pub fn twin(&self) -> Self {
        Self {
            name: self.name.clone(),
            received: self.received,
            content: self.content.clone(),
        }
    }

    /// Returns a copy without its bytes, of a version that no content has: a client may hold any version of it.
    pub fn doubted(&self) -> Self {
        let content = Substance {
            version: Version::EMPTY,
            record: Bytes::new(),
            passed_on_at: 0,
            any_at: 0,
            body_at: 0,
            miscalled: self.content.miscalled,
            aliases: self.content.aliases.clone(),
            endpoints: self.content.endpoints.clone(),
            references: OnceLock::new(),
            accepted: AtomicU16::new(0),
        };
        Self {
            content: Arc::new(content),
            ..self.twin()
        }
    }

    /// Whether it is a copy without its bytes.
    pub fn is_hollow(&self) -> bool {
        self.content.record.is_empty()
    }
}
