// SPDX-License-Identifier: Apache-2.0
//! The control planes of a world, and the relay's view of each.
//!
//! Owns which zones there are. Knows nothing of clients.

use std::ops::{Deref, DerefMut};

use proto::envoy::config::core::v3::Node;

use super::classes::Profile;
use super::course::Course;
use super::lists::Lists;
use super::tally::{Broken, Rule, Tally};
use super::zone::Zone;

/// All zones.
pub(crate) struct Origins {
    pub(crate) zones: Vec<Zone>,
    /// In worlds where each authority has servers of its own: the lists. The servers are the zones.
    pub(crate) lists: Option<Box<Lists>>,
}

impl Origins {
    /// One zone for each profile of clients.
    pub(crate) fn new(profiles: &[Profile], course: &mut Course) -> Self {
        let zones = profiles.iter().enumerate();
        let zones = zones.map(|(id, profile)| Zone::new(id, *profile, &mut course.rng));
        let mut zones: Vec<Zone> = zones.collect();
        for zone in &mut zones {
            zone.wire.trouble(course.besides, &mut course.rng);
            if course.besides.hasty {
                zone.truth = zone.truth.clone().hasty();
            }
            if course.besides.strict {
                zone.truth = zone.truth.clone().whole();
            }
        }
        Self { zones, lists: None }
    }

    /// At rest: each view has what its control plane has.
    pub(crate) fn check(&mut self, tally: &mut Tally) -> Result<(), Broken> {
        self.see_origins();
        for zone in self.iter() {
            let above = zone.upper.is_some().then(|| &self.zones[self.origin(zone.id)]);
            let checked = zone.check(above, tally);
            checked.map_err(|broken| broken.of("zone", zone.id))?;
        }
        self.compare_chains(tally)
    }

    /// K-04: the zone that a control plane takes a node for.
    pub(crate) fn recognise(&self, node: &Node, tally: &mut Tally) -> Result<usize, Broken> {
        let profile = Profile::recognise(node, tally)?;
        let zone = self.iter().position(|zone| zone.profile == profile);
        zone.ok_or_else(|| Broken::new(Rule::K04, format!("no control plane knows {node:?}")))
    }
}

impl Deref for Origins {
    type Target = [Zone];

    fn deref(&self) -> &[Zone] {
        &self.zones
    }
}

impl DerefMut for Origins {
    fn deref_mut(&mut self) -> &mut [Zone] {
        &mut self.zones
    }
}
