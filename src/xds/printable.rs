//! Text of peers, for lines that people and programs read.
//!
//! Owns that it stays within its line. Does not bound its length.

use std::borrow::Cow;

/// Returns the text with its control characters escaped, so that it cannot end a line, begin another or steer a terminal.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut said = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if character.is_control() {
            said.extend(character.escape_default());
        } else {
            said.push(character);
        }
    }
    Cow::Owned(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_control_characters_are_escaped() {
        assert_eq!(printable("a\n\u{1b}[2J\u{85}b"), "a\\n\\u{1b}[2J\\u{85}b");
        assert!(matches!(printable("ä \"\\ 🦀"), Cow::Borrowed(_)));
    }
}
