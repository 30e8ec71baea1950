// SPDX-License-Identifier: Apache-2.0
//! Which views control planes see under which node id (K-28).
//!
//! Owns the look-up by id, so that a new view costs the same however many there are. Does not know where ids come from.

use std::collections::{BTreeMap, BTreeSet};

use classes::Class;

/// By server and node id, the classes of the views.
#[derive(Default)]
pub(super) struct NodeIds(BTreeMap<(usize, String), BTreeSet<Class>>);

impl NodeIds {
    /// Notes that the server sees the view of this class under this id. Returns another class that it sees under the same id,
    /// although it must distinguish the two. Classes that differ only in what their clients can read are alike, so at most three
    /// are looked at.
    pub(super) fn insert(&mut self, server: usize, id: &str, class: &Class) -> Option<Class> {
        let classes = self.0.entry((server, id.to_owned())).or_default();
        let twin = classes.iter().find(|other| !other.is_alike(class)).cloned();
        classes.insert(class.clone());
        twin
    }

    /// The view of this class has ended.
    pub(super) fn remove(&mut self, server: usize, id: String, class: &Class) {
        let key = (server, id);
        if let Some(classes) = self.0.get_mut(&key) {
            classes.remove(class);
            if classes.is_empty() {
                self.0.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn class(key: &str, endpoint_collections: bool) -> Class {
        Class {
            key: Arc::new([key.to_owned()]),
            endpoint_collections,
            ..Class::default()
        }
    }

    /// K-28: a view is no twin if it has ended, if it is of another server, or if it differs only in what its clients read.
    #[test]
    fn who_shares_an_id() {
        let mut ids = NodeIds::default();
        let (one, other) = (class("one", false), class("other", false));
        assert_eq!(ids.insert(0, "id", &one), None);
        assert_eq!(ids.insert(0, "id", &class("one", true)), None);
        assert_eq!(ids.insert(1, "id", &other), None);
        assert_eq!(ids.insert(0, "id", &other), Some(one.clone()));
        ids.remove(0, "id".to_owned(), &one);
        assert_eq!(ids.insert(0, "id", &other), Some(class("one", true)));
        ids.remove(0, "id".to_owned(), &class("one", true));
        assert_eq!(ids.insert(0, "id", &other), None);
        ids.remove(0, "id".to_owned(), &other);
        ids.remove(1, "id".to_owned(), &other);
        assert!(ids.0.is_empty());
    }
}
