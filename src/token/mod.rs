// SPDX-License-Identifier: Apache-2.0
//! Tokens (JWT), and what they say of a client.
//!
//! Owns the checks of a token, the keys for them, and the texts that a good one becomes. Knows nothing of calls.

mod bearer;
mod claims;
mod fetch;
mod keys;
mod pace;
mod refused;
mod renewal;

use std::sync::Arc;

use arc_swap::ArcSwap;
use jsonwebtoken::dangerous::insecure_decode_claims;
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Header, Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::Notify;

use crate::clock;
use crate::config::Issuer;
use crate::identity::Named;
pub use keys::BadKeys;
use keys::Keys;
pub use pace::FetchRhythm;
pub use renewal::KeyRenewal;

/// Checks the tokens of clients. Clones know the same issuers.
#[derive(Clone, Debug, Default)]
pub struct Tokens(Arc<Issuers>);

#[derive(Debug, Default)]
struct Issuers {
    issuers: ArcSwap<Vec<Arc<Trusted>>>,
    /// What of tokens is read.
    named: ArcSwap<Named>,
    /// Told when there are other issuers.
    changed: Notify,
    /// Told when a token needs keys that are to be fetched.
    wanted: Notify,
}

#[derive(Debug)]
struct Trusted {
    issuer: Issuer,
    keys: Arc<Keys>,
}

/// Why a token is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    /// It is not the only one.
    #[error("there are several in `authorization`; there may be one")]
    Several,
    /// It is no signed token of this form, or one whose signer asks for more than the relay can check.
    #[error("it is not a signed JWT with an algorithm that the relay knows")]
    Malformed,
    /// Nobody configured its issuer.
    #[error("the relay does not know its issuer `{0}`")]
    Issuer(String),
    /// The issuer has no such key.
    #[error("the relay knows no key of its issuer with its `kid` and algorithm")]
    Key,
    /// Its issuer's keys were not fetched yet.
    #[error("the relay could not fetch the keys of its issuer yet")]
    NoKeys,
    /// The key did not sign it.
    #[error("its signature is wrong")]
    Signature,
    /// It has expired.
    #[error("it has expired")]
    Expired,
    /// It is not valid yet.
    #[error("it is not valid yet")]
    Early,
    /// It is for somebody else.
    #[error("it is not for this relay's audience")]
    Audience,
    /// Something must be in it.
    #[error("its claim `{0}` is missing or malformed")]
    Claim(String),
    /// S-11: the configuration names a claim that is no text.
    #[error("its claim `{0}` cannot be read whole: {1}")]
    Unreadable(String, &'static str),
    /// S-11: the configuration names a claim of which there are two.
    #[error("its claim `{0}` is there more than once: as one name, and as a path")]
    Ambiguous(String),
}

impl TokenFault {
    /// Returns the fault as one word, for the metric.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Several => "several",
            Self::Malformed => "malformed",
            Self::Issuer(_) => "issuer",
            Self::Key => "key",
            Self::NoKeys => "no_keys",
            Self::Signature => "signature",
            Self::Expired => "expired",
            Self::Early => "early",
            Self::Audience => "audience",
            Self::Claim(_) => "claim",
            Self::Unreadable(..) => "unreadable",
            Self::Ambiguous(_) => "ambiguous",
        }
    }
}

/// The claim that is looked at before the signature is checked, to find the keys.
#[derive(Deserialize)]
struct Claimed {
    iss: String,
}

const SHOWN_CHARS_MAX: usize = 100;

impl Tokens {
    /// Reads the keys of all issuers that are in files.
    ///
    /// # Errors
    /// When a file cannot be read, or is not a set of keys.
    pub fn read(issuers: &[Issuer]) -> Result<Self, BadKeys> {
        let trusted = issuers
            .iter()
            .map(|issuer| Ok(Trusted::new(issuer, Arc::new(Keys::read(&issuer.keys)?))));
        let tokens = Self::default();
        tokens.0.issuers.store(Arc::new(trusted.collect::<Result<_, _>>()?));
        Ok(tokens)
    }

    /// Trusts these issuers from now on. One whose keys cannot be read has none until they can.
    pub fn set(&self, issuers: &[Issuer]) {
        let earlier = self.0.issuers.load_full();
        let trusted = issuers.iter().map(|issuer| {
            let known = earlier.iter().find(|known| *known.keys.source() == issuer.keys);
            let keys = match known {
                Some(known) => known.keys.clone(),
                None => Arc::new(Keys::read(&issuer.keys).unwrap_or_else(|_| Keys::none(&issuer.keys))),
            };
            Trusted::new(issuer, keys)
        });
        self.0.issuers.store(Arc::new(trusted.collect()));
        self.0.changed.notify_one();
        self.0.wanted.notify_one();
    }

    /// S-11: from now on this is what of tokens is read.
    pub fn name(&self, named: Named) {
        if **self.0.named.load() != named {
            self.0.named.store(Arc::new(named));
        }
    }

    /// Returns what of identities is named.
    pub fn named(&self) -> Arc<Named> {
        self.0.named.load_full()
    }

    /// Returns which issuers have no key that can be used, so that all of their tokens are refused.
    pub fn warnings(&self) -> Vec<String> {
        let issuers = self.0.issuers.load();
        issuers.iter().filter_map(|trusted| trusted.warning()).collect()
    }

    /// Checks a token. Returns the texts for the client's [`crate::identity::Identity`].
    ///
    /// # Errors
    /// When it is not good.
    pub fn check(&self, token: &str) -> Result<Vec<String>, TokenFault> {
        self.said(token, &self.named())
    }

    /// Does the same for what is named.
    fn said(&self, token: &str, named: &Named) -> Result<Vec<String>, TokenFault> {
        let header = decode_header(token).map_err(|_| TokenFault::Malformed)?;
        // RFC 7515: a header parameter in `crit` that is not understood makes the token invalid.
        if header.crit.is_some() {
            return Err(TokenFault::Malformed);
        }
        let claimed: Claimed = insecure_decode_claims(token).map_err(|_| TokenFault::Claim("iss".to_owned()))?;
        let issuers = self.0.issuers.load();
        let trusted = issuers.iter().find(|trusted| trusted.issuer.name == claimed.iss);
        let Some(trusted) = trusted else {
            return Err(TokenFault::Issuer(claimed.iss.chars().take(SHOWN_CHARS_MAX).collect()));
        };
        let claims = trusted.claims(token, &header);
        if matches!(claims, Err(TokenFault::Key | TokenFault::NoKeys)) && trusted.keys.want() {
            self.0.wanted.notify_one();
        }
        claims::texts(&claimed.iss, &claims?, named)
    }

    /// Has all keys fetched that are fetched.
    fn want(&self) {
        for trusted in self.0.issuers.load().iter() {
            trusted.keys.want();
        }
    }
}

impl Trusted {
    fn new(issuer: &Issuer, keys: Arc<Keys>) -> Arc<Self> {
        let issuer = issuer.clone();
        Arc::new(Self { issuer, keys })
    }

    /// Says that the issuer has no key that can be used, if it has none.
    fn warning(&self) -> Option<String> {
        let place = self.keys.place();
        let none = || format!("{place}: there is no key in it that can verify tokens (RSA, P-256, P-384 or Ed25519)");
        (self.keys.is_empty() && !self.keys.are_awaited()).then(none)
    }

    /// Returns the claims of a token that one of the issuer's keys has signed.
    fn claims(&self, token: &str, header: &Header) -> Result<Map<String, Value>, TokenFault> {
        if self.keys.are_awaited() && self.keys.file().is_none() {
            return Err(TokenFault::NoKeys);
        }
        let keys = self.keys.current();
        let fits = |id: Option<&String>| header.kid.is_none() || id == header.kid.as_ref();
        let fitting = keys
            .keys
            .iter()
            .filter(|key| fits(key.id.as_ref()) && key.algorithms.contains(&header.alg));
        // A signature takes long to check, so the same wrong one is not checked again and again.
        if keys.refused.contains(token, clock::now()) {
            return Err(TokenFault::Signature);
        }
        let mut fault = TokenFault::Key;
        for key in fitting {
            let mut validation = Validation::new(header.alg);
            validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
            validation.set_issuer(&[&self.issuer.name]);
            validation.set_audience(&self.issuer.audiences);
            validation.leeway = self.issuer.skew.as_secs();
            validation.validate_nbf = true;
            match decode::<Map<String, Value>>(token, &key.key, &validation) {
                Ok(good) => return Ok(good.claims),
                Err(error) => fault = why(&error),
            }
            // Without a `kid`, another key may have signed it.
            if fault != TokenFault::Signature {
                break;
            }
        }
        if fault == TokenFault::Signature {
            keys.refused.note(token, clock::now());
        }
        Err(fault)
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the library adds errors")]
fn why(error: &Error) -> TokenFault {
    match error.kind() {
        ErrorKind::InvalidSignature | ErrorKind::Provider(_) => TokenFault::Signature,
        ErrorKind::ExpiredSignature => TokenFault::Expired,
        ErrorKind::ImmatureSignature => TokenFault::Early,
        ErrorKind::InvalidAudience => TokenFault::Audience,
        ErrorKind::MissingRequiredClaim(claim) | ErrorKind::InvalidClaimFormat(claim) => {
            TokenFault::Claim(claim.clone())
        }
        _ => TokenFault::Malformed,
    }
}
