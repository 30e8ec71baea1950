//! What must hold of a world: at any time, and for a client at rest.
//!
//! Owns the naive model. Changes nothing.

use distributary::xds::Dialect;

use super::super::agent::{Agent, is_bad};
use super::{VERSIONS, World};
use crate::support::CDS;

impl World {
    /// What is condemned was rejected by clients of the kind, and suits none of them.
    pub(super) fn judge(&self) {
        let condemned = self.read().map(|view| view.head().condemned()).unwrap_or_default();
        for one in &*condemned {
            let content = &self.said[&one.version];
            let version = VERSIONS
                .into_iter()
                .find(|version| one.kind() == format!("envoy {version}"));
            let version = version.unwrap_or_else(|| panic!("{}", one.kind()));
            assert!(is_bad(content, version), "{content} is condemned for {version}");
            let gone = self.rejected.contains(&(content.clone(), version));
            let rejects = |agent: &Agent| agent.version == version && agent.held.lock().all_rejected.contains(content);
            assert!(gone || self.agents.iter().any(rejects), "nobody has rejected {content}");
        }
    }

    /// Returns what a client lacks at rest, if anything.
    pub(super) fn wrong(&self, agent: &Agent) -> Option<String> {
        let held = agent.held.lock();
        let condemned = self.condemned_for(agent.version);
        let spared = |content: &String| {
            let one = condemned.iter().find(|one| self.said[&one.version] == *content);
            one.is_some_and(|one| !is_bad(&self.said[&one.stands_in.version()], agent.version))
        };
        // Who rejects all as a whole has nothing new until all that is bad is condemned.
        let whole = self.software.dialect == Dialect::Sotw && self.software.type_url == CDS;
        if whole
            && self
                .current
                .values()
                .any(|content| is_bad(content, agent.version) && !spared(content))
        {
            return None;
        }
        for (name, content) in &self.current {
            let (has, rejects) = (held.accepted.get(*name), held.rejected.get(*name) == Some(content));
            if !is_bad(content, agent.version) {
                if has != Some(content) {
                    return Some(format!("{content} wanted"));
                }
                continue;
            }
            if has == Some(content) {
                return Some(format!("{content} was accepted"));
            }
            if has.is_none() && spared(content) {
                return Some(format!(
                    "{content} is condemned, and a client that holds nothing is not served what stands in"
                ));
            }
            let stands_in = condemned.iter().find(|one| one.name().as_str() == *name);
            let served_older = stands_in.is_some_and(|one| has == self.said.get(&one.stands_in.version()));
            // Older content that is bad as well is rejected; the verdict is over when that is known.
            let rejects_older =
                stands_in.is_some_and(|one| held.rejected.get(*name) == self.said.get(&one.stands_in.version()));
            if !(rejects || served_older || rejects_older) {
                return Some(format!("{content} is not rejected, and nothing stands in for it"));
            }
        }
        None
    }
}
