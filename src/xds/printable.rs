// SPDX-License-Identifier: Apache-2.0
//! Text of peers, for lines that people and programs read.
//!
//! Owns that it stays within its line, and that a reader sees all of it, in its order. Does not bound its length.

use std::borrow::Cow;

/// Characters that nobody sees, or that turn the direction of the text around them. They are what Unicode has to be ignored when a
/// font lacks it (`Default_Ignorable_Code_Point`), the separators of lines and paragraphs, and marks of annotations.
pub const INVISIBLE: [(char, char); 17] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
];

/// Returns the text with escapes for control characters and for what is [`INVISIBLE`], so that it cannot end a line, begin another,
/// steer a terminal, or look like another text.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut said = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_escaped(character) {
            said.extend(character.escape_default());
        } else {
            said.push(character);
        }
    }
    Cow::Owned(said)
}

/// Returns JSON with the numbers of such characters, which only occur within its strings, in their place.
#[must_use]
pub fn printable_json(json: &str) -> Cow<'_, str> {
    let hidden = |character: char| character != '\n' && is_escaped(character);
    if json.bytes().all(|byte| byte < 0x7f) || !json.chars().any(hidden) {
        return Cow::Borrowed(json);
    }
    let mut said = String::with_capacity(json.len() + 64);
    for character in json.chars() {
        match hidden(character) {
            true => said.extend(
                character
                    .encode_utf16(&mut [0; 2])
                    .iter()
                    .map(|unit| format!("\\u{unit:04x}")),
            ),
            false => said.push(character),
        }
    }
    Cow::Owned(said)
}

/// Whether a character is escaped in lines for people.
#[must_use]
pub fn is_escaped(character: char) -> bool {
    // Nearly all text is ASCII.
    character.is_control()
        || !character.is_ascii()
            && INVISIBLE
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_cannot_be_seen_is_escaped() {
        assert_eq!(printable("a\n\u{1b}[2J\u{85}b"), "a\\n\\u{1b}[2J\\u{85}b");
        assert!(matches!(
            printable("ä \"\\ 🦀 שלום 日本\u{3000}語 e\u{301}"),
            Cow::Borrowed(_)
        ));
    }

    #[test]
    fn a_text_of_json_means_the_same() {
        let said = printable_json("{\"text\":\"a\u{202e}b\u{2066}\u{e0041}\u{7f}ä\"}");
        assert_eq!(said, r#"{"text":"a\u202eb\u2066\udb40\udc41\u007fä"}"#);
    }

    /// What turns the direction of text, joins, or takes no room.
    #[test]
    fn nothing_is_hidden_and_nothing_turned() {
        let turning = ('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}');
        let marks = ('\u{200b}'..='\u{200f}').chain('\u{2060}'..='\u{2064}');
        let others = [
            '\u{feff}',
            '\u{2028}',
            '\u{2029}',
            '\u{61c}',
            '\u{ad}',
            '\u{e0041}',
            '\u{fe0f}',
        ];
        for character in turning.chain(marks).chain(others) {
            let text = format!("a{character}b");
            let escaped = format!("a\\u{{{:x}}}b", u32::from(character));
            assert_eq!(printable(&text), escaped);
        }
    }
}
