// SPDX-License-Identifier: Apache-2.0
//! The text form of a line of the log: logfmt, which people read and programs split: `time=... level=info target=... msg="the relay starts" version=0.1.0`.
//!
//! Owns the form, and that a count of suppressed lines is only there if some were. Decides nothing about what is logged.

use std::fmt::{self, Debug, Write as _};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime as Rfc3339};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The form.
pub(super) struct Logfmt;

/// The fields of an event in the order in which they are written.
#[derive(Default)]
struct EventFields {
    message: String,
    others: String,
}

impl<S, N> FormatEvent<S, N> for Logfmt
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        writer.write_str("time=")?;
        Rfc3339.format_time(&mut writer)?;
        let level = event.metadata().level().as_str().to_ascii_lowercase();
        let mut fields = EventFields::default();
        event.record(&mut fields);
        let target = value(event.metadata().target());
        let message = value(&fields.message);
        writeln!(writer, " level={level} target={target} msg={message}{}", fields.others)
    }
}

impl EventFields {
    fn put(&mut self, field: &Field, text: &str) {
        match field.name() {
            "message" => text.clone_into(&mut self.message),
            "suppressed" if text == "0" => {}
            name => {
                // Writing to memory cannot fail.
                let _ = write!(self.others, " {name}={}", value(text));
            }
        }
    }
}

impl Visit for EventFields {
    fn record_str(&mut self, field: &Field, text: &str) {
        self.put(field, text);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, &format!("{value:?}"));
    }
}

/// Returns a value, in quotes if something else would be read without them.
fn value(text: &str) -> String {
    let plain = |c: char| !c.is_whitespace() && !matches!(c, '"' | '=' | '\\') && !c.is_control();
    if is_quoted(text) || (!text.is_empty() && text.chars().all(plain)) {
        return text.to_owned();
    }
    let mut said = String::with_capacity(text.len() + 2);
    said.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => said.extend(['\\', c]),
            '\n' => said.push_str("\\n"),
            c => said.push(c),
        }
    }
    said.push('"');
    said
}

/// Whether a text is in quotes already, as Rust's debugging writes texts: then it has no other quote that is not escaped.
fn is_quoted(text: &str) -> bool {
    let Some(inner) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else {
        return false;
    };
    let mut escaped = false;
    for c in inner.chars() {
        if c == '"' && !escaped {
            return false;
        }
        escaped = c == '\\' && !escaped;
    }
    !escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_one_word_or_in_quotes() {
        for (text, said) in [
            ("cp:18000", "cp:18000"),
            ("", "\"\""),
            ("two words", "\"two words\""),
            ("a=b", "\"a=b\""),
            ("say \"no\"", "\"say \\\"no\\\"\""),
            ("a\nb", "\"a\\nb\""),
            ("\"edge 1\"", "\"edge 1\""),
            ("\"a\" level=\"b\"", "\"\\\"a\\\" level=\\\"b\\\"\""),
            ("\"a\\\"", "\"\\\"a\\\\\\\"\""),
        ] {
            assert_eq!(value(text), said);
        }
    }
}
