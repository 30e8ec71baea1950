// SPDX-License-Identifier: Apache-2.0
//! A span as text, as W3C's trace context writes it in `traceparent`.
//!
//! Owns the text, and reads it strictly. Does not know what is traced.

use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

/// What precedes a span at the end of a control plane's identifier.
const MARK: &str = ";traceparent=";
/// The version of the text that has the fields below and nothing else, and the one that does not exist.
const FIRST: &str = "00";
const NO_VERSION: &str = "ff";
/// The length of the text in the first version.
const TEXT_LEN: usize = 2 + 1 + 32 + 1 + 16 + 1 + 2;

/// Reads a `traceparent`. Newer versions may have more after the known fields.
#[must_use]
pub fn read(text: &str) -> Option<SpanContext> {
    let known = text.get(..TEXT_LEN)?;
    let mut fields = known.split('-');
    let mut field = || fields.next().filter(|field| is_hexadecimal(field));
    let (version, trace, span, flags) = (field()?, field()?, field()?, field()?);
    let ends = match version {
        FIRST => text.len() == TEXT_LEN,
        NO_VERSION => false,
        _ => text.len() == TEXT_LEN || text.get(TEXT_LEN..).is_some_and(|more| more.starts_with('-')),
    };
    let lengths = [version, trace, span, flags].map(str::len) == [2, 32, 16, 2];
    if !ends || !lengths {
        return None;
    }
    let (trace, span) = (TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?);
    // Flags that are not known are not passed on.
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?) & TraceFlags::SAMPLED;
    let read = SpanContext::new(trace, span, flags, true, TraceState::NONE);
    read.is_valid().then_some(read)
}

/// Returns the text of a span.
#[must_use]
pub fn text(span: &SpanContext) -> String {
    let (trace, id, flags) = (span.trace_id(), span.span_id(), span.trace_flags());
    format!("{FIRST}-{trace}-{id}-{flags:02x}")
}

/// Takes the span from the end of a control plane's identifier, if there is one.
pub fn take(identifier: &mut String) -> Option<SpanContext> {
    let (before, span) = identifier.rsplit_once(MARK)?;
    let (length, span) = (before.len(), read(span));
    identifier.truncate(length);
    span
}

/// Returns the identifier of a control plane with this span at its end.
#[must_use]
pub fn after(identifier: &str, span: &SpanContext) -> String {
    format!("{identifier}{MARK}{}", text(span))
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn what_is_written_is_read() {
        let span = read(TEXT).unwrap();
        assert!(span.is_sampled() && span.is_remote());
        assert_eq!(text(&span), TEXT);
        assert_eq!(span.trace_id().to_bytes()[..2], [0x0a, 0xf7]);
        let off = TEXT.replace("-01", "-00");
        assert!(!read(&off).unwrap().is_sampled());
        let more = read(&TEXT.replace("-01", "-03")).unwrap();
        assert_eq!(text(&more), TEXT, "other flags may follow, and are not passed on");
        let newer = format!("01{}-more", &TEXT[2..]);
        assert_eq!(read(&newer), Some(span));
    }

    #[test]
    fn what_is_no_span_is_not_read() {
        for text in [
            "".to_owned(),
            TEXT[..TEXT.len() - 1].to_owned(),
            format!("{TEXT}-more"),
            format!("01{}more", &TEXT[2..]),
            format!("ff{}", &TEXT[2..]),
            TEXT.replace('a', "A"),
            TEXT.replace("b7ad6b7169203331", "0000000000000000"),
            TEXT.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            TEXT.replace("-b7", "b-7"),
            TEXT.replace("00-0a", "+0-0a"),
            TEXT.replace("331-01", "33ä-1"),
        ] {
            assert_eq!(read(&text), None, "{text}");
        }
    }

    #[test]
    fn identifiers_carry_a_span() {
        let span = read(TEXT).unwrap();
        let mut identifier = after("distributary/a", &span);
        assert_eq!(identifier, format!("distributary/a;traceparent={TEXT}"));
        assert_eq!(take(&mut identifier), Some(span));
        assert_eq!(identifier, "distributary/a");
        assert_eq!(take(&mut identifier), None);
        let mut broken = "a;traceparent=x".to_owned();
        assert_eq!((take(&mut broken), broken.as_str()), (None, "a"));
    }
}
