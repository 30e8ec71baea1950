//! A text that settings were read from. It owns how a place in it is named, and knows no setting.

/// A configuration or a bootstrap.
#[derive(Debug)]
pub(super) struct Document {
    /// What people call it: a path, `command line`, a variable.
    pub(super) origin: String,
    pub(super) text: String,
    /// It was written for gRPC clients: what the relay does not know in it is no error.
    pub(super) foreign: bool,
}

impl Document {
    pub(super) fn new(origin: &str, text: &str) -> Self {
        Self {
            origin: origin.to_owned(),
            text: text.to_owned(),
            foreign: false,
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

    /// Where a key is whose value is there: the last time that it is written before.
    pub(super) fn key(&self, key: &str, (line, column): (u64, u64)) -> (u64, u64) {
        let before = self.text.lines().zip(1..=line);
        let mut found = (line, column);
        for (text, number) in before {
            let seen = if number == line {
                let end = text
                    .char_indices()
                    .nth(usize::try_from(column.saturating_sub(1)).unwrap_or(usize::MAX));
                end.map_or(text, |(end, _)| text.get(..end).unwrap_or(text))
            } else {
                text
            };
            if let Some((ahead, _)) = seen.rsplit_once(key) {
                let ahead = ahead.strip_suffix(['"', '\'']).unwrap_or(ahead);
                found = (number, ahead.chars().count() as u64 + 1);
            }
        }
        found
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
    }
}
