// SPDX-License-Identifier: Apache-2.0
//! What the clients of a group ask for, and how they behave: the words of a scenario as a profile. Starts nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::file::{AcksShape, ClientKind, Group, Resources, Streams};
use crate::fleet::client::profile::{Acks, Behaviour, Delay, Interest, Profile};
use crate::fleet::identity::ClientIdentity;
use crate::wire::kind::{Dialect, Kind};

/// Returns the profile of a group.
pub(super) fn profile(group: &Group, world: &BTreeMap<Kind, Resources>, identity: Arc<ClientIdentity>) -> Profile {
    let every = group.every.map_or(Duration::from_millis(100), |every| every.0);
    let polls = (group.kind == ClientKind::Poller).then_some(every);
    Profile {
        // H-03: the answer to a poll holds all resources of its type.
        dialect: if polls.is_some() { Dialect::Sotw } else { group.dialect },
        aggregated: group.streams == Streams::Ads && polls.is_none(),
        polls,
        above: group.above,
        interests: interests(group, world, every),
        behaviour: behaviour(group),
        identity,
    }
}

/// Returns what a client of a group asks for, and how often, if it asks anew.
pub(super) fn interests(group: &Group, world: &BTreeMap<Kind, Resources>, every: Duration) -> Vec<(Kind, Interest)> {
    let names = group.names;
    let there = |kind: &Kind| world.contains_key(kind);
    match group.kind {
        ClientKind::Envoy => {
            let by_name = [Kind::Sds, Kind::Rtds, Kind::Ecds].into_iter().filter(there);
            Interest::ROUTING
                .into_iter()
                .chain(by_name.map(|kind| (kind, Interest::Names(names))))
                .collect()
        }
        ClientKind::EnvoyV2 => vec![
            (Kind::CdsV2, Interest::All),
            (Kind::EdsV2, Interest::Follow),
            (Kind::LdsV2, Interest::All),
            (Kind::RdsV2, Interest::Follow),
        ],
        ClientKind::Ztunnel | ClientKind::ZtunnelOnDemand => {
            let asked = match group.kind == ClientKind::Ztunnel {
                true => Interest::All,
                false => Interest::Demand(names, every),
            };
            vec![(Kind::IstioAddress, asked), (Kind::IstioAuthorization, Interest::All)]
        }
        ClientKind::Own => vec![(Kind::Own, Interest::Names(names))],
        ClientKind::Poller => Interest::ROUTING.to_vec(),
        ClientKind::Grpc => vec![
            (Kind::Cds, Interest::Follow),
            (Kind::Eds, Interest::Follow),
            (Kind::Lds, Interest::Names(names)),
            (Kind::Rds, Interest::Follow),
        ],
        ClientKind::OnDemand => vec![(Kind::Cds, Interest::Demand(names, every))],
        ClientKind::Hosts => vec![(Kind::Vhds, Interest::Demand(names, every))],
        ClientKind::Clusters => vec![(Kind::Cds, Interest::All)],
        ClientKind::Endpoints => vec![(Kind::Eds, Interest::Names(names))],
        ClientKind::Names => vec![
            (Kind::Cds, Interest::All),
            (Kind::Eds, Interest::Names(names)),
            (Kind::Lds, Interest::All),
            (Kind::Rds, Interest::Follow),
        ],
    }
}

/// Returns how the clients of a group behave.
pub(super) fn behaviour(group: &Group) -> Behaviour {
    Behaviour {
        acks: match group.acks {
            AcksShape::AtOnce => Acks::Yes,
            AcksShape::Never => Acks::Never,
            AcksShape::Late(mean) => Acks::Late(Delay::Exponential(mean.0)),
            AcksShape::RejectOneIn(every) => Acks::Rejects(every),
        },
        stalls: group.stalls,
        flaps: group.flaps.map(|flaps| flaps.0),
        returns: group.returns || group.flaps.is_some(),
        remembers: group.remembers,
    }
}
