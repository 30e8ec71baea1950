// SPDX-License-Identifier: Apache-2.0
//! Checks the node ids that control planes see (K-28).
//!
//! Owns the warnings about views that a control plane may not be able to tell apart. Does not forbid them: a control plane may
//! look at more than the id.

use std::collections::BTreeSet;

use crate::config::{Reach, Upstream};
use crate::json::Place;

use super::Check;
use crate::classes::{Passes, Pattern, Piece, Rule, Selector, escaped};

/// What can happen if two views have the same node id.
const CONSEQUENCE: &str = "a control plane that keeps one snapshot for each node id would give the clients of one view the resources of another";

/// A part of a node id that depends on values which clients choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Char(char),
    /// Any text.
    Any,
}

/// The views of one rule, or others: the node ids that they can have, and who sees them.
struct Seen<'a> {
    what: String,
    ids: Vec<Token>,
    by: BTreeSet<&'a str>,
}

impl Seen<'_> {
    /// Whether some control plane can see the same node id from both.
    fn meets(&self, other: &Self) -> bool {
        !self.by.is_disjoint(&other.by) && meet(&self.ids, &other.ids)
    }
}

/// Warns of views that can have the same node id at the same control plane.
pub(super) fn identities(check: &mut Check, rules: &[(Rule, Place)], relay: &str, upstream: &Upstream) {
    let mut known: Vec<Seen<'_>> = Vec::new();
    let others = outside(rules, relay, upstream);
    for (index, (rule, place)) in rules.iter().enumerate() {
        identity(check, &format!("classes[{index}]"), rule, *place);
        let seen = Seen {
            what: format!("classes[{index}]"),
            ids: ids(rule, relay),
            by: seers(upstream, Some(index)),
        };
        if let Some(Seen { what: other, .. }) = known.iter().chain(&others).find(|other| other.meets(&seen)) {
            let message = format!(
                "its views can present the same node id as {other}; {CONSEQUENCE}; give it a `node.id` that the other cannot have"
            );
            check.warn(*place, format!("classes[{index}]"), message);
        }
        known.push(seen);
    }
}

/// Returns the views outside the rules, which have the relay's own id.
fn outside<'a>(rules: &[(Rule, Place)], relay: &str, upstream: &'a Upstream) -> Vec<Seen<'a>> {
    let all = rules.iter().any(|(rule, _)| rule.matches.is_empty());
    let seen = |what: &str, by| Seen {
        what: what.to_owned(),
        ids: relay.chars().map(Token::Char).collect(),
        by,
    };
    let shared = upstream.sources.iter().filter(|source| source.shared);
    let shared = shared.flat_map(|source| &source.servers);
    let shared = upstream.authorities.values().flat_map(|of| &of.servers).chain(shared);
    let shared = seen("the view that all clients share", uris(upstream, shared));
    match all {
        false => vec![seen("clients that no rule matches", seers(upstream, None)), shared],
        true => vec![shared],
    }
}

/// Returns the control planes that see views of the class of this rule.
fn seers(upstream: &Upstream, rule: Option<usize>) -> BTreeSet<&str> {
    let (usual, canary) = upstream.lists(rule);
    let canary = canary.into_iter().flat_map(|canary| &canary.servers);
    let sources = upstream.sources.iter().filter(|source| !source.shared);
    let sources = sources.flat_map(|source| &source.servers);
    uris(upstream, usual.iter().chain(canary).chain(sources))
}

/// Returns where these servers are, apart from files, which see no node.
fn uris<'a>(upstream: &'a Upstream, list: impl Iterator<Item = &'a usize>) -> BTreeSet<&'a str> {
    let servers = list.filter_map(|at| upstream.servers.get(*at));
    let servers = servers.filter(|server| !matches!(server.reach, Reach::Files(_)));
    servers.map(|server| server.uri.as_str()).collect()
}

/// Checks one class alone.
fn identity(check: &mut Check, key: &str, rule: &Rule, place: Place) {
    let fixed = |field: &Selector| pattern(rule, field).is_some_and(|one| one.parts().all(|part| part.is_some()));
    let said = |at: usize| match &rule.id {
        Some(pieces) => pieces.contains(&Piece::Key(at)),
        None => rule.key.get(at) == Some(&Selector::Id) || !shows_client(rule),
    };
    let fields = rule.key.iter().enumerate();
    let unsaid = fields.filter(|(at, field)| !said(*at) && !fixed(field));
    let unsaid: Vec<String> = unsaid.map(|(_, field)| format!("`{field}`")).collect();
    if let Some((last, others)) = unsaid.split_last() {
        let unsaid = match others {
            [] => format!("{last} of `key` is"),
            others => format!("{} and {last} of `key` are", others.join(", ")),
        };
        let id = match &rule.id {
            Some(_) => "`node.id`",
            None => "the client's `id`",
        };
        let message = format!(
            "{unsaid} not in the node id, which is {id}: views that differ only there present the same node id, and {CONSEQUENCE}; \
             write every field of `key` into `node.id`, or leave it out of `key`"
        );
        check.warn(place, key, message);
    }
    if rule.passes == Passes::Whole && !rule.key.contains(&Selector::Id) {
        let message = "the control plane sees only the node of the client that opened the view, but other clients share it; put `id` into \
                       `key`, or write which parts of the node are passed on";
        check.warn(place, format!("{key}.node"), message);
    }
    for pair in rule.id.iter().flat_map(|pieces| pieces.windows(2)) {
        if let [Piece::Key(one), Piece::Key(other)] = pair
            && let (Some(one), Some(other)) = (rule.key.get(*one), rule.key.get(*other))
        {
            let message = format!(
                "`{{{one}}}{{{other}}}` gives the same text for different values (`a` and `bc`, `ab` and `c`), and {CONSEQUENCE}; put a text \
                 between the two that no value contains"
            );
            check.warn(place, format!("{key}.node.id"), message);
        }
    }
}

/// Whether control planes see a client's id as the node id.
fn shows_client(rule: &Rule) -> bool {
    rule.key.contains(&Selector::Id) || rule.passes == Passes::Whole
}

/// Returns the pattern of a value of the key. Of several texts of an identity, another one than the value may be the one that
/// matches.
fn pattern<'a>(rule: &'a Rule, field: &Selector) -> Option<&'a Pattern> {
    let mut matches = rule.matches.iter().filter(|(of, _)| !of.is_identity());
    matches.find(|(of, _)| of == field).map(|(_, pattern)| pattern)
}

/// Returns the pattern of the node ids that views of a rule have.
fn ids(rule: &Rule, relay: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let text = |tokens: &mut Vec<Token>, text: &str| tokens.extend(text.chars().map(Token::Char));
    let value = |tokens: &mut Vec<Token>, field: &Selector, escape: fn(&str) -> String| {
        let Some(pattern) = pattern(rule, field) else {
            return tokens.push(Token::Any);
        };
        for part in pattern.parts() {
            match part {
                Some(part) => text(tokens, &escape(part)),
                None => tokens.push(Token::Any),
            }
        }
    };
    if let Some(pieces) = &rule.id {
        for piece in pieces {
            match piece {
                Piece::Text(part) => text(&mut tokens, part),
                Piece::Key(at) => rule
                    .key
                    .get(*at)
                    .into_iter()
                    .for_each(|field| value(&mut tokens, field, str::to_owned)),
            }
        }
    } else if shows_client(rule) {
        value(&mut tokens, &Selector::Id, str::to_owned);
    } else {
        text(&mut tokens, relay);
        for field in &rule.key {
            text(&mut tokens, &format!("/{}=", escaped(&field.to_string())));
            value(&mut tokens, field, escaped);
        }
    }
    tokens
}

/// Whether some text matches both patterns. A pattern that matches any text does not count against a fixed text: a client that
/// takes a fixed id, such as the relay's own, does so on purpose.
fn meet(one: &[Token], other: &[Token]) -> bool {
    // Most rules differ in a fixed character at one end: that takes no table, and there may be many rules.
    if differ(one.iter().zip(other)) || differ(one.iter().rev().zip(other.iter().rev())) {
        return false;
    }
    let fixed = |tokens: &[Token]| !tokens.contains(&Token::Any);
    let free = |tokens: &[Token]| tokens.iter().all(|token| *token == Token::Any);
    if fixed(one) && free(other) || free(one) && fixed(other) {
        return one == other;
    }
    // After each token of `one`: `reached[n]` is whether some text matches the tokens of `one` so far and the first n of `other`.
    let mut reached = vec![false; other.len() + 1];
    for (at, place) in reached.iter_mut().enumerate() {
        *place = other.iter().take(at).all(|token| *token == Token::Any);
    }
    for token in one {
        let before = reached.clone();
        let mut left = false;
        for (at, place) in reached.iter_mut().enumerate() {
            let (above, diagonal) = (
                before.get(at).copied(),
                at.checked_sub(1).and_then(|at| before.get(at)).copied(),
            );
            let theirs = at.checked_sub(1).and_then(|at| other.get(at));
            let (above, diagonal) = (above.unwrap_or(false), diagonal.unwrap_or(false));
            *place = match (token, theirs) {
                (Token::Any, Some(_)) => above || left,
                (Token::Any, None) => above,
                (Token::Char(_), Some(Token::Any)) => above || left,
                (Token::Char(ours), Some(Token::Char(theirs))) => diagonal && ours == theirs,
                (Token::Char(_), None) => false,
            };
            left = *place;
        }
    }
    reached.last().copied().unwrap_or(false)
}

/// Whether two fixed characters differ before either pattern allows any text.
fn differ<'a>(mut pairs: impl Iterator<Item = (&'a Token, &'a Token)>) -> bool {
    let end = pairs.find(|(one, other)| one != other || **one == Token::Any);
    end.is_some_and(|(one, other)| ![one, other].contains(&&Token::Any))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(pattern: &str) -> Vec<Token> {
        pattern
            .chars()
            .map(|c| if c == '*' { Token::Any } else { Token::Char(c) })
            .collect()
    }

    #[test]
    fn patterns_that_have_a_text_in_common() {
        for (one, other, both) in [
            ("a", "a", true),
            ("a", "b", false),
            ("", "", true),
            ("a*", "*b", true),
            ("a*", "b*", false),
            ("*a", "*b", false),
            ("a*c", "ab*", true),
            ("r/c=*", "r/c=*", true),
            ("r/c=*", "r/z=*", false),
            ("r/*/x", "r/y", false),
            ("r/*/x", "r/*", true),
            ("gateway~*", "r/*", false),
            ("*", "r/*", true),
            ("*", "*", true),
            ("a*b*c", "*x*", true),
            ("a*b", "ab", true),
            ("a*b", "a", false),
            // A client that takes this fixed id does so on purpose.
            ("*", "relay", false),
            ("**", "relay", false),
        ] {
            assert_eq!(meet(&tokens(one), &tokens(other)), both, "{one} {other}");
            assert_eq!(meet(&tokens(other), &tokens(one)), both, "{other} {one}");
        }
    }
}
