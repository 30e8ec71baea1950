//! Copies of resources: without their bytes, for what a client holds, and with them, for what has been replaced.
//!
//! Owns what a copy has. Does not know who keeps it.

use std::sync::OnceLock;

use bytes::Bytes;

use super::Resource;
use crate::Version;

impl Resource {
    /// Returns a copy that shares its bytes. Of the resource itself it is counted how many sessions still have it.
    #[must_use]
    pub fn twin(&self) -> Self {
        Self {
            version: self.version,
            record: self.record.clone(),
            passed_on_at: self.passed_on_at,
            any_at: self.any_at,
            body_at: self.body_at,
            ..self.doubted()
        }
    }

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

    /// Whether it is a copy without its bytes.
    #[must_use]
    pub fn is_hollow(&self) -> bool {
        self.record.is_empty()
    }
}
