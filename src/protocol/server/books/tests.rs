// SPDX-License-Identifier: Apache-2.0
//! What must change together.

use super::*;
use xds::{Holds, Objection, ResourceParts, TypeUrl, Version};

fn books(lists_all: bool, names: &[&Name]) -> Books {
    let mut books = Books::new(lists_all);
    let objection = Arc::new(Objection::new(13, "bad", now()));
    for name in names {
        books.begin(name);
        books.doubt(name);
        books.rejections.doubt(name, Version::EMPTY, Holds::Nothing, now());
        books.try_parts(Vec::new(), vec![(*name).clone()], &objection);
        books.settle(name, NameOutcome::Quiet);
    }
    books
}

#[expect(clippy::disallowed_methods, reason = "any instant will do")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

/// B-22: whatever ends the rejection of a name ends it in all books, and whoever must be told of a name is looked at.
#[test]
fn a_row_changes_with_all_that_belongs_to_it() {
    let name = Name::from("a");
    let parts = ResourceParts {
        type_url: &TypeUrl::new("t"),
        name: name.clone(),
        aliases: Vec::new(),
        passed_on: &[],
        body: &[],
        endpoints: None,
        received: now(),
    };
    let resource = Arc::new(Resource::new(parts, 0));
    type Verb = fn(&mut Books, &Name, &Arc<Resource>);
    let verbs: [(&str, Verb, bool, bool); 7] = [
        ("ask", |books, name, _| books.ask(name), false, true),
        ("drop", |books, name, _| books.drop(name, false), false, false),
        ("keep", |books, name, _| books.drop(name, true), false, true),
        (
            "sent",
            |books, name, resource| books.sent(name, resource, None),
            false,
            false,
        ),
        ("gone", |books, name, _| books.gone(name), false, false),
        (
            "settle",
            |books, name, _| _ = books.settle(name, NameOutcome::As(Row::Nothing)),
            false,
            false,
        ),
        ("doubt", |books, name, _| books.doubt(name), true, true),
    ];
    for (verb, act, is_held_back, is_listed) in verbs {
        let mut books = books(false, &[&name]);
        act(&mut books, &name, &resource);
        assert_eq!(
            books.rejections().held_back().any(|held| *held == name),
            is_held_back,
            "{verb}"
        );
        assert_eq!(books.agenda().names().eq([&name]), is_listed, "{verb}");
    }
}

/// B-18: what was held back as one is sent again with any of it.
#[test]
fn secrets_are_held_back_as_one() {
    let (name, other) = (Name::from("a"), Name::from("b"));
    for lists_all in [true, false] {
        let mut books = books(lists_all, &[&name, &other]);
        books.gone(&name);
        let swept = books.sweep(2, |_, _, _| Vec::new()).map(|swept| swept.names);
        assert_eq!(swept.is_some_and(|names| names.contains(&other)), lists_all);
    }
}
