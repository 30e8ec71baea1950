// SPDX-License-Identifier: Apache-2.0
//! Addresses that go from one listener to another while both stay.
//!
//! A client takes the listeners of a response one after the other, and refuses one whose address another one has. Owns in which order
//! it can take all of them. Does not write responses.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Name, Resource, Spot, Spots};

/// The order of listeners that hand addresses to each other is looked for in so many steps; then the rest goes as it comes.
const STEPS_MAX: usize = 16;

/// Returns the listeners among those that are `listed` which take an address that another one had and gives up, in the order in which a
/// client can take them after all others. `changed` has what those that differ were, and what they are. Listeners that exchange their
/// addresses have no such order, and are left out.
#[must_use]
pub fn takers<'a>(
    changed: impl Iterator<Item = (&'a Arc<Resource>, &'a Arc<Resource>)>,
    listed: impl Iterator<Item = &'a Arc<Resource>>,
) -> Vec<Name> {
    let given = changed.filter_map(|(before, after)| {
        let kept: Spots = Spots::of_listeners([after]);
        let mut given = Spot::of_listener(&before.body());
        given.retain(|spot| !kept.collide(spot));
        (!given.is_empty()).then(|| (after.name(), given))
    });
    let mut given: BTreeMap<&Name, Vec<Spot>> = given.collect();
    if given.is_empty() {
        return Vec::new();
    }
    let after: BTreeMap<&Name, Vec<Spot>> = listed.map(|one| (one.name(), Spot::of_listener(&one.body()))).collect();
    let takes = |name: &Name, given: &Spots| after.get(name).into_iter().flatten().any(|spot| given.collide(spot));
    let all = |given: &BTreeMap<&Name, Vec<Spot>>| given.values().flatten().cloned().collect::<Spots>();
    let spots = all(&given);
    let mut left: Vec<&Name> = after.keys().copied().filter(|name| takes(name, &spots)).collect();
    given.retain(|name, _| left.contains(name));
    let mut order = Vec::new();
    for _ in 0..STEPS_MAX {
        let spots = all(&given);
        let (later, next): (Vec<&Name>, Vec<&Name>) = left.into_iter().partition(|name| takes(name, &spots));
        next.iter().for_each(|name| drop(given.remove(name)));
        left = later;
        if next.is_empty() {
            break;
        }
        order.extend(next);
    }
    order.into_iter().cloned().collect()
}
