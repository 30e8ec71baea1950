// SPDX-License-Identifier: Apache-2.0
//! Validates `snapshot`: where what is known is written, how often, and which relays are asked for theirs.

use super::check::text;
use super::server::channel_tls;
use super::{Check, paths};
use crate::config::reading::Spanned;
use crate::config::uri::Located;
use crate::config::{Credentials, Endpoint, NeighbourSettings, Snapshot, Tls, shape};

pub(super) fn snapshot(check: &mut Check, given: Option<Spanned<shape::Snapshot>>) -> Option<Snapshot> {
    let Spanned { value: given, place } = given?;
    if given.dir.is_none() && given.from.is_none() {
        let message = "it says neither where to write nor whom to ask; write `dir`, `from` or both";
        check.at(place, "snapshot", message);
    }
    let empty = "it is empty; write a directory such as /var/lib/distributary";
    let dir = paths::read(check, "snapshot.dir", given.dir.as_ref(), text(empty));
    let include_secrets = given.include_secrets;
    let from = neighbours(check, &given, include_secrets);
    Some(Snapshot {
        dir,
        from,
        interval: given.interval,
        include_secrets,
    })
}

fn neighbours(check: &mut Check, given: &shape::Snapshot, secrets: bool) -> Vec<NeighbourSettings> {
    let tls = given.tls.as_ref();
    let settings = tls.and_then(|tls| channel_tls(check, "snapshot.tls", &tls.value));
    let settings = settings.unwrap_or_default();
    let texts = given.from.iter().flat_map(|from| &from.value.0);
    let mut from = Vec::new();
    for text in texts {
        let Some(neighbour) = check.read("snapshot.from", Some(text), |uri| neighbour(uri, &settings)) else {
            continue;
        };
        if secrets && neighbour.credentials == Credentials::Insecure {
            let message = "include_secrets: keys and certificates come over TLS only; write https:// to have them too";
            check.warn(text.place, "snapshot.from", message);
        }
        from.push(neighbour);
    }
    let secure = |neighbour: &NeighbourSettings| neighbour.credentials != Credentials::Insecure;
    if let Some(tls) = tls.filter(|_| !from.iter().any(secure)) {
        let message = "no relay in `from` is asked over TLS; write https:// there, or remove it";
        check.at(tls.place, "snapshot.tls", message);
    }
    from
}

/// Reads the URL of an admin address.
fn neighbour(uri: &str, tls: &Tls) -> Result<NeighbourSettings, String> {
    let wrong =
        || format!("`{uri}` is not an admin address; write https://relay-headless:9901, or http:// without TLS");
    match Located::parse(uri) {
        Ok(Located::Grpc {
            endpoint: endpoint @ Endpoint::Tcp { .. },
            tls: Some(secure),
        }) => Ok(NeighbourSettings {
            uri: uri.to_owned(),
            endpoint,
            credentials: match secure {
                true => Credentials::Tls(tls.clone()),
                false => Credentials::Insecure,
            },
        }),
        Ok(_) | Err(_) => Err(wrong()),
    }
}
