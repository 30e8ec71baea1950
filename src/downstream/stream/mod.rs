// SPDX-License-Identifier: Apache-2.0
//! One discovery stream of one client.
//!
//! Owns the reading of its requests, its seats at views, its machine, and when responses are sent. Knows nothing of the
//! connection and its other calls: it gets bytes, and gives ropes to a transport that can take them.

mod accounts;
mod allowance;
mod decode;
mod decoding;
mod deliveries;
mod driver;
mod ends;
mod keeping;
mod large;
mod output;
mod pace;
mod reading;
mod requests;
mod seats;
mod session;
mod sliced;

pub(super) use accounts::Accounts;
pub(super) use allowance::Allowance;
pub(super) use decode::{first_node, only_request};
pub(super) use driver::Driver;
pub(super) use ends::{count_end, count_no_place, trailers};
pub(super) use pace::RequestPace;
pub(super) use requests::ClientRequests;
pub use seats::{Rung, Seats};
pub(super) use session::Session;
