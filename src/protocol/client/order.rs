//! In which order types were first requested on the present stream, and what an answer says about earlier ones.
//!
//! Owns the numbers of these requests. Knows nothing of content.

use super::Client;
use xds::TypeUrl;

impl Client {
    /// A request was sent; `first`: its type, if that was the first request of the type on the stream.
    pub(super) fn note_asked(&mut self, first: Option<TypeUrl>) {
        if let (Some(_), Some(stream)) = (&first, &mut self.stream) {
            stream.requested = stream.requested.wrapping_add(1);
        }
        self.asked = first;
    }

    /// The server answers the type in this place for the first time: it has gone on from those that it was asked for earlier.
    pub(super) fn overtake(&mut self, place: u32) {
        let overtaken = self.feeds.iter_mut().filter_map(|(type_url, feed)| {
            let overtaken = feed.overtaken(place);
            overtaken.then(|| type_url.clone())
        });
        let overtaken: Vec<TypeUrl> = overtaken.collect();
        overtaken.iter().for_each(|type_url| self.note(type_url));
    }
}
