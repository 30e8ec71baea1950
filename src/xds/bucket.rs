// SPDX-License-Identifier: Apache-2.0
//! The part of all clients to which a client belongs, where a share of them is treated otherwise (G-23).
//!
//! Owns the division: it is the same in all replicas and for ever. Does not know which share that is.

use xxhash_rust::xxh3::xxh3_64;

/// Into so many buckets clients are divided.
pub const BUCKETS: u16 = 10_000;

/// Returns the bucket of the client with this node id. A client without an id has none.
#[must_use]
pub fn bucket(id: &str) -> Option<u16> {
    let bucket = xxh3_64(id.as_bytes()) % u64::from(BUCKETS);
    u16::try_from(bucket).ok().filter(|_| !id.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A share of the buckets has such a share of the clients. Who says nothing of itself is in none.
    #[test]
    fn a_share_of_the_clients() {
        assert_eq!(bucket(""), None);
        // Another version of the relay must not find other buckets.
        let all = ["envoy-1", "envoy-2", "gateway"].map(bucket);
        assert_eq!(all, [Some(3250), Some(2190), Some(5677)]);
        let few = (0..10_000).filter_map(|number| bucket(&format!("node-{number}")));
        let few = few.filter(|bucket| *bucket < 500).count();
        assert!((400..600).contains(&few), "{few} of 10,000 are in 5 %");
    }
}
