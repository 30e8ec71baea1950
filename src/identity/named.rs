// SPDX-License-Identifier: Apache-2.0
//! What of identities the configuration names, in rules, classes and rules of the admin address (S-11).
//!
//! Owns what must be read whole for that. Knows nothing of who names it, and reads nothing itself.

use std::collections::{BTreeMap, BTreeSet};

const CLAIM: &str = "claim:";

/// What of identities is named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Words of kinds, such as `dns:`.
    kinds: BTreeSet<String>,
    /// Names of claims, by issuer.
    claims: BTreeMap<String, BTreeSet<String>>,
    /// How texts begin whose kind, or claim, is not fixed: `claim:https://issuer#te` of a pattern with `*` after it.
    beginnings: BTreeSet<String>,
}

/// Returns how the texts of a claim begin.
#[must_use]
pub fn claim(issuer: &str, name: &str) -> String {
    format!("{CLAIM}{issuer}#{name}=")
}

/// Patterns of texts, each by the text with which a match begins.
impl<T: AsRef<str>> FromIterator<T> for Named {
    fn from_iter<I: IntoIterator<Item = T>>(texts: I) -> Self {
        let mut named = Self::default();
        for fixed in texts {
            let fixed = fixed.as_ref();
            let claim = fixed.strip_prefix(CLAIM).map(|claim| {
                let (issuer, claim) = claim.split_once('#')?;
                Some((issuer, claim.split_once('=')?.0))
            });
            match (claim, fixed.split_once(':')) {
                (Some(Some((issuer, name))), _) => {
                    let of_issuer = named.claims.entry(issuer.to_owned()).or_default();
                    of_issuer.insert(name.to_owned());
                }
                (None, Some((word, _))) => drop(named.kinds.insert(format!("{word}:"))),
                (Some(None), _) | (None, None) => drop(named.beginnings.insert(fixed.to_owned())),
            }
        }
        named
    }
}

impl Named {
    /// Whether texts of a kind are named, such as `dns:`.
    pub fn has_kind(&self, word: &str) -> bool {
        self.kinds.contains(word) || self.begins(word)
    }

    /// Returns the claims of an issuer that are named in full.
    pub fn claims(&self, issuer: &str) -> impl Iterator<Item = &str> {
        self.claims.get(issuer).into_iter().flatten().map(String::as_str)
    }

    /// Whether a text with this beginning is named without its claim.
    pub fn begins(&self, text: &str) -> bool {
        self.beginnings.iter().any(|beginning| text.starts_with(beginning))
    }

    /// Whether what was read for this has all claims that the other names.
    pub(super) fn includes(&self, other: &Self) -> bool {
        let known = |issuer: &String, names: &BTreeSet<String>| {
            let ours = self.claims.get(issuer);
            ours.is_some_and(|ours| names.is_subset(ours))
        };
        other.claims.iter().all(|(issuer, names)| known(issuer, names))
            && other.beginnings.iter().all(|beginning| self.begins(beginning))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_claims_are_named() {
        let one = Named::from_iter([
            "dns:",
            "claim:https://i#team=",
            "claim:https://i#k8s.io/ns=blue",
            "claim:https://j#te",
        ]);
        assert!(one.has_kind("dns:") && !one.has_kind("uri:") && !one.has_kind("claim:"));
        let claims: Vec<&str> = one.claims("https://i").collect();
        assert_eq!(claims, ["k8s.io/ns", "team"]);
        assert_eq!(one.claims("https://j").count(), 0);
        assert!(one.begins("claim:https://j#team=") && !one.begins("claim:https://i#team="));
        let any = Named::from_iter(["s"]);
        assert!(any.has_kind("spiffe:") && any.has_kind("subject:") && !any.has_kind("dns:"));
    }

    #[test]
    fn what_was_read_may_be_enough_for_others() {
        let one = Named::from_iter(["claim:i#a=", "claim:i#b=", "claim:j#"]);
        for (other, enough) in [
            (&["claim:i#a=x", "uri:"][..], true),
            (&["claim:j#x"], true),
            (&["claim:i#c="], false),
            (&["claim:i#"], false),
            (&["claim:j#x/y="], false),
            (&[""], false),
        ] {
            assert_eq!(one.includes(&other.iter().collect()), enough, "{other:?}");
        }
    }
}
