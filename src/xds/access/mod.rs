// SPDX-License-Identifier: Apache-2.0
//! What clients may have: rules by who a client is and what it asks for.
//!
//! Owns which rule decides. A rule is about an identity, a node, a dialect, a type and a name; the first one that matches decides,
//! and if no rule matches, the answer is no. Does not know how rules are written in a file, nor how a client has proved who it is.

mod explained;
mod index;
mod rights;
mod rule;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

pub use explained::{Explanation, Question};
use index::Index;
pub use rights::{Grant, Rights, is_secret};
pub use rule::{AccessRule, Way};

use rights::Applied;

use super::TypeUrl;
use classes::{Fields, Node, Pattern};

/// The rules, in order. One immutable value: a change of the rules is another one.
#[derive(Debug)]
pub struct Access {
    rules: Vec<Arc<AccessRule>>,
    /// S-05: whether a rule that names no types is also about secrets.
    secrets: bool,
    by_identity: Index,
    by_id: Index,
    by_cluster: Index,
    /// The rules without anything fixed.
    others: Vec<u32>,
}

/// Who opens a stream.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// What the relay has checked about it.
    pub identity: &'a [&'a str],
    /// Who it says that it is.
    pub node: &'a Node,
    /// The way in which it asks.
    pub way: Way,
}

/// Why a stream may not begin: no rule allows this client anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    node: String,
    cluster: String,
    identity: String,
    way: Way,
    /// The name of the rule that denies everything, if there is one.
    rule: Option<String>,
}

impl Default for Access {
    /// Without rules, and with secrets: everything is allowed.
    fn default() -> Self {
        Self::new(Vec::new(), true)
    }
}

impl PartialEq for Access {
    fn eq(&self, other: &Self) -> bool {
        (&self.rules, self.secrets) == (&other.rules, other.secrets)
    }
}

impl Access {
    /// Creates it from rules in this order. S-05: `secrets` is whether secrets are served like all else.
    #[must_use]
    pub fn new(rules: Vec<AccessRule>, secrets: bool) -> Self {
        let mut access = Self {
            rules: rules.into_iter().map(Arc::new).collect(),
            secrets,
            by_identity: Index::default(),
            by_id: Index::default(),
            by_cluster: Index::default(),
            others: Vec::new(),
        };
        let fixed = |patterns: &[Pattern]| !patterns.is_empty() && patterns.iter().all(|one| !one.fixed().0.is_empty());
        for (number, rule) in (0..).zip(&access.rules) {
            let (index, patterns) = if fixed(&rule.identities) {
                (&mut access.by_identity, &rule.identities)
            } else if fixed(&rule.ids) {
                (&mut access.by_id, &rule.ids)
            } else if fixed(&rule.clusters) {
                (&mut access.by_cluster, &rule.clusters)
            } else {
                access.others.push(number);
                continue;
            };
            patterns.iter().for_each(|pattern| index.add(pattern, number));
        }
        access
    }

    /// The rules, in order.
    pub fn rules(&self) -> &[Arc<AccessRule>] {
        &self.rules
    }

    /// Whether secrets are served like all else.
    pub const fn secrets(&self) -> bool {
        self.secrets
    }

    /// Whether the rules let any client have resources of this type.
    pub fn serves(&self, type_url: &TypeUrl) -> bool {
        if self.rules.is_empty() {
            return self.secrets || !is_secret(type_url);
        }
        let mut allowing = self.rules.iter().filter(|rule| rule.allow);
        allowing.any(|rule| Applied::new(rule, &Fields::default()).is_about(type_url, self.secrets))
    }

    /// Returns what a client may have; `None`: everything.
    ///
    /// # Errors
    ///
    /// The client may have nothing at all.
    pub fn rights(&self, caller: &Caller<'_>) -> Result<Option<Rights>, Denied> {
        if self.rules.is_empty() {
            return Ok((!self.secrets).then(Rights::without_secrets));
        }
        let mut applied = Vec::new();
        for number in self.candidates(caller) {
            let Some(rule) = usize::try_from(number).ok().and_then(|at| self.rules.get(at)) else {
                continue;
            };
            let before = applied.len();
            for fields in rule.bindings(caller) {
                let new = Applied::new(rule, &fields);
                if !applied.iter().skip(before).any(|known| *known == new) {
                    applied.push(new);
                }
            }
            // What comes after a rule about everything never decides.
            if applied.last().is_some_and(|last| last.ends(self.secrets)) {
                break;
            }
        }
        if applied.iter().any(Applied::allows) {
            let rights = Rights::new(applied, self.secrets);
            return Ok((!rights.are_whole()).then_some(rights));
        }
        Err(Denied::new(caller, self.denier(caller)))
    }

    /// S-10: whether a client may ask what all others have. A rule must say so; without rules nobody may. A rule that is about some
    /// types or names alone does not allow it, because the answer is about all.
    ///
    /// # Errors
    ///
    /// It may not.
    pub fn may_ask(&self, caller: &Caller<'_>) -> Result<(), Denied> {
        let rules = self.candidates(caller).into_iter();
        let rules = rules.filter_map(|number| self.rules.get(usize::try_from(number).ok()?));
        let mut about = rules.filter(|rule| !rule.bindings(caller).is_empty());
        match about.find(|rule| !rule.allow || rule.is_about_everything()) {
            Some(rule) if rule.allow => Ok(()),
            Some(rule) => Err(Denied::new(caller, Some(rule.name.clone()))),
            None => Err(Denied::new(caller, None)),
        }
    }

    /// K-25: whether the marks of relays that a client brings are passed on. If no rule says `relay`, those of everybody are.
    pub fn may_be_relay(&self, caller: &Caller<'_>) -> bool {
        if !self.names_relays() {
            return true;
        }
        let rules = self.candidates(caller).into_iter();
        let rules = rules.filter_map(|number| self.rules.get(usize::try_from(number).ok()?));
        let mut about = rules.filter(|rule| !rule.bindings(caller).is_empty());
        let decides = about.find(|rule| rule.relay || !rule.allow && rule.is_about_everything());
        decides.is_some_and(|rule| rule.allow)
    }

    /// Whether any rule lets clients be relays.
    pub fn names_relays(&self) -> bool {
        self.rules.iter().any(|rule| rule.relay)
    }

    /// Whether there are no rules.
    pub const fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the name of the first rule that denies a client everything.
    fn denier(&self, caller: &Caller<'_>) -> Option<String> {
        let mut rules = self
            .rules
            .iter()
            .filter(|rule| !rule.allow && rule.is_about_everything());
        rules
            .find(|rule| !rule.bindings(caller).is_empty())
            .map(|rule| rule.name.clone())
    }

    /// Returns the rules that may match a client, in order.
    fn candidates(&self, caller: &Caller<'_>) -> BTreeSet<u32> {
        let by_identity = caller
            .identity
            .iter()
            .flat_map(|text| self.by_identity.candidates(text));
        let by_id = self.by_id.candidates(&caller.node.id);
        let by_cluster = self.by_cluster.candidates(&caller.node.cluster);
        let all = by_identity.chain(by_id).chain(by_cluster).chain([&*self.others]);
        all.flatten().copied().collect()
    }
}

impl Denied {
    fn new(caller: &Caller<'_>, rule: Option<String>) -> Self {
        Self {
            node: shown(&caller.node.id),
            cluster: shown(&caller.node.cluster),
            identity: identity(caller.identity),
            way: caller.way,
            rule,
        }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            node,
            cluster,
            identity,
            way,
            rule,
        } = self;
        match rule {
            Some(rule) => write!(f, "rule `{rule}` of the relay does not admit")?,
            None => f.write_str("no rule of the relay admits")?,
        }
        write!(f, " node `{node}` of cluster `{cluster}` over {way} with {identity}")
    }
}

/// How many texts of an identity are shown: a token may have thousands.
const TEXTS_MAX: usize = 16;

/// Returns an identity in words.
fn identity(texts: &[&str]) -> String {
    if texts.is_empty() {
        return "no identity".to_owned();
    }
    let first = texts.iter().take(TEXTS_MAX);
    let first: Vec<String> = first.map(|text| format!("`{}`", shown(text))).collect();
    let more = match texts.len().saturating_sub(TEXTS_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("identity {}{more}", first.join(", "))
}

/// Returns the beginning of a text that a client has chosen.
fn shown(text: &str) -> String {
    const CHARS_MAX: usize = 200;
    let text: String = text.chars().take(CHARS_MAX).collect();
    super::printable(&text).into_owned()
}

#[cfg(test)]
mod tests;
