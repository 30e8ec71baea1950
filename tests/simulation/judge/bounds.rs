// SPDX-License-Identifier: Apache-2.0
//! What is on its way to a client is bounded, and in the end all of it is settled (B-24).
//!
//! Owns the responses of each stream that the relay has sent and that were not answered. Knows nothing of their content.

use std::collections::{BTreeMap, BTreeSet};

use xds::Dialect;

use super::Moment;
use crate::body::Type;
use crate::client::Persona;
use crate::tally::{Broken, Rule, Tally};

/// The most unsettled responses of a type in delta.
const OPEN_MAX: usize = 64;

#[derive(Default)]
pub(super) struct Bounds {
    /// The nonces by stream and type.
    open: BTreeMap<(u64, Type), Vec<String>>,
    /// The streams of clients that need not answer.
    hostile: BTreeSet<u64>,
}

impl Bounds {
    /// Whether anything on a stream is unsettled.
    pub(super) fn is_open(&self, stream: u64) -> bool {
        self.open
            .iter()
            .any(|((other, _), open)| *other == stream && !open.is_empty())
    }

    pub(super) fn see(&mut self, moment: &Moment<'_>, tally: &mut Tally) -> Result<(), Broken> {
        match moment {
            Moment::Sent(client, stream, answer, _) => {
                tally.hit(Rule::B24);
                let open = self.open.entry((*stream, answer.kind)).or_default();
                open.push(answer.nonce.clone());
                if client.persona == Persona::Hostile {
                    self.hostile.insert(*stream);
                }
                let most = if client.dialect == Dialect::Sotw { 1 } else { OPEN_MAX };
                if open.len() > most {
                    return broken!(
                        B24,
                        "stream {stream}: {} responses of {:?} on their way",
                        open.len(),
                        answer.kind
                    );
                }
            }
            Moment::Heard(stream, kind, request) => {
                if let Some(open) = self.open.get_mut(&(*stream, *kind)) {
                    open.retain(|nonce| number(nonce) != number(request.nonce()));
                }
            }
            Moment::Over(stream) => {
                self.open.retain(|(other, _), _| other != stream);
                self.hostile.remove(stream);
            }
            Moment::Rest => {
                let mut open = self
                    .open
                    .iter()
                    .filter(|((stream, _), _)| !self.hostile.contains(stream));
                if let Some(((stream, kind), open)) = open.find(|(_, open)| !open.is_empty()) {
                    return broken!(Held, "stream {stream}: {kind:?} {open:?} was never settled");
                }
            }
            Moment::Asked(..) | Moment::Came(_) | Moment::Moved(_) => {}
        }
        Ok(())
    }
}

/// The nonce without the mark that more follows.
fn number(nonce: &str) -> &str {
    nonce.trim_end_matches('+')
}
