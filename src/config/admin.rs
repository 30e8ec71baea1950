// SPDX-License-Identifier: Apache-2.0
//! Who may do what on the admin address, and under which names it is reached, as validated settings. Does not know how a visitor has proved who it is.

use super::reading::Shape;
use crate::classes::Pattern;
use crate::xds::worded;

/// The rules of the admin address, in order. Without any, whoever reaches it may do everything there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdminRules(Vec<AdminRule>);

/// The names under which the admin address is reached, beside IP addresses and `localhost`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdminHosts(Vec<String>);

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminRule {
    /// What is known of a visitor must match one of these; without any, the rule is about every visitor.
    pub identities: Vec<Pattern>,
    /// What it may do.
    pub allow: Vec<AdminAction>,
}

worded! {
/// What a visitor of the admin address does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminAction {
    /// It looks at something.
    Read = "read",
    /// It gives an order.
    Change = "change",
    /// It takes keys and certificates away, in snapshots.
    Secrets = "secrets",
}
}

impl AdminAction {
    /// Reads the word.
    ///
    /// # Errors
    /// Returns what to write if the text is none of the words.
    pub fn parse(text: &str) -> Result<Self, String> {
        <Self as Shape>::parse(text)
    }
}

/// Why a visitor may not do something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdminDenied {
    /// No rule is about it.
    #[error("no rule in `admin.rules` matches, and what no rule allows is denied")]
    Unknown,
    /// The first rule that is about it does not allow that.
    #[error("admin.rules[{0}] is the first rule that matches, and does not allow it")]
    Rule(usize),
}

impl AdminHosts {
    /// These are the names.
    #[must_use]
    pub const fn new(names: Vec<String>) -> Self {
        Self(names)
    }

    /// Whether this is one of the names. Case does not count.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|host| host.eq_ignore_ascii_case(name))
    }
}

impl AdminRules {
    /// Creates them in this order.
    #[must_use]
    pub const fn new(rules: Vec<AdminRule>) -> Self {
        Self(rules)
    }

    /// Returns the patterns of who is named.
    pub(super) fn identities(&self) -> impl Iterator<Item = &Pattern> {
        self.0.iter().flat_map(|rule| &rule.identities)
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// S-09: decides whether a visitor of whom these texts are known may do something. The first rule that matches decides; returns its
    /// number, or none if there are no rules. Secrets need a rule.
    ///
    /// # Errors
    /// Says why not.
    pub fn decide(&self, identity: &[&str], action: AdminAction) -> Result<Option<usize>, AdminDenied> {
        if self.0.is_empty() && action != AdminAction::Secrets {
            return Ok(None);
        }
        let known = |rule: &AdminRule| {
            let named = |pattern: &Pattern| identity.iter().any(|text| pattern.matches(text));
            rule.identities.is_empty() || rule.identities.iter().any(named)
        };
        match self.0.iter().enumerate().find(|(_, rule)| known(rule)) {
            None => Err(AdminDenied::Unknown),
            Some((at, rule)) if rule.allow.contains(&action) => Ok(Some(at)),
            Some((at, _)) => Err(AdminDenied::Rule(at)),
        }
    }
}
