//! A text that settings were read from. It owns how a place in it is named, and knows no setting.

/// A configuration or a bootstrap.
#[derive(Debug)]
pub(super) struct Document {
    /// What people call it: a path, `command line`, a variable.
    pub(super) origin: String,
    pub(super) text: String,
    /// It was written for gRPC clients: what the relay does not know in it is no error.
    pub(super) foreign: bool,
    /// Where each line begins.
    starts: Vec<usize>,
}

/// Comments between a key and its value are rare, and rarely longer.
const ABOVE: u64 = 3;
/// On a line that nobody could read, the place of the value does.
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

    /// `origin:line:column: key: message`.
    pub(super) fn line(&self, place: Option<(u64, u64)>, key: &str, message: &str) -> String {
        let place = place.map_or_else(String::new, |(line, column)| format!(":{line}:{column}"));
        let key = if key.is_empty() {
            String::new()
        } else {
            format!("{key}: ")
        };
        format!("{}{place}: {key}{message}", self.origin)
    }

    /// Where a key is whose value is there: the last time that it is written before, on that line or little above it.
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

    /// A line, of which the first is 1.
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
