// SPDX-License-Identifier: Apache-2.0
//! Checks whether the relay is as closed as whoever configured it thinks.
//!
//! Owns the warning about listeners that let everybody in, and the error about tokens that decide nothing. What is allowed is said by
//! `rules`.

use super::Check;
use crate::config::{Config, Issuer};
use crate::json::Place;

/// Warns of listeners at which everybody is served. `places` are those of the addresses in the file.
pub(super) fn open(check: &mut Check, config: &Config, places: &[Option<Place>]) {
    if !config.access.is_empty() {
        return;
    }
    for (at, (listener, place)) in config.listeners.iter().zip(places).enumerate() {
        if listener.address.is_local() || listener.demands_identity() {
            continue;
        }
        let key = match place {
            Some(_) => format!("listeners[{at}]"),
            None => check.source("--listen").to_owned(),
        };
        let message = format!(
            "whoever reaches {} is served, because there are no `rules`, and it demands no identity; write `rules` (`rules: [{{ name: \
             everybody }}]` if all may have everything), `require: identity`, or `client_ca` into its `tls`",
            listener.address
        );
        check.warn(*place, &key, message);
    }
}

/// Reports issuers whose tokens decide nothing: whoever configured them believes that they do. After other problems, what seems to be
/// missing may be in what was not understood.
pub(super) fn unused(check: &mut Check, config: &Config, places: &[Place]) {
    let required = config.listeners.iter().any(|listener| listener.requires_identity);
    if required || check.problems() > 0 {
        return;
    }
    for (at, (issuer, place)) in config.issuers.iter().zip(places).enumerate() {
        if !config.identities().any(|fixed| is_named(issuer, &fixed)) {
            let name = &issuer.name;
            let message = format!(
                "its tokens decide nothing: no rule, class or rule of `admin` names them, and no listener has `require: identity`; write \
                 a rule with `identities: \"jwt:{name}#...\"`, or remove it"
            );
            check.at(*place, format!("jwt[{at}]"), message);
        }
    }
}

/// Whether a text with this beginning may be of a token of this issuer.
fn is_named(issuer: &Issuer, fixed: &str) -> bool {
    ["jwt", "claim"].into_iter().any(|word| {
        let own = format!("{word}:{}#", issuer.name);
        fixed.starts_with(&own) || own.starts_with(fixed)
    })
}
