// SPDX-License-Identifier: Apache-2.0
//! The text format of protobuf. The parser is that of `prost-reflect`; this module bounds the nesting of its input and gives
//! its errors a place.

use prost::Message;
use prost_reflect::{DynamicMessage, MessageDescriptor};

use super::DEPTH_MAX;
use super::fault::{Fault, Place};

/// Parses a text; returns the bytes of the message.
pub(super) fn parse(descriptor: MessageDescriptor, text: &[u8]) -> Result<Vec<u8>, Fault> {
    let text = std::str::from_utf8(text).map_err(|error| {
        let good = String::from_utf8_lossy(text.get(..error.valid_up_to()).unwrap_or_default());
        Fault::at(place(&good, good.len()), "", "not UTF-8; save the text as UTF-8")
    })?;
    if let Some(at) = too_deep(text) {
        let message = format!("nested deeper than {DEPTH_MAX} levels; make it flatter");
        return Err(Fault::at(place(text, at), "", message));
    }
    let message = DynamicMessage::parse_text_format(descriptor, text).map_err(|error| {
        let label = miette::Diagnostic::labels(&error).and_then(|mut labels| labels.next());
        let reason = error.to_string();
        match label {
            Some(label) => Fault::at(place(text, label.offset()), "", reason),
            None => Fault::at(place(text, text.len()), "", reason),
        }
    })?;
    Ok(message.encode_to_vec())
}

/// Returns where the text is nested too deep. The parser itself has no bound.
fn too_deep(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut escaped = false;
    let mut comment = false;
    for (at, byte) in text.bytes().enumerate() {
        if comment {
            comment = byte != b'\n';
        } else if escaped {
            escaped = false;
        } else if let Some(open) = quote {
            match byte {
                b'\\' => escaped = true,
                // A string ends with its line, closed or not.
                _ if byte == open || byte == b'\n' => quote = None,
                _ => {}
            }
        } else {
            match byte {
                b'#' => comment = true,
                b'"' | b'\'' => quote = Some(byte),
                b'{' | b'<' | b'[' => depth += 1,
                b'}' | b'>' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth > DEPTH_MAX {
                return Some(at);
            }
        }
    }
    None
}

fn place(text: &str, at: usize) -> Place {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
    let bounded = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Place {
        line: bounded(before.matches('\n').count() + 1),
        column: bounded(column),
    }
}
