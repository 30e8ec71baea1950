// SPDX-License-Identifier: Apache-2.0
//! How the other views of a class or a server are found.
//!
//! Owns that few are looked at, however many there are. Does not know what is done with them.

use std::sync::Arc;

use super::{Class, Scopes, View};
use xds::Twins;

/// How many views of one server are passed over in search of one with its content.
const SEARCHED: usize = 64;

impl Scopes {
    /// Returns the view of a class and a server, if there is one.
    pub(crate) fn find(&self, class: &Class, server: usize) -> Option<Arc<View>> {
        let key = (class.clone(), server);
        Some(self.views.lock().open.get(&key)?.view.clone())
    }

    /// Finds what the other servers of the same clients say, and what the same server says to clients of another class.
    #[must_use]
    pub fn twins(self: &Arc<Self>, view: &View) -> Twins {
        let scopes = self.clone();
        let own = (view.class().clone(), view.server());
        Twins::new(move || {
            let views = scopes.views.lock();
            let of_class = views.open.range((own.0.clone(), 0)..);
            let of_class = of_class.take_while(|((class, _), _)| *class == own.0);
            let mut of_server = views.open.iter().take(SEARCHED);
            let of_server = of_server.find(|((class, server), _)| *server == own.1 && *class != own.0);
            let others = of_class.filter(|((_, server), _)| *server != own.1).chain(of_server);
            others.map(|(_, open)| open.view.cut()).collect()
        })
    }
}
