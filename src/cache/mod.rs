//! The content from control planes, the sessions that wait for it, and the answers that they share.
//!
//! Owns views and their cuts, leases, bells, the store of shared answers, and which clients share a view. Knows nothing of the
//! protocol, connections and the clock: time is an argument.

mod bell;
mod library;
mod pressure;
mod routes;
mod scopes;
mod seat;
mod view;

mod ended;
mod interner;
mod leases;
mod members;
mod positions;
mod presented;
mod relay_chain;
mod remembered;
mod replaced;
mod restored;
mod server_state;
mod sets;
mod shard;
mod slab;
mod weak_map;
mod woken;
mod written;

pub use bell::{Bell, Driver, Rang};
pub use library::{Library, Text, Uses};
pub use pressure::Summary;
pub use restored::Knowledge;
pub use routes::{Route, Routes};
pub use scopes::Scopes;
pub use seat::Seat;
pub use server_state::WakeOnFailure;
pub use view::{View, ViewSettings};
pub use woken::Woken;

use crate::xds::Unfit;

/// What clients ask for exceeds a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("limits.{limit} of {value} is reached; raise it if so many are intended")]
pub struct Full {
    /// The key of the limit.
    pub limit: &'static str,
    /// Its value.
    pub value: usize,
}

/// Why a client has no place at a view.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPlace {
    /// There is no room.
    #[error(transparent)]
    Full(#[from] Full),
    /// Its class has no credentials.
    #[error(transparent)]
    Unfit(#[from] Unfit),
}
