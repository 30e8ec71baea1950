//! How a `Resource` message carries its name: alone, or together with its constraints (TP2).
//!
//! Owns the size and the encoding of these fields. Knows nothing of the rest of the message.

use bytes::{Bytes, BytesMut};

use super::{NAME, field_len, put_field};
use crate::{Constraints, Name};

const RESOURCE_NAME: u32 = 8;

/// The field of a `Resource` message that carries the name.
pub(super) enum NameField<'a> {
    /// The name of a resource for all clients.
    Alone(&'a [u8]),
    /// C-23: the name of a variant together with its constraints.
    Full(Bytes),
}

impl<'a> NameField<'a> {
    pub(super) fn new(name: &'a Name, constraints: Option<&Constraints>) -> Self {
        match constraints {
            None => Self::Alone(name.as_str().as_bytes()),
            Some(constraints) => Self::Full(full_name(name, constraints.encoded())),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            // there may be no name.
            Self::Alone([]) => 0,
            Self::Alone(name) => field_len(NAME, name.len()),
            Self::Full(name) => field_len(RESOURCE_NAME, name.len()),
        }
    }

    pub(super) fn put(&self, into: &mut BytesMut) {
        match self {
            Self::Alone([]) => {}
            Self::Alone(name) => put_field(into, NAME, name),
            Self::Full(name) => put_field(into, RESOURCE_NAME, name),
        }
    }
}

/// Encodes a `ResourceName` message.
pub(crate) fn full_name(name: &Name, constraints: &[u8]) -> Bytes {
    let mut message = BytesMut::new();
    put_field(&mut message, 1, name.as_str().as_bytes());
    put_field(&mut message, 2, constraints);
    message.freeze()
}
