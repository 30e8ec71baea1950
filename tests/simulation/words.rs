// SPDX-License-Identifier: Apache-2.0
//! What a writer has heard lately that may end the hold of a removal: by the control plane, or by a person.
//!
//! Owns the words of the present instant. Does not know what is held.

use std::collections::BTreeSet;
use std::time::Instant;

use xds::{Changes, Hold, HoldOrder, Name, TypeUrl, Update};

/// The words of one instant.
#[derive(Default)]
pub(crate) struct Words {
    at: Option<Instant>,
    /// What the control plane has said the content or an error of; also the other names of such content.
    said: BTreeSet<(TypeUrl, Name)>,
    orders: Vec<HoldOrder>,
}

impl Words {
    /// The control plane has said this.
    pub(crate) fn hear(&mut self, changes: &[Changes], now: Instant) {
        self.begin(now);
        for change in changes {
            for update in &change.updates {
                let mut names = match update {
                    Update::Put(resource, _) => resource.aliases().to_vec(),
                    Update::Error(..) => Vec::new(),
                    Update::Absent(..) | Update::Forget(_) | Update::Whole(_) => continue,
                };
                names.push(update.name().clone());
                let of_type = |name| (change.type_url.clone(), name);
                self.said.extend(names.into_iter().map(of_type));
            }
        }
    }

    /// A person has ordered this.
    pub(crate) fn order(&mut self, order: HoldOrder, now: Instant) {
        self.begin(now);
        self.orders.push(order);
    }

    fn begin(&mut self, now: Instant) {
        if self.at != Some(now) {
            *self = Self {
                at: Some(now),
                ..Self::default()
            };
        }
    }

    /// Whether the control plane has said anything of this name now, but that it is gone.
    pub(crate) fn says(&self, type_url: &TypeUrl, name: &Name, now: Instant) -> bool {
        self.at == Some(now) && self.said.contains(&(type_url.clone(), name.clone()))
    }

    /// Whether a person has ordered something now for this name of a hold.
    pub(crate) fn orders(&self, hold: &Hold, name: &Name, now: Instant) -> bool {
        let concerns = |order: &HoldOrder| order.target.is(hold, name);
        self.at == Some(now) && self.orders.iter().any(concerns)
    }
}
