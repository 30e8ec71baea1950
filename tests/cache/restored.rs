// SPDX-License-Identifier: Apache-2.0
//! What an earlier run of the relay knew, at clients that are moved to it.

#![expect(clippy::unwrap_used, reason = "a test: what cannot happen must fail it")]

use cache::Library;
use xds::Sight;

use super::*;

/// The names in the next response, if there is one; the client accepts it.
fn listed(server: &mut Server, view: &View, library: &Library) -> Option<Vec<String>> {
    let response = server.poll_response(&Sight::from(view.cut()), library, start())?;
    let request = request(Dialect::Sotw, None, &cds(), Vec::new(), &response.nonce.to_string());
    server.handle(request, library, start()).unwrap();
    let items = response.batch.items().iter();
    Some(items.map(|item| item.name().to_string()).collect())
}

/// K-16: a full state that follows a move to another server leaves out what that one lacks only by its own word, whether it brings
/// anything else or not.
#[test]
fn what_an_earlier_run_lacks_is_listed() {
    for changed in [false, true] {
        let (first, second, library) = (view(), view(), Library::new(1 << 20, 1 << 20));
        drop(first.publish(&[whole(&cds(), vec![put(&cds(), "a", "1"), put(&cds(), "b", "1")])]));
        let body = if changed { "2" } else { "1" };
        drop(second.publish_restored(&[whole(&cds(), vec![put(&cds(), "a", body)])]));
        let mut server = opened(stream(StreamLimits::default()), Dialect::Sotw, 1);
        let request = request(Dialect::Sotw, None, &cds(), Vec::new(), "");
        server.handle(request, &library, start()).unwrap();
        let next = |server: &mut Server, view| listed(server, view, &library);
        assert_eq!(next(&mut server, &first).unwrap(), ["a", "b"]);
        server.handle_moved(start());
        let at_once = next(&mut server, &second);
        assert_eq!(
            at_once.as_deref(),
            changed
                .then(|| ["a".to_owned(), "b".to_owned()])
                .as_ref()
                .map(|all| &all[..])
        );
        assert!(next(&mut server, &second).is_none());
        drop(second.publish(&[whole(&cds(), Vec::new())]));
        server.handle_dirty(&cds(), Dirty::All);
        assert_eq!(next(&mut server, &second).unwrap(), ["a"]);
    }
}
