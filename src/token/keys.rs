//! The keys of an issuer of tokens, in a JWKS file.
//!
//! Owns which keys can be used. Knows nothing of tokens, nor of when the file is read again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};

use super::refused::Refused;
use crate::small_file;

/// The keys of one issuer, as its file was when it was last good.
#[derive(Debug)]
pub(super) struct Keys {
    path: PathBuf,
    current: ArcSwap<Set>,
}

/// A set of keys.
#[derive(Debug, Default)]
pub(super) struct Set {
    text: Vec<u8>,
    pub(super) keys: Vec<Key>,
    /// Tokens that none of these keys has signed.
    pub(super) refused: Refused,
}

/// One public key.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) id: Option<String>,
    /// The algorithms of its kind, or the one that it is for.
    pub(super) algorithms: Vec<Algorithm>,
    pub(super) key: DecodingKey,
}

/// A file of keys that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct BadKeys {
    path: PathBuf,
    why: String,
}

impl Keys {
    /// Reads the keys for the first time.
    pub(super) fn read(path: &Path) -> Result<Self, BadKeys> {
        let set = Set::parse(path, text(path)?)?;
        Ok(Self {
            path: path.to_owned(),
            current: ArcSwap::from_pointee(set),
        })
    }

    /// Returns no keys, until the file is read again.
    pub(super) fn none(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            current: ArcSwap::default(),
        }
    }

    /// Reads the file again. Returns whether it has changed. Nothing changes if it is bad.
    pub(super) fn renew(&self) -> Result<bool, BadKeys> {
        let text = text(&self.path)?;
        if text == self.current.load().text {
            return Ok(false);
        }
        self.current.store(Arc::new(Set::parse(&self.path, text)?));
        Ok(true)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn current(&self) -> Arc<Set> {
        self.current.load_full()
    }

    /// Whether no token can be verified.
    pub(super) fn is_empty(&self) -> bool {
        self.current.load().keys.is_empty()
    }
}

impl Set {
    /// Finds the keys of a set (RFC 7517) that can verify tokens.
    fn parse(path: &Path, text: Vec<u8>) -> Result<Self, BadKeys> {
        let bad = |why| BadKeys {
            path: path.to_owned(),
            why,
        };
        let set: serde_json::Value =
            serde_json::from_slice(&text).map_err(|error| bad(format!("it is not JSON: {error}")))?;
        let Some(keys) = set.get("keys").and_then(serde_json::Value::as_array) else {
            return Err(bad("it is not a JWK set: `keys` is missing, or no list".to_owned()));
        };
        // RFC 7517: implementations "SHOULD ignore JWKs within a JWK Set that use 'kty' values that are not understood by them".
        let keys = keys.iter().filter_map(key).collect();
        Ok(Self {
            text,
            keys,
            refused: Refused::default(),
        })
    }
}

fn text(path: &Path) -> Result<Vec<u8>, BadKeys> {
    small_file::read(path, small_file::BYTES_MAX).map_err(|error| BadKeys {
        path: path.to_owned(),
        why: format!("cannot be read: {error}"),
    })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the library adds kinds of keys")]
fn key(written: &serde_json::Value) -> Option<Key> {
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
    Some(Key {
        key: DecodingKey::from_jwk(&written)
            .ok()
            .filter(|_| !algorithms.is_empty())?,
        id: written.common.key_id,
        algorithms,
    })
}
