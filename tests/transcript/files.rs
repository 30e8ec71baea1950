// SPDX-License-Identifier: Apache-2.0
//! Files as a source: how they change, and what clients are sent then.

use crate::story::{both, delta};

/// I-01, I-05, I-06: whatever happens to a file, its good content stays, no client is sent anything, and the fault is shown. Once
/// the file is good again, exactly what differs is sent, by content and not by the version in the file.
#[test]
fn torn_and_bad() {
    both(
        "
        files put a.yaml cds a@1 b@1
        client moves files
        client subscribe cds *
        client <- cds [a@1 b@1], ack
        files are good
        files tear a.yaml
        nothing
        files say a.yaml:
        files text a.yaml {}
        nothing
        files say a.yaml:1:1: is empty; write `resources: []` for no resources
        files text a.yaml [{'@type': acme.Nobody, name: a}]
        nothing
        files say acme.Nobody
        files text a.yaml [{'@type': type.googleapis.com/envoy.config.cluster.v3.Cluster, nme: a}]
        nothing
        files say a.yaml:1:65: [0]: envoy.config.cluster.v3.Cluster has no field `nme`; did you mean `name`?
        files put a.yaml cds b@1 a@1
        nothing
        files are good
        files put a.yaml cds a@2 b@1
        client <- cds sotw [a@2 b@1] | delta [a@2], ack
        files text a.yaml {version_info: '7', resources: []}
        client <- cds sotw [] | delta -[a b], ack
        files are good
        ",
    );
}

/// I-06: a file is a full state: what is not in it does not exist, even for types that have no full states.
#[test]
fn what_is_not_there_does_not_exist() {
    delta(
        "
        files put a.yaml cds a@1
        client moves files
        client subscribe eds e
        client <- eds -[e], ack
        client subscribe cds a x
        client <- cds [a@1] -[x], ack
        files put a.yaml cds x@1
        client <- cds [x@1], ack
        client <- cds -[a], ack
        ",
    );
}

/// G-20: as long as one file was never good, missing resources may be in it: SotW clients wait for all of it, and nothing is
/// reported as missing.
#[test]
fn a_part_is_not_the_whole() {
    both(
        "
        files text b.yaml broken: [
        files put a.yaml cds a@1
        client moves files
        client subscribe cds *
        client <- cds sotw nothing | delta [a@1]
        delta client ack
        nothing
        files put b.yaml cds b@1
        client <- cds sotw [a@1 b@1] | delta [b@1], ack
        files text b.yaml broken: [
        nothing
        ",
    );
}

/// I-04: the swap of a mounted ConfigMap is one change, even if a symlink has no target in between; what is the same is not sent.
#[test]
fn swapped() {
    both(
        "
        files mount ..1 a.yaml cds a@1 c@1, b.yaml cds b@1
        client moves files
        client subscribe cds *
        client <- cds [a@1 b@1 c@1], ack
        files mount ..2 a.yaml cds a@2 c@1, b.yaml cds b@2
        client <- cds sotw [a@2 b@2 c@1] | delta [a@2 b@2], ack
        files mount ..3 a.yaml cds a@2 c@1, b.yaml cds b@2
        nothing
        files mount ..4 a.yaml cds a@2
        client <- cds sotw [a@2 b@2] | delta -[c], ack
        files say b.yaml: No such file
        files remove b.yaml
        client <- cds sotw [a@2] | delta -[b], ack
        files are good
        ",
    );
}

/// I-02, I-03: content that moves to another file of the source is no change. A file that is moved out of the source takes its
/// resources with it, and brings them back.
#[test]
fn moved() {
    both(
        "
        files put a.yaml cds a@1
        files put b.yaml cds b@1
        client moves files
        client subscribe cds *
        client <- cds [a@1 b@1], ack
        files rename a.yaml z.yml
        nothing
        files rename z.yml z.yml~
        client <- cds sotw [b@1] | delta -[a], ack
        files rename z.yml~ .z.yml
        nothing
        files rename .z.yml a.yaml
        client <- cds sotw [a@1 b@1] | delta [a@1], ack
        files rename a.yaml b.yaml
        client <- cds sotw [a@1] | delta -[b], ack
        ",
    );
}

/// I-05: a file that leaves a directory takes its resources with it. An empty directory does not, nor does the only file of a
/// source.
#[test]
fn deleted() {
    both(
        "
        files put a.yaml cds a@1
        files put b.yaml cds b@1
        client moves files
        client subscribe cds *
        client <- cds [a@1 b@1], ack
        files remove a.yaml
        client <- cds sotw [b@1] | delta -[a], ack
        files remove b.yaml
        nothing
        files say no file in it ends in .yaml
        client reconnects
        client subscribe cds
        client <- cds sotw [b@1] | delta [], ack
        nothing
        files put c.yaml cds c@1
        client <- cds [c@1], ack
        delta client <- cds -[b], ack
        ",
    );
    both(
        "
        files only a.yaml
        files put a.yaml cds a@1 b@1
        client moves files
        client subscribe cds *
        client <- cds [a@1 b@1], ack
        files remove a.yaml
        nothing
        files say a.yaml: No such file
        files put a.yaml cds a@2
        client <- cds [a@2], ack
        delta client <- cds -[b], ack
        files are good
        ",
    );
}

/// E-12: a name that two files have with different content keeps its content, and both places are named. If the name is new,
/// neither content counts. The same content twice is no fault, and one of the two may go.
#[test]
fn duplicated() {
    both(
        "
        files put 1.yaml cds a@1 b@1
        files put 2.yaml cds c@1
        client moves files
        client subscribe cds *
        client <- cds [a@1 b@1 c@1], ack
        files put 2.yaml cds c@1 a@2 d@1
        client <- cds sotw [a@1 b@1 c@1 d@1] | delta [d@1], ack
        files say `a` is already in
        files put 2.yaml cds c@1 a@1 d@1
        nothing
        files are good
        files put 1.yaml cds b@1
        nothing
        files put 3.yaml cds n@1
        client <- cds sotw [a@1 b@1 c@1 d@1 n@1] | delta [n@1], ack
        files put 4.yaml cds n@2
        nothing
        files say 4.yaml:2:3: envoy.config.cluster.v3.Cluster `n` is already in
        files remove 3.yaml
        client <- cds sotw [a@1 b@1 c@1 d@1 n@2] | delta [n@2], ack
        files put 1.yaml cds b@1 b@2
        nothing
        files say 1.yaml:3:3: envoy.config.cluster.v3.Cluster `b` is already in
        ",
    );
}

/// I-05: a file over the size limit of a source is not read, and its old content stays; the other files go on.
#[test]
fn huge() {
    both(
        "
        files put 1.yaml cds a@1
        files put 2.yaml cds b@1
        client moves files
        client subscribe cds *
        client <- cds [a@1 b@1], ack
        files fill 2.yaml
        nothing
        files say limits.upstream_message
        files put 1.yaml cds a@2
        client <- cds sotw [a@2 b@1] | delta [a@2], ack
        files put 2.yaml cds b@2
        client <- cds sotw [a@2 b@2] | delta [b@2], ack
        files are good
        ",
    );
}

/// E-11, K-17: a time to live runs from the moment when its file was read, each time the file is put there. The remaining time is
/// passed on, and at its end the resource is gone, although it is still in the file.
#[test]
fn a_time_to_live() {
    both(
        "
        files put a.yaml cds a@1:ttl=10s b@1
        client can xds.config.supports-resource-ttl xds.config.resource-in-sotw
        client moves files
        client subscribe cds *
        client <- cds sotw [a@1:ttl=10s:wrapped b@1] | delta [a@1:ttl=10s b@1], ack
        wait 4s
        second moves files
        second subscribe cds *
        second <- cds [a@1 b@1], ack
        files put a.yaml cds a@1:ttl=10s b@1
        client <- cds sotw [a@1:ttl=10s:wrapped b@1] | delta [a@-:ttl=10s], ack
        nothing for 9s
        wait 1s
        client <- cds sotw [b@1] | delta -[a], ack
        second <- cds sotw [b@1] | delta -[a], ack
        nothing for 100s
        files put a.yaml cds a@1 b@1
        client <- cds sotw [a@1 b@1] | delta [a@1], ack
        second <- cds sotw [a@1 b@1] | delta [a@1], ack
        ",
    );
}

/// K-09: a relay that starts anew reads the same files to the same versions.
#[test]
fn after_a_restart() {
    both(
        "
        files put a.yaml cds a@1 b@1
        client moves files
        client subscribe cds *
        client <- cds [a@1 b@1], ack
        relay restarts
        client subscribe cds
        client <- cds sotw [a@1 b@1] | delta [], ack
        nothing
        ",
    );
}
