// SPDX-License-Identifier: Apache-2.0
//! Who wants what of one view, and who is told when that changes.
//!
//! Owns leases, the sets of sessions that have them, bells, and the wake-ups. Knows nothing of the content: the view says
//! what has changed.

mod bell;
mod lease_changes;
mod leases;
mod members;
mod new_types;
mod seated;
mod set;
mod sets;
mod shard;
mod slab;
mod waiters;
mod woken;
mod written;

pub use bell::{Bell, Inquiries, Rang};
pub(super) use lease_changes::ENDS_IN_A_TURN;
pub(super) use leases::Leases;
pub(super) use seated::Seated;
pub(super) use set::Set;
pub(super) use sets::{Own, Sets};
pub use woken::Woken;
pub(super) use written::NameTexts;
