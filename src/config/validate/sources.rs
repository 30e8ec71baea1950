// SPDX-License-Identifier: Apache-2.0
//! Validates the sources: control planes for some types.

use std::collections::BTreeMap;

use crate::config::reading::{Scalar, Spanned};
use crate::config::{Address, Reach, TypeSource, Upstream, shape};
use crate::json::Place;
use crate::xds::{Kind, Traits, TypeUrl};

use super::upstream::more_servers;
use super::{Check, node, rules};

/// What stands before a source's name where authorities have theirs.
const MARK: char = '#';

/// Where types were given to a source.
type Taken = BTreeMap<Box<str>, String>;

/// Adds the sources, and their servers, to the control planes. `own` are the types that the file adds, `credentials` is a class that
/// has credentials of its own.
pub(super) fn sources(
    check: &mut Check,
    written: Vec<Spanned<shape::Source>>,
    upstream: &mut Upstream,
    own: &BTreeMap<String, Traits>,
    listeners: &[Address],
    credentials: Option<usize>,
) {
    let (mut names, mut taken) = (BTreeMap::new(), Taken::new());
    for (index, Spanned { value, place }) in written.into_iter().enumerate() {
        let key = format!("sources[{index}]");
        let types = types(check, &key, place, &value, own, &mut taken);
        let name = name(check, &key, place, &value, &mut names);
        if let Some(shared) = value.shared.as_ref().filter(|shared| shared.value)
            && let Some(class) = credentials
        {
            let message = format!(
                "classes[{class}].credentials are not used for a view that all classes share, so their clients would read what others may; \
                 remove `shared`"
            );
            check.at(shared.place, format!("{key}.shared"), message);
        }
        let servers = servers(check, &key, &value, upstream, listeners);
        if let Some(name) = name {
            upstream.sources.push(TypeSource {
                name,
                types,
                servers,
                reachability_only: value.fallback_on_reachability_only,
                shared: value.shared.is_some_and(|shared| shared.value),
            });
        }
    }
}

/// Whether the name of an authority looks like that of a source.
pub(super) fn is_marked(authority: &str) -> bool {
    authority.starts_with(MARK)
}

fn name(
    check: &mut Check,
    key: &str,
    place: Place,
    written: &shape::Source,
    names: &mut BTreeMap<String, usize>,
) -> Option<String> {
    let first = written.types.as_ref().and_then(|types| types.value.0.first());
    let named = written.name.as_ref();
    let name = match named {
        Some(name) => check.read(&format!("{key}.name"), Some(name), name_of)?,
        None => first?.value.clone(),
    };
    let place = named.map_or(place, |name| name.place);
    if let Some(other) = names.insert(name.clone(), names.len()) {
        let message = format!("`{name}` is also the name of sources[{other}]; give each source its own");
        check.at(place, format!("{key}.name"), message);
        return None;
    }
    Some(name)
}

fn name_of(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if matches!(text, "old" | "relay") {
        return Err(format!(
            "`{text}` is shown for something else in `status` and `/clusters`; write another name"
        ));
    }
    if text.is_empty() || !text.chars().all(plain) {
        return Err(format!(
            "`{text}` is not a name; write letters, digits, `.`, `_` and `-`"
        ));
    }
    Ok(text.to_owned())
}

fn types(
    check: &mut Check,
    key: &str,
    place: Place,
    written: &shape::Source,
    own: &BTreeMap<String, Traits>,
    taken: &mut Taken,
) -> Vec<Box<str>> {
    let key = format!("{key}.types");
    let mut all = Vec::new();
    let Some(list) = &written.types else {
        return all;
    };
    if list.value.0.is_empty() {
        let message = "the list is empty; write the types that this source has, such as eds";
        check.at(list.place, &key, message);
    }
    for (at, text) in list.value.0.iter().enumerate() {
        let Some(found) = check.read(&key, Some(text), |text| rules::types(text, own)) else {
            continue;
        };
        let here = format!("{key}[{at}]");
        if let Err(message) = take(&found, text, &here, taken) {
            check.at(text.place, &key, message);
            continue;
        }
        all.extend(found);
    }
    apart(check, &key, place, &all);
    all
}

/// Notes that a source has these types.
fn take(found: &[Box<str>], text: &Scalar, here: &str, taken: &mut Taken) -> Result<(), String> {
    let word = &text.value;
    for name in found {
        let type_url = TypeUrl::new(name);
        if type_url.traits().withheld {
            return Err(format!(
                "`{word}` is asked of no control plane, because its content is for the caller alone; remove it"
            ));
        }
        if type_url.kind() == Kind::Leds {
            return Err(format!(
                "`{word}` cannot have a source: a collection of endpoints is asked of the authority of its name; name its servers in \
                 `upstream.authorities`"
            ));
        }
        if let Some(other) = taken.get(name) {
            return Err(format!(
                "`{word}` is there twice, here and at {other}; a type has one source: remove one"
            ));
        }
    }
    let place = text.place;
    taken.extend(found.iter().map(|name| (name.clone(), format!("{here} ({place})"))));
    Ok(())
}

/// Warns if routes and their virtual hosts come from different control planes.
fn apart(check: &mut Check, key: &str, place: Place, types: &[Box<str>]) {
    let has = |word: &str| TypeUrl::called(word).is_some_and(|one| types.iter().any(|name| **name == *one.full_name()));
    let (here, there) = match (has("rds"), has("vhds")) {
        (true, false) => ("rds", "vhds"),
        (false, true) => ("vhds", "rds"),
        (true, true) | (false, false) => return,
    };
    let message = format!(
        "{here} is here and {there} is not, so routes and their virtual hosts on demand come from different control planes; add {there} \
         unless no route has virtual hosts on demand"
    );
    check.warn(place, key, message);
}

/// Returns the positions of the servers of a source.
fn servers(
    check: &mut Check,
    key: &str,
    written: &shape::Source,
    upstream: &mut Upstream,
    listeners: &[Address],
) -> Vec<usize> {
    let node = written
        .node
        .as_ref()
        .map(|node| node::part(check, &format!("{key}.node"), node.value.clone()));
    let Some(entries) = &written.xds_servers else {
        return Vec::new();
    };
    let key = format!("{key}.xds_servers");
    let list = more_servers(check, &key, entries, upstream, listeners, node);
    let mut reached = list.iter().filter_map(|at| upstream.servers.get(*at));
    if let Some(node) = &written.node
        && !list.is_empty()
        && reached.all(|server| matches!(server.reach, Reach::Files(_)))
    {
        let message = "node has no use with files; remove it";
        check.at(node.place, key.replace("xds_servers", "node"), message);
    }
    list
}
