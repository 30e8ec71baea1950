// SPDX-License-Identifier: Apache-2.0
//! Types as people name them: `cds`, `clusters`, or the full name.
//!
//! Owns the other words for types, and that their case does not matter. Knows nothing of the wire.

use std::str::FromStr;

use super::TypeUrl;
use crate::meant;

/// Other names of types, and their short names.
#[rustfmt::skip]
const PLURALS: [(&str, &str); 11] = [
    ("listeners", "lds"), ("clusters", "cds"), ("routes", "rds"), ("endpoints", "eds"), ("secrets", "sds"),
    ("runtimes", "rtds"), ("extensions", "ecds"), ("scoped-routes", "srds"), ("virtual-hosts", "vhds"),
    ("locality-endpoints", "leds"), ("rate-limits", "rlsds"),
];

/// A word that names no type, and the one that was meant, if that is likely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a type{}; write lds, rds, srds, vhds, cds, eds, leds, sds, rtds, ecds, rlsds, or a full name such as \
     envoy.config.cluster.v3.Cluster",
    .0.map(|meant| format!(", did you mean `{meant}`?")).unwrap_or_default()
)]
pub struct NoType(Option<&'static str>);

impl FromStr for TypeUrl {
    type Err = NoType;

    fn from_str(text: &str) -> Result<Self, NoType> {
        let word = text.to_ascii_lowercase();
        let plural = PLURALS
            .iter()
            .find(|(plural, _)| *plural == word || plural.strip_suffix('s') == Some(&*word));
        let short = plural.map_or(&*word, |(_, short)| short);
        let called = Self::called(short);
        called
            .or_else(|| text.contains('.').then(|| Self::new(text)))
            .ok_or_else(|| {
                let plurals = PLURALS.iter().map(|(plural, _)| *plural);
                NoType(meant(&word, Self::short_names().chain(plurals)))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_type_has_many_words() {
        let cluster = TypeUrl::new("envoy.config.cluster.v3.Cluster");
        for word in ["cds", "CDS", "clusters", "Cluster", cluster.full_name(), cluster.url()] {
            assert_eq!(word.parse(), Ok(cluster.clone()), "{word}");
        }
        assert_eq!("a.B".parse(), Ok(TypeUrl::new("a.B")));
        for (word, meant) in [("", None), ("clustres", Some("clusters")), ("cdss", Some("cds"))] {
            assert_eq!(word.parse::<TypeUrl>(), Err(NoType(meant)), "{word}");
        }
    }
}
