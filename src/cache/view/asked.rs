//! The sessions of a view that an operator's question is for.
//!
//! Owns whom a question concerns: who asks for nothing of it is left alone. Does not know the answers.

use std::sync::Arc;

use super::View;
use crate::interest::{Seated, Woken};
use inquiry::{Depth, Inquiry, Question};
use xds::{Name, Target, TypeUrl};

/// Sessions of a view that a question is for, and that were not asked yet.
pub struct Respondents {
    view: Arc<View>,
    seats: std::vec::IntoIter<u32>,
}

impl View {
    /// Returns the sessions that a question is for, as far as the view knows. Others may be among them.
    #[must_use]
    pub fn respondents(self: &Arc<Self>, question: &Question) -> Respondents {
        let sets = self.sets.read();
        let seats: Vec<u32> = match &question.depth {
            Depth::Resource(type_url, name) => {
                let waiters = self.waiters(type_url, name).into_iter();
                waiters.flat_map(|set| sets.seats(set)).collect()
            }
            Depth::RejectionsAt(type_url) | Depth::Among(type_url, _) => {
                let mut asking = Vec::new();
                self.leases.everyone(type_url, |set| asking.push(set));
                asking.sort_unstable();
                asking.dedup();
                asking.into_iter().flat_map(|set| sets.seats(set)).collect()
            }
            Depth::Types | Depth::Resources | Depth::Rejections => sets.iter().map(|(seat, _)| seat).collect(),
        };
        drop(sets);
        Respondents {
            view: self.clone(),
            seats: seats.into_iter(),
        }
    }

    /// Returns the sets that wait for a name: by itself, by its collection (C-22), or by the wildcard.
    fn waiters(&self, type_url: &TypeUrl, name: &Name) -> Vec<u32> {
        let named = std::iter::once(name.clone()).chain(name.collection());
        let targets = named.map(Target::Name).chain([Target::Wildcard]);
        let mut sets = Vec::new();
        targets.for_each(|target| self.leases.waiters(type_url, &target, |set| sets.push(set)));
        sets.sort_unstable();
        sets.dedup();
        sets
    }
}

impl Respondents {
    /// The sessions at these seats.
    pub(super) fn at(view: &Arc<View>, seats: impl Iterator<Item = u32>) -> Self {
        Self {
            view: view.clone(),
            seats: seats.collect::<Vec<_>>().into_iter(),
        }
    }

    /// Asks some of them the question. Returns whether there were any.
    #[must_use]
    pub fn ask_some(&mut self, most: usize, inquiry: &Arc<Inquiry>) -> bool {
        let before = self.seats.len();
        let whom = &inquiry.question().whom;
        let concerned = |seated: &&Arc<Seated>| !seated.watches() && whom.is_about_connection(seated.claims().number());
        let sets = self.view.sets.read();
        // Those that have left are not asked: nobody would answer.
        let seated = self.seats.by_ref().filter_map(|seat| sets.seated(seat));
        let asked = seated.filter(concerned).take(most);
        let wakers = asked.filter_map(|seated| seated.bell.ask(inquiry.clone())).collect();
        drop(sets);
        drop(Woken::new(wakers));
        before > 0
    }
}
