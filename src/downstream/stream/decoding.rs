// SPDX-License-Identifier: Apache-2.0
//! A request that is being decoded.
//!
//! Decodes a large one part by part, so that others have their turn in between, and frees the message meanwhile: names and versions
//! take several times the memory of their message. Does not know whose turn it is.

use bytes::Buf as _;
use prost::Message;
use tonic::Status;

use super::decode::malformed;
use crate::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use crate::proto::google::rpc::Status as Detail;
use crate::wire::{Pieces, Scan, around, end_after};

/// A request that is being decoded.
pub(super) struct Decoding<M> {
    request: M,
    /// What is left of the message.
    left: Pieces,
}

/// How many bytes are decoded at a time: some thousand names, in about a millisecond.
const PART_BYTES: usize = 128 * 1024;
/// The field of [`Detail`] with the error text.
const WORDS: u32 = 2;
/// The most bytes that are read of the reason for a rejection; the rest is of no use.
const DETAIL_BYTES_MAX: usize = 16 * 1024;

impl Decoding<DiscoveryRequest> {
    /// Begins with a request that counts so much.
    pub(super) fn sotw(message: Pieces, scan: &Scan) -> Self {
        let request = DiscoveryRequest {
            resource_names: Vec::with_capacity(scan.entries - scan.versions),
            ..Default::default()
        };
        Self::begin(message, request, scan)
    }
}

impl Decoding<DeltaDiscoveryRequest> {
    /// Begins with a request that counts so much.
    pub(super) fn delta(message: Pieces, scan: &Scan) -> Self {
        let request = DeltaDiscoveryRequest {
            resource_names_subscribe: Vec::with_capacity(scan.entries - scan.versions),
            ..Default::default()
        };
        Self::begin(message, request, scan)
    }
}

impl<M: Rejects> Decoding<M> {
    /// Begins with an empty request that has room for all names: growing the list step by step would fragment the heap.
    fn begin(message: Pieces, mut request: M, scan: &Scan) -> Self {
        let detail = scan
            .rejects
            .then(|| around(&message, M::DETAIL, DETAIL_BYTES_MAX))
            .flatten();
        let Some([mut left, after, detail]) = detail else {
            return Self { request, left: message };
        };
        left.append(after);
        let words = around(&detail, WORDS, 0).map(|[_, _, mut words]| words.split_to(DETAIL_BYTES_MAX));
        let mut words = words.unwrap_or_default();
        let words = words.copy_to_bytes(words.remaining());
        *request.detail() = Some(Detail {
            message: String::from_utf8_lossy(&words).into_owned(),
            ..Detail::default()
        });
        Self { request, left }
    }

    /// Decodes the next part. Returns whether there is more.
    ///
    /// # Errors
    /// The message is no such request.
    pub(super) fn go_on(&mut self) -> Result<bool, Status> {
        let wrong = |error| Status::invalid_argument(format!("the request cannot be decoded: {error}"));
        let end = match self.left.remaining() <= PART_BYTES {
            true => PART_BYTES,
            false => end_after(&self.left, PART_BYTES).map_err(|_| malformed(&self.left))?,
        };
        let part = self.left.split_to(end);
        part.merge_into(&mut self.request).map_err(wrong)?;
        Ok(self.left.has_remaining())
    }

    /// Returns the request, of which nothing is left.
    pub(super) fn finish(self) -> M {
        self.request
    }
}

/// A request that can reject a response, with a reason.
pub(super) trait Rejects: Message {
    /// The number of the field with the reason.
    const DETAIL: u32;

    fn detail(&mut self) -> &mut Option<Detail>;
}

impl Rejects for DiscoveryRequest {
    const DETAIL: u32 = 6;

    fn detail(&mut self) -> &mut Option<Detail> {
        &mut self.error_detail
    }
}

impl Rejects for DeltaDiscoveryRequest {
    const DETAIL: u32 = 7;

    fn detail(&mut self) -> &mut Option<Detail> {
        &mut self.error_detail
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::xds::Dialect;

    fn request(names: usize, words: usize) -> DeltaDiscoveryRequest {
        DeltaDiscoveryRequest {
            type_url: "a-type".to_owned(),
            resource_names_subscribe: (0..names).map(|name| format!("a-name-of-some-length-{name}")).collect(),
            initial_resource_versions: (0..names).map(|name| (name.to_string(), "1".to_owned())).collect(),
            error_detail: (words > 0).then(|| Detail {
                code: 0,
                message: "no".repeat(words),
                details: Vec::new(),
            }),
            response_nonce: "a-nonce".to_owned(),
            ..Default::default()
        }
    }

    /// However large a request is, only some of it is decoded at a time, and what was decoded is no longer kept.
    #[test]
    fn a_large_request_is_decoded_in_parts() {
        for (names, words) in [(0, 0), (10, 3), (30_000, 0), (30_000, 1 << 20)] {
            let whole = request(names, words);
            let message = Pieces::from(Bytes::from(whole.encode_to_vec()));
            let scan = Scan::of(&message, Dialect::Delta).unwrap();
            let mut decoding = Decoding::delta(message, &scan);
            for part in 1.. {
                let before = decoding.left.remaining();
                let more = decoding.go_on().unwrap();
                let took = before - decoding.left.remaining();
                assert!(took <= PART_BYTES + 100, "{took} bytes in part {part}");
                if !more {
                    assert_eq!(part > 8, names > 1000, "{part} parts of {names} names");
                    break;
                }
            }
            let mut expected = whole;
            if let Some(detail) = &mut expected.error_detail {
                detail.message.truncate(DETAIL_BYTES_MAX);
            }
            assert!(decoding.finish() == expected, "{names} names, {words} words");
        }
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let mut message = request(30_000, 0).encode_to_vec();
        message.truncate(message.len() - 1);
        let message = Pieces::from(Bytes::from(message));
        let mut decoding = Decoding::delta(message, &Scan::default());
        let refused = (0..100).find_map(|_| decoding.go_on().err());
        assert_eq!(refused.map(|status| status.code()), Some(tonic::Code::InvalidArgument));
    }
}
