// SPDX-License-Identifier: Apache-2.0
//! The content from control planes, the sessions that wait for it, and the answers that they share.
//!
//! Owns views and their cuts, leases, bells, the store of shared answers, and which clients share a view. Knows nothing of the
//! protocol, connections and the clock: time is an argument.
//!
//! `scopes` are all views, with the `routes` to servers and the `node_ids` that control planes see. Its rooms: `view`, which knows
//! `interest`; and `shared`, which knows neither.

mod claims;
mod interest;
mod loops;
mod node_ids;
mod notices;
mod onlookers;
mod other_views;
mod routes;
mod scopes;
mod shared;
mod vacancy;
mod view;

pub use claims::Claims;
pub use interest::{Bell, Inquiries, Rang, Woken};
pub use other_views::other_views;
pub use routes::{Canary, Lists, Route, Routes, WakeOnFailure};
pub use scopes::Scopes;
pub use shared::{Library, Text, Uses};
pub use vacancy::Room;
pub use view::{
    Demand, Guarded, Head, Knowledge, Mailbox, Neighbours, Rejected, Rejecter, Respondents, Row, Seat, Summary, View,
    ViewSettings, WordsQuestion,
};

use classes::Unfit;

/// The most bytes of the values that divide clients into classes: each view has some copies of them. No name is longer by default.
const KEY_BYTES_MAX: usize = 4096;

/// What clients ask for exceeds a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", full(self))]
pub struct Full {
    /// The key of the limit.
    pub limit: &'static str,
    /// Its value.
    pub value: usize,
    /// How much of it the connection has.
    pub own: usize,
    /// How much of it is left.
    pub left: usize,
}

fn full(full: &Full) -> String {
    let Full {
        limit,
        value,
        own,
        left,
    } = full;
    if *left == 0 {
        return format!("limits.{limit} of {value} is reached; raise it if so many are intended");
    }
    format!(
        "this connection has {own} of limits.{limit} of {value}, and the {left} that are left are for others; raise it if so many are \
         intended"
    )
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
    /// K-25: it brings the mark of this relay, from which what is asked for it would come again.
    #[error("{}", classes::loop_at(.0, "what the relay asks for it leads there again"))]
    Loop(Box<str>),
    /// What divides clients into classes is longer in its node than it may be.
    #[error("the `key` of its class has values of {0} bytes, of which there may be {KEY_BYTES_MAX}")]
    Key(usize),
}
