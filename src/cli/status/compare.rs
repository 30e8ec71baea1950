// SPDX-License-Identifier: Apache-2.0
//! Whether several relays have the same contents, and what differs where.
//!
//! Owns what counts as a difference: two relays that both know what a control plane says of a name, and know different things.
//! What only the clients of one relay ask for is no difference, and so is what a relay only keeps, without a client that reads it. Asks
//! nobody.

use std::collections::{BTreeMap, BTreeSet};

use crate::answers::{HalfRow, Halves, ResourceRow, Resources, ViewList, ViewRow};
use crate::get::short;
use crate::xds::{TypeUrl, Version};

/// What a resource is known by: its type, its name, and the class of clients that it is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ContentKey {
    pub(super) type_url: String,
    pub(super) name: String,
    pub(super) class: String,
}

/// What is known under one key at each relay, in their order.
pub(super) type DifferingRow = Vec<Vec<ResourceRow>>;

/// A key under which relays have different contents.
#[derive(Debug)]
pub(super) struct ViewDifference {
    pub(super) key: ContentKey,
    /// The contents and which relays have them; no content at all is a content, too.
    pub(super) contents: BTreeMap<PlacesOfContents, Vec<usize>>,
}

/// The digests of what is held under a key: none if it does not exist.
pub(super) type PlacesOfContents = BTreeSet<String>;

/// Returns one digest over all that a relay has.
pub(super) fn digest(views: &ViewList) -> Version {
    let all = halves(views).filter_map(|half| Version::parse(&half.digest));
    all.fold(Version::EMPTY, Version::plus)
}

/// Returns what the wildcards cover, and what was asked for by name: in the views that clients read, or in all if they read none.
pub(super) fn halves(views: &ViewList) -> impl Iterator<Item = &HalfRow> {
    let is_read = views.views.iter().any(ViewRow::is_read);
    let shown = views.views.iter().filter(move |view| view.is_read() || !is_read);
    let types = shown.flat_map(|view| view.types.values());
    types.flat_map(|halves| halves.wildcard.iter().chain([&halves.named]))
}

/// Returns the types that must be compared name by name, because their digests differ.
pub(super) fn suspects(all: &[Option<ViewList>]) -> BTreeSet<String> {
    let mut digests: BTreeMap<(&str, &str), Vec<BTreeSet<[&str; 2]>>> = BTreeMap::new();
    for views in all.iter().flatten() {
        let mut of_relay: BTreeMap<(&str, &str), BTreeSet<[&str; 2]>> = BTreeMap::new();
        for (view, type_url, halves) in types(views) {
            let wildcard = halves.wildcard.as_ref().map_or("", |half| &half.digest);
            let both = [wildcard, &halves.named.digest];
            of_relay.entry((&view.class, type_url)).or_default().insert(both);
        }
        for (key, of_key) in of_relay {
            digests.entry(key).or_default().push(of_key);
        }
    }
    let differ = digests
        .iter()
        .filter(|(_, all)| all.windows(2).any(|pair| pair.first() != pair.last()));
    differ.map(|((_, type_url), _)| (*type_url).to_owned()).collect()
}

fn types(views: &ViewList) -> impl Iterator<Item = (&ViewRow, &String, &Halves)> {
    let views = views.views.iter().filter(|view| view.is_read());
    views.flat_map(|view| {
        view.types
            .iter()
            .map(move |(type_url, halves)| (view, type_url, halves))
    })
}

/// Returns what each relay has, key by key.
pub(super) fn rows(all: Vec<Option<Resources>>) -> BTreeMap<ContentKey, DifferingRow> {
    let relays = all.len();
    let mut rows: BTreeMap<ContentKey, DifferingRow> = BTreeMap::new();
    for (at, resources) in all.into_iter().enumerate() {
        for (type_url, of_type) in resources.into_iter().flat_map(|all| all.resources) {
            for resource in of_type.into_iter().filter(|resource| !resource.unread) {
                let key = ContentKey {
                    type_url: type_url.clone(),
                    name: resource.name.clone(),
                    class: resource.class.clone(),
                };
                let row = rows.entry(key).or_insert_with(|| vec![Vec::new(); relays]);
                if let Some(cell) = row.get_mut(at) {
                    cell.push(resource);
                }
            }
        }
    }
    rows
}

/// Returns what differs.
pub(super) fn differences(
    rows: &BTreeMap<ContentKey, DifferingRow>,
    views: &[Option<ViewList>],
) -> Vec<ViewDifference> {
    let whole: Vec<BTreeSet<(&str, &str)>> = views.iter().map(|views| whole(views.as_ref())).collect();
    let compared = rows.iter().map(|(key, row)| {
        let covered = row.iter().flatten().any(|resource| resource.wildcard);
        let mut contents: BTreeMap<PlacesOfContents, Vec<usize>> = BTreeMap::new();
        for ((at, cell), whole) in row.iter().enumerate().zip(&whole) {
            let is_whole = covered && whole.contains(&(&key.class, &key.type_url));
            if let Some(known) = known(cell, is_whole) {
                contents.entry(known).or_default().push(at);
            }
        }
        let key = key.clone();
        ViewDifference { key, contents }
    });
    compared.filter(|difference| difference.contents.len() > 1).collect()
}

/// Returns the classes and types of which a relay has everything that there is.
fn whole(views: Option<&ViewList>) -> BTreeSet<(&str, &str)> {
    let all = views.into_iter().flat_map(types);
    let whole = all.filter(|(_, _, halves)| halves.wildcard.as_ref().is_some_and(|half| half.complete));
    whole
        .map(|(view, type_url, _)| (view.class.as_str(), type_url.as_str()))
        .collect()
}

/// Returns what a relay knows under a key; `whole`: a name that it does not list does not exist.
pub(super) fn known(cell: &[ResourceRow], whole: bool) -> Option<PlacesOfContents> {
    let contents: PlacesOfContents = cell.iter().filter_map(|resource| resource.digest.clone()).collect();
    let is_absent = match cell.is_empty() {
        true => whole,
        false => cell
            .iter()
            .all(|resource| matches!(resource.state.as_str(), "does_not_exist" | "timeout")),
    };
    (is_absent || !contents.is_empty()).then_some(contents)
}

/// Returns contents in a word.
pub(super) fn word(contents: &PlacesOfContents) -> String {
    if contents.is_empty() {
        return "nothing".to_owned();
    }
    let all: Vec<String> = contents.iter().map(|digest| short(digest)).collect();
    all.join("+")
}

/// Returns in one sentence that something differs: `contents` are words for them, each with the places that have it.
pub(in crate::cli) fn differs<'a>(
    type_url: &TypeUrl,
    name: &str,
    of: &str,
    contents: impl Iterator<Item = (String, Vec<&'a str>)>,
) -> String {
    let at = contents.map(|(word, places)| format!("{word} at {}", places.join(", ")));
    let at: Vec<String> = at.collect();
    format!("{} {name}{of} differs: {}", type_url.word(), at.join("; "))
}

impl ViewDifference {
    /// Whether a relay has something else than most of them.
    pub(super) fn is_of(&self, relay: usize) -> bool {
        let known: usize = self.contents.values().map(Vec::len).sum();
        let own = self.contents.values().find(|relays| relays.contains(&relay));
        own.is_some_and(|own| own.len() * 2 <= known)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const CDS: &str = "envoy.config.cluster.v3.Cluster";

    fn half(digest: u128, complete: bool) -> Value {
        let digest = Version::from_bits(digest).to_string();
        json!({"resources": 1, "complete": complete, "digest": digest})
    }

    fn views(wildcard: Option<(u128, bool)>, named: u128) -> Option<ViewList> {
        let wildcard = wildcard.map(|(digest, complete)| half(digest, complete));
        let types = json!({CDS: {"wildcard": wildcard, "named": half(named, false)}});
        serde_json::from_value(json!({"views": [{"class": "-", "reading": 1, "types": types}]})).ok()
    }

    fn resources(all: &[(&str, bool, Option<&str>)]) -> Option<Resources> {
        let all = all.iter().map(|(name, wildcard, digest)| {
            let state = if digest.is_some() { "acked" } else { "requested" };
            json!({"name": name, "class": "-", "wildcard": wildcard, "state": state, "digest": digest})
        });
        serde_json::from_value(json!({"resources": {CDS: all.collect::<Vec<_>>()}})).ok()
    }

    fn differing(of: &[(Option<ViewList>, Option<Resources>)]) -> Vec<String> {
        let (views, listed): (Vec<_>, Vec<_>) = of.iter().cloned().unzip();
        let found = differences(&rows(listed), &views);
        let shown = |one: &ViewDifference| format!("{} {:?}", one.key.name, one.contents.values().collect::<Vec<_>>());
        found.iter().map(shown).collect()
    }

    #[test]
    fn what_one_relay_is_not_asked_for_is_no_difference() {
        let one = (
            views(None, 1),
            resources(&[("a", false, Some("1")), ("b", false, None)]),
        );
        let other = (
            views(None, 2),
            resources(&[("b", false, Some("2")), ("c", false, Some("3"))]),
        );
        assert_eq!(
            suspects(&[one.0.clone(), other.0.clone()]),
            BTreeSet::from([CDS.to_owned()])
        );
        assert_eq!(suspects(&[one.0.clone(), None, one.0.clone()]), BTreeSet::new());
        assert_eq!(differing(&[one, other, (None, None)]), Vec::<String>::new());
    }

    /// A view that no client reads, such as that of a canary which is over, may have anything.
    #[test]
    fn what_nobody_reads_is_no_difference() {
        let unread = |mut views: Option<ViewList>| {
            for view in views.iter_mut().flat_map(|views| &mut views.views) {
                view.reading = 0;
            }
            views
        };
        let (read, kept) = (views(Some((1, true)), 0), unread(views(Some((2, true)), 0)));
        let beside = |one: &Option<ViewList>, other: &Option<ViewList>| -> Option<ViewList> {
            let (one, other) = (one.clone()?, other.clone()?);
            let views = one.views.into_iter().chain(other.views).collect();
            Some(ViewList { left_out: 0, views })
        };
        let both = beside(&read, &kept);
        assert_eq!(suspects(&[read.clone(), both.clone()]), BTreeSet::new());
        let digest = |views: &Option<ViewList>| views.as_ref().map(digest);
        assert_eq!(digest(&read), digest(&both));
        assert_ne!(
            digest(&kept),
            Some(Version::EMPTY),
            "the only content of a relay without clients"
        );
        let listed = || resources(&[("a", true, Some("1"))]);
        let mut also = resources(&[("a", true, Some("1")), ("a", true, Some("2"))]);
        let old = also
            .iter_mut()
            .flat_map(|all| all.resources.values_mut().flatten())
            .last();
        old.unwrap().unread = true;
        assert_eq!(differing(&[(read, listed()), (both, also)]), Vec::<String>::new());
    }

    #[test]
    fn other_content_and_lacking_content_are_differences() {
        let first = || {
            (
                views(Some((1, true)), 0),
                resources(&[("a", true, Some("1")), ("b", true, Some("2"))]),
            )
        };
        let older = (
            views(Some((2, true)), 0),
            resources(&[("a", true, Some("0")), ("b", true, Some("2"))]),
        );
        let lacks = (views(Some((3, true)), 0), resources(&[("a", true, Some("1"))]));
        let early = (views(Some((3, false)), 0), resources(&[("a", true, Some("1"))]));
        assert_eq!(differing(&[first(), older, first()]), ["a [[1], [0, 2]]"]);
        assert_eq!(differing(&[first(), lacks]), ["b [[1], [0]]"]);
        assert_eq!(
            differing(&[first(), early]),
            Vec::<String>::new(),
            "it does not know yet what there is"
        );
        let contents = BTreeMap::from([
            (PlacesOfContents::new(), vec![1]),
            (PlacesOfContents::from(["1".to_owned()]), vec![0, 2]),
        ]);
        let key = ContentKey {
            type_url: CDS.to_owned(),
            name: "a".to_owned(),
            class: "-".to_owned(),
        };
        let difference = ViewDifference { key, contents };
        assert_eq!(
            [0, 1, 2, 3].map(|relay| difference.is_of(relay)),
            [false, true, false, false]
        );
    }
}
