// SPDX-License-Identifier: Apache-2.0
//! Builds what a scenario describes: turns its groups of clients into profiles, and starts the servers and the fleets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::contender::{AUTHORITY, Above, Contender, Networks, Origin, Server, Upstream, world};
use super::file::{RelayShape, Scenario};
use super::manner::Manner;
use super::profiles::{behaviour, profile};
use super::scout::{scout, settle};
use super::{FILES_BESIDES, local};
use crate::command::arguments::Arguments;
use crate::fleet::Plan;
use crate::fleet::client::profile::Profile;
use crate::fleet::crew::Crew;
use crate::measure::process::{self, Process};
use crate::origin::control_plane::ControlPlane;
use crate::origin::world::World;
use crate::subject::floor::Floor;
use crate::subject::network::Network;
use crate::subject::relay::free_address;
use crate::wire::folder::Folder;
use crate::wire::place::Target;
use crate::wire::tls::{Papers, Secure};

/// Everything that runs: the server under test, the floor, and a second relay whose clients all behave well (the calm one).
pub(super) struct Cast {
    pub(super) main: Contender,
    pub(super) floor: Option<Contender>,
    pub(super) calm: Option<Contender>,
    pub(super) setup: String,
    /// Certificate files that the others read.
    _papers: Option<Papers>,
}

/// How long a server has to serve the first client, unless the first phase has a limit.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the parts are built from.
struct Stage<'a> {
    scenario: &'a Scenario,
    arguments: &'a Arguments,
    papers: Option<&'a Papers>,
    secure: Option<Arc<Secure>>,
    resumes: bool,
}

impl Cast {
    pub(super) async fn assemble(scenario: &Scenario, arguments: &Arguments) -> anyhow::Result<Self> {
        arguments
            .trust
            .check(arguments.server.as_ref().or(arguments.upstream.as_ref()))?;
        // Without a relay, both ends are of this process.
        let ends = if arguments.direct { 2 } else { 1 };
        process::raise_open_files(connections(scenario) * ends + FILES_BESIDES)?;
        let resumes = scenario.tls.as_ref().is_none_or(|tls| tls.resumes);
        let papers = scenario
            .tls
            .as_ref()
            .map(|tls| Papers::new(tls.client_certificates, tls.client_names.clone()))
            .transpose()?;
        let secure = papers.as_ref().map(|papers| papers.secure(resumes)).transpose()?;
        let stage = Stage {
            scenario,
            arguments,
            papers: papers.as_ref(),
            secure,
            resumes,
        };
        let everybody = stage.crew(|_| true)?;
        let foreign = arguments.is_foreign();
        let main_world = if foreign {
            let interests = everybody.profiles().flat_map(|profile| &profile.interests);
            World::learning_also(interests.map(|(kind, _)| *kind))
        } else {
            world(scenario)
        };
        main_world.bell.trials.set_marks(&scenario.changed_at);
        let patience = scenario.phases.first().and_then(|phase| phase.limit);
        let patience = patience.map_or(PATIENCE, |limit| limit.0);
        let setup = setup(scenario, &main_world, arguments);
        let main = stage.relay(main_world, everybody.clone(), true).await?;
        match main
            .origin
            .control_plane
            .as_ref()
            .filter(|_| arguments.server.is_some())
        {
            _ if foreign => scout(&main.plan, &arguments.name, patience).await?,
            _ if !arguments.name.is_empty() => {
                bail!("--name needs --server or --upstream: the built-in control plane chooses its own names");
            }
            Some(control_plane) => settle(&main.plan, control_plane, patience).await?,
            None => {}
        }
        let floor = match scenario.floor && !foreign {
            true => Some(stage.floor(everybody).await?),
            false => None,
        };
        let calm = match scenario.calm && !foreign {
            true => {
                let steady = stage.crew(|profile| profile.behaviour.is_steady())?;
                Some(stage.relay(world(scenario), steady, false).await?)
            }
            false => None,
        };
        Ok(Self {
            main,
            floor,
            calm,
            setup,
            _papers: papers,
        })
    }
}

impl Stage<'_> {
    /// Returns the groups whose profile `keep` accepts.
    fn crew(&self, keep: fn(&Profile) -> bool) -> anyhow::Result<Crew> {
        let mut groups = Vec::new();
        for (at, group) in self.scenario.clients.groups.iter().enumerate() {
            let identity = group.identity();
            let identity = identity
                .resolve()
                .with_context(|| format!("the clients of group {at}"))?;
            groups.push((group.weight, profile(group, &self.scenario.world, Arc::new(identity))));
        }
        groups.retain(|(_, profile)| keep(profile));
        if groups.is_empty() {
            bail!("`calm: true` needs a group without `stalls`, `flaps`, `acks: never` or rejections");
        }
        Ok(Crew::new(groups))
    }

    /// Starts a relay and its control plane, or connects to the server that is given instead.
    async fn relay(&self, world: Arc<World>, mut crew: Crew, main: bool) -> anyhow::Result<Contender> {
        let (scenario, arguments) = (self.scenario, self.arguments);
        let listen = arguments.control_plane.filter(|_| main).unwrap_or_else(local);
        let foreign = world.is_foreign();
        let start = |at| ControlPlane::start(at, Arc::clone(&world), scenario.control_plane.dialect);
        let control_plane = (!foreign).then(|| start(listen)).transpose()?;
        let own = control_plane.as_ref().map(|control_plane| control_plane.address);
        let second = scenario.control_plane.fallback && main && !foreign;
        let fallback = second.then(|| start(local())).transpose()?;
        let address = free_address()?;
        let networks = own.filter(|_| scenario.makes_trouble() && arguments.server.is_none() && !arguments.direct);
        let networks = networks.map(|own| networks_around(address, own)).transpose()?;
        let above = networks.as_ref().map(|it| it.control_plane.address).or(own);
        let mut upstream = self.upstream(above, &crew, main);
        if let (Some(upstream), Some(fallback)) = (&mut upstream, &fallback) {
            upstream.servers = Some(self.both(&upstream.uri, fallback.address));
        }
        let above = match upstream.clone().filter(|_| scenario.relay.above && main) {
            Some(upstream) => Some(self.above(upstream).await?),
            None => None,
        };
        if let (Some(upstream), Some(above)) = (&mut upstream, &above) {
            upstream.uri = format!("http://{}", above.manner.address);
        }
        if self.is_through(main) {
            self.check_relayed(&crew)?;
            // The token is for the control plane, and the relay sends it.
            crew = crew.without_tokens();
        }
        let other = arguments
            .server
            .as_ref()
            .or(arguments.upstream.as_ref().filter(|_| arguments.direct));
        let (target, server) = if let Some(place) = other.filter(|_| main) {
            let server = Server::Other(watched(arguments)?);
            (place.target(&arguments.trust, self.resumes).await?, server)
        } else if let Some(own) = own.filter(|_| arguments.direct) {
            (Target::local(own, None), Server::Other(None))
        } else {
            let mut manner = manner(address, &scenario.relay)?;
            if let Some(papers) = self.papers {
                manner.config.push_str(&papers.listener(address));
                manner.listens = true;
            }
            let upstream = upstream.as_ref().context("there is no control plane")?;
            let relay = Some(manner.start(arguments, upstream).await?);
            let below = networks.as_ref().map_or(address, |it| it.clients.address);
            let target = Target::local(below, self.secure.clone());
            (target, Server::Relay { relay, manner })
        };
        check_tokens(&crew, &target)?;
        let mut plan = self.plan(target, world, crew);
        plan.above = above.as_ref().map(|above| Target::local(above.manner.address, None));
        plan.check_files()?;
        if !main {
            plan.clients = self.steady();
        }
        let origin = Origin {
            control_plane,
            address: own,
            fallback,
            above,
            dialect: scenario.control_plane.dialect,
            upstream,
            networks,
            ..Origin::default()
        };
        Contender::new(plan, server, origin)
    }

    /// Fails if a relay would need files that are not there: what is signed here is for clients that ask the server themselves.
    fn check_relayed(&self, crew: &Crew) -> anyhow::Result<()> {
        let signs = |profile: &Profile| profile.identity.has_token() && profile.identity.token_file(0).is_none();
        if self.arguments.trust.signs() || crew.profiles().any(|profile| signs(profile)) {
            bail!(
                "--client-ca and `token_key` sign for clients that ask the server themselves: with --upstream, the relay needs --cert, --key and `token_file`"
            );
        }
        Ok(())
    }

    /// Whether a relay stands between the clients and the user's control plane.
    fn is_through(&self, main: bool) -> bool {
        main && self.arguments.upstream.is_some() && !self.arguments.direct
    }

    /// Returns what the relay asks: the user's control plane, or this program's at `own`.
    fn upstream(&self, own: Option<SocketAddr>, crew: &Crew, main: bool) -> Option<Upstream> {
        if let Some(place) = self.arguments.upstream.as_ref().filter(|_| self.is_through(main)) {
            let token = crew.profiles().find_map(|profile| profile.identity.token_file(0));
            return Some(Upstream {
                uri: place.uri(),
                credentials: self.arguments.trust.credentials(token.as_deref()),
                node: crew.profiles().next().and_then(|profile| profile.identity.of_relay()),
                servers: None,
            });
        }
        let own = own?;
        Some(Upstream {
            uri: format!("http://{own}"),
            ..Upstream::default()
        })
    }

    /// Returns the servers of a relay with two control planes.
    fn both(&self, first: &str, second: SocketAddr) -> String {
        let servers = format!("  xds_servers: [{{ server_uri: '{first}' }}, {{ server_uri: 'http://{second}' }}]\n");
        match self.scenario.control_plane.xdstp {
            false => servers,
            true => format!(
                "{servers}  authorities:\n    {AUTHORITY}:\n    {servers}      fallback_on_reachability_only: true\n"
            ),
        }
    }

    /// Starts the relay above the one under test.
    async fn above(&self, upstream: Upstream) -> anyhow::Result<Above> {
        let shape = RelayShape {
            quiet: self.scenario.relay.quiet,
            ..RelayShape::default()
        };
        let manner = manner(free_address()?, &shape)?;
        let relay = Some(manner.start(self.arguments, &upstream).await?);
        Ok(Above {
            relay,
            manner,
            upstream,
        })
    }

    async fn floor(&self, crew: Crew) -> anyhow::Result<Contender> {
        if !crew.is_uniform() {
            bail!(
                "the floor writes the same bytes to all clients, so all must ask for the same: change the groups, or leave out the floor"
            );
        }
        let world = world(self.scenario);
        let profile = crew.profiles().next().cloned().context("there are no clients")?;
        let script = crew.first_requests(&world);
        let floor = Floor::start(&world, &profile, script, self.papers).await?;
        let plan = self.plan(Target::local(floor.address, self.secure.clone()), world, crew);
        Contender::new(plan, Server::Floor(floor), Origin::default())
    }

    fn plan(&self, target: Target, world: Arc<World>, crew: Crew) -> Plan {
        Plan {
            target,
            clients: self.scenario.clients.count,
            per_connection: self.scenario.clients.per_connection.max(1),
            world,
            crew,
            above: None,
        }
    }

    /// How many clients behave well.
    fn steady(&self) -> u32 {
        let weight = |steady: bool| -> u64 {
            let groups = self.scenario.clients.groups.iter();
            let groups = groups.filter(|group| !steady || behaviour(group).is_steady());
            groups.map(|group| u64::from(group.weight)).sum()
        };
        let clients = u64::from(self.scenario.clients.count) * weight(true) / weight(false).max(1);
        u32::try_from(clients).unwrap_or(u32::MAX)
    }
}

/// Returns how a relay of this shape is started.
fn manner(address: SocketAddr, shape: &RelayShape) -> anyhow::Result<Manner> {
    let named = shape.config.contains(FOLDER);
    let folder = named.then(Folder::new).transpose()?.map(Arc::new);
    let path = folder
        .as_ref()
        .map_or(String::new(), |folder| folder.0.display().to_string());
    Ok(Manner {
        address,
        config: shape.config.replace(FOLDER, &path),
        quiet: shape.quiet,
        listens: false,
        folder,
    })
}

/// What stands for a folder in a configuration.
const FOLDER: &str = "{folder}";

/// Fails if a token would be sent without TLS.
fn check_tokens(crew: &Crew, target: &Target) -> anyhow::Result<()> {
    if target.tls.is_none() && crew.profiles().any(|profile| profile.identity.has_token()) {
        bail!("a token (`token_file`, `token_key`) is sent only with TLS: write https:// in --server, or `tls: {{}}`");
    }
    Ok(())
}

/// Starts the networks around a relay that listens at `relay` and asks the control plane at `control_plane`.
fn networks_around(relay: SocketAddr, control_plane: SocketAddr) -> anyhow::Result<Networks> {
    Ok(Networks {
        clients: Network::start(relay)?,
        control_plane: Network::start(control_plane)?,
    })
}

fn setup(scenario: &Scenario, world: &World, arguments: &Arguments) -> String {
    let (resources, bytes) = world.size();
    let through = match (&arguments.server, arguments.direct) {
        (Some(server), _) => format!("at {}", server.uri()),
        (None, true) => "at the control plane itself".to_owned(),
        (None, false) => "at a relay".to_owned(),
    };
    let resources = match world.is_foreign() {
        true => "resources learned as they come".to_owned(),
        false => format!("{resources} resources, {} KiB in all", bytes / 1024),
    };
    let (clients, shared) = (scenario.clients.count, scenario.clients.per_connection.max(1));
    let connections = clients.div_ceil(shared);
    format!(
        "{} {clients} clients over {connections} connections {through}: {resources}",
        scenario.description
    )
}

/// Returns the process of a server that runs already, if it is known.
fn watched(arguments: &Arguments) -> anyhow::Result<Option<Process>> {
    let process = arguments.pid.map(Process::of);
    if let (Some(process), Some(pid)) = (&process, arguments.pid) {
        let spent = process.cpu().and_then(|_| process.resident_bytes());
        spent.with_context(|| format!("--pid {pid}: its processor time and memory cannot be read"))?;
    }
    Ok(process)
}

/// How many open files a scenario takes.
fn connections(scenario: &Scenario) -> u64 {
    let connections = u64::from(scenario.clients.count.div_ceil(scenario.clients.per_connection.max(1)));
    // A network has two ends of each connection.
    let ends = if scenario.makes_trouble() { 3 } else { 1 };
    connections * (ends + u64::from(scenario.floor) + u64::from(scenario.calm))
}
