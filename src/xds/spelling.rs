// SPDX-License-Identifier: Apache-2.0
//! Which word was probably meant by a wrong one. Knows nothing of what the words are for.

/// No word that anybody means is as long as this.
const CHARS_MAX: usize = 100;

/// Returns the word that was probably meant: the one that takes the fewest changes of a letter or swaps of two, if these are few.
#[must_use]
pub fn meant<'a>(written: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let short: String = written.chars().take(CHARS_MAX).collect();
    let length = short.chars().count();
    let close = words.into_iter().filter_map(|word| {
        let changes_max = 1 + word.len() / 4;
        // Each letter more or less is a change.
        let possible = word.len().abs_diff(length) <= changes_max;
        let changes = possible.then(|| strsim::osa_distance(&short, word))?;
        (changes <= changes_max).then_some((changes, word))
    });
    close.min_by_key(|(changes, _)| *changes).map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_word_is_meant() {
        let words = ["views", "view", "connections"];
        assert_eq!(meant("viewz", words), Some("views"));
        assert_eq!(meant("viwe", words), Some("view"));
        assert_eq!(meant("conections", words), Some("connections"));
        assert_eq!(meant("zzz", words), None);
        assert_eq!(meant(&"v".repeat(100_000), words), None);
        assert_eq!(meant("views", []), None);
    }
}
