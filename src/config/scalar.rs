//! The smallest part of the file: a value as text, with its place.

use serde_saphyr::Spanned;

/// A scalar with its place. It is read as text, so that every error about it is written here and not by the parser.
pub(super) type Scalar = Spanned<String>;
