// SPDX-License-Identifier: Apache-2.0
//! Validates the relay's own addresses.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use ipnet::IpNet;

use super::check::text;
use super::spiffe::{NOT_BOTH, Supplies};
use super::{Check, paths, workload};
use crate::config::reading::{Scalar, Spanned};
use crate::config::{Address, CertificateFiles, Listener, ListenerTls, SocketFile, Supply, is_abstract, shape, unix};
use crate::json::Place;

const LISTENER: Address = Address::Socket(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 15010));
const ADMIN: Address = Address::Socket(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9901));

/// Keys and certificates are not sent in the clear unless somebody says so.
const NO_PATH: &str = "the path is empty; write a PEM file";
const NO_SECRETS: &str = "`secrets: allow` would send private keys to clients in the clear, because this listener is without TLS and \
                          not on loopback; give it `tls`, or, if something else encrypts its connections, such as a mesh, write \
                          `insecure_secrets: true`";

/// Returns the listeners, each with the place of its address; what is not from the file has no place.
pub(super) fn listeners(
    check: &mut Check,
    file: Option<Spanned<Vec<shape::Listener>>>,
    flags: &[String],
    secrets: bool,
) -> Vec<(Listener, Option<Place>)> {
    if !flags.is_empty() {
        return flagged(check, &file.unwrap_or_default().value, flags, secrets);
    }
    let Some(file) = file else {
        return vec![(Listener::plain(LISTENER), None)];
    };
    check.filled(
        "listeners",
        &file,
        "add `- address: 0.0.0.0:15010` or leave the key out",
    );
    let mut found: Vec<(Listener, Option<Place>)> = Vec::new();
    for (index, listener) in file.value.iter().enumerate() {
        let key = format!("listeners[{index}]");
        let of_address = format!("{key}.address");
        let written = listener.address.as_ref();
        let Some(address) = check.read(&of_address, written, Address::parse) else {
            continue;
        };
        let at = written.map(|written| written.place);
        let taken = found.iter().find(|(known, _)| known.address.takes(&address));
        if let Some((known, _)) = taken {
            let message = match known.address == address {
                true => format!("{address} is there twice; remove one"),
                false => format!("{} has the port {address} already; remove one", known.address),
            };
            check.at(at, of_address, message);
        }
        let tls = listener.tls.as_ref();
        let tls = tls.and_then(|tls| listener_tls(check, &format!("{key}.tls"), &address, tls));
        let file = socket_file(check, &key, &address, listener);
        let proxies = proxies(check, &format!("{key}.proxy_protocol"), &address, listener);
        let of_tls = listener.tls.is_some();
        if secrets && !address.is_local() && !of_tls && !listener.insecure_secrets {
            check.at(at, &key, NO_SECRETS);
        }
        let listener = Listener {
            address,
            tls,
            file,
            proxies,
            requires_identity: listener.requires_identity,
        };
        found.push((listener, at));
    }
    found
}

/// Flags cannot configure TLS, so warn if they replace a listener that has it.
fn flagged(
    check: &mut Check,
    file: &[shape::Listener],
    flags: &[String],
    secrets: bool,
) -> Vec<(Listener, Option<Place>)> {
    if let Some(tls) = file.iter().find_map(|listener| listener.tls.as_ref()) {
        let message = "not in use: --listen replaces the listeners of the file, and is without TLS";
        check.warn(tls.place, "listeners", message);
    }
    let mut found = Vec::new();
    for text in flags {
        let Some(address) = check.flag("--listen", text, Address::parse) else {
            continue;
        };
        if secrets && !address.is_local() {
            let message = format!("{address}: {NO_SECRETS} in `listeners` of the file, which --listen replaces");
            check.at(None, check.source("--listen"), message);
        }
        found.push((Listener::plain(address), None));
    }
    found
}

fn listener_tls(
    check: &mut Check,
    key: &str,
    address: &Address,
    tls: &Spanned<shape::ListenerTls>,
) -> Option<ListenerTls> {
    if let Address::Unix(_) = address {
        let message = "a Unix socket has no TLS; its file permissions decide who may connect; remove `tls`";
        check.at(tls.place, key, message);
        return None;
    }
    secured(check, key, &tls.value)
}

fn secured(check: &mut Check, key: &str, tls: &shape::ListenerTls) -> Option<ListenerTls> {
    let (identity, authorities) = own(check, key, tls);
    let mut others = Vec::new();
    for (index, pair) in tls.certificates.iter().enumerate() {
        let key = format!("{key}.certificates[{index}]");
        others.extend(key_pair(
            check,
            &key,
            pair.certificate.as_ref(),
            pair.private_key.as_ref(),
        ));
    }
    let client_ca = paths::read(
        check,
        &format!("{key}.client_ca"),
        tls.client_ca.as_ref(),
        text(NO_PATH),
    );
    let client_crl = paths::read(
        check,
        &format!("{key}.client_crl"),
        tls.client_crl.as_ref(),
        text(NO_PATH),
    );
    if let (Some(written), None, None) = (&tls.client_crl, &tls.client_ca, &tls.spiffe) {
        let message = "it needs `client_ca`: without that, clients show no certificate that could be revoked";
        check.at(written.place, format!("{key}.client_crl"), message);
    }
    Some(ListenerTls {
        identity: identity?,
        others,
        oldest: tls.minimum_tls_version,
        client_ca: client_ca.map(Supply::Files).or(authorities),
        client_crl,
    })
}

/// Returns the listener's certificate, and whom `spiffe` trusts.
fn own(check: &mut Check, key: &str, tls: &shape::ListenerTls) -> Supplies {
    let Some(spiffe) = &tls.spiffe else {
        let pair = key_pair(check, key, tls.certificate.as_ref(), tls.private_key.as_ref());
        return (pair.map(Supply::Files), None);
    };
    for (name, file) in [("certificate", &tls.certificate), ("private_key", &tls.private_key)] {
        if let Some(file) = file {
            check.at(file.place, format!("{key}.{name}"), NOT_BOTH);
        }
    }
    workload::workload(check, &format!("{key}.spiffe"), spiffe).unwrap_or_default()
}

fn socket_file(check: &mut Check, key: &str, address: &Address, listener: &shape::Listener) -> SocketFile {
    let keys = [
        ("mode", &listener.mode),
        ("owner", &listener.owner),
        ("group", &listener.group),
    ];
    let has_file = matches!(address, Address::Unix(path) if !is_abstract(path));
    for (name, written) in keys.iter().filter(|_| !has_file) {
        if let Some(written) = written {
            let message = format!("{address} has no file; remove `{name}`, or write unix:/path");
            check.at(written.place, format!("{key}.{name}"), message);
        }
    }
    let name = text("the name is empty; write a name or a number");
    let mut name = |key: String, written: Option<&Scalar>| check.read(&key, written, &name);
    let owner = name(format!("{key}.owner"), listener.owner.as_ref());
    let group = name(format!("{key}.group"), listener.group.as_ref());
    let mode = check.read(&format!("{key}.mode"), listener.mode.as_ref(), unix::mode);
    SocketFile { mode, owner, group }
}

fn proxies(check: &mut Check, key: &str, address: &Address, listener: &shape::Listener) -> Vec<IpNet> {
    let Some(written) = &listener.proxy_protocol else {
        return Vec::new();
    };
    if let Address::Unix(_) = address {
        let message = "whoever connects to a Unix socket has no address; remove `proxy_protocol`";
        check.at(written.place, key, message);
        return Vec::new();
    }
    let Some(from) = &written.value.from else {
        return Vec::new();
    };
    let key = format!("{key}.from");
    check.filled(&key, from, "add the addresses of the balancers, such as 10.0.0.0/8");
    let networks = from.value.iter().enumerate();
    networks
        .filter_map(|(at, text)| check.read(&format!("{key}[{at}]"), Some(text), network))
        .collect()
}

fn key_pair(
    check: &mut Check,
    key: &str,
    certificate: Option<&Scalar>,
    private_key: Option<&Scalar>,
) -> Option<CertificateFiles> {
    let certificate_file = paths::read(check, &format!("{key}.certificate"), certificate, text(NO_PATH));
    let private_key_file = paths::read(check, &format!("{key}.private_key"), private_key, text(NO_PATH));
    Some(CertificateFiles {
        certificate_file: certificate_file?,
        private_key_file: private_key_file?,
    })
}

pub(super) fn admin(
    check: &mut Check,
    file: &shape::Admin,
    flag: Option<&str>,
    listeners: &[Address],
    places: &[Option<Place>],
) -> (Address, Option<ListenerTls>) {
    let written = file.address.as_ref();
    let (place, key) = match flag {
        Some(_) => (None, check.source("--admin")),
        None => (written.map(|written| written.place), "admin.address"),
    };
    let admin = match flag {
        Some(text) => check.flag("--admin", text, Address::parse),
        None => check.read(key, written, Address::parse),
    };
    let admin = admin.unwrap_or(ADMIN);
    let taken = listeners
        .iter()
        .zip(places)
        .find(|(listener, _)| listener.takes(&admin));
    if let Some((listener, of_listener)) = taken {
        let message = match *listener == admin {
            true => format!("{admin} is also a listener; give the admin its own address"),
            false => format!("the listener {listener} has its port; give the admin its own"),
        };
        // An address that the file does not give has no place; the listener that has it too may have one.
        check.at(place.or(*of_listener), key, message);
    }
    let tls = file.tls.as_ref();
    let tls = tls.and_then(|tls| listener_tls(check, "admin.tls", &admin, tls));
    (admin, tls)
}

pub(super) fn probes(
    check: &mut Check,
    file: Option<&shape::Probes>,
    listeners: &[Address],
    admin: &Address,
) -> Option<Address> {
    let written = file?.address.as_ref()?;
    let address = check.read("probes.address", Some(written), Address::parse)?;
    let taken = [
        (listeners.iter().find(|listener| listener.takes(&address)), "a listener"),
        (
            Some(admin).filter(|admin| admin.takes(&address)),
            "the admin address, which answers probes as well",
        ),
    ];
    let taken = taken.into_iter().find_map(|(taken, what)| Some((taken?, what)));
    if let Some((taken, what)) = taken {
        let how = match *taken == address {
            true => String::new(),
            false => format!(" in {taken}"),
        };
        let message =
            format!("{address} is also {what}{how}; give the probes their own address, or leave `probes` out");
        check.at(written.place, "probes.address", message);
    }
    Some(address)
}

/// Reads `10.0.0.0/8`, or one address.
fn network(text: &str) -> Result<IpNet, String> {
    let one = || text.parse::<IpAddr>().map(IpNet::from);
    text.parse()
        .or_else(|_| one())
        .map_err(|_| format!("`{text}` is not a network; write such as 10.0.0.0/8, 2001:db8::/32 or 10.0.0.7"))
}
