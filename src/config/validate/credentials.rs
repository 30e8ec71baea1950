// SPDX-License-Identifier: Apache-2.0
//! Validates the credentials of classes: the files with which the relay authenticates to control planes.

use std::collections::BTreeSet;

use crate::config::reading::Spanned;
use crate::json::Place;

use super::{Check, paths};
use crate::classes::{Rule, Selector};
use crate::config::class::template;
use crate::config::reading::Scalar;
use crate::config::shape::{Class, ClassCredentials};
use crate::config::{Credentials, Reach, Upstream};

/// Returns the paths of one class, which may contain fields of its `key`.
pub(super) fn class_credentials(
    check: &mut Check,
    index: usize,
    written: Option<&Spanned<ClassCredentials>>,
    key: &[Selector],
    fields: &[&str],
) -> Option<classes::Credentials> {
    let written = written?;
    let name = format!("classes[{index}].credentials");
    let (place, written) = (written.place, &written.value);
    if first(written).is_none() {
        let message = "it is empty; write certificate_file and private_key_file, or jwt_token_file";
        check.at(place, &name, message);
        return None;
    }
    let mut path = |field: &str, file: Option<&Scalar>| {
        let name = format!("{name}.{field}");
        let placed = paths::template(check, &name, file?);
        check.read(&name, file, |text| match text {
            "" => Err("the path is empty; write the path of a file".to_owned()),
            _ => template(&placed, key, fields),
        })
    };
    let certificate = path("certificate_file", written.certificate_file.as_ref());
    let private_key = path("private_key_file", written.private_key_file.as_ref());
    let token = path("jwt_token_file", written.jwt_token_file.as_ref());
    match (&written.certificate_file, &written.private_key_file) {
        (Some(one), None) | (None, Some(one)) => {
            let message = "certificate_file and private_key_file go together; write both or none";
            check.at(one.place, &name, message);
        }
        (Some(_), Some(_)) | (None, None) => {}
    }
    Some(classes::Credentials {
        identity: certificate.zip(private_key),
        token,
    })
}

/// Reports servers to which the relay cannot present a class's credentials, and warns which clients profit from them.
pub(super) fn shown_to(check: &mut Check, classes: &[Spanned<Class>], upstream: &Upstream) {
    for (index, class) in classes.iter().map(|class| &class.value).enumerate() {
        let Some(place) = class.credentials.as_ref().and_then(|written| first(&written.value)) else {
            continue;
        };
        let name = format!("classes[{index}].credentials");
        let (usual, canary) = upstream.lists(Some(index));
        let sources = upstream.sources.iter().filter(|source| !source.shared);
        let all = usual.iter().chain(canary.map_or(&[][..], |canary| canary.own()));
        let all: BTreeSet<usize> = all.chain(sources.flat_map(|source| &source.servers)).copied().collect();
        let servers = all.iter().filter_map(|at| upstream.servers.get(*at));
        let mut any = servers.clone().next().is_none();
        for server in servers {
            let credentials = match &server.reach {
                Reach::Grpc(grpc) => &grpc.credentials,
                Reach::Rest(rest) => &rest.credentials,
                Reach::Files(_) => continue,
            };
            match credentials {
                Credentials::Tls(_) => any = true,
                Credentials::Insecure => {
                    let uri = &server.uri;
                    let message = format!(
                        "{uri} is reached without TLS, so these files are not used for it; write tls in its channel_creds"
                    );
                    check.warn(place, &name, message);
                }
            }
        }
        if !any {
            let message = "no server of xds_servers is reached over TLS, so these files are never used; write tls in its \
                           channel_creds, or remove `credentials`";
            check.at(place, &name, message);
        }
    }
}

/// K-29: warns if clients choose by what they say which of these files the relay uses for them.
pub(super) fn used_for(check: &mut Check, index: usize, rule: &Rule, place: Place) {
    let Some(credentials) = &rule.credentials else { return };
    let values = || credentials.values().filter_map(|at| rule.key.get(at));
    let checked = rule.matches.iter().any(|(of, _)| of.is_identity()) || values().any(|field| rule.checks(field));
    let said = values().find(|field| !rule.checks(field));
    let who = match (checked, said) {
        (true, None) => return,
        (true, Some(field)) => format!("every client that matches chooses these files by its `{field}`"),
        (false, _) if rule.matches.is_empty() => "every client is in this class".to_owned(),
        (false, _) => "every client whose node matches is in this class".to_owned(),
    };
    let message = format!(
        "{who} and gets all resources that the control plane allows these files; take the class and the paths from \
         `identity`, or accept only clients that may have them (`client_ca` of the listener)"
    );
    check.warn(place, format!("classes[{index}].credentials"), message);
}

/// Returns the place of the first file.
pub(super) fn first(written: &ClassCredentials) -> Option<Place> {
    let files = [
        &written.certificate_file,
        &written.private_key_file,
        &written.jwt_token_file,
    ];
    files.into_iter().flatten().map(|file| file.place).next()
}
