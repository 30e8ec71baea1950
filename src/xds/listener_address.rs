//! The addresses of a listener.
//!
//! Owns which fields of its body they are in. Does not judge an address: two are the same if their bytes are.

use std::collections::BTreeSet;
use std::sync::Arc;

use prost::Message;

use super::Resource;

/// The fields of a listener that hold addresses. Other fields are skipped.
#[derive(Clone, PartialEq, Message)]
struct Listener {
    #[prost(bytes = "vec", tag = "2")]
    address: Vec<u8>,
    #[prost(message, repeated, tag = "33")]
    additional: Vec<Additional>,
}

#[derive(Clone, PartialEq, Message)]
struct Additional {
    #[prost(bytes = "vec", tag = "1")]
    address: Vec<u8>,
}

/// The addresses that some listeners take.
#[derive(Debug, Default)]
pub struct Addresses(BTreeSet<Vec<u8>>);

impl Addresses {
    /// Returns those of these listeners.
    #[must_use]
    pub fn of<'a>(listeners: impl IntoIterator<Item = &'a Arc<Resource>>) -> Self {
        Self(listeners.into_iter().flat_map(|one| addresses(&one.body())).collect())
    }

    /// Whether any of them is one of this listener's.
    #[must_use]
    pub fn are_of(&self, listener: &Resource) -> bool {
        !self.0.is_empty()
            && addresses(&listener.body())
                .iter()
                .any(|address| self.0.contains(address))
    }
}

/// Returns the encoded addresses in the body of a listener; none if it cannot be read.
fn addresses(body: &[u8]) -> Vec<Vec<u8>> {
    let Ok(Listener { address, additional }) = Listener::decode(body) else {
        return Vec::new();
    };
    let all = std::iter::once(address).chain(additional.into_iter().map(|one| one.address));
    all.filter(|address| !address.is_empty()).collect()
}
