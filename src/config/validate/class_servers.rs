// SPDX-License-Identifier: Apache-2.0
//! Validates which servers a class reads in place of those of all, and which share of the clients reads others first.

use std::collections::BTreeSet;

use crate::config::reading::Spanned;
use crate::config::{Address, Canary, ClassServers, Upstream, shape};
use crate::json::Place;

use super::Check;
use super::upstream::more_servers as servers;

/// Adds the servers of classes and canaries to the control planes.
pub(super) fn class_servers(
    check: &mut Check,
    classes: &[Spanned<shape::Class>],
    all: Option<&Spanned<shape::Canary>>,
    upstream: &mut Upstream,
    listeners: &[Address],
) {
    let top = upstream.top.clone();
    upstream.canary = all.and_then(|written| canary(check, "canary", written, &top, upstream, listeners));
    if let Some(canary) = all
        && let Some(last) = last_reached(classes)
        && classes.iter().take(last + 1).all(|class| has_own(&class.value))
    {
        let message = "no client reads it: each class has servers or a canary of its own; give those classes that are meant a `canary`, or \
                       remove it";
        check.warn(canary.place, "canary", message);
    }
    for (index, class) in classes.iter().enumerate() {
        let own = class_of(check, index, &class.value, upstream, listeners);
        upstream.classes.push(own);
    }
}

/// Returns the position of the class that takes all clients which those before it leave, if there is one.
fn last_reached(classes: &[Spanned<shape::Class>]) -> Option<usize> {
    classes.iter().position(|class| class.value.matching.is_empty())
}

const fn has_own(class: &shape::Class) -> bool {
    class.xds_servers.is_some() || class.canary.is_some()
}

fn class_of(
    check: &mut Check,
    index: usize,
    class: &shape::Class,
    upstream: &mut Upstream,
    listeners: &[Address],
) -> Option<ClassServers> {
    let key = format!("classes[{index}]");
    let own = class.xds_servers.as_ref();
    let own = own.map(|entries| servers(check, &format!("{key}.xds_servers"), entries, upstream, listeners, None));
    let written = class.canary.as_ref();
    if own.is_none() && written.is_none() {
        return None;
    }
    let usual = own.unwrap_or_else(|| upstream.top.clone());
    let key = format!("{key}.canary");
    let canary = written.and_then(|written| canary(check, &key, written, &usual, upstream, listeners));
    if let Some(written) = written
        && class.key.iter().any(|field| field.value == "id")
    {
        let message =
            "each client of this class has a view and streams of its own, there too, because `id` is in `key`";
        check.warn(written.place, &key, message);
    }
    Some(ClassServers { servers: usual, canary })
}

fn canary(
    check: &mut Check,
    key: &str,
    written: &Spanned<shape::Canary>,
    usual: &[usize],
    upstream: &mut Upstream,
    listeners: &[Address],
) -> Option<Canary> {
    let shape::Canary { share, xds_servers } = &written.value;
    let entries = xds_servers.as_ref()?;
    let key = format!("{key}.xds_servers");
    let own = servers(check, &key, entries, upstream, listeners, None);
    same(check, &key, entries.place, &own, usual, upstream);
    let known: BTreeSet<usize> = own.iter().copied().collect();
    let behind = usual.iter().copied().filter(|at| !known.contains(at));
    Some(Canary {
        share: (*share)?,
        servers: own.iter().copied().chain(behind).collect(),
        first: own.len(),
    })
}

/// Reports a canary that reads first what all others read first.
fn same(check: &mut Check, key: &str, place: Place, own: &[usize], usual: &[usize], upstream: &Upstream) {
    if let (Some(first), Some(other)) = (own.first(), usual.first())
        && first == other
    {
        let uri = upstream.name(*first);
        let message = format!("`{uri}` is what the other clients read first, too; name another control plane");
        check.at(place, key, message);
    }
}
