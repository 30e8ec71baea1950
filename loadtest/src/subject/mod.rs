// SPDX-License-Identifier: Apache-2.0
//! What stands between the control plane and the clients: the relay under test as a child process, the floor that it is compared with,
//! and the networks around it, which can be cut.
//!
//! Owns these processes. Refuses to know what they are tested for.

pub(crate) mod floor;
pub(crate) mod network;
pub(crate) mod relay;
