// SPDX-License-Identifier: Apache-2.0
//! Endpoints in collections of their own (A95): what clients that read `LbEndpointCollection` are sent, and what other
//! clients are sent.

use crate::story::stories;

stories! {
    /// B-30, F-14, K-02, K-04: the clusters' endpoints refer to a collection under another authority. The client
    /// asks for it itself, and in SotW is answered in the wrapper. An empty collection is content like any other: the locality cannot
    /// be reached. The relay asks for nothing because a body refers to it.
    a_client_that_reads_endpoint_collections => both "
        other put eds shop@1:leads=xdstp://a/LEDS_COLLECTION/shop/eu-1a
        other put leds_collection xdstp://a/LEDS_COLLECTION/shop/eu-1a@1 xdstp://a/LEDS_COLLECTION/shop/eu-1b@empty
        client can xds.endpoint.supports_lb_endpoint_collection xds.config.resource-in-sotw
        client upstream can xds.endpoint.supports_lb_endpoint_collection
        client gets eds shop [shop@1]
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
    ";
}
