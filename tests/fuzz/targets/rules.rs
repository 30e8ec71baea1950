// SPDX-License-Identifier: Apache-2.0
//! Rules about what clients may have: whatever the patterns, a naive matcher agrees on them; whatever the rules, what the relay
//! lets a client have is what going through them one by one says.
//!
//! The input is a list of lines. The first character of each says what it is:
//! `+` and `-` begin a rule that allows or denies; `i`, `n`, `c`, `t`, `r` and `w` add an identity, a node id, a cluster, a type, a name of a
//! resource and a dialect to it; the capital letters say the same of the client that asks; `s` serves secrets without a rule.

use distributary::classes::{Node, Pattern};
use distributary::xds::{Access, AccessRule, Caller, Grant, Question, TypeUrl, Way};

const TYPES: [&str; 3] = [
    "envoy.config.cluster.v3.Cluster",
    "envoy.config.endpoint.v3.ClusterLoadAssignment",
    "envoy.extensions.transport_sockets.tls.v3.Secret",
];

#[derive(Default)]
struct Case<'a> {
    rules: Vec<Rule>,
    secrets: bool,
    identity: Vec<&'a str>,
    node: Node,
    way: Way,
    types: Vec<TypeUrl>,
    names: Vec<&'a str>,
}

/// A rule whose lists still grow.
#[derive(Default)]
struct Rule {
    rule: AccessRule,
    types: Vec<Box<str>>,
    names: Vec<Pattern>,
}

impl From<Rule> for AccessRule {
    fn from(Rule { rule, types, names }: Rule) -> Self {
        Self {
            types: types.into(),
            names: names.into(),
            ..rule
        }
    }
}

/// One of several things, chosen by a digit.
fn chosen<T: Copy>(all: &[T], text: &str) -> T {
    all[text.bytes().next().map_or(0, usize::from) % all.len()]
}

impl<'a> Case<'a> {
    fn read(input: &'a str) -> Self {
        let mut case = Self::default();
        for line in input.split('\n').take(200) {
            let mut letters = line.chars();
            let Some(first) = letters.next() else { continue };
            let text = letters.as_str();
            match first {
                's' => case.secrets = true,
                'I' => case.identity.push(text),
                'N' => case.node.id = text.into(),
                'C' => case.node.cluster = text.into(),
                'W' => case.way = chosen(&Way::ALL, text),
                'T' => case.types.push(TypeUrl::new(text)),
                'R' => case.names.push(text),
                '+' | '-' => {
                    let mut rule = Rule::default();
                    rule.rule.allow = first == '+';
                    case.rules.push(rule);
                }
                _ => case.condition(first, text),
            }
        }
        case.types.extend(TYPES.map(TypeUrl::new));
        case
    }

    /// Adds a condition to the last rule.
    fn condition(&mut self, first: char, text: &str) {
        let Some(Rule { rule, types, names }) = self.rules.last_mut() else {
            return;
        };
        let pattern = Pattern::read(text).ok();
        match first {
            'i' => rule.identities.extend(pattern),
            'n' => rule.ids.extend(pattern),
            'c' => rule.clusters.extend(pattern),
            'r' => names.extend(pattern),
            't' => types.push(chosen(&TYPES, text).into()),
            'w' => rule.ways.push(chosen(&Way::ALL, text)),
            _ => {}
        }
    }
}

/// Compares a pattern without fields with one that is matched letter by letter.
fn pattern(written: &str, texts: &[&str]) {
    let Ok(pattern) = Pattern::read(written) else { return };
    assert_eq!(Pattern::read(&pattern.to_string()).as_ref(), Ok(&pattern), "{written}");
    let plain = !written.contains(['{', '}']);
    for text in texts {
        assert_eq!(pattern.matches(text), pattern.found(text).is_some(), "{written} {text}");
        if plain {
            let naive = matches(written.as_bytes(), text.as_bytes());
            assert_eq!(pattern.matches(text), naive, "{written} {text}");
        }
    }
}

/// Whether a text matches a pattern in which `*` stands for any text.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    // Which beginnings of the text the pattern so far matches.
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    for letter in pattern {
        if *letter == b'*' {
            let first = reached.iter().position(|at| *at).unwrap_or(reached.len());
            reached[first..].fill(true);
        } else {
            for at in (1..reached.len()).rev() {
                reached[at] = reached[at - 1] && text[at - 1] == *letter;
            }
            reached[0] = false;
        }
    }
    reached[text.len()]
}

fn compare(case: Case<'_>) {
    let access = Access::new(case.rules.into_iter().map(AccessRule::from).collect(), case.secrets);
    let caller = Caller {
        identity: &case.identity,
        node: &case.node,
        way: case.way,
    };
    let allowed = |type_url, name| access.explain(&Question { caller, type_url, name }).allowed;
    let rights = access.rights(&caller);
    assert_eq!(rights.is_ok(), allowed(None, None), "{access:?} {caller:?}");
    let Ok(rights) = rights else { return };
    for type_url in &case.types {
        let grant = rights
            .as_ref()
            .map_or(Grant::Everything, |rights| rights.grant(type_url));
        assert_eq!(
            grant != Grant::Nothing,
            allowed(Some(type_url), None),
            "{access:?} {caller:?}"
        );
        let part = rights.as_ref().map(|rights| rights.of_type(type_url));
        for name in &case.names {
            let may = rights.as_ref().is_none_or(|rights| rights.allow(type_url, name));
            assert_eq!(
                may,
                part.as_ref().is_none_or(|part| part.allow(type_url, name)),
                "{type_url} {name}"
            );
            assert_eq!(
                may,
                allowed(Some(type_url), Some(name)),
                "{type_url} {name} {access:?} {caller:?}"
            );
            assert!(
                grant == Grant::Some || may == (grant == Grant::Everything),
                "{grant:?} {type_url} {name}"
            );
        }
    }
}

pub(crate) fn run(bytes: &[u8]) {
    let input = String::from_utf8_lossy(bytes);
    let case = Case::read(&input);
    let asked: Vec<&str> = case.identity.iter().chain(&case.names).copied().take(8).collect();
    for line in input.split('\n').take(32) {
        pattern(line.get(1..).unwrap_or_default(), &asked);
    }
    compare(case);
}
