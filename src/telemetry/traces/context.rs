//! Which trace and which span something belongs to, as W3C's trace context writes it.
//!
//! Owns the numbers and their text form. Does not know what is traced.

use std::fmt;

/// The number of a trace; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId([u8; 16]);

/// The number of a span; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId([u8; 8]);

/// A span of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace: TraceId,
    /// The span.
    pub span: SpanId,
    /// Whether the trace is recorded.
    pub sampled: bool,
}

/// What precedes a context at the end of a control plane's identifier.
const MARK: &str = ";traceparent=";
/// The bit of the flags that says whether the trace is recorded.
const SAMPLED: u8 = 1;
/// The version of the text that has the fields below and nothing else, and the one that does not exist.
const FIRST: &str = "00";
const NO_VERSION: &str = "ff";
/// The length of the text in the first version.
const TEXT_LEN: usize = 2 + 1 + 32 + 1 + 16 + 1 + 2;

impl TraceId {
    /// Draws a number.
    pub(super) fn random() -> Self {
        Self(rand::random::<u128>().max(1).to_be_bytes())
    }

    /// Returns its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the part that is random, whoever drew the number.
    pub(super) const fn randomness(self) -> u64 {
        u128::from_be_bytes(self.0) as u64
    }
}

impl SpanId {
    /// Draws a number.
    #[must_use]
    pub fn random() -> Self {
        Self(rand::random::<u64>().max(1).to_be_bytes())
    }

    /// Returns its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl TraceContext {
    /// Reads a `traceparent`. Newer versions may have more after the known fields.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
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
        let trace = u128::from_str_radix(trace, 16).ok().filter(|trace| *trace > 0)?;
        let span = u64::from_str_radix(span, 16).ok().filter(|span| *span > 0)?;
        Some(Self {
            trace: TraceId(trace.to_be_bytes()),
            span: SpanId(span.to_be_bytes()),
            sampled: u8::from_str_radix(flags, 16).ok()? & SAMPLED != 0,
        })
    }

    /// Takes the context from the end of a control plane's identifier, if there is one.
    pub fn take(identifier: &mut String) -> Option<Self> {
        let (before, context) = identifier.rsplit_once(MARK)?;
        let (length, context) = (before.len(), Self::read(context));
        identifier.truncate(length);
        context
    }

    /// Returns the identifier of a control plane with this context at its end.
    #[must_use]
    pub fn after(&self, identifier: &str) -> String {
        format!("{identifier}{MARK}{self}")
    }
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", u64::from_be_bytes(self.0))
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trace, span, sampled } = self;
        write!(f, "{FIRST}-{trace}-{span}-{:02x}", u8::from(*sampled) * SAMPLED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn what_is_written_is_read() {
        let context = TraceContext::read(TEXT).unwrap();
        assert!(context.sampled);
        assert_eq!(context.to_string(), TEXT);
        assert_eq!(context.trace.as_bytes()[..2], [0x0a, 0xf7]);
        let off = TEXT.replace("-01", "-00");
        assert!(!TraceContext::read(&off).unwrap().sampled);
        assert!(
            TraceContext::read(&TEXT.replace("-01", "-03")).unwrap().sampled,
            "other flags may follow"
        );
        let newer = format!("01{}-more", &TEXT[2..]);
        assert_eq!(TraceContext::read(&newer), Some(context));
        let drawn = TraceContext {
            trace: TraceId::random(),
            span: SpanId::random(),
            sampled: true,
        };
        assert_eq!(TraceContext::read(&drawn.to_string()), Some(drawn));
    }

    #[test]
    fn what_is_no_context_is_not_read() {
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
            assert_eq!(TraceContext::read(&text), None, "{text}");
        }
    }

    #[test]
    fn identifiers_carry_a_context() {
        let context = TraceContext::read(TEXT).unwrap();
        let mut identifier = context.after("distributary/a");
        assert_eq!(identifier, format!("distributary/a;traceparent={TEXT}"));
        assert_eq!(TraceContext::take(&mut identifier), Some(context));
        assert_eq!(identifier, "distributary/a");
        assert_eq!(TraceContext::take(&mut identifier), None);
        let mut broken = "a;traceparent=x".to_owned();
        assert_eq!((TraceContext::take(&mut broken), broken.as_str()), (None, "a"));
    }
}
