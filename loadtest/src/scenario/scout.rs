//! Finds names for clients that ask by name, if the control plane is not part of this program: takes those that were given, or
//! has one client ask for everything.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::time::{sleep, timeout};

use crate::client::profile::{Behaviour, Interest, Profile};
use crate::crew::Crew;
use crate::fleet::{Fleet, Plan};
use crate::kind::Kind;
use crate::shard::Shard;

/// How long the search for names may take, and how long without a new name ends it.
const SEARCH_MAX: Duration = Duration::from_secs(20);
const QUIET: Duration = Duration::from_millis(500);

/// Teaches the plan's world the names that its clients may ask for.
pub(super) async fn scout(plan: &Plan, given: &[String]) -> anyhow::Result<()> {
    let by_name = |interest: &Interest| matches!(interest, Interest::Names(_) | Interest::Demand(..));
    let interests = plan.crew.profiles().flat_map(|profile| &profile.interests);
    let ledgers = interests.filter(|(_, interest)| by_name(interest));
    let ledgers: Vec<_> = ledgers.filter_map(|(kind, _)| plan.world.ledger(*kind)).collect();
    if ledgers.is_empty() {
        return Ok(());
    }
    for ledger in &ledgers {
        given.iter().for_each(|name| _ = ledger.index(name.as_bytes()));
    }
    if given.is_empty() {
        search(plan).await?;
    }
    match ledgers.iter().find(|ledger| ledger.len() == 0) {
        Some(ledger) => bail!(
            "no {} came for a client that asks for everything, and others must ask for them by name; is this node known to the \
             server? See --node-id, or use --name",
            ledger.kind().word()
        ),
        None => Ok(()),
    }
}

/// Runs one client that asks for everything, and for what that refers to.
async fn search(plan: &Plan) -> anyhow::Result<()> {
    let like = plan.profile(0).context("there are no clients")?;
    let profile = Profile {
        dialect: like.dialect,
        aggregated: like.aggregated,
        apart: None,
        interests: vec![
            (Kind::Cds, Interest::All),
            (Kind::Eds, Interest::Follow),
            (Kind::Lds, Interest::All),
            (Kind::Rds, Interest::Follow),
        ],
        polls: like.polls,
        behaviour: Behaviour::default(),
        identity: Arc::clone(&like.identity),
    };
    let plan = Plan {
        clients: 1,
        per_connection: 1,
        crew: Crew::of(profile),
        shard: Shard::WHOLE,
        ..plan.clone()
    };
    let fleet = Fleet::start(&plan, 1)?;
    let progress = Arc::clone(&fleet.progress);
    fleet.admit(1);
    let quiet = async {
        let mut before = None;
        while before != Some(progress.messages()) || progress.messages() == 0 {
            before = Some(progress.messages());
            sleep(QUIET).await;
            if let Some(breach) = progress.violations().first() {
                bail!("the client that looks for names saw a violation: {}", breach.what);
            }
        }
        Ok(())
    };
    let found = timeout(SEARCH_MAX, quiet).await;
    fleet.stop()?;
    found.with_context(|| {
        format!(
            "the server sent nothing within {SEARCH_MAX:?} to a client that asks for everything; is this node known to it? See \
             --node-id, or give names with --name"
        )
    })?
}
