// SPDX-License-Identifier: Apache-2.0
//! Validates the rules about what clients may have.

use std::collections::BTreeMap;

use crate::classes::{IDENTITIES, Path, Pattern};
use crate::config::reading::{Spanned, TextList, Texts};
use crate::config::shape;
use crate::xds::{Access, AccessRule, Traits, TypeUrl, Way, meant};

use super::Check;
use super::types::type_url;

/// Returns the rules about what clients may have. `own` are the types that the file adds.
pub(super) fn access(
    check: &mut Check,
    written: Option<Spanned<Vec<Spanned<shape::AccessRule>>>>,
    secrets: bool,
    own: &BTreeMap<String, Traits>,
) -> Access {
    let Some(written) = written else {
        return Access::new(Vec::new(), secrets);
    };
    check.filled(
        "rules",
        &written,
        "add a rule, or leave `rules` out to allow all but secrets",
    );
    let mut rules: Vec<AccessRule> = Vec::new();
    let mut names = BTreeMap::new();
    let mut last = None;
    for (index, Spanned { value, place }) in written.value.into_iter().enumerate() {
        let key = format!("rules[{index}]");
        let rule = rule(check, &key, &value, own);
        // S-10, K-25: only a rule that says so is about questions, or lets clients be relays.
        if let Some(all) = last.filter(|_| !rule.ways.contains(&Way::Csds) && !rule.relay) {
            let message = format!("it never decides, because rules[{all}] is about all clients and all resources");
            check.warn(place, &key, message);
        }
        let name = value.name.as_ref().map_or(place, |name| name.place);
        if let Some(other) = names.insert(rule.name.clone(), index).filter(|_| value.name.is_some()) {
            let message = format!(
                "`{}` is also the name of rules[{other}]; give each rule its own",
                rule.name
            );
            check.at(name, format!("{key}.name"), message);
        }
        if rule.is_about_all() && (!rule.allow || secrets) {
            last = last.or(Some(index));
        }
        rules.push(rule);
    }
    Access::new(rules, secrets)
}

fn rule(check: &mut Check, key: &str, written: &shape::AccessRule, own: &BTreeMap<String, Traits>) -> AccessRule {
    let identities = identity_patterns(check, &format!("{key}.identities"), written.identities.as_ref());
    // A field must have a value, whichever pattern matches.
    let mut fields: Vec<&str> = identities
        .first()
        .map_or_else(Vec::new, |first| first.fields().collect());
    fields.retain(|field| identities.iter().all(|other| other.fields().any(|one| one == *field)));
    let mut patterns = |name: &str, written: Option<&Texts>| {
        texts(check, &format!("{key}.{name}"), written, |text| filled(text, &fields))
    };
    let ids = patterns("nodes.id", written.nodes.id.as_ref());
    let clusters = patterns("nodes.cluster", written.nodes.cluster.as_ref());
    let metadata = metadata(
        check,
        &format!("{key}.nodes.metadata"),
        &written.nodes.metadata,
        &fields,
    );
    let mut patterns = |name: &str, written: Option<&Texts>| {
        texts(check, &format!("{key}.{name}"), written, |text| filled(text, &fields))
    };
    let mut names = patterns("names", written.names.as_ref());
    names.extend(texts(
        check,
        &format!("{key}.authorities"),
        written.authorities.as_ref(),
        |text| authority(text, &fields),
    ));
    let types = texts(check, &format!("{key}.types"), written.types.as_ref(), |text| {
        types(text, own)
    });
    let ways = written.dialects.as_ref().map_or(&[][..], |dialects| {
        not_empty(check, &format!("{key}.dialects"), dialects);
        &dialects.value.0
    });
    if ways.contains(&Way::Csds) && !(names.is_empty() && types.is_empty()) {
        let said = "answers over csds are about all types and names; give csds a rule without `types`, `names` and `authorities`";
        let place = written.dialects.as_ref().map(|dialects| dialects.place);
        check.at(place, format!("{key}.dialects"), said);
    }
    let relay = written.relay.as_ref().filter(|relay| relay.value);
    if let (Some(relay), false) = (relay, written.allow) {
        let message = "`relay: true` is for rules that allow; a rule that denies everything admits no relay";
        check.at(relay.place, format!("{key}.relay"), message);
    }
    AccessRule {
        name: written
            .name
            .as_ref()
            .map_or_else(String::new, |name| name.value.clone()),
        allow: written.allow,
        relay: relay.is_some(),
        identities,
        ids,
        clusters,
        metadata,
        types: types.into_iter().flatten().collect(),
        names: names.into(),
        ways: ways.to_vec(),
    }
}

/// Returns which members of a node's metadata must have which values.
fn metadata(
    check: &mut Check,
    key: &str,
    written: &BTreeMap<String, Texts>,
    fields: &[&str],
) -> Vec<(Path, Vec<Pattern>)> {
    let mut found = Vec::new();
    for (name, values) in written {
        let path = Path::read(name);
        let path = path.map_err(|fault| check.at(values.place, key, fault));
        let values = texts(check, &format!("{key}.{name}"), Some(values), |text| {
            filled(text, fields)
        });
        found.extend(path.ok().map(|path| (path, values)));
    }
    found
}

pub(super) fn identity_patterns(check: &mut Check, key: &str, written: Option<&Texts>) -> Vec<Pattern> {
    texts(check, key, written, identity)
}

/// Reads each text of a list. An empty list would be no condition, which nobody means who writes one.
fn texts<T>(
    check: &mut Check,
    key: &str,
    written: Option<&Texts>,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Vec<T> {
    let Some(written) = written else {
        return Vec::new();
    };
    not_empty(check, key, written);
    let texts = written.value.0.iter();
    texts.filter_map(|text| check.read(key, Some(text), &parse)).collect()
}

fn not_empty<T>(check: &mut Check, key: &str, written: &Spanned<TextList<T>>) {
    if written.value.0.is_empty() {
        let message = "the list is empty; leave it out for no condition";
        check.at(written.place, key, message);
    }
}

/// `spiffe://example.org/ns/{ns}/sa/*`
fn identity(text: &str) -> Result<Pattern, String> {
    let pattern = Pattern::read(text)?;
    let mut fields: Vec<&str> = pattern.fields().collect();
    fields.sort_unstable();
    if let Some([field, _]) = fields
        .windows(2)
        .find(|pair| matches!(pair, [one, other] if one == other))
    {
        return Err(format!("`{{{field}}}` is there twice; give each field its own name"));
    }
    let fixed = text.find(['*', '{']).map_or(text, |end| text.split_at(end).0);
    let word = fixed.split_inclusive(':').next().unwrap_or_default();
    let whole = fixed.len() == text.len();
    for (kind, form) in [("claim:", "claim:ISSUER#NAME=VALUE"), ("jwt:", "jwt:ISSUER#SUBJECT")] {
        let complete = text.contains('#') && (kind != "claim:" || text.contains('='));
        if whole && word == kind && !complete {
            return Err(format!("`{text}` is no identity; write {form}"));
        }
    }
    if IDENTITIES.contains(&word) || fixed.len() < text.len() && !fixed.contains(':') {
        return Ok(pattern);
    }
    let known = IDENTITIES.join(", ");
    Err(match meant(word, IDENTITIES) {
        Some(meant) => format!("no identity begins with `{word}`; did you mean `{meant}`?"),
        None => format!(
            "no identity begins like `{text}`; write {known} and what follows it, or `*` for any client with an identity"
        ),
    })
}

/// A pattern with fields of the identity.
fn filled(text: &str, fields: &[&str]) -> Result<Pattern, String> {
    let pattern = Pattern::read(text)?;
    if let Some(unknown) = pattern.fields().find(|field| !fields.contains(field)) {
        return Err(match meant(unknown, fields.iter().copied()) {
            Some(meant) => format!("`{{{unknown}}}` is no field of the identity; did you mean `{{{meant}}}`?"),
            None => format!("`{{{unknown}}}` is not a field of every pattern in `identities`; add it there"),
        });
    }
    Ok(pattern)
}

/// The names under an authority.
fn authority(text: &str, fields: &[&str]) -> Result<Pattern, String> {
    if text.is_empty() || text.contains(['/', '*']) {
        return Err(format!(
            "`{text}` is not an authority; write it in full, or with fields of the identity (a `*` would also stand for what follows it)"
        ));
    }
    filled(&format!("xdstp://{text}/*"), fields)
}

/// `cds`, which is the type of v3 and of v2; or the full name of one type, which the relay or the file knows.
pub(super) fn types(text: &str, own: &BTreeMap<String, Traits>) -> Result<Vec<Box<str>>, String> {
    if text.contains(['.', '/']) {
        let found = type_url(text)?;
        let is_known = found.is_of_table() || found.traits().withheld || own.contains_key(found.full_name());
        return match is_known {
            true => Ok(vec![found.full_name().into()]),
            false => Err(unknown(text, &found, own)),
        };
    }
    let of_v2 = format!("{text}_v2");
    let called = [text, of_v2.as_str()].into_iter().filter_map(TypeUrl::called);
    let called: Vec<Box<str>> = called.map(|type_url| type_url.full_name().into()).collect();
    if !called.is_empty() {
        return Ok(called);
    }
    Err(match meant(text, TypeUrl::short_names()) {
        Some(meant) => format!("`{text}` is not a type; did you mean `{meant}`?"),
        None => format!(
            "`{text}` is not a type; write a word such as cds, or type.googleapis.com/ and the message's full name"
        ),
    })
}

/// Returns what is said of a full name that nobody knows: it may be written wrongly, and then it would be about nothing.
fn unknown(text: &str, found: &TypeUrl, own: &BTreeMap<String, Traits>) -> String {
    let known: Vec<TypeUrl> = TypeUrl::short_names().filter_map(TypeUrl::called).collect();
    let known = known
        .iter()
        .map(TypeUrl::full_name)
        .chain(own.keys().map(String::as_str));
    match meant(found.full_name(), known) {
        Some(meant) => format!("`{text}` is not a type; did you mean `{meant}`?"),
        None => format!(
            "`{text}` is not a type that the relay knows; if it is yours, name it in `types`: [{{type_url: {text}}}]"
        ),
    }
}
