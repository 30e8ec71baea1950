// SPDX-License-Identifier: Apache-2.0
//! Looks at a server that runs already before the clients come: whether it serves one of them at all, which names there are for clients
//! that ask by name, and whether it still serves what it was told in an earlier run.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::time::{sleep, timeout};

use super::now;
use crate::fleet::client::profile::{Behaviour, Interest, Profile};
use crate::fleet::crew::Crew;
use crate::fleet::{Fleet, Plan};
use crate::origin::control_plane::ControlPlane;
use crate::origin::ledger::Content;
use crate::origin::world::World;

/// How long the first answer and the search for names may take.
const SEARCH_MAX: Duration = Duration::from_secs(20);
/// How long without a new name ends the search, and how often as long if not all that was asked for was answered.
const QUIET: Duration = Duration::from_millis(500);
const QUIETS: u32 = 4;

/// Fails unless the server answers the first client, and teaches the plan's world the names that its clients may ask for.
pub(super) async fn scout(plan: &Plan, given: &[String], patience: Duration) -> anyhow::Result<()> {
    let by_name = |interest: &Interest| matches!(interest, Interest::Names(_) | Interest::Demand(..));
    let interests = plan.crew.profiles().flat_map(|profile| &profile.interests);
    let ledgers = interests.filter(|(_, interest)| by_name(interest));
    let ledgers: Vec<_> = ledgers.filter_map(|(kind, _)| plan.world.ledger(*kind)).collect();
    for ledger in &ledgers {
        given.iter().for_each(|name| _ = ledger.index(name.as_bytes()));
    }
    let like = plan.profile(0).context("there are no clients")?;
    let searches = !ledgers.is_empty() && given.is_empty();
    let everything = Interest::ROUTING.to_vec();
    let profile = Profile {
        interests: if searches { everything } else { like.interests.clone() },
        behaviour: Behaviour::default(),
        ..Profile::clone(like)
    };
    ask(plan, profile, searches, patience.min(SEARCH_MAX)).await?;
    match ledgers.iter().find(|ledger| ledger.len() == 0) {
        Some(ledger) => bail!(
            "no {} came for a client that asks for everything, and others must ask for them by name; is this node known to the \
             server? See `node_id`, or use --name",
            ledger.kind().word()
        ),
        None => Ok(()),
    }
}

/// Runs one client until it got an answer; if it `searches`, until no more comes.
async fn ask(plan: &Plan, profile: Profile, searches: bool, patience: Duration) -> anyhow::Result<()> {
    let node = profile.identity.node(0).id;
    let plan = Plan {
        clients: 1,
        per_connection: 1,
        crew: Crew::of(profile),
        ..plan.clone()
    };
    let server = &plan.target.authority;
    let fleet = Fleet::start(&plan)?;
    let progress = Arc::clone(&fleet.progress);
    fleet.admit(1);
    let answered = async {
        let (mut before, mut quiets) = (None, 0);
        loop {
            let messages = progress.messages();
            if let Some(refusal) = progress.refusal() {
                return Err(anyhow::Error::from(refusal));
            }
            quiets = if before == Some(messages) { quiets + 1 } else { 0 };
            let least = if progress.complete() > 0 { 1 } else { QUIETS };
            // A breach is for the clients to find.
            if progress.violated() > 0 || messages > 0 && (quiets >= least || !searches) {
                return Ok(());
            }
            before = Some(messages);
            sleep(if searches { QUIET } else { LOOK }).await;
        }
    };
    let answered = timeout(patience, answered).await;
    fleet.stop()?;
    match answered {
        Ok(answered) => answered.with_context(|| server.to_string()),
        // What came until then must do.
        Err(_) if progress.messages() > 0 => Ok(()),
        Err(_) => bail!(
            "{server} sent nothing within {patience:?} to a client that calls itself `{node}`; is this node known to it? See `node_id`, \
             or give names with --name"
        ),
    }
}

const LOOK: Duration = Duration::from_millis(20);

/// Waits until a relay that ran before serves what this run's control plane says. Until then it serves what it kept of an earlier run:
/// it stays subscribed for a while, and must find the new control plane.
pub(super) async fn settle(plan: &Plan, control_plane: &ControlPlane, patience: Duration) -> anyhow::Result<()> {
    let learned = World::learning();
    let fleet = Fleet::start(&learner(plan, &learned)?)?;
    let progress = Arc::clone(&fleet.progress);
    fleet.admit(1);
    let settled = async {
        let (mut before, mut since) = (None, now());
        loop {
            if let Some(refusal) = progress.refusal() {
                return Err(anyhow::Error::from(refusal));
            }
            let moved = Some((progress.messages(), control_plane.counts.bytes()));
            let ready = progress.complete() > 0 && control_plane.counts.streams() > 0;
            if moved != before || !ready || stale(&plan.world, &learned).is_some() {
                (before, since) = (moved, now());
            }
            // A breach is for the clients to find.
            if since.elapsed() >= QUIET || progress.violated() > 0 {
                return Ok(());
            }
            sleep(LOOK).await;
        }
    };
    let settled = timeout(patience, settled).await;
    fleet.stop()?;
    let (server, own) = (&plan.target.authority, control_plane.address);
    match (settled, stale(&plan.world, &learned)) {
        (Ok(settled), _) => settled.with_context(|| server.to_string()),
        (Err(_), _) if control_plane.counts.streams() == 0 => {
            bail!(
                "{server} opened no stream to the control plane of this run within {patience:?}: its upstream must be {own}"
            )
        }
        (Err(_), Some(name)) => bail!(
            "{server} still serves `{name}` as an earlier control plane did after {patience:?}: wait until it has unsubscribed \
             (`timers.linger` of a relay), or restart it"
        ),
        (Err(_), None) => bail!("{server} sent less than a client asked for within {patience:?}, or was never quiet"),
    }
}

/// Plans one client that asks as the first one of the plan, and takes what comes.
fn learner(plan: &Plan, learned: &Arc<World>) -> anyhow::Result<Plan> {
    let like = plan.profile(0).context("there are no clients")?;
    for (kind, _) in &like.interests {
        let (Some(own), Some(ledger)) = (plan.world.ledger(*kind), learned.ledger(*kind)) else {
            continue;
        };
        (0..own.len()).for_each(|index| _ = ledger.index(own.name(index).as_bytes()));
    }
    let profile = Profile {
        polls: None,
        aggregated: like.aggregated || like.polls.is_some(),
        behaviour: Behaviour {
            returns: true,
            ..Behaviour::default()
        },
        ..Profile::clone(like)
    };
    Ok(Plan {
        clients: 1,
        per_connection: 1,
        world: Arc::clone(learned),
        crew: Crew::of(profile),
        ..plan.clone()
    })
}

/// Returns a resource that a server served last with a content that this run's control plane does not say.
fn stale(own: &World, learned: &World) -> Option<String> {
    learned.ledgers().iter().find_map(|ledger| {
        let own = own.ledger(ledger.kind());
        (0..ledger.len()).find_map(|index| {
            let latest = |history: &[Arc<Content>]| history.last().and_then(|content| content.hash);
            let (name, served) = (ledger.name(index), ledger.inspect(index, latest).flatten()?);
            let said = own.and_then(|own| own.inspect(own.index(name.as_bytes())?, latest).flatten());
            (said != Some(served)).then_some(name)
        })
    })
}
