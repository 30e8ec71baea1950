//! What an order for held removals has done.
//!
//! Owns the comparison of what was held before with what is held afterwards. Gives no order.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Instant;

use super::shown::{counted, referring};
use crate::clock::WallClock;
use crate::xds::{HeldRemoval, Hold, HoldAction, HoldTarget, Name, TypeUrl, printable};

/// A held resource.
type Item = (TypeUrl, Name);

/// What was held before, and what became of it.
#[derive(Debug)]
pub(super) struct Outcome {
    action: HoldAction,
    given: Instant,
    /// What the order is for and what holds it in words, view by view.
    named: Vec<BTreeMap<Item, String>>,
    /// What else was held, for nothing but a reference.
    others: Vec<BTreeSet<Item>>,
    /// How many of those that the order is for are not held any more, by what held them.
    gone: BTreeMap<String, usize>,
    /// How many others are not, by type.
    along: BTreeMap<String, usize>,
    /// What still holds one of those that the order is for, and how many there are.
    kept: BTreeMap<String, usize>,
    /// When the first of them goes.
    until: Option<Instant>,
}
