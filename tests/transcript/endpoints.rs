// SPDX-License-Identifier: Apache-2.0
//! Endpoints after their clusters: what a warming client waits for.

use crate::story::{EVERYTHING, stories};

stories! {
    /// K-13, B-14, L-11, M-01: a changed cluster waits for its endpoints again, even the same ones; so they follow at once, and do
    /// not wait for the acknowledgement of the cluster.
    a_changed_cluster_is_followed_by_its_endpoints for (asked, error, absent) in EVERYTHING => both "
        origin put cds s@1 x@1:eds y@1:eds=service, put eds x@1 service@1
        client gets cds {asked} sotw [s@1 x@1 y@1]{error} | delta [s@1 x@1 y@1]{absent}
        client gets eds x service [service@1 x@1]
        origin put cds x@2:eds
        client <- cds sotw [s@1 x@2 y@1] | delta [x@2]
        client <- eds [x@1]
        client ack
        nothing
        origin put cds y@2:eds=service
        client <- cds sotw [s@1 x@2 y@2] | delta [y@2]
        client <- eds [service@1]
        client ack
        nothing
        origin put cds s@2
        client <- cds sotw [s@2 x@2 y@2] | delta [s@2], ack
    ";

    /// K-13: a cluster that the client rejected and gets again, repaired, is followed by its endpoints, too.
    endpoints_follow_a_repaired_cluster for (asked, error, absent) in EVERYTHING => both "
        origin put cds x@1:eds, put eds x@1
        client gets cds {asked} sotw [x@1]{error} | delta [x@1]{absent}
        client gets eds x [x@1]
        origin put cds x@bad:eds
        client <- cds [x@bad]
        client <- eds [x@1], ack
        client nack cds
        nothing for 5s
        origin put cds x@good:eds
        client <- cds [x@good]
        client <- eds [x@1]
        client ack
    ";

    /// K-13: after a rejected full state the client may have none of its clusters, so their endpoints follow the next one.
    endpoints_follow_all_clusters_of_a_rejected_state for (asked, error, _) in EVERYTHING => sotw "
        origin put cds a@1:eds b@1, put eds a@1
        client gets cds {asked} [a@1 b@1]{error}
        client gets eds a [a@1]
        origin put cds a@2:eds b@bad
        client <- cds [a@2 b@bad]
        client <- eds [a@1], ack
        client nack cds
        client <- cds [a@2 b@1]
        client <- eds [a@1], ack
        client ack cds
        nothing for 2s
        origin put cds b@good
        client <- cds [a@2 b@good], ack
    ";

    /// K-13, L-12: endpoints that were sent before the clusters of a new stream are sent once more after them.
    endpoints_before_clusters_on_a_new_stream => both "
        client has cds * [x@1:eds]
        client has eds x [x@1]
        client reconnects
        origin put cds x@2:eds
        client subscribe eds
        client <- eds [x@1]
        client subscribe cds
        client <- cds [x@2]
        client ack eds
        client <- eds [x@1]
        client ack
    ";

    /// D-04: after new clusters, resources that refer to them wait until the endpoints are sent, if the client is about to ask for
    /// those.
    listeners_wait_for_the_endpoints_of_new_clusters => both "
        origin put cds x@1:eds, put eds x@1, put lds l@1
        client stalls
        client subscribe cds *
        client subscribe lds *
        client reads
        client <- cds [x@1]
        nothing for 1s
        client subscribe eds x
        client <- eds [x@1]
        client <- lds [l@1]
        client ack
        client gates 0
    ";

    /// D-02: clusters and endpoints of the second version of the API belong together as well.
    the_second_version_keeps_the_order => both "
        client has cds_v2 * [x@1:eds]
        client has eds_v2 x [x@1]
        origin put cds_v2 x@2:eds
        client <- cds_v2 [x@2]
        client <- eds_v2 [x@1]
        client ack
    ";

    /// C-15, C-28, K-13: endpoints that do not exist are reported as removed again after their cluster has changed: that ends the
    /// client's wait.
    a_changed_cluster_without_endpoints => delta "
        client has cds * [x@1:eds]
        client gets eds x -[x]
        origin put cds x@2:eds
        client <- cds [x@2]
        client <- eds -[x]
        client ack
    ";

    /// K-13, B-18: endpoints that are gone while their cluster changes are sent once more when they are back, even with the same
    /// content: in SotW nothing else ends the wait of a client.
    a_changed_cluster_whose_endpoints_come_back => sotw "
        client has cds * [x@1:eds]
        client has eds x [x@1]
        origin drop eds x
        client <- eds ![x=5], ack
        origin put cds x@2:eds
        client <- cds [x@2], ack
        nothing for 5s
        origin put eds x@1
        client <- eds [x@1], ack
    ";
}
