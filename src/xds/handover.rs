//! Addresses that go from one listener to another while both stay.
//!
//! A client takes the listeners of a response one after the other, and refuses one whose address another one has. Owns in which order
//! it can take all of them. Does not write responses.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Name, Resource, Spot, Spots};

/// The order of listeners that hand addresses to each other is looked for in so many steps; then the rest goes as it comes.
const STEPS_MAX: usize = 16;

/// Returns the listeners among `after` that take an address which another one has `before` and gives up, in the order in which a client
/// can take them after all others. `before` has what these listeners were, as far as they were there. Listeners that exchange their
/// addresses have no such order, and are left out.
#[must_use]
pub fn takers<'a>(
    before: impl Iterator<Item = &'a Arc<Resource>>,
    after: impl Iterator<Item = &'a Arc<Resource>>,
) -> Vec<Name> {
    let after: BTreeMap<&Name, Vec<Spot>> = after.map(|one| (one.name(), Spot::of_listener(&one.body()))).collect();
    let given = before.filter_map(|one| {
        let kept: Spots = after.get(one.name())?.iter().cloned().collect();
        let mut given = Spot::of_listener(&one.body());
        given.retain(|spot| !kept.collide(spot));
        (!given.is_empty()).then(|| (one.name(), given))
    });
    let mut given: BTreeMap<&Name, Vec<Spot>> = given.collect();
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
