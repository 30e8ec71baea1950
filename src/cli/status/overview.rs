// SPDX-License-Identifier: Apache-2.0
//! The table with a line for each relay.
//!
//! Owns what is wrong with a relay as a whole. What differs between relays is in `compare`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::answers::{self, Health};
use super::compare::{self, ViewDifference};
use super::fault::StatusFault;
use super::{Report, servers};
use crate::answers::{ClusterList, Nacks, Resources, ServerRow, StandingCounts, ViewList};
use crate::cli::asking::Relays;
use crate::get::{Tone, short};
use crate::xds::{TypeUrl, Version, one_or_several};

/// What a relay says.
struct SeenRelay {
    health: Health,
    clusters: ClusterList,
    views: ViewList,
    nacks: Nacks,
}

const NARROW: &str = "RELAY VERSION STATE CLIENTS UP-TO-DATE SERVERS RESOURCES REJECTED HELD DIGEST CONTENT";
const WIDE: &str = "CONNECTIONS VIEWS UNCONFIRMED WHOLE-DIGEST";

/// `lagging_over`: with a larger share of clients that lag or wait, a relay is not well.
pub(super) fn report(asked: &Relays<'_>, lagging_over: f64) -> Report {
    let mut report = Report::new(NARROW, WIDE);
    let seen = report.answered(asked.each(|relay| {
        Ok(SeenRelay {
            health: Health::of(relay)?,
            clusters: relay.json(answers::CLUSTERS)?,
            views: relay.json("/views")?,
            nacks: relay.json("/nacks")?,
        })
    }));
    let views: Vec<Option<ViewList>> = seen
        .iter()
        .map(|(_, seen)| Some(seen.as_ref()?.views.clone()))
        .collect();
    let differences = differences(asked, &mut report, &views);
    let answered = views.iter().flatten().count();
    let relays: Vec<String> = seen.iter().map(|(relay, _)| relay.clone()).collect();
    for (at, (relay, seen)) in seen.iter().enumerate() {
        match seen {
            Some(seen) => {
                let content = match differences.iter().any(|one| one.is_of(at)) {
                    true => "differs",
                    false if answered < 2 => "",
                    false => "same",
                };
                report.relay(relay, seen, content);
                report
                    .faults
                    .extend(lagging(relay, seen.clusters.clients.as_ref(), lagging_over));
            }
            None => report
                .table
                .push_in(Tone::Wrong, [relay, "", "NO-ANSWER"].map(str::to_owned)),
        }
    }
    let listed = differences.iter().map(|one| one.json(&relays)).collect();
    report.json.insert("differences".to_owned(), listed);
    report.faults.extend(differences.iter().map(|one| one.fault(&relays)));
    report
}

/// Compares the relays name by name where their digests differ.
fn differences(asked: &Relays<'_>, report: &mut Report, views: &[Option<ViewList>]) -> Vec<ViewDifference> {
    let suspects = compare::suspects(views);
    if suspects.is_empty() {
        return Vec::new();
    }
    let listed = asked.each(|relay| answers::resources(relay, suspects.iter()));
    let listed: Vec<Option<Resources>> = listed
        .into_iter()
        .zip(views)
        // Who did not answer before is not waited for again, and not complained of twice.
        .map(|((relay, listed), views)| views.as_ref().and_then(|_| report.taken(&relay, listed)))
        .collect();
    compare::differences(&compare::rows(listed), views)
}

fn standings_json(standings: &StandingCounts) -> Value {
    let mut json = json!(standings);
    if let Some(fields) = json.as_object_mut() {
        fields.retain(|field, _| !["why", "hung_clients"].contains(&&**field));
    }
    json
}

/// Returns that too many clients of a relay do not answer, or wait for what nobody answers.
fn lagging(relay: &str, clients: Option<&StandingCounts>, over: f64) -> Option<StatusFault> {
    #[expect(clippy::cast_precision_loss, reason = "a share needs no more digits")]
    let over = |clients: &StandingCounts| {
        (clients.lagging + clients.waiting + clients.away + clients.hung) as f64 > over * clients.clients() as f64
    };
    let clients = clients.filter(|clients| over(clients))?;
    let words = format!("{relay}: {}; `distributary status --clients` shows them", clients.why);
    Some(StatusFault::new(format!("lagging {relay}"), words))
}

/// Returns that a relay still serves removed resources.
fn holding(relay: &str, held: usize) -> Option<StatusFault> {
    let words = format!(
        "{relay}: {held} removed resources are still served; `distributary holds` shows why, and how to let them go"
    );
    (held > 0).then(|| StatusFault::new(format!("holds {relay}"), words))
}

impl SeenRelay {
    /// Returns what is wrong with the relay as a whole.
    fn faults(&self, relay: &str, rejected: usize, held: usize) -> Vec<StatusFault> {
        let Self { health, clusters, .. } = self;
        let unready = || StatusFault::new(format!("ready {relay}"), format!("{relay}: {}", health.state));
        let files = clusters.faults.iter();
        let files = files.map(|fault| StatusFault::new(format!("file {relay} {fault}"), format!("{relay}: {fault}")));
        let rejects = || {
            let contents = one_or_several(["content", "contents"], rejected);
            let words = format!(
                "{relay}: clients reject {rejected} {contents}; `distributary status --nacks` shows what to mend"
            );
            StatusFault::new(format!("nacks {relay}"), words)
        };
        let ready = (!health.ready).then(unready).into_iter();
        ready
            .chain(files)
            .chain(servers::faults(relay, clusters))
            .chain((rejected > 0).then(rejects))
            .chain(holding(relay, held))
            .collect()
    }
}

impl Report {
    fn relay(&mut self, relay: &str, seen: &SeenRelay, content: &str) {
        let SeenRelay {
            health,
            clusters,
            views,
            nacks,
        } = seen;
        let word = health.state.split(':').next().unwrap_or_default();
        let rejected = nacks.rejections.len() + nacks.left_out;
        let held: usize = views.views.iter().map(|view| view.held).sum();
        let faults = seen.faults(relay, rejected, views.in_trouble());
        let tone = if faults.is_empty() { Tone::Plain } else { Tone::Wrong };
        self.faults.extend(faults);
        // A server of several authorities is one server.
        let servers = clusters.authorities.iter().flat_map(|authority| &authority.servers);
        let servers: BTreeMap<&String, &ServerRow> = servers.map(|server| (&server.server, server)).collect();
        let used = || servers.values().filter(|server| server.state != "unused");
        let well = used().filter(|server| !servers::is_failing(server)).count();
        let resources: usize = compare::halves(views).map(|half| half.resources).sum();
        let types = servers.values().flat_map(|server| server.types.values());
        let unconfirmed: usize = types.filter(|of| of.stale).map(|of| of.resources).sum();
        let digest: Version = compare::digest(views);
        // Of one moment, as the share of those that are up to date.
        let standings = clusters.clients.as_ref();
        let clients = standings.map_or(health.streams, |of| of.clients() as u64);
        self.table.push_in(
            tone,
            [
                relay.to_owned(),
                health.version.clone(),
                word.to_owned(),
                clients.to_string(),
                standings.map_or_else(String::new, |of| format!("{}/{}", of.up_to_date, of.clients())),
                format!("{well}/{}", used().count()),
                resources.to_string(),
                rejected.to_string(),
                held.to_string(),
                short(&digest.to_string()),
                content.to_owned(),
                health.connections.to_string(),
                views.views.len().to_string(),
                unconfirmed.to_string(),
                digest.to_string(),
            ],
        );
        self.relays.push(json!({
            "relay": relay,
            "version": health.version,
            "ready": health.ready,
            "state": health.state,
            "clients": clients,
            "connections": health.connections,
            "standings": standings.map(standings_json),
            "servers": servers.values().map(|server| servers::json(server)).collect::<Vec<_>>(),
            "views": views.views.len(),
            "resources": resources,
            "unconfirmed": unconfirmed,
            "rejected": rejected,
            "held": held,
            "digest": digest.to_string(),
            "content": if content.is_empty() { Value::Null } else { content.into() },
        }));
    }
}

impl ViewDifference {
    /// Returns it as a fault.
    pub(super) fn fault(&self, relays: &[String]) -> StatusFault {
        let key = &self.key;
        let type_url: &str = &key.type_url;
        let of = match key.class.as_str() {
            "-" => String::new(),
            class => format!(" for class {class}"),
        };
        let contents = self.contents.iter().map(|(contents, at)| {
            let at = at.iter().filter_map(|at| relays.get(*at)).map(String::as_str);
            (compare::word(contents), at.collect())
        });
        let words = compare::differs(&TypeUrl::new(type_url), &key.name, &of, contents);
        StatusFault::new(format!("differs {type_url} {} {}", key.name, key.class), words)
    }

    fn json(&self, relays: &[String]) -> Value {
        let contents = self.contents.iter().map(|(contents, at)| {
            let at: Vec<&String> = at.iter().filter_map(|at| relays.get(*at)).collect();
            json!({ "digests": contents, "relays": at })
        });
        json!({
            "type": self.key.type_url,
            "name": self.key.name,
            "class": self.key.class,
            "contents": contents.collect::<Vec<_>>(),
        })
    }
}
