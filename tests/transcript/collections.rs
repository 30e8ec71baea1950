// SPDX-License-Identifier: Apache-2.0
//! Endpoints in collections of their own (A95): what clients that read `LbEndpointCollection` are sent, and what other
//! clients are sent.

use crate::story::both;

/// B-30, F-14, K-02, K-04: the clusters' endpoints refer to a collection under another authority. The client
/// asks for it itself, and in SotW is answered in the wrapper. An empty collection is content like any other: the locality cannot
/// be reached. The relay asks for nothing because a body refers to it.
#[test]
fn a_client_that_reads_endpoint_collections() {
    both(
        "
        other put eds shop@1:leads=xdstp://a/LEDS_COLLECTION/shop/eu-1a
        other put leds_collection xdstp://a/LEDS_COLLECTION/shop/eu-1a@1 xdstp://a/LEDS_COLLECTION/shop/eu-1b@empty
        client can xds.endpoint.supports_lb_endpoint_collection xds.config.resource-in-sotw
        client upstream can xds.endpoint.supports_lb_endpoint_collection
        client subscribe eds shop
        client <- eds [shop@1], ack
        client wants eds shop
        client wants leds_collection
        nothing for 20s
        client subscribe leds_collection xdstp://a/LEDS_COLLECTION/shop/eu-1a
        sotw client <- leds_collection [xdstp://a/LEDS_COLLECTION/shop/eu-1a@1:wrapped], ack
        delta client <- leds_collection [xdstp://a/LEDS_COLLECTION/shop/eu-1a@1], ack
        client subscribe leds_collection xdstp://a/LEDS_COLLECTION/shop/eu-1b
        sotw client <- leds_collection [xdstp://a/LEDS_COLLECTION/shop/eu-1b@empty:wrapped], ack
        delta client <- leds_collection [xdstp://a/LEDS_COLLECTION/shop/eu-1b@empty], ack
        other put leds_collection xdstp://a/LEDS_COLLECTION/shop/eu-1a@empty xdstp://a/LEDS_COLLECTION/shop/eu-1b@2
        sotw client <- leds_collection [xdstp://a/LEDS_COLLECTION/shop/eu-1a@empty:wrapped xdstp://a/LEDS_COLLECTION/shop/eu-1b@2:wrapped], ack
        delta client <- leds_collection [xdstp://a/LEDS_COLLECTION/shop/eu-1a@empty xdstp://a/LEDS_COLLECTION/shop/eu-1b@2], ack
        client status leds_collection Synced
        client unsubscribe leds_collection xdstp://a/LEDS_COLLECTION/shop/eu-1a
        other put eds shop@2:leads=xdstp://a/LEDS_COLLECTION/shop/*
        client <- eds [shop@2], ack
        client wants leds_collection xdstp://a/LEDS_COLLECTION/shop/eu-1b
        ",
    );
}

/// K-04: clients that do not declare that they read collections have a view of their own, whose control plane is not told that
/// they do; neither class sees what the other is sent.
#[test]
fn who_does_not_read_them_has_another_view() {
    both(
        "
        origin put eds shop@endpoints
        other put eds shop@1:leads=xdstp://a/LEDS_COLLECTION/shop/eu-1a
        plain can xds.config.resource-in-sotw
        plain upstream cannot xds.endpoint.supports_lb_endpoint_collection
        plain subscribe eds shop
        plain <- eds [shop@endpoints], ack
        reader can xds.endpoint.supports_lb_endpoint_collection
        reader upstream can xds.endpoint.supports_lb_endpoint_collection
        reader subscribe eds shop
        reader <- eds [shop@1], ack
        other put eds shop@2
        reader <- eds [shop@2], ack
        nothing for 20s
        ",
    );
}

/// A-10, B-30, M-07: the name of a collection is only in the wrapper, so a SotW client that cannot read the wrapper is not sent
/// it.
#[test]
fn a_collection_needs_the_wrapper() {
    both(
        "
        other put leds_collection xdstp://a/LEDS_COLLECTION/shop/eu-1a@1
        client can xds.endpoint.supports_lb_endpoint_collection
        client subscribe leds_collection xdstp://a/LEDS_COLLECTION/shop/eu-1a
        client <- leds_collection sotw nothing | delta [xdstp://a/LEDS_COLLECTION/shop/eu-1a@1]
        delta client ack
        nothing for 20s
        ",
    );
}

/// A-08, B-29, C-25: a client that rejects a collection keeps what it had; the others are served, and the next content is sent.
#[test]
fn a_rejected_collection() {
    both(
        "
        other put leds_collection xdstp://a/LEDS_COLLECTION/z@bad
        first can xds.endpoint.supports_lb_endpoint_collection xds.config.resource-in-sotw
        second can xds.endpoint.supports_lb_endpoint_collection xds.config.resource-in-sotw
        first subscribe leds_collection xdstp://a/LEDS_COLLECTION/z
        sotw first <- leds_collection [xdstp://a/LEDS_COLLECTION/z@bad:wrapped], nack
        delta first <- leds_collection [xdstp://a/LEDS_COLLECTION/z@bad], nack
        second subscribe leds_collection xdstp://a/LEDS_COLLECTION/z
        sotw second <- leds_collection [xdstp://a/LEDS_COLLECTION/z@bad:wrapped], ack
        delta second <- leds_collection [xdstp://a/LEDS_COLLECTION/z@bad], ack
        nothing for 5s
        other put leds_collection xdstp://a/LEDS_COLLECTION/z@empty
        sotw first <- leds_collection [xdstp://a/LEDS_COLLECTION/z@empty:wrapped], ack
        delta first <- leds_collection [xdstp://a/LEDS_COLLECTION/z@empty], ack
        sotw second <- leds_collection [xdstp://a/LEDS_COLLECTION/z@empty:wrapped], ack
        delta second <- leds_collection [xdstp://a/LEDS_COLLECTION/z@empty], ack
        ",
    );
}
