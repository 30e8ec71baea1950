//! A strict check of a page: every tag is closed in order, every attribute is quoted, every id is unique, no bare `&` or `<`.

use std::collections::BTreeSet;

/// Panics at the first fault.
pub(super) fn check(html: &str) {
    let mut rest = html.strip_prefix("<!DOCTYPE html>\n").expect("the form of the page");
    let mut open: Vec<&str> = Vec::new();
    let mut ids = BTreeSet::new();
    while let Some(at) = rest.find('<') {
        let (text, tag) = rest.split_at(at);
        if open.last() != Some(&"style") {
            check_text(text);
        }
        let end = tag.find('>').unwrap_or_else(|| panic!("a tag without end: {tag:.80}"));
        let (inside, after) = (&tag[1..end], &tag[end + 1..]);
        rest = after;
        if let Some(name) = inside.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "closed in the wrong order before {after:.80}");
            continue;
        }
        let empty = inside.ends_with('/');
        let inside = inside.trim_end_matches('/').trim_end();
        let (name, attributes) = inside.split_once([' ', '\n']).unwrap_or((inside, ""));
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "<{inside}>");
        for (key, value) in attributes_of(attributes) {
            check_text(value);
            assert!(key != "id" || ids.insert(value), "the id {value} stands twice");
        }
        if !empty {
            open.push(name);
        }
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "{open:?} {rest}");
    let leads = html
        .match_indices("aria-labelledby=\"")
        .map(|(at, word)| &html[at + word.len()..]);
    for lead in leads {
        let (names, _) = lead.split_once('"').unwrap();
        assert!(names.split(' ').all(|name| ids.contains(name)), "no id {names}");
    }
}

fn attributes_of(mut text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    while !text.trim().is_empty() {
        let (key, after) = text
            .trim_start()
            .split_once("=\"")
            .unwrap_or_else(|| panic!("unquoted: {text}"));
        let (value, rest) = after.split_once('"').unwrap_or_else(|| panic!("without end: {text}"));
        assert!(key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{key}");
        found.push((key, value));
        text = rest;
    }
    found
}

fn check_text(text: &str) {
    assert!(!text.contains('>'), "{text}");
    for (at, _) in text.match_indices('&') {
        let entity = text[at..].split_inclusive(';').next().unwrap_or_default();
        let known = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
        assert!(known.contains(&entity), "{entity} in {text:.80}");
    }
}
