//! The relays that clients of a view have come through (K-25).
//!
//! Owns the list, and that the writer learns of relays that come later. Knows nothing of nodes.

use std::collections::VecDeque;

use parking_lot::Mutex;

use super::view::View;

/// The ids of relays, the latest last.
#[derive(Debug, Default)]
pub(super) struct RelayChain(Mutex<Marks>);

#[derive(Debug, Default)]
struct Marks {
    relays: VecDeque<String>,
    /// Whether there are some that the writer was not told of.
    news: bool,
}

/// The most ids that are kept: relays below come with a new id after each restart, and clients write what they like. The oldest
/// are forgotten.
const MARKS_MAX: usize = 256;

impl View {
    /// Notes that a client has come through these relays.
    pub fn come_through(&self, relays: &[String]) {
        if relays.is_empty() {
            return;
        }
        let mut marks = self.relay_chain.0.lock();
        let before = marks.news;
        for relay in relays {
            if !marks.relays.contains(relay) {
                marks.relays.push_back(relay.clone());
                marks.news = true;
            }
        }
        let most = marks.relays.len().saturating_sub(MARKS_MAX);
        marks.relays.drain(..most);
        let rings = marks.news && !before;
        drop(marks);
        if rings {
            self.interest.notify_one();
        }
    }

    /// Returns all known relays, if there are new ones since the last call.
    #[must_use]
    pub fn take_relays(&self) -> Option<Vec<String>> {
        let mut marks = self.relay_chain.0.lock();
        std::mem::take(&mut marks.news).then(|| marks.relays.iter().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cache::ViewSettings;
    use crate::xds::Class;

    /// K-25: a relay that comes later is reported once, and a client that invents relays does not fill the list.
    #[test]
    fn those_that_come_later() {
        let settings = ViewSettings {
            linger: Duration::ZERO,
            names_per_view: 0,
            pinned_bytes_per_view: 0,
        };
        let view = View::new(Class::default(), settings);
        view.come_through(&[]);
        assert_eq!(view.take_relays(), None);
        let list = |relays: &[&str]| -> Vec<String> { relays.iter().map(|relay| (*relay).to_owned()).collect() };
        view.come_through(&list(&["edge", "zone"]));
        assert_eq!(view.take_relays(), Some(list(&["edge", "zone"])));
        view.come_through(&list(&["zone"]));
        assert_eq!(view.take_relays(), None);
        view.come_through(&list(&["region", "zone"]));
        assert_eq!(view.take_relays(), Some(list(&["edge", "zone", "region"])));
        (0..1000).for_each(|n| view.come_through(&[n.to_string()]));
        let all = view.take_relays().unwrap_or_default();
        assert_eq!((all.len(), all.last().map(String::as_str)), (MARKS_MAX, Some("999")));
    }
}
