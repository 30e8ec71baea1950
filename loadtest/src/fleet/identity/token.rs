// SPDX-License-Identifier: Apache-2.0
//! The tokens that clients send: one from a file, or one for each that is signed here. Owns the bounds of a token and the form of the
//! claims. Sends nothing.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail, ensure};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Map, Value};

use crate::wire::credentials::read_key;
use crate::wire::pattern::{Pattern, numbered};

/// Where the token of a client is from.
#[derive(Clone, Debug)]
pub(super) enum Token {
    /// A file, which is read again for each connection.
    File(Pattern),
    /// Each client has its own.
    Signed(Arc<Signer>),
}

/// The largest token.
const TOKEN_BYTES_MAX: u64 = 64 * 1024;
/// For how long a signed token is good; a connection that is made anew has a new one.
const LIFE: Duration = Duration::from_secs(3600);

impl Token {
    /// Returns the token of a client as it is now.
    pub(super) fn of(&self, number: u32) -> anyhow::Result<String> {
        match self {
            Self::File(file) => {
                let file = file.path(number);
                read(&file).with_context(|| format!("the token in {}", file.display()))
            }
            Self::Signed(signer) => signer.sign(number),
        }
    }

    pub(super) fn file(&self, number: u32) -> Option<PathBuf> {
        match self {
            Self::File(file) => Some(file.path(number)),
            Self::Signed(_) => None,
        }
    }
}

/// Signs tokens of clients.
pub(super) struct Signer {
    key: EncodingKey,
    header: Header,
    claims: Map<String, Value>,
}

impl std::fmt::Debug for Signer {
    /// The key is a secret.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Signer")
            .field("claims", &self.claims)
            .finish_non_exhaustive()
    }
}

impl Signer {
    /// Reads the key from a PEM file, and the claims from an object in JSON.
    pub(super) fn new(key: &Path, claims: &str) -> anyhow::Result<Self> {
        let claims = serde_json::from_str(claims)
            .with_context(|| format!("token claims: write an object in JSON, not `{claims}`"))?;
        let read = read_key(key)?;
        let keys = match &read {
            PrivateKeyDer::Pkcs8(der) => {
                let der = der.secret_pkcs8_der();
                vec![
                    (Algorithm::ES256, EncodingKey::from_ec_der(der)),
                    (Algorithm::ES384, EncodingKey::from_ec_der(der)),
                    (Algorithm::EdDSA, EncodingKey::from_ed_der(der)),
                ]
            }
            PrivateKeyDer::Pkcs1(der) => vec![(Algorithm::RS256, EncodingKey::from_rsa_der(der.secret_pkcs1_der()))],
            PrivateKeyDer::Sec1(_) | _ => Vec::new(),
        };
        // The key says itself for which algorithm it is.
        let found = keys.into_iter().find_map(|(algorithm, key)| {
            let header = Header::new(algorithm);
            encode(&header, &claims, &key).is_ok().then_some((header, key))
        });
        let Some((header, key)) = found else {
            bail!(
                "{}: the key must be for ES256, ES384 or EdDSA in PKCS #8 (`BEGIN PRIVATE KEY`), or for RS256 in PKCS #1 (`BEGIN RSA PRIVATE KEY`)",
                key.display()
            );
        };
        Ok(Self { key, header, claims })
    }

    fn sign(&self, number: u32) -> anyhow::Result<String> {
        let mut claims = self.claims.clone();
        claims.values_mut().for_each(|value| number_all(value, number));
        let now = unix_now().as_secs();
        for (claim, seconds) in [("iat", now), ("exp", now + LIFE.as_secs())] {
            claims.entry(claim).or_insert_with(|| seconds.into());
        }
        Ok(encode(&self.header, &claims, &self.key)?)
    }
}

/// Writes the number of a client where it stands in the texts of a claim.
fn number_all(value: &mut Value, number: u32) {
    match value {
        Value::String(text) => *text = numbered(text, number),
        Value::Array(items) => items.iter_mut().for_each(|item| number_all(item, number)),
        Value::Object(fields) => fields.values_mut().for_each(|field| number_all(field, number)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn read(file: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let open = File::open(file)?;
    open.take(TOKEN_BYTES_MAX + 1).read_to_string(&mut text)?;
    ensure!(
        u64::try_from(text.len())? <= TOKEN_BYTES_MAX,
        "is larger than {TOKEN_BYTES_MAX} bytes"
    );
    let token = text.trim();
    let fits = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    ensure!(fits, "must be one word of ASCII characters");
    Ok(token.to_owned())
}

#[expect(clippy::disallowed_methods, reason = "a token is good for a time of day")]
fn unix_now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
