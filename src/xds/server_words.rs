// SPDX-License-Identifier: Apache-2.0
//! What a control plane says about a resource, besides its content.
//!
//! Owns the words, for people and programs of operators. Nothing is decided by them.

use std::sync::Arc;

/// The words of the control plane. Each is empty if it said none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerWords {
    /// Its version of the resource; valid for this server alone (E-04).
    pub version: Arc<str>,
    /// The nonce of its last response of the type.
    pub nonce: Arc<str>,
    /// What it calls itself.
    pub identifier: Arc<str>,
}
