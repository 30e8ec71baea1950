//! The relays that clients of a view have come through (K-25).
//!
//! Owns the list, and that the writer learns of relays that come later. Knows nothing of nodes.

use std::collections::VecDeque;

use parking_lot::Mutex;

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

impl RelayChain {
    /// Notes that a client has come through these relays. Returns whether the writer must be told.
    pub(super) fn add(&self, relays: &[String]) -> bool {
        if relays.is_empty() {
            return false;
        }
        let mut marks = self.0.lock();
        let before = marks.news;
        for relay in relays {
            if !marks.relays.contains(relay) {
                marks.relays.push_back(relay.clone());
                marks.news = true;
            }
        }
        let most = marks.relays.len().saturating_sub(MARKS_MAX);
        marks.relays.drain(..most);
        marks.news && !before
    }

    /// Returns all known relays, if there are new ones since the last call.
    pub(super) fn take(&self) -> Option<Vec<String>> {
        let mut marks = self.0.lock();
        std::mem::take(&mut marks.news).then(|| marks.relays.iter().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K-25: a relay that comes later is reported once, and a client that invents relays does not fill the list.
    #[test]
    fn those_that_come_later() {
        let chain = RelayChain::default();
        chain.add(&[]);
        assert_eq!(chain.take(), None);
        let list = |relays: &[&str]| -> Vec<String> { relays.iter().map(|relay| (*relay).to_owned()).collect() };
        chain.add(&list(&["edge", "zone"]));
        assert_eq!(chain.take(), Some(list(&["edge", "zone"])));
        chain.add(&list(&["zone"]));
        assert_eq!(chain.take(), None);
        chain.add(&list(&["region", "zone"]));
        assert_eq!(chain.take(), Some(list(&["edge", "zone", "region"])));
        for n in 0..1000 {
            chain.add(&[n.to_string()]);
        }
        let all = chain.take().unwrap_or_default();
        assert_eq!((all.len(), all.last().map(String::as_str)), (MARKS_MAX, Some("999")));
    }
}
