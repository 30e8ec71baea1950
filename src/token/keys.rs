// SPDX-License-Identifier: Apache-2.0
//! The keys of an issuer of tokens, in a JWKS: of a file, or as it is published.
//!
//! Owns which keys can be used. Knows nothing of tokens, nor of when they are read again.

use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use parking_lot::{Mutex, MutexGuard};

use super::pace::FetchPace;
use super::refused::RefusedTokens;
use crate::config::KeySource;
use crate::small_file;

/// The keys of one issuer, as they were when they were last good.
#[derive(Debug)]
pub(super) struct Keys {
    source: KeySource,
    current: ArcSwap<KeySet>,
    /// When they are fetched, if they are.
    pace: Mutex<FetchPace>,
}

/// A set of keys.
#[derive(Debug, Default)]
pub(super) struct KeySet {
    /// None: it was never read.
    text: Option<Vec<u8>>,
    pub(super) keys: Vec<PublicKey>,
    /// Tokens that none of these keys has signed.
    pub(super) refused: RefusedTokens,
}

/// One public key.
#[derive(Debug)]
pub(super) struct PublicKey {
    pub(super) id: Option<String>,
    /// The algorithms of its kind, or the one that it is for.
    pub(super) algorithms: Vec<Algorithm>,
    pub(super) key: DecodingKey,
}

/// Keys that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {why}")]
pub struct BadKeys {
    /// The file, or the address.
    place: String,
    why: String,
}

const ID_CHARS_MAX: usize = 100;
/// What only the owner of a key may know (RFC 7518).
const PRIVATE: [&str; 7] = ["d", "p", "q", "dp", "dq", "qi", "oth"];

impl BadKeys {
    pub(super) const fn new(place: String, why: String) -> Self {
        Self { place, why }
    }
}

impl Keys {
    /// Returns the keys of a file, or none that are still to be fetched.
    pub(super) fn read(source: &KeySource) -> Result<Self, BadKeys> {
        let keys = Self::none(source);
        if keys.file().is_some() {
            keys.renew()?;
        }
        Ok(keys)
    }

    /// Returns no keys, until they are read.
    pub(super) fn none(source: &KeySource) -> Self {
        Self {
            source: source.clone(),
            current: ArcSwap::default(),
            pace: Mutex::default(),
        }
    }

    /// Reads the file again, if there is one. Returns whether it has changed. Nothing changes if it is bad.
    pub(super) fn renew(&self) -> Result<bool, BadKeys> {
        match self.file() {
            Some(path) => self.take(text(path)?),
            None => Ok(false),
        }
    }

    /// Takes up what was read. Returns whether that is news. Nothing changes if it is bad.
    pub(super) fn take(&self, text: Vec<u8>) -> Result<bool, BadKeys> {
        if self.current.load().text.as_ref() == Some(&text) {
            return Ok(false);
        }
        let set = KeySet::parse(text).map_err(|why| BadKeys::new(self.place(), why))?;
        self.current.store(Arc::new(set));
        Ok(true)
    }

    /// Returns the file, if that is where they are.
    pub(super) fn file(&self) -> Option<&Path> {
        match &self.source {
            KeySource::File(path) => Some(path),
            KeySource::Uri(_) => None,
        }
    }

    pub(super) const fn source(&self) -> &KeySource {
        &self.source
    }

    /// Returns where they are, for people.
    pub(super) fn place(&self) -> String {
        match &self.source {
            KeySource::File(path) => path.display().to_string(),
            KeySource::Uri(from) => from.uri.clone(),
        }
    }

    pub(super) fn pace(&self) -> MutexGuard<'_, FetchPace> {
        self.pace.lock()
    }

    /// Notes that a token needs other keys. Returns whether somebody must be told.
    pub(super) fn want(&self) -> bool {
        self.file().is_none() && self.pace.lock().want()
    }

    /// Whether they were never read.
    pub(super) fn are_awaited(&self) -> bool {
        self.current.load().text.is_none()
    }

    pub(super) fn current(&self) -> Arc<KeySet> {
        self.current.load_full()
    }

    /// Whether no token can be verified.
    pub(super) fn is_empty(&self) -> bool {
        self.current.load().keys.is_empty()
    }
}

impl KeySet {
    /// Finds the keys of a set (RFC 7517) that can verify tokens.
    fn parse(text: Vec<u8>) -> Result<Self, String> {
        let set: serde_json::Value =
            serde_json::from_slice(&text).map_err(|error| format!("it is not JSON: {error}"))?;
        let Some(written) = set.get("keys").and_then(serde_json::Value::as_array) else {
            return Err("it is not a JWK set: `keys` is missing, or no list".to_owned());
        };
        for (at, written) in written.iter().enumerate() {
            // Whoever has read this one can write tokens.
            if let Some(private) = PRIVATE.iter().find(|member| written.get(**member).is_some()) {
                return Err(format!(
                    "keys[{at}] has its private part (`{private}`): replace this key, and publish public keys alone"
                ));
            }
        }
        // RFC 7517: implementations "SHOULD ignore JWKs within a JWK Set that use 'kty' values that are not understood by them".
        let keys: Vec<PublicKey> = written.iter().filter_map(key).collect();
        for (at, one) in keys.iter().enumerate() {
            let twin = |other: &&PublicKey| {
                other.id == one.id && other.algorithms.iter().any(|of| one.algorithms.contains(of))
            };
            if let Some(id) = one
                .id
                .as_ref()
                .filter(|_| keys.iter().skip(at + 1).any(|other| twin(&other)))
            {
                let id: String = id.chars().take(ID_CHARS_MAX).collect();
                return Err(format!("two of its keys have the `kid` `{}`", id.escape_debug()));
            }
        }
        Ok(Self {
            text: Some(text),
            keys,
            refused: RefusedTokens::default(),
        })
    }
}

fn text(path: &Path) -> Result<Vec<u8>, BadKeys> {
    small_file::read(path, small_file::BYTES_MAX)
        .map_err(|error| BadKeys::new(path.display().to_string(), format!("cannot be read: {error}")))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the library adds kinds of keys")]
fn key(written: &serde_json::Value) -> Option<PublicKey> {
    let written: Jwk = serde_json::from_value(written.clone()).ok()?;
    let for_signatures = |purpose: &PublicKeyUse| *purpose == PublicKeyUse::Signature;
    if !written.common.public_key_use.as_ref().is_none_or(for_signatures) {
        return None;
    }
    let possible: &[Algorithm] = match &written.algorithm {
        AlgorithmParameters::RSA(_) => &[
            Algorithm::RS256,
            Algorithm::RS384,
            Algorithm::RS512,
            Algorithm::PS256,
            Algorithm::PS384,
            Algorithm::PS512,
        ],
        AlgorithmParameters::EllipticCurve(of) => match of.curve {
            EllipticCurve::P256 => &[Algorithm::ES256],
            EllipticCurve::P384 => &[Algorithm::ES384],
            _ => return None,
        },
        AlgorithmParameters::OctetKeyPair(_) => &[Algorithm::EdDSA],
        // Whoever can read a symmetric key can write tokens, so none is taken.
        _ => return None,
    };
    let only = match written.common.key_algorithm {
        None => None,
        Some(algorithm) => Some(Algorithm::try_from(algorithm).ok()?),
    };
    let algorithms: Vec<Algorithm> = possible
        .iter()
        .copied()
        .filter(|algorithm| only.is_none_or(|only| only == *algorithm))
        .collect();
    Some(PublicKey {
        key: DecodingKey::from_jwk(&written)
            .ok()
            .filter(|_| !algorithms.is_empty())?,
        id: written.common.key_id,
        algorithms,
    })
}
