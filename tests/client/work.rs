// SPDX-License-Identifier: Apache-2.0
//! How long the machine takes where each of many names has to do with each of many others. Run with
//! `cargo test --release --test client -- --ignored --nocapture work`.

#![expect(clippy::print_stdout, reason = "figures for people")]

use std::time::{Duration, Instant};

use proto::envoy::service::discovery::v3::{DeltaDiscoveryResponse, Resource, ResourceError, ResourceName};
use proto::google::rpc::Status;
use xds::Dialect;

use crate::{EDS, Upstream, VHDS, resource};

const MANY: usize = 10_000;
/// The most aliases of one resource.
const ALIASES: usize = 4096;
const PREFIX: &str = "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment";

fn texts(count: usize, text: impl Fn(usize) -> String) -> Vec<String> {
    (0..count).map(text).collect()
}

/// Prints how long a step takes.
#[expect(clippy::disallowed_methods, reason = "a figure")]
fn timed(what: &str, step: impl FnOnce()) {
    let begun = Instant::now();
    step();
    println!("{what}: {:.1?}", begun.elapsed());
}

/// A machine that has asked for these names.
fn asking(type_url: &str, names: &[String]) -> Upstream {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Upstream::streaming(Dialect::Delta, type_url, &names)
}

fn want_all(upstream: &mut Upstream, type_url: &str, names: &[String]) {
    names.iter().for_each(|name| upstream.want(type_url, name));
}

fn unwant_all(upstream: &mut Upstream, type_url: &str, names: &[String]) {
    names.iter().for_each(|name| upstream.unwant(type_url, name));
}

/// A response with these resources, which have this content.
fn response(type_url: &str, names: &[String], content: &str) -> DeltaDiscoveryResponse {
    DeltaDiscoveryResponse {
        type_url: type_url.to_owned(),
        nonce: content.to_owned(),
        resources: names.iter().map(|name| resource(type_url, name, content)).collect(),
        ..DeltaDiscoveryResponse::default()
    }
}

/// A response with an error of each of these names.
fn errors(names: &[String]) -> DeltaDiscoveryResponse {
    let error = |name: &String| ResourceError {
        resource_name: Some(ResourceName {
            name: name.clone(),
            ..ResourceName::default()
        }),
        error_detail: Some(Status {
            code: 14,
            ..Status::default()
        }),
    };
    DeltaDiscoveryResponse {
        resource_errors: names.iter().map(error).collect(),
        ..response(EDS, &[], "1")
    }
}

/// Prints how long each step takes.
#[test]
#[ignore = "prints figures"]
fn names_that_have_to_do_with_each_other() {
    let names = texts(MANY, |n| format!("{PREFIX}/n{n:06}"));
    let respelled = texts(MANY, |n| format!("{PREFIX}/%6e{n:06}"));

    let mut upstream = Upstream::new(Dialect::Sotw);
    upstream.client.handle_no_delta("it says so");
    timed("names of a type that is not served", || {
        want_all(&mut upstream, VHDS, &names)
    });

    let mut upstream = asking(EDS, &names);
    want_all(&mut upstream, EDS, &respelled);
    timed("names with new spellings are given up", || {
        unwant_all(&mut upstream, EDS, &names)
    });

    let mut upstream = asking(EDS, &names);
    want_all(&mut upstream, EDS, &respelled);
    upstream.hears(response(EDS, &names, "1"));
    let message = DeltaDiscoveryResponse {
        removed_resources: texts(MANY, |n| format!("{PREFIX}/r{n:06}")),
        ..response(EDS, &respelled, "2")
    };
    timed("resources in other spellings beside removed ones", || {
        upstream.hears(message)
    });

    let collections = texts(MANY, |n| format!("{PREFIX}/{n:06}/*"));
    let mut upstream = asking(EDS, &[&names[..], &collections].concat());
    upstream.hears(errors(&names));
    timed("collections are given up beside names with errors", || {
        unwant_all(&mut upstream, EDS, &collections)
    });

    let mut upstream = asking(EDS, &collections);
    upstream.hears(response(EDS, &texts(MANY, |n| format!("{PREFIX}/{n:06}/m")), "1"));
    timed("names beside collections that are not complete", || {
        want_all(&mut upstream, EDS, &names)
    });

    let aliases = texts(ALIASES, |n| format!("alias-{n:06}"));
    let mut upstream = asking(VHDS, &aliases);
    let one = Resource {
        aliases: aliases.clone(),
        ..resource(VHDS, "one", "1")
    };
    upstream.hears(DeltaDiscoveryResponse {
        resources: vec![one],
        ..response(VHDS, &[], "1")
    });
    timed("aliases are given up", || unwant_all(&mut upstream, VHDS, &aliases));
    collections_of_one_directory();
}

/// Many collections differ only in their parameters.
fn collections_of_one_directory() {
    let collections = texts(MANY, |n| format!("{PREFIX}/d/*?x={n:06}"));
    let members = texts(MANY, |n| format!("{PREFIX}/d/m{n:06}?y=1"));
    let mut upstream = asking(EDS, &[&collections[..], &[format!("{PREFIX}/d/*?y=1")]].concat());
    timed("members of one of them", || {
        upstream.hears(response(EDS, &members, "1"))
    });
    let removed = DeltaDiscoveryResponse {
        removed_resources: collections.clone(),
        ..response(EDS, &[], "2")
    };
    timed("the others do not exist", || upstream.hears(removed));
    upstream.disconnect();
    timed("a stream begins", || upstream.connect());
    timed("its requests", || drop(upstream.sent()));
    timed("nothing is answered", || upstream.pass(Duration::from_secs(20)));
    timed("all are given up", || unwant_all(&mut upstream, EDS, &collections));
}
