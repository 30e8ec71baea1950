//! The sessions of a view that an operator's question is for.
//!
//! Owns whom a question concerns: who asks for nothing of it is left alone. Does not know the answers.

use std::sync::Arc;

use super::View;
use crate::cache::interest::{Seated, Woken};
use crate::inquiry::{Depth, Inquiry, Question};
use crate::xds::{Name, Target, TypeUrl};

/// Sessions that a question is for, and that were not asked yet.
pub struct Respondents(std::vec::IntoIter<Arc<Seated>>);

impl View {
    /// Returns the sessions that a question is for, as far as the view knows. Others may be among them.
    #[must_use]
    pub fn respondents(&self, question: &Question) -> Respondents {
        let connection = question.whom.stream.map(|stream| stream.connection);
        let concerned = |seated: &&Arc<Seated>| {
            !seated.watches() && connection.is_none_or(|connection| connection == seated.claims().number())
        };
        let seats = self.sets.read();
        let concerned: Vec<Arc<Seated>> = match &question.depth {
            Depth::Resource(type_url, name) => {
                let sets = self.waiters(type_url, name);
                let members = sets.into_iter().flat_map(|set| seats.members(set));
                members.filter(concerned).cloned().collect()
            }
            Depth::Types | Depth::Resources | Depth::Rejections => {
                let all = seats.iter().map(|(_, seated)| seated);
                all.filter(concerned).cloned().collect()
            }
        };
        Respondents(concerned.into_iter())
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
    /// Asks some of them. Returns whether there were any.
    #[must_use]
    pub fn ask_some(&mut self, most: usize, inquiry: &Arc<Inquiry>) -> bool {
        let before = self.0.len();
        // A session that has left must not keep the inquiry: nobody holds it any more once it is asked.
        let wakers = self
            .0
            .by_ref()
            .take(most)
            .filter_map(|seated| seated.bell.ask(inquiry.clone()));
        drop(Woken::new(wakers.collect()));
        before > 0
    }
}
