// SPDX-License-Identifier: Apache-2.0
//! Files of resources, in every format: whatever the content, parsing ends; a good file gives the same resources again, and they
//! become a state.

use std::time::Instant;

use distributary::json::{Schemas, Unknown};
use distributary::upstream::{Dictionary, FileContents, FileFormat, ParsedFile};
use distributary::xds::Types;

pub(crate) fn run(content: &[u8]) {
    let Some((choice, content)) = content.split_first() else {
        return;
    };
    let formats = [FileFormat::Yaml, FileFormat::Json, FileFormat::Binary, FileFormat::Text];
    let format = formats[usize::from(choice % 4)];
    let unknown = if choice & 4 == 0 { Unknown::Deny } else { Unknown::Warn };
    let dictionary = Dictionary {
        schemas: Schemas::standard(),
        unknown,
        types: Types::default(),
    };
    let now = Instant::now();
    let Ok(mut parsed) = ParsedFile::parse(content, format, &dictionary, now) else {
        return;
    };
    let again = ParsedFile::parse(content, format, &dictionary, now).expect("the same file can be read again");
    for (one, other) in parsed.resources.iter().zip(&again.resources) {
        assert!(
            one.resource.same_content(&other.resource),
            "equal texts become equal bytes"
        );
    }
    let count = parsed.resources.len();
    let (merged, twice) = FileContents::merge(&mut [&mut parsed.resources], &FileContents::default(), true, now);
    assert!(merged.len() + twice.len() <= count);
    assert_eq!(merged.whole(), twice.is_empty());
}
