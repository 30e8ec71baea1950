// SPDX-License-Identifier: Apache-2.0
//! The credential files that the relay uses towards a control plane for one class of clients.
//!
//! Owns how values of a class's key become parts of paths, and which values may. Does not read the files.

use std::path::PathBuf;

use super::rules::Piece;
use super::selector::Selector;

/// The paths of a rule, which contain values of its key.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Credentials {
    /// The file of the certificate, and that of its key.
    pub identity: Option<(Vec<Piece>, Vec<Piece>)>,
    /// The file of the token.
    pub token: Option<Vec<Piece>>,
}

/// The files of one class. Where there is none, the one that all classes share is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CredentialFiles {
    /// The file of the certificate, and that of its key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The file of the token.
    pub token: Option<PathBuf>,
}

/// A client's value cannot be a part of a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{field}` of the client {why}, but the paths in the `credentials` of its class contain this value; \
     give the client a value that can be the name of a file"
)]
pub struct Unfit {
    /// The field of the key.
    pub field: String,
    /// What is wrong with its value.
    pub why: &'static str,
}

impl Credentials {
    /// Returns the positions of the values that are parts of the paths.
    pub fn values(&self) -> impl Iterator<Item = usize> {
        let paths = self.identity.iter().flat_map(|(certificate, key)| [certificate, key]);
        let pieces = paths.chain(&self.token).flatten();
        pieces.filter_map(Piece::value)
    }

    /// Returns the files for these values of the key.
    ///
    /// # Errors
    ///
    /// A value in a path cannot be the name of a file: a client must not choose the directory.
    pub fn files(&self, key: &[Selector], values: &[String]) -> Result<CredentialFiles, Unfit> {
        let path = |pieces: &Vec<Piece>| {
            for at in pieces.iter().filter_map(Piece::value) {
                if let Some(why) = fault(values.get(at).map_or("", String::as_str)) {
                    let field = key.get(at).map(Selector::to_string).unwrap_or_default();
                    return Err(Unfit { field, why });
                }
            }
            Ok(PathBuf::from(Piece::fill(pieces, values)))
        };
        let identity = self.identity.as_ref();
        let identity = identity.map(|(certificate, key)| Ok((path(certificate)?, path(key)?)));
        Ok(CredentialFiles {
            identity: identity.transpose()?,
            token: self.token.as_ref().map(path).transpose()?,
        })
    }
}

/// Returns why a text cannot be the name of a file.
fn fault(value: &str) -> Option<&'static str> {
    if value.is_empty() {
        Some("is empty")
    } else if matches!(value, "." | "..") {
        Some("is the name of a directory")
    } else if value.contains('/') {
        Some("contains `/`")
    } else if value.chars().any(char::is_control) {
        Some("contains a control character")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Piece {
        Piece::Text(text.to_owned())
    }

    fn credentials() -> Credentials {
        Credentials {
            identity: Some((
                vec![text("/certs/"), Piece::Key(1), text("/cert.pem")],
                vec![text("/certs/"), Piece::Key(1), text("/key.pem")],
            )),
            token: Some(vec![text("/tokens/"), Piece::Key(1)]),
        }
    }

    /// K-29: a value of the key becomes a part of a path.
    #[test]
    fn values_stand_in_paths() {
        let key = [Selector::Id, Selector::Cluster];
        let files = credentials().files(&key, &["../x".to_owned(), "team-ä b".to_owned()]);
        let files = files.unwrap();
        let identity = files.identity.unwrap();
        assert_eq!(identity.0, PathBuf::from("/certs/team-ä b/cert.pem"));
        assert_eq!(identity.1, PathBuf::from("/certs/team-ä b/key.pem"));
        assert_eq!(files.token, Some(PathBuf::from("/tokens/team-ä b")));
    }

    /// K-29: no client chooses another directory.
    #[test]
    fn a_value_is_one_component() {
        let key = [Selector::Id, Selector::Cluster];
        for bad in [
            "", ".", "..", "/", "a/b", "../a", "a/", "a\0", "a\n", "\u{7f}", "\u{85}",
        ] {
            let refused = credentials().files(&key, &["n".to_owned(), bad.to_owned()]);
            let refused = refused.unwrap_err();
            assert_eq!(refused.field, "cluster", "{bad:?}");
            assert!(!refused.to_string().chars().any(char::is_control), "{bad:?}");
        }
        for good in ["...", "a.b", ".hidden", "a\\b", "*", "~", "%2f"] {
            let taken = credentials().files(&key, &["n".to_owned(), good.to_owned()]);
            assert!(taken.is_ok(), "{good}");
        }
        let missing = credentials().files(&key, &[]);
        assert!(missing.is_err());
    }
}
