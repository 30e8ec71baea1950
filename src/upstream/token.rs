// SPDX-License-Identifier: Apache-2.0
//! The token that is sent with every call to one control plane (A97).
//!
//! Owns the token that was read last, which is used while its file is not good. Checks only a token's expiry, and never prints it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::HeaderValue;
use parking_lot::Mutex;
use serde::Deserialize;
use tonic::Status;

use super::clock::unix;
use crate::small_file;

/// The token of a control plane, shared by all streams to it.
#[derive(Debug)]
pub(super) struct ServerToken {
    path: PathBuf,
    kept: Mutex<Option<CachedToken>>,
}

/// A token that can be sent.
#[derive(Clone, Debug)]
struct CachedToken {
    /// Marked as sensitive, so that nothing prints it.
    header: HeaderValue,
    /// When it expires, since 1970.
    expires: Duration,
}

/// A token is not used this shortly before its expiry: clocks differ, and the call takes time.
const MARGIN: Duration = Duration::from_secs(30);
/// How long before a token can no longer be used its missing successor is a trouble.
const SOON: Duration = Duration::from_secs(60);
/// The largest token.
const BYTES_MAX: usize = 64 * 1024;

impl ServerToken {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            kept: Mutex::new(None),
        }
    }

    /// Returns the value of the `authorization` header, or the status with which the call fails. The file is read each time: the server may
    /// have refused the last token long before its end.
    pub(super) async fn header(&self) -> Result<HeaderValue, Status> {
        let now = unix();
        match self.read(now).await {
            Ok(new) => {
                *self.kept.lock() = Some(new.clone());
                Ok(new.header)
            }
            // The old token is valid for a while yet.
            Err(status) => match self.kept.lock().clone().filter(|kept| kept.lasts(now)) {
                Some(kept) => {
                    if !kept.lasts(now + SOON) {
                        tracing::warn!(path = %self.path.display(), error = status.message(), "no new token; using the old one");
                    }
                    Ok(kept.header)
                }
                None => Err(status),
            },
        }
    }

    async fn read(&self, now: Duration) -> Result<CachedToken, Status> {
        let text = small_file::text(self.path.clone(), BYTES_MAX).await;
        // A97: a file that cannot be read may be readable soon (UNAVAILABLE); an invalid token stays invalid (UNAUTHENTICATED).
        let text = text.map_err(|why| Status::unavailable(self.words(&format!("cannot be read: {why}"))))?;
        let invalid = |why: &str| Status::unauthenticated(self.words(why));
        let token = text.trim();
        let expires = expiry(token).ok_or_else(|| invalid("is not a JWT with an expiry (`exp`)"))?;
        let mut header = HeaderValue::try_from(format!("Bearer {token}"))
            .map_err(|_| invalid("has characters that are not allowed in an HTTP header"))?;
        header.set_sensitive(true);
        let kept = CachedToken { header, expires };
        if kept.lasts(now) {
            return Ok(kept);
        }
        Err(invalid(&match now.checked_sub(expires) {
            Some(ago) => format!("expired {} s ago", ago.as_secs()),
            None => format!("expires in less than {} s", MARGIN.as_secs()),
        }))
    }

    fn words(&self, why: &str) -> String {
        format!("the token in {} {why}", self.path.display())
    }
}

impl CachedToken {
    fn lasts(&self, now: Duration) -> bool {
        now + MARGIN < self.expires
    }
}

/// Returns when the token expires, since 1970. The server checks everything else.
fn expiry(token: &str) -> Option<Duration> {
    #[derive(Deserialize)]
    struct Claims {
        exp: f64,
    }
    let mut parts = token.split('.');
    let (_, claims, _, None) = (parts.next()?, parts.next()?, parts.next()?, parts.next()) else {
        return None;
    };
    let claims = BASE64_URL_SAFE_NO_PAD.decode(claims).ok()?;
    let claims: Claims = serde_json::from_slice(&claims).ok()?;
    Duration::try_from_secs_f64(claims.exp).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(claims: &str) -> String {
        format!("e30.{}.c2ln", BASE64_URL_SAFE_NO_PAD.encode(claims))
    }

    fn file(name: &str, text: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("distributary-token-{name}-{}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn only_the_expiry_is_read() {
        assert_eq!(expiry(&token(r#"{"exp":5,"sub":"x"}"#)), Some(Duration::from_secs(5)));
        assert_eq!(expiry(&token(r#"{"exp":5.5}"#)), Some(Duration::from_millis(5500)));
        for claims in ["", "{}", "5", r#"{"exp":"5"}"#, r#"{"exp":-1}"#, r#"{"exp":1e300}"#] {
            assert_eq!(expiry(&token(claims)), None, "{claims}");
        }
        for bad in ["", "a.b", "a.!!.c", "a.e30.c", &format!("{}.d", token(r#"{"exp":5}"#))] {
            assert_eq!(expiry(bad), None, "{bad}");
        }
    }

    /// A97: a token is kept while it is valid, whatever happens to the file. A new one is used at once: the server may have refused the old
    /// one. An expired or missing token is an error, which does not contain the token.
    #[tokio::test]
    async fn a_token_is_kept_until_there_is_another() {
        let lasting = |seconds: u64| token(&format!(r#"{{"exp":{}}}"#, unix().as_secs() + seconds));
        let path = file("kept", &format!("{}\n", lasting(3600)));
        let kept = ServerToken::new(&path);
        let first = kept.header().await.unwrap();
        assert!(first.is_sensitive());
        assert_eq!(
            first,
            format!("Bearer {}", std::fs::read_to_string(&path).unwrap().trim())
        );
        for bad in ["", "secret", &lasting(20)] {
            std::fs::write(&path, bad).unwrap();
            assert_eq!(kept.header().await.unwrap(), first);
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(kept.header().await.unwrap(), first);
        std::fs::write(&path, lasting(1800)).unwrap();
        assert_ne!(kept.header().await.unwrap(), first, "although the old one lasts longer");

        for (text, code, said) in [
            (lasting(20), tonic::Code::Unauthenticated, "expires in less than 30 s"),
            (token(r#"{"exp":5}"#), tonic::Code::Unauthenticated, "expired "),
            ("secret".to_owned(), tonic::Code::Unauthenticated, "is not a JWT"),
            (" ".repeat(70_000), tonic::Code::Unavailable, "more than 65536 bytes"),
        ] {
            std::fs::write(&path, &text).unwrap();
            let status = ServerToken::new(&path).header().await.unwrap_err();
            assert_eq!(status.code(), code, "{status:?}");
            assert!(status.message().contains(said), "{status:?}");
            assert!(
                !format!("{status:?}").contains(text.trim()) || text.trim().is_empty(),
                "{status:?}"
            );
        }
        std::fs::remove_file(&path).unwrap();
        let status = ServerToken::new(&path).header().await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::Unavailable);
        let folder = ServerToken::new(&std::env::temp_dir()).header().await.unwrap_err();
        assert!(folder.message().contains("not a regular file"), "{folder:?}");
        assert!(!format!("{kept:?}").contains("e30."), "nothing prints a token");
    }
}
