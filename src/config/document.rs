//! A text that settings were read from. Owns how a place in it is written. Knows no settings.

/// A configuration or a bootstrap.
#[derive(Debug)]
pub(super) struct Document {
    /// Its name in messages: a path, `command line`, or an environment variable.
    pub(super) origin: String,
    pub(super) text: String,
    /// Whether it was written for gRPC clients: then unknown keys are not errors.
    pub(super) foreign: bool,
    /// Where each line begins.
    starts: Vec<usize>,
}

/// How many lines above its value a key is searched: a comment may stand between them.
const ABOVE: u64 = 3;
/// Beyond this column the key is not searched: the place of the value is enough on such a long line.
const WIDE: u64 = 4096;

impl Document {
    pub(super) fn new(origin: &str, text: &str) -> Self {
        Self {
            origin: origin.to_owned(),
            text: text.to_owned(),
            foreign: false,
            starts: std::iter::once(0)
                .chain(text.match_indices('\n').map(|(at, _)| at + 1))
                .collect(),
        }
    }

    pub(super) fn foreign(origin: &str, text: &str) -> Self {
        Self {
            foreign: true,
            ..Self::new(origin, text)
        }
    }

    /// Returns `origin:line:column: key: message`.
    pub(super) fn line(&self, place: Option<(u64, u64)>, key: &str, message: &str) -> String {
        let place = place.map_or_else(String::new, |(line, column)| format!(":{line}:{column}"));
        let key = if key.is_empty() {
            String::new()
        } else {
            format!("{key}: ")
        };
        format!("{}{place}: {key}{message}", self.origin)
    }

    /// Returns the place of the key of the value at this place: its last occurrence before the value, on that line or just above.
    pub(super) fn key(&self, key: &str, value: (u64, u64)) -> (u64, u64) {
        let (line, column) = value;
        if column > WIDE {
            return value;
        }
        for number in (line.saturating_sub(ABOVE).max(1)..=line).rev() {
            let Some(mut text) = self.text_of(number) else {
                return value;
            };
            if number == line {
                let before = usize::try_from(column.saturating_sub(1)).unwrap_or_default();
                if let Some((end, _)) = text.char_indices().nth(before) {
                    text = text.get(..end).unwrap_or(text);
                }
            }
            if let Some((ahead, _)) = text.rsplit_once(key) {
                let ahead = ahead.strip_suffix(['"', '\'']).unwrap_or(ahead);
                return (number, ahead.chars().count() as u64 + 1);
            }
        }
        value
    }

    /// Returns a line; the first is 1.
    fn text_of(&self, number: u64) -> Option<&str> {
        let at = usize::try_from(number).ok()?;
        let start = *self.starts.get(at.checked_sub(1)?)?;
        let end = self.starts.get(at).copied().unwrap_or(self.text.len());
        self.text.get(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_before_their_values() {
        let text = "a: b\n\"kéy\": {x: 1,\n  'b':\n    c: 5}\n";
        let document = Document::new("f", text);
        assert_eq!(document.key("a", (1, 4)), (1, 1));
        assert_eq!(document.key("kéy", (2, 8)), (2, 1));
        assert_eq!(document.key("x", (2, 12)), (2, 9));
        assert_eq!(document.key("b", (4, 5)), (3, 3));
        assert_eq!(document.key("c", (4, 8)), (4, 5));
        assert_eq!(document.key("gone", (4, 8)), (4, 8));
        assert_eq!(document.key("c", (9, 1)), (9, 1));
        assert_eq!(document.key("c", (4, 5000)), (4, 5000));
    }
}
