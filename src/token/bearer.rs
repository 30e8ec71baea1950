// SPDX-License-Identifier: Apache-2.0
//! Where a token stands in the metadata of a call.
//!
//! Owns that there is one at most. Knows nothing of what makes a token good.

use http::HeaderMap;
use http::header::AUTHORIZATION;

use jsonwebtoken::dangerous::insecure_decode_claims;

use super::{Claimed, TokenFault, Tokens};
use crate::identity::Identity;

const SCHEME: &[u8] = b"bearer ";

impl Tokens {
    /// Whether a call brings a token along. Not if nobody issues tokens: then none is looked at.
    pub fn are_in(&self, headers: &HeaderMap) -> bool {
        !self.0.issuers.load().is_empty() && all(headers).next().is_some()
    }

    /// Returns the issuer of which a token claims to be, if that is one of those that are configured. Nothing of it is checked.
    pub fn known_issuer(&self, headers: &HeaderMap) -> Option<String> {
        let claimed: Claimed = insecure_decode_claims(all(headers).next()?).ok()?;
        let issuers = self.0.issuers.load();
        let mut names = issuers.iter().map(|trusted| &trusted.issuer.name);
        names.find(|name| **name == claimed.iss).cloned()
    }

    /// Checks the token that a call brings along. Returns the client of which this much is `known`, with what the token says of it; none
    /// if there is no token, or if nobody issues tokens, so that none is looked at.
    pub fn of(&self, headers: &HeaderMap, known: &Identity) -> Option<Result<Identity, TokenFault>> {
        if !self.are_in(headers) {
            return None;
        }
        let mut tokens = all(headers);
        let token = tokens.next()?;
        if tokens.next().is_some() {
            return Some(Err(TokenFault::Several));
        }
        let named = self.named();
        let texts = self.said(token, &named);
        Some(texts.map(|texts| known.with_token(&texts, named)))
    }
}

fn all(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers
        .get_all(AUTHORIZATION)
        .iter()
        .filter_map(|value| token(value.as_bytes()))
}

/// Returns the token in a value of the header. Bytes that no token has make an empty one, which is refused.
fn token(value: &[u8]) -> Option<&str> {
    let (scheme, token) = value.split_at_checked(SCHEME.len())?;
    let token = std::str::from_utf8(token).unwrap_or_default();
    scheme.eq_ignore_ascii_case(SCHEME).then(|| token.trim())
}
