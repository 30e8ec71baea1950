// SPDX-License-Identifier: Apache-2.0
//! The files in which the API is described, for programs that ask how to read what the relay sends.
//!
//! Owns where a name is described. The descriptions have no services.

use prost_reflect::FileDescriptor;

use super::Schemas;

impl Schemas {
    /// Returns the file with this path, such as `envoy/config/cluster/v3/cluster.proto`.
    pub fn file(&self, path: &str) -> Option<FileDescriptor> {
        self.pool().get_file_by_name(path)
    }

    /// Returns the file that describes the message, enum or extension with this full name.
    pub fn file_of(&self, full_name: &str) -> Option<FileDescriptor> {
        let pool = self.pool();
        let message = pool.get_message_by_name(full_name).map(|message| message.parent_file());
        let found = message.or_else(|| Some(pool.get_enum_by_name(full_name)?.parent_file()));
        found.or_else(|| Some(pool.get_extension_by_name(full_name)?.parent_file()))
    }
}
