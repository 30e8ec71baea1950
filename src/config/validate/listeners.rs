//! Validates the relay's own addresses.

use std::path::PathBuf;

use super::Check;
use crate::config::{Address, Identity, Listener, ListenerTls, defaults, shape};

impl Check {
    pub(super) fn listeners(&mut self, file: Option<Vec<shape::Listener>>, flags: &[String]) -> Vec<Listener> {
        if !flags.is_empty() {
            return self.flagged(file.as_deref().unwrap_or_default(), flags);
        }
        let Some(listeners) = file else {
            return vec![Listener::plain(defaults::LISTENER)];
        };
        if listeners.is_empty() {
            self.at(
                None,
                "listeners",
                "the list is empty; add `- address: 0.0.0.0:15010` or leave the key out".into(),
            );
        }
        let mut found: Vec<Listener> = Vec::new();
        for (index, listener) in listeners.iter().enumerate() {
            let key = format!("listeners[{index}]");
            let of_address = format!("{key}.address");
            let Some(address) = self.read(&of_address, Some(&listener.address), Address::parse) else {
                continue;
            };
            if found.iter().any(|known| known.address == address) {
                self.at(
                    Some(listener.address.referenced),
                    of_address,
                    format!("{address} is there twice; remove one"),
                );
            }
            let tls = listener.tls.as_ref();
            let tls = tls.and_then(|tls| self.listener_tls(&format!("{key}.tls"), &address, tls));
            found.push(Listener { address, tls });
        }
        found
    }

    /// Flags cannot configure TLS, so warn if they replace a listener that has it.
    fn flagged(&mut self, file: &[shape::Listener], flags: &[String]) -> Vec<Listener> {
        if let Some(listener) = file.iter().find(|listener| listener.tls.is_some()) {
            let message = "not in use: --listen replaces the listeners of the file, and is without TLS";
            self.warn(Some(listener.address.referenced), "listeners", message);
        }
        let addresses = flags
            .iter()
            .filter_map(|text| self.flag("--listen", text, Address::parse));
        addresses.map(Listener::plain).collect()
    }

    fn listener_tls(&mut self, key: &str, address: &Address, tls: &shape::ListenerTls) -> Option<ListenerTls> {
        if let Address::Unix(_) = address {
            let message =
                "a Unix socket has no TLS; its file permissions decide who may connect; remove `tls`".to_owned();
            self.at(Some(tls.certificate.referenced), key, message);
            return None;
        }
        let path = |text: &str| match text {
            "" => Err("the path is empty; write a PEM file".to_owned()),
            path => Ok(PathBuf::from(path)),
        };
        let certificate_file = self.read(&format!("{key}.certificate"), Some(&tls.certificate), path);
        let private_key_file = self.read(&format!("{key}.private_key"), Some(&tls.private_key), path);
        let client_ca = self.read(&format!("{key}.client_ca"), tls.client_ca.as_ref(), path);
        Some(ListenerTls {
            identity: Identity {
                certificate_file: certificate_file?,
                private_key_file: private_key_file?,
            },
            client_ca,
        })
    }

    pub(super) fn admin(&mut self, file: Option<shape::Admin>, flag: Option<&str>) -> Address {
        match (flag, file) {
            (Some(text), _) => self.flag("--admin", text, Address::parse),
            (None, Some(admin)) => self.read("admin.address", Some(&admin.address), Address::parse),
            (None, None) => None,
        }
        .unwrap_or(defaults::ADMIN)
    }
}
