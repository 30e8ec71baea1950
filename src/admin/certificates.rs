// SPDX-License-Identifier: Apache-2.0
//! The certificates in use, in the form of Envoy's `/certs`.
//!
//! Owns that form. Reads no certificates.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::clock::{WallClock, date_and_time};
use crate::tls::{Certificate, CertificateSet};

/// Returns one entry for each listener and control plane, and beside Envoy's form what is wrong with their files, if anything is.
pub(super) fn json(sets: &BTreeMap<String, CertificateSet>, clock: WallClock) -> Value {
    let all = |certificates: &[Certificate]| -> Vec<Value> {
        certificates.iter().map(|certificate| one(certificate, clock)).collect()
    };
    let certificates: Vec<Value> = sets
        .values()
        .map(|set| json!({ "ca_cert": all(&set.authorities), "cert_chain": all(&set.chain) }))
        .collect();
    let faults: BTreeMap<&String, &String> = sets
        .iter()
        .filter_map(|(name, set)| Some((name, set.fault.as_ref()?)))
        .collect();
    let mut answer = json!({ "certificates": certificates });
    if !faults.is_empty()
        && let Some(members) = answer.as_object_mut()
    {
        members.insert("faults".to_owned(), json!(faults));
    }
    answer
}

fn one(certificate: &Certificate, clock: WallClock) -> Value {
    let dns = certificate.dns_names.iter().map(|name| json!({ "dns": name }));
    let uri = certificate.uri_names.iter().map(|name| json!({ "uri": name }));
    json!({
        "path": certificate.path.display().to_string(),
        "serial_number": certificate.serial_number,
        "subject_alt_names": dns.chain(uri).collect::<Vec<_>>(),
        // As in all JSON of protobuf, large numbers are text.
        "days_until_expiration": clock.days_until(certificate.validity.until).to_string(),
        "valid_from": date_and_time(certificate.validity.from),
        "expiration_time": date_and_time(certificate.validity.until),
    })
}
