// SPDX-License-Identifier: Apache-2.0
//! Validates the file's shape and the flags into a [`Config`]. Owns which values are allowed, and reports all problems
//! instead of only the first.

mod admin;
mod bootstrap;
mod check;
mod class_servers;
mod credentials;
mod exposure;
mod fitting;
mod guard;
mod identity;
mod listeners;
mod node;
mod paths;
mod rules;
mod server;
mod sharing;
mod snapshot;
mod sources;
mod spiffe;
mod tokens;
mod types;
mod upstream;
mod workload;

use std::sync::Arc;

use check::Check;
pub use node::host_name;

use super::document::Document;
use super::reading::{Scalar, Shape as _};
use super::shape::{self, Secrets};
use super::{Address, Config, ConfigError, Flags, Limits, LogFilter, MemoryLimit, WrittenConfig};
use crate::json::Place;

/// Returns the configuration, with defaults in place of bad values, and all problems.
pub(super) fn check(document: Document, flags: &Flags) -> Result<(Config, Vec<String>), ConfigError> {
    let written = WrittenConfig::new(&document.text, flags);
    let mut check = Check::new(document, flags);
    let Some(file) = check.parse::<shape::File>() else {
        let (problems, _) = check.end();
        return Err(ConfigError::Invalid(problems));
    };
    let secrets = ("--secrets", flags.secrets.as_deref());
    let secrets = flag_or(&mut check, secrets, Secrets::parse, file.secrets);
    let listeners = listeners::listeners(&mut check, file.listeners, &flags.listen, secrets);
    let (listeners, places): (Vec<_>, Vec<_>) = listeners.into_iter().unzip();
    let addresses: Vec<Address> = listeners.iter().map(|listener| listener.address.clone()).collect();
    let (admin, admin_tls) = listeners::admin(&mut check, &file.admin, flags.admin.as_deref(), &addresses, &places);
    let probes = listeners::probes(&mut check, file.probes.as_ref(), &addresses, &admin);
    let admin_rules = admin::rules(&mut check, file.admin.rules);
    let admin_hosts = admin::hosts(&mut check, file.admin.hosts.as_ref());
    let (mut upstream, bootstrap_node) = bootstrap::upstream(&mut check, file.upstream, flags, &addresses);
    let credentials = file.classes.iter().position(|class| class.value.credentials.is_some());
    let types = types::types(&mut check, file.types);
    sources::sources(&mut check, file.sources, &mut upstream, &types, &addresses, credentials);
    class_servers::class_servers(
        &mut check,
        &file.classes,
        file.canary.as_ref(),
        &mut upstream,
        &addresses,
    );
    credentials::shown_to(&mut check, &file.classes, &upstream);
    let node = node::node(&mut check, file.node, bootstrap_node);
    let guard = guard::guards(&mut check, file.guard.as_ref(), &file.classes);
    let of_classes: Vec<Place> = file.classes.iter().map(|class| class.place).collect();
    let classes = sharing::classes(&mut check, file.classes, &node.id, &upstream);
    let access = rules::access(&mut check, file.rules, secrets, &types);
    fitting::classes_and_rules(&mut check, classes.rules().iter().zip(of_classes), &access);
    let of_issuers: Vec<Place> = file.jwt.iter().map(|issuer| issuer.place).collect();
    let level = ("--log-level", flags.log_level.as_deref());
    let mut config = Config {
        node,
        listeners,
        issuers: tokens::issuers(&mut check, file.jwt),
        admin,
        admin_tls,
        admin_rules,
        admin_hosts,
        probes,
        upstream,
        classes,
        access: Arc::new(access),
        limits: file.limits,
        timers: file.timers,
        guard,
        chunk: Some(file.chunk).filter(|bytes| *bytes > 0).unwrap_or(usize::MAX),
        transport_v2: file.transport_v2,
        anonymous: file.anonymous,
        types,
        descriptors: types::descriptors(&mut check, &file.descriptors),
        snapshot: snapshot::snapshot(&mut check, file.snapshot),
        log_filter: flag_or(&mut check, level, LogFilter::parse, file.logging.level),
        lenient_files: file.lenient_files,
        warnings: Vec::new(),
        written,
    };
    fits(&mut check, &config.limits);
    exposure::open(&mut check, &config, &places);
    exposure::unused(&mut check, &config, &of_issuers);
    let (problems, warnings) = check.end();
    config.warnings = warnings;
    Ok((config, problems))
}

/// Returns the value of a flag, or that of the file, which was checked although a flag overrides it.
fn flag_or<T>(
    check: &mut Check,
    (name, flag): (&str, Option<&str>),
    parse: fn(&str) -> Result<T, String>,
    file: T,
) -> T {
    flag.and_then(|text| check.flag(name, text, parse)).unwrap_or(file)
}

/// Warns if a few large requests could take all memory that there may be.
fn fits(check: &mut Check, limits: &Limits) {
    let MemoryLimit::Bytes(bytes @ 1..) = limits.memory else {
        return;
    };
    if limits.request == 0 || limits.request > bytes / 2 {
        let message =
            "two unfinished requests of the size in limits.request (0 = any) could take all of it; lower that limit";
        let place = check.place(&["limits", "memory"]);
        check.warn(place, "limits.memory", message);
    }
}
