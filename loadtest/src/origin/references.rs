// SPDX-License-Identifier: Apache-2.0
//! The references of a resource that this program did not make, read from its bytes: the names that Envoy and gRPC clients ask
//! for next. Knows field numbers of the public API.

use crate::wire;
use crate::wire::kind::Kind;

/// Cluster.type: EDS.
const EDS: u64 = 3;
/// The path from a filter to the name of its routes: typed_config, value, HttpConnectionManager.rds, route_config_name.
const MANAGER: [u32; 4] = [4, 2, 3, 2];
const FILTERS: [&[u32]; 2] = [&[3, 3], &[25, 3]];
const API_LISTENER: [u32; 5] = [19, 1, 2, 3, 2];
/// The paths from a virtual host to the clusters of its routes: plain, and weighted.
const CLUSTERS: [&[u32]; 2] = [&[3, 2, 1], &[3, 2, 3, 1, 1]];

/// Returns the names in a body of the type that this type [leads](Kind::leads) to.
pub(crate) fn of(kind: Kind, body: &[u8]) -> Vec<Box<[u8]>> {
    let mut found = Vec::new();
    match kind.leads() {
        Some(Kind::Eds | Kind::EdsV2) if wire::number(body, 2) == Some(EDS) => {
            walk(body, &[3, 2], &mut found);
            if found.is_empty() {
                walk(body, &[1], &mut found);
            }
        }
        Some(Kind::Rds | Kind::RdsV2) => {
            for filters in FILTERS {
                walk(body, &[filters, &MANAGER].concat(), &mut found);
            }
            walk(body, &API_LISTENER, &mut found);
        }
        Some(Kind::Cds | Kind::CdsV2) => {
            let hosts: &[u32] = if kind == Kind::Vhds { &[] } else { &[2] };
            for clusters in CLUSTERS {
                walk(body, &[hosts, clusters].concat(), &mut found);
            }
        }
        Some(_) | None => {}
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Finds every field at the end of this path of field numbers.
fn walk(message: &[u8], way: &[u32], found: &mut Vec<Box<[u8]>>) {
    match way.split_first() {
        None if !message.is_empty() => found.push(message.into()),
        None => {}
        Some((first, rest)) => wire::fields(message, |number, payload| {
            if number == *first {
                walk(payload, rest, found);
            }
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::shape::Body;

    #[test]
    fn what_the_control_plane_says_is_found() {
        let refers = ["one".to_owned(), "two".to_owned()];
        let found = |kind, refers: &[String]| {
            let body = Body {
                kind,
                name: "own",
                refers,
                seed: 1,
                bytes: 400,
            };
            let names = of(kind, &body.encode()).into_iter();
            names
                .map(|name| String::from_utf8(name.into_vec()).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(found(Kind::Rds, &refers), refers);
        assert_eq!(found(Kind::Lds, &refers[..1]), ["one"]);
        assert_eq!(found(Kind::Cds, &refers[..1]), ["own"]);
        assert_eq!(found(Kind::Cds, &[]), Vec::<String>::new());
        assert_eq!(found(Kind::Eds, &[]), Vec::<String>::new());
    }
}
