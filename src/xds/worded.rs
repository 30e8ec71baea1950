// SPDX-License-Identifier: Apache-2.0
//! Enumerations that are words: in metrics, in answers and for people.
//!
//! Owns that a variant and its word stand once. Knows none of them.

/// Declares an enumeration with a word for each variant: all of them in order as `ALL`, its `word`, and which is `called` so.
#[macro_export]
macro_rules! worded {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$of:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$meta])*
        $vis enum $name { $($(#[$of])* $variant,)* }

        impl $name {
            /// All of them, in their order.
            $vis const ALL: [Self; [$($word),*].len()] = [$(Self::$variant),*];

            /// Its name in metrics, in answers and for people.
            #[must_use]
            $vis const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// Returns the one with this name.
            #[must_use]
            $vis fn called(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.word() == word)
            }
        }
    };
}
