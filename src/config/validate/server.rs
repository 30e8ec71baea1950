// SPDX-License-Identifier: Apache-2.0
//! Validates one control plane.

use std::path::PathBuf;

use crate::config::reading::Spanned;
use crate::json::Place;
use rustls_pki_types::ServerName;

use super::spiffe::{NOT_BOTH, Supplies};
use super::{Check, Scalar, paths, workload};
use crate::config::bootstrap::{CallCreds, ChannelCreds, TlsConfig, TokenConfig, XdsServer};
use crate::config::uri::Located;
use crate::config::{
    CertificateFiles, Credentials, Grpc, Reach, Rejections, RestPolls, Server, Supply, Tls, Transport,
};
use crate::xds::ServerFeatures;

/// Returns a server of which only the URI is given.
pub(super) fn plain_server(uri: &str) -> Result<Server, String> {
    let located = Located::parse(uri)?;
    let credentials = default_credentials(tls(&located).unwrap_or_default());
    Ok(located_at(uri, located, credentials, None, &XdsServer::default()))
}

/// Whether the address of a server says that it is reached with TLS, or without.
const fn tls(located: &Located) -> Option<bool> {
    match located {
        Located::Grpc { tls, .. } => *tls,
        Located::Rest { tls, .. } => Some(*tls),
        Located::Files(_) => None,
    }
}

/// Returns a server of which nothing is left to be read but words.
fn located_at(
    uri: &str,
    located: Located,
    credentials: Credentials,
    token: Option<PathBuf>,
    entry: &XdsServer,
) -> Server {
    let reach = match located {
        Located::Files(path) => Reach::Files(path),
        Located::Grpc { endpoint, .. } => Reach::Grpc(Grpc {
            endpoint,
            credentials,
            token,
            transport: entry
                .transport
                .as_ref()
                .map_or_else(Transport::default, |written| written.value),
            rejections: entry
                .rejections
                .as_ref()
                .map_or_else(Rejections::default, |written| written.value),
        }),
        Located::Rest { endpoint, prefix, .. } => Reach::Rest(RestPolls {
            endpoint,
            credentials,
            token,
            prefix,
        }),
    };
    Server {
        uri: uri.to_owned(),
        reach,
        features: ServerFeatures::default(),
        node: None,
    }
}

pub(super) fn server(check: &mut Check, key: &str, entry: &Spanned<XdsServer>) -> Option<Server> {
    let entry = &entry.value;
    let features = features(check, key, entry);
    let uri = entry.server_uri.as_ref()?;
    let mut located = check.read(&format!("{key}.server_uri"), Some(uri), Located::parse)?;
    useless(check, key, entry, &located);
    if let Located::Files(path) = &mut located {
        *path = paths::placed(
            check,
            &format!("{key}.server_uri"),
            Some(uri.place),
            std::mem::take(path),
        );
        return Some(located_at(&uri.value, located, Credentials::Insecure, None, entry));
    }
    let credentials = credentials(
        check,
        &format!("{key}.channel_creds"),
        &entry.channel_creds,
        tls(&located),
    )?;
    let token = token(check, &format!("{key}.call_creds"), &entry.call_creds, &credentials)?;
    Some(Server {
        features,
        ..located_at(&uri.value, located, credentials, token, entry)
    })
}

/// Reports keys that have no effect for this kind of server: files have no connection, and polls have only one dialect.
fn useless(check: &mut Check, key: &str, entry: &XdsServer, located: &Located) {
    let (files, rest) = match located {
        Located::Files(_) => (true, false),
        Located::Rest { .. } => (false, true),
        Located::Grpc { .. } => return,
    };
    let first = |list: &[Scalar]| list.first().map(|one| one.place);
    let channel = entry.channel_creds.first().map(|one| one.place);
    let call = entry.call_creds.first().map(|one| one.place);
    let transport = entry.transport.as_ref().map(|one| one.place);
    let rejections = entry.rejections.as_ref().map(|one| one.place);
    for (name, place) in [
        ("channel_creds", channel.filter(|_| files)),
        ("call_creds", call.filter(|_| files)),
        ("server_features", first(&entry.server_features).filter(|_| files)),
        ("transport", transport.filter(|_| files || rest)),
        ("rejections", rejections.filter(|_| files || rest)),
    ] {
        if let Some(place) = place {
            let what = if files { "files" } else { "a server that is polled" };
            let message = format!("{name} has no use with {what}; remove it");
            check.foreign(place, &format!("{key}.{name}"), message);
        }
    }
}

fn features(check: &mut Check, key: &str, entry: &XdsServer) -> ServerFeatures {
    let mut features = ServerFeatures::default();
    for written in &entry.server_features {
        match written.value.as_str() {
            "fail_on_data_errors" => features.fail_on_data_errors = true,
            "ignore_resource_deletion" => features.ignore_resource_deletion = true,
            // G-14: the specification spells it in two ways.
            "resource_timer_is_transient_error" | "resource_timer_is_transient_failure" => {
                features.resource_timer_is_transient_error = true;
            }
            "trusted_xds_server" => features.trusted_xds_server = true,
            // Accepted, without effect.
            "xds_v3" => {}
            name => {
                let message = format!(
                    "`{name}` is not a server feature; write fail_on_data_errors, ignore_resource_deletion, \
                     resource_timer_is_transient_error or trusted_xds_server"
                );
                check.foreign(written.place, &format!("{key}.server_features"), message);
            }
        }
    }
    features
}

/// Returns the first supported entry of the list, as in gRPC. It must agree with an `http` or `https` scheme.
fn credentials(check: &mut Check, key: &str, list: &[Spanned<ChannelCreds>], tls: Option<bool>) -> Option<Credentials> {
    let mut refused: Option<(Place, &str)> = None;
    for (index, entry) in list.iter().enumerate() {
        let kind = entry.value.kind.as_ref()?;
        let wants_tls = match kind.value.as_str() {
            "tls" => true,
            "insecure" => false,
            other => {
                refused.get_or_insert((kind.place, other));
                continue;
            }
        };
        if tls.is_some_and(|tls| tls != wants_tls) {
            let message = format!("`{}` contradicts the scheme of server_uri; remove one", kind.value);
            check.at(kind.place, key, message);
            return None;
        }
        let key = format!("{key}[{index}].config");
        let config = check.raw::<TlsConfig>(&entry.value.config, &key);
        return if wants_tls {
            channel_tls(check, &key, &config).map(Credentials::Tls)
        } else {
            insecure(check, &key, &config)
        };
    }
    let Some((place, kind)) = refused else {
        return Some(default_credentials(tls.unwrap_or_default()));
    };
    let why = if kind == "google_default" {
        "`google_default` is not supported: it needs Google's own credentials".to_owned()
    } else {
        format!("`{kind}` is not supported")
    };
    check.at(place, key, format!("{why}; write insecure or tls"));
    None
}

fn insecure(check: &mut Check, key: &str, config: &TlsConfig) -> Option<Credentials> {
    let place = |file: &Option<Scalar>| file.as_ref().map(|file| file.place);
    let written = [
        ("ca_certificate_file", place(&config.ca_certificate_file)),
        ("certificate_file", place(&config.certificate_file)),
        ("private_key_file", place(&config.private_key_file)),
        ("server_name", place(&config.server_name)),
        ("spiffe", config.spiffe.as_ref().map(|spiffe| spiffe.place)),
    ];
    let Some((name, place)) = written.into_iter().find_map(|(name, place)| Some((name, place?))) else {
        return Some(Credentials::Insecure);
    };
    let message = format!("{name} has no use with insecure; remove it or write tls");
    check.at(place, format!("{key}.{name}"), message);
    None
}

pub(super) fn channel_tls(check: &mut Check, key: &str, config: &TlsConfig) -> Option<Tls> {
    let (identity, authorities) = presented(check, key, config)?;
    let by_id = |name: &&Scalar| name.value.starts_with(SPIFFE);
    let written = config.server_name.as_ref();
    let spiffe_id = written.filter(by_id);
    let ca = config.ca_certificate_file.as_ref();
    let ca = paths::read(check, &format!("{key}.ca_certificate_file"), ca, |path| Ok(path.into()));
    let authorities = ca.map(Supply::Files).or(authorities);
    if let (Some(id), None) = (spiffe_id, &authorities) {
        let message = "a SPIFFE id needs ca_certificate_file: the system's authorities vouch for names only";
        check.at(id.place, format!("{key}.server_name"), message);
    }
    let spiffe_id = check.read(&format!("{key}.server_name"), spiffe_id, id);
    let written = written.filter(|name| !by_id(name));
    let server_name = check.read(&format!("{key}.server_name"), written, |name| {
        let is_name = ServerName::try_from(name).is_ok();
        let wrong =
            || format!("`{name}` is not a server name; write a DNS name, an IP address or a SPIFFE id, without a port");
        is_name.then(|| name.to_owned()).ok_or_else(wrong)
    });
    Some(Tls {
        server_name,
        spiffe_id,
        authorities,
        identity,
    })
}

/// Returns the relay's certificate, and whom `spiffe` trusts.
fn presented(check: &mut Check, key: &str, config: &TlsConfig) -> Option<Supplies> {
    let (certificate, private_key) = (&config.certificate_file, &config.private_key_file);
    if let Some(spiffe) = &config.spiffe {
        if let Some(file) = certificate.as_ref().or(private_key.as_ref()) {
            check.at(file.place, key, NOT_BOTH);
        }
        return workload::workload(check, &format!("{key}.spiffe"), spiffe);
    }
    match (certificate, private_key) {
        (Some(certificate), Some(private_key)) => {
            let mut placed = |name: &str, file: &Scalar| {
                paths::placed(
                    check,
                    &format!("{key}.{name}"),
                    Some(file.place),
                    PathBuf::from(&file.value),
                )
            };
            let identity = CertificateFiles {
                certificate_file: placed("certificate_file", certificate),
                private_key_file: placed("private_key_file", private_key),
            };
            Some((Some(identity.into()), None))
        }
        (None, None) => Some((None, None)),
        (Some(one), None) | (None, Some(one)) => {
            let message = "certificate_file and private_key_file go together; write both or none";
            check.at(one.place, key, message);
            None
        }
    }
}

/// A97: returns the token file, the only supported kind of call credentials.
fn token(
    check: &mut Check,
    key: &str,
    list: &[Spanned<CallCreds>],
    credentials: &Credentials,
) -> Option<Option<PathBuf>> {
    let mut found = None;
    for (index, entry) in list.iter().enumerate() {
        let key = format!("{key}[{index}]");
        let kind = entry.value.kind.as_ref()?;
        if kind.value != "jwt_token_file" {
            let message = format!("`{}` is not supported; write jwt_token_file", kind.value);
            check.foreign(kind.place, &key, message);
            continue;
        }
        let config = check.raw::<TokenConfig>(&entry.value.config, &format!("{key}.config"));
        let said = match (&config.jwt_token_file, credentials) {
            (None, _) => "missing field `jwt_token_file` in `config`",
            (Some(file), _) if file.value.is_empty() => "the path of the token file is empty",
            (Some(_), _) if found.is_some() => "a call takes one token; remove the others",
            // A97: a token is only for the server, so it is never sent unencrypted.
            (Some(_), Credentials::Insecure) => "a token is only sent over TLS; write tls in channel_creds",
            (Some(file), Credentials::Tls(_)) => {
                let path = PathBuf::from(&file.value);
                found = Some(paths::placed(
                    check,
                    &format!("{key}.config.jwt_token_file"),
                    Some(file.place),
                    path,
                ));
                continue;
            }
        };
        check.at(entry.place, key, said);
        return None;
    }
    Some(found)
}

fn default_credentials(tls: bool) -> Credentials {
    if tls {
        Credentials::Tls(Tls::default())
    } else {
        Credentials::Insecure
    }
}

const SPIFFE: &str = "spiffe://";

/// Checks a SPIFFE id as SPIFFE defines it.
fn id(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix(SPIFFE).unwrap_or(text);
    let (domain, path) = rest
        .split_once('/')
        .map_or((rest, None), |(domain, path)| (domain, Some(path)));
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_domain = !domain.is_empty() && domain.chars().all(|c| plain(c) && !c.is_ascii_uppercase());
    let is_segment = |segment: &str| !matches!(segment, "" | "." | "..") && segment.chars().all(plain);
    let is_path = path.is_none_or(|path| path.split('/').all(is_segment));
    let is_id = is_domain && is_path && text.len() <= 2048;
    is_id
        .then(|| text.to_owned())
        .ok_or_else(|| format!("`{text}` is not a SPIFFE id; write spiffe://trust-domain/path"))
}
