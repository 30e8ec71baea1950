//! Resources without their bytes.
//!
//! Owns the copies that stand for what a client holds. Does not know which client.

use std::sync::OnceLock;
use std::time::Instant;

use bytes::Bytes;

use super::Resource;
use crate::{Name, Version};

impl Resource {
    /// Returns a copy without its bytes, of a version that no content has: a client may hold any version of it.
    #[must_use]
    pub fn doubted(&self) -> Self {
        Self {
            name: self.name.clone(),
            aliases: self.aliases.clone(),
            version: Version::EMPTY,
            record: Bytes::new(),
            passed_on_at: 0,
            any_at: 0,
            body_at: 0,
            miscalled: self.miscalled,
            endpoints: self.endpoints.clone(),
            received: self.received,
            references: OnceLock::new(),
        }
    }

    /// Returns what a client says that it holds: a name and a version, without bytes.
    #[must_use]
    pub fn brought(name: Name, version: Version, received: Instant) -> Self {
        Self {
            name,
            aliases: Box::default(),
            version,
            record: Bytes::new(),
            passed_on_at: 0,
            any_at: 0,
            body_at: 0,
            miscalled: false,
            endpoints: None,
            received,
            references: OnceLock::new(),
        }
    }

    /// Whether it is a copy without its bytes.
    #[must_use]
    pub fn is_hollow(&self) -> bool {
        self.record.is_empty()
    }
}
