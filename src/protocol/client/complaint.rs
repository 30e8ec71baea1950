// SPDX-License-Identifier: Apache-2.0
//! The words in which a server is told what clients reject (E-24).
//!
//! Owns their form and their length. Says nothing of a content but its name.

use std::fmt::Write as _;

use proto::google::rpc::Status;
use xds::{Objection, Rejection, TypeUrl, printable};

/// gRPC's INTERNAL, with which Envoys reject. Servers do not count a rejection whose code is 0.
const INTERNAL: i32 = 13;
/// How many contents are named, how much of a name is said, and how much of the words of a client.
const NAMED_MAX: usize = 8;
const NAME_BYTES_MAX: usize = 256;
const WORDS_BYTES_MAX: usize = 1024;

/// Returns what the server is told of these.
pub(super) fn complaint(type_url: &TypeUrl, rejections: &[Rejection]) -> Status {
    let named = rejections.get(..NAMED_MAX).unwrap_or(rejections);
    let mut message = String::new();
    for group in named.chunk_by(alike) {
        let Some(first) = group.first() else { continue };
        let separator = if message.is_empty() { "" } else { "; " };
        let nouns = type_url.kind().nouns();
        let (one, several) = nouns.unwrap_or((type_url.full_name(), type_url.full_name()));
        let contents = group.iter().filter_map(|one| one.content.as_ref());
        let names: Vec<_> = contents.map(|(name, _)| cut(name.as_str(), NAME_BYTES_MAX)).collect();
        let what = match names.as_slice() {
            [] => several.to_owned(),
            [name] => format!("{one} {name}"),
            names => format!("{several} {}", names.join(", ")),
        };
        let (clients, rejects) = match (first.clients, first.of) {
            (1, 1) => ("client", "rejects"),
            (1, _) => ("clients", "rejects"),
            _ => ("clients", "reject"),
        };
        let words = cut(first.objection.words(), WORDS_BYTES_MAX);
        // Writing to a string cannot fail.
        let _ = write!(
            message,
            "{separator}{} of {} {clients} ({}) {rejects} {what}: {words}",
            first.clients, first.of, first.kind
        );
    }
    if let Some(more @ 1..) = rejections.len().checked_sub(NAMED_MAX) {
        let _ = write!(message, "; and {more} more");
    }
    let mut codes = rejections.iter().map(|one| Objection::code(&one.objection));
    Status {
        code: codes.find(|code| *code != 0).unwrap_or(INTERNAL),
        message,
        details: Vec::new(),
    }
}

/// Whether one sentence says both.
fn alike(one: &Rejection, other: &Rejection) -> bool {
    let counts = |of: &Rejection| (of.clients, of.of);
    one.content.is_some() == other.content.is_some()
        && counts(one) == counts(other)
        && one.kind == other.kind
        && one.objection == other.objection
}

/// Returns the beginning of a text, without control characters.
fn cut(text: &str, bytes: usize) -> String {
    let text = printable(text);
    if text.len() <= bytes {
        return text.into_owned();
    }
    let end = (0..=bytes).rev().find(|at| text.is_char_boundary(*at));
    format!("{}...", end.and_then(|end| text.get(..end)).unwrap_or_default())
}
