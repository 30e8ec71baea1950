//! Who must look again because other content is condemned.
//!
//! Owns the difference of two lists of verdicts. Does not know who reads them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::view::demand::Ring;
use xds::{Condemned, TypeUrl};

/// Returns who must look again: those that want what is condemned in only one of the two.
pub(crate) fn rings(before: &[Arc<Condemned>], now: &[Arc<Condemned>]) -> Vec<Ring> {
    let differs = |one: &&Arc<Condemned>, others: &[Arc<Condemned>]| {
        !others.iter().any(|other| {
            other.kind == one.kind
                && other.is(&one.type_url, one.name(), one.version)
                && other.stands_in.version() == one.stands_in.version()
        })
    };
    let ended = before.iter().filter(|one| differs(one, now));
    let begun = now.iter().filter(|one| differs(one, before));
    let mut names: BTreeMap<TypeUrl, Vec<_>> = BTreeMap::new();
    for one in ended.chain(begun) {
        names.entry(one.type_url.clone()).or_default().push(one.name().clone());
    }
    let ring = |(type_url, names)| Ring::Some {
        type_url,
        names,
        wildcard: true,
    };
    names.into_iter().map(ring).collect()
}
