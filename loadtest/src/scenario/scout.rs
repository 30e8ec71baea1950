//! Looks at a control plane that is not part of this program before the clients come: whether it serves one of them at all, and which
//! names there are for clients that ask by name.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::time::{sleep, timeout};

use crate::client::profile::{Behaviour, Interest, Profile};
use crate::crew::Crew;
use crate::fleet::{Fleet, Plan};
use crate::kind::Kind;
use crate::shard::Shard;

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
    let everything = vec![
        (Kind::Cds, Interest::All),
        (Kind::Eds, Interest::Follow),
        (Kind::Lds, Interest::All),
        (Kind::Rds, Interest::Follow),
    ];
    let profile = Profile {
        apart: like.apart.filter(|_| !searches),
        interests: if searches { everything } else { like.interests.clone() },
        behaviour: Behaviour::default(),
        ..Profile::clone(like)
    };
    ask(plan, profile, searches, patience.min(SEARCH_MAX)).await?;
    match ledgers.iter().find(|ledger| ledger.len() == 0) {
        Some(ledger) => bail!(
            "no {} came for a client that asks for everything, and others must ask for them by name; is this node known to the \
             server? See --node-id, or use --name",
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
        shard: Shard::WHOLE,
        ..plan.clone()
    };
    let server = &plan.target.authority;
    let fleet = Fleet::start(&plan, 1)?;
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
            "{server} sent nothing within {patience:?} to a client that calls itself `{node}`; is this node known to it? See --node-id, \
             or give names with --name"
        ),
    }
}

const LOOK: Duration = Duration::from_millis(20);
