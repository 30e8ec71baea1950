// SPDX-License-Identifier: Apache-2.0
//! The snapshots that other relays may begin with.
//!
//! Owns by what a snapshot is found, and what nobody is given who may not have secrets. Does not know who asks.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use super::fleet::Fleet;
use super::plan;
use crate::admin::{Give, Pace, Snapshots};
use crate::cache::{Scopes, View};
use crate::json::Schemas;
use crate::snapshot::{Choice, SnapshotIdentity, give};
use crate::xds::{Resource, TypeUrl};

/// What stands in place of a secret.
const REDACTED: &[u8] = b"[redacted]";

/// Returns what the relay knows, for others.
pub(super) fn snapshots(fleet: &Arc<Fleet>, scopes: &Arc<Scopes>, schemas: &Schemas) -> Snapshots {
    let (fleet, scopes, schemas) = (fleet.clone(), scopes.clone(), schemas.clone());
    Snapshots::new(Pace::default(), move |secrets| {
        let views = scopes.all().into_iter();
        let one = |view: Arc<View>| -> Option<Give> {
            let of = identity(&fleet, &scopes, &view)?;
            let (kept, schemas) = (view.knowledge(plan::now()), schemas.clone());
            let any = !kept.is_empty();
            let write = move |into: &mut dyn Write| {
                // Each resource is looked at once, although it is asked for more often.
                let known = RefCell::new(HashMap::new());
                let may = |type_url: &TypeUrl, one: &Resource| {
                    let of = std::ptr::from_ref(one);
                    secrets
                        || !*known
                            .borrow_mut()
                            .entry(of)
                            .or_insert_with(|| hides(&schemas, type_url, one))
                };
                give(&mut &mut *into, &of, &kept.whole(), Choice { secrets, may: &may })
            };
            any.then(|| Box::new(write) as Give)
        };
        views.filter_map(one).collect()
    })
}

/// Returns what the snapshot of a view is found by. The class of a rule that was changed or removed ends with its clients and has
/// no snapshot.
pub(super) fn identity(fleet: &Fleet, scopes: &Scopes, view: &View) -> Option<SnapshotIdentity> {
    let class = view.class();
    if class.rule.is_some() && scopes.rule(class).is_none() {
        return None;
    }
    Some(SnapshotIdentity {
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
