//! The snapshots that other relays may begin with.
//!
//! Owns by what a snapshot is found, and what nobody is given who may not have secrets. Does not know who asks.

use std::sync::Arc;

use super::fleet::Fleet;
use super::plan;
use crate::admin::{Encode, Snapshots};
use crate::cache::{Scopes, View};
use crate::json::Schemas;
use crate::snapshot::{Choice, Identity, encoded};
use crate::xds::{Resource, TypeUrl};

/// What stands in place of a secret.
const REDACTED: &[u8] = b"[redacted]";

/// Returns what the relay knows, for others.
pub(super) fn snapshots(fleet: &Arc<Fleet>, scopes: &Arc<Scopes>, schemas: &Schemas) -> Snapshots {
    let (fleet, scopes, schemas) = (fleet.clone(), scopes.clone(), schemas.clone());
    Snapshots::new(move |secrets| {
        let views = scopes.all().into_iter();
        let encode = |view: Arc<View>| -> Option<Encode> {
            let of = identity(&fleet, &scopes, &view)?;
            let (kept, schemas) = (view.knowledge(plan::now()), schemas.clone());
            let any = !kept.is_empty();
            let encode = move || {
                let may = |type_url: &TypeUrl, one: &Resource| secrets || !hides(&schemas, type_url, one);
                encoded(&of, &kept.whole(), Choice { secrets, may: &may })
            };
            any.then(|| Box::new(encode) as Encode)
        };
        views.filter_map(encode).collect()
    })
}

/// Returns what the snapshot of a view is found by. The class of a rule that was changed or removed ends with its clients and has
/// no snapshot.
pub(super) fn identity(fleet: &Fleet, scopes: &Scopes, view: &View) -> Option<Identity> {
    let class = view.class();
    if class.rule.is_some() && scopes.rule(class).is_none() {
        return None;
    }
    Some(Identity {
        server: fleet.get(view.server())?.in_snapshots()?.to_owned(),
        class: plan::class(scopes, class),
    })
}

/// Whether a resource has a secret in it that nobody sees on the admin address, such as the private key of a listener. What cannot be
/// read, although its type is known, may have one.
fn hides(schemas: &Schemas, type_url: &TypeUrl, resource: &Resource) -> bool {
    let has = |bytes: &[u8]| bytes.windows(REDACTED.len()).any(|part| part == REDACTED);
    let body = resource.body();
    match schemas.redacted(type_url.url(), &body) {
        Some(shown) => has(&shown) && !has(&body),
        None => schemas.knows(type_url.url()),
    }
}
