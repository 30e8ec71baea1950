// SPDX-License-Identifier: Apache-2.0
//! A large answer as a protobuf message, in parts.
//!
//! Owns how it is put together without being copied, and that each part has its memory until it is sent. Does not know the message.

use bytes::{Bytes, BytesMut};
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};
use tokio::sync::OwnedSemaphorePermit;
use tonic::Status;

use super::questions::{Busy, WholeTurn};

/// An answer that is being collected: elements of repeated fields.
#[derive(Debug)]
pub(super) struct WholeAnswer {
    turn: WholeTurn,
    /// The parts of the elements that are complete, and what of them is no part yet.
    parts: Vec<Bytes>,
    rest: BytesMut,
    /// The same of the element that is not complete.
    of_element: Vec<Bytes>,
    filling: BytesMut,
    /// All bytes so far.
    bytes: usize,
}

/// A part with its memory.
struct AnswerPart {
    bytes: Bytes,
    _memory: OwnedSemaphorePermit,
}

/// The most bytes of an answer.
const BYTES_MAX: usize = 32 << 20;
/// From this size on a part is complete.
const PART: usize = 64 << 10;

impl WholeAnswer {
    pub(super) fn new(turn: WholeTurn) -> Self {
        Self {
            turn,
            parts: Vec::new(),
            rest: BytesMut::new(),
            of_element: Vec::new(),
            filling: BytesMut::new(),
            bytes: 0,
        }
    }

    /// Adds fields to the element that is not complete.
    pub(super) async fn extend(&mut self, fields: &impl Message) -> Result<(), Status> {
        self.bytes += fields.encoded_len();
        if self.bytes > BYTES_MAX {
            return Err(Status::resource_exhausted(format!(
                "the answer has more than {BYTES_MAX} bytes; ask about fewer nodes, or set `exclude_resource_contents`"
            )));
        }
        fields.encode_raw(&mut self.filling);
        if self.filling.len() >= PART {
            let full = std::mem::take(&mut self.filling);
            self.of_element.push(self.part(full).await?);
        }
        Ok(())
    }

    /// Completes the element, which is one of this field.
    pub(super) async fn end(&mut self, field: u32) -> Result<(), Status> {
        let length = self.filling.len() + self.of_element.iter().map(Bytes::len).sum::<usize>();
        encode_key(field, WireType::LengthDelimited, &mut self.rest);
        encode_varint(length as u64, &mut self.rest);
        if !self.of_element.is_empty() {
            self.flush().await?;
            self.parts.append(&mut self.of_element);
        }
        self.rest.unsplit(std::mem::take(&mut self.filling));
        if self.rest.len() >= PART {
            self.flush().await?;
        }
        Ok(())
    }

    /// Returns all parts, of which the last ones are these fields.
    pub(super) async fn finish(mut self, fields: &impl Message) -> Result<Vec<Bytes>, Status> {
        fields.encode_raw(&mut self.rest);
        self.flush().await?;
        Ok(self.parts)
    }

    async fn flush(&mut self) -> Result<(), Status> {
        let rest = std::mem::take(&mut self.rest);
        if !rest.is_empty() {
            let part = self.part(rest).await?;
            self.parts.push(part);
        }
        Ok(())
    }

    /// Returns these bytes with the memory for them.
    async fn part(&self, bytes: BytesMut) -> Result<Bytes, Busy> {
        let memory = self.turn.memory(bytes.capacity()).await?;
        Ok(Bytes::from_owner(AnswerPart {
            bytes: bytes.freeze(),
            _memory: memory,
        }))
    }
}

impl AsRef<[u8]> for AnswerPart {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::census::questions::Questions;
    use crate::proto::envoy::service::status::v3::client_config::GenericXdsConfig;
    use crate::proto::envoy::service::status::v3::{ClientConfig, ClientStatusResponse};

    fn resources(count: usize, bytes: usize) -> ClientConfig {
        let resource = |number: usize| GenericXdsConfig {
            name: format!("{number}-{}", "x".repeat(bytes)),
            ..GenericXdsConfig::default()
        };
        ClientConfig {
            generic_xds_configs: (0..count).map(resource).collect(),
            ..ClientConfig::default()
        }
    }

    /// Whatever the sizes, the parts are the message, none is much larger than the others, and their memory is free afterwards.
    #[tokio::test]
    async fn the_parts_are_the_message() {
        let questions = Questions::default();
        for sizes in [
            vec![],
            vec![(0, 0)],
            vec![(2, 10); 3],
            vec![(1, 10), (3, 70_000), (1, 10), (40, 2000), (0, 0)],
        ] {
            let mut answer = WholeAnswer::new(questions.whole_turn().await.unwrap());
            for (count, bytes) in &sizes {
                answer.extend(&resources(*count, *bytes)).await.unwrap();
                answer.extend(&resources(1, 1)).await.unwrap();
                answer.end(1).await.unwrap();
            }
            let parts = answer.finish(&()).await.unwrap();
            let got = ClientStatusResponse::decode(&*parts.concat()).unwrap();
            let counts: Vec<usize> = got.config.iter().map(|one| one.generic_xds_configs.len()).collect();
            assert_eq!(counts, sizes.iter().map(|(count, _)| count + 1).collect::<Vec<_>>());
            assert!(parts.iter().all(|part| !part.is_empty() && part.len() < 4 * PART));
            assert_eq!(questions.free_mebibytes() == 48, parts.is_empty());
            drop(parts);
            assert_eq!(questions.free_mebibytes(), 48);
        }
    }

    #[tokio::test]
    async fn it_has_a_bound() {
        let mut answer = WholeAnswer::new(Questions::default().whole_turn().await.unwrap());
        let mut taken = 0;
        let full = loop {
            match answer.extend(&resources(1, 1 << 20)).await {
                Ok(()) => taken += 1,
                Err(status) => break status,
            }
        };
        assert_eq!((taken, full.code()), (31, tonic::Code::ResourceExhausted));
    }
}
