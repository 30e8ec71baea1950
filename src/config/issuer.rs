// SPDX-License-Identifier: Apache-2.0
//! Who issues the tokens of clients, as a validated setting. Reads no files.

use std::path::PathBuf;
use std::time::Duration;

use http::uri::PathAndQuery;

use super::{Credentials, Endpoint};

/// One who issues tokens (JWT).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issuer {
    /// The name in its tokens (`iss`).
    pub name: String,
    /// A token must be for one of these (`aud`).
    pub audiences: Vec<String>,
    /// Where its public keys are.
    pub keys: KeySource,
    /// How far its clock and this machine's may differ.
    pub skew: Duration,
}

/// Where the public keys of an issuer are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// In a file. It is read again when it changes.
    File(PathBuf),
    /// Where the issuer publishes them. They are fetched from time to time.
    Uri(Box<JwksUri>),
}

/// Where an issuer publishes its keys, over HTTPS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JwksUri {
    /// All of it, as it was written.
    pub uri: String,
    /// The server.
    pub endpoint: Endpoint,
    /// What the server is asked for.
    pub path: PathAndQuery,
    /// Whom the relay trusts to be the server.
    pub credentials: Credentials,
    /// The file of the token that the relay shows there.
    pub token_file: Option<PathBuf>,
}
