//! Who issues the tokens of clients, as a validated setting. Reads no files.

use std::path::PathBuf;
use std::time::Duration;

/// One who issues tokens (JWT).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issuer {
    /// The name in its tokens (`iss`).
    pub name: String,
    /// A token must be for one of these (`aud`).
    pub audiences: Vec<String>,
    /// The file of its public keys. It is read again when it changes.
    pub jwks_file: PathBuf,
    /// How far its clock and this machine's may differ.
    pub skew: Duration,
}
