//! The part of the check that is about control planes.

use super::Check;
use crate::config::shape;
use crate::config::{Credentials, Endpoint, Server, ServerFeatures, Transport};

impl Check {
    pub(super) fn servers(&mut self, file: shape::Upstream, flags: &[String]) -> Vec<Server> {
        let servers: Vec<Server> = if flags.is_empty() {
            let entries = file.xds_servers.into_iter().enumerate();
            entries
                .filter_map(|(index, entry)| self.server(index, &entry))
                .collect()
        } else {
            flags
                .iter()
                .filter_map(|uri| self.flag("--upstream", uri, plain_server))
                .collect()
        };
        if servers.is_empty() && self.problems.is_empty() {
            let advice = "no control plane; name one here or with --upstream, such as --upstream cp.example.com:18000";
            self.at(None, "upstream.xds_servers", advice.to_owned());
        }
        servers
    }

    fn server(&mut self, index: usize, entry: &shape::XdsServer) -> Option<Server> {
        let key = |name: &str| format!("upstream.xds_servers[{index}].{name}");
        let mut features = ServerFeatures::default();
        for feature in &entry.server_features {
            self.read(&key("server_features"), Some(feature), |name| {
                set_feature(&mut features, name)
            });
        }
        let transport = self.read(&key("transport"), entry.transport.as_ref(), |text| match text {
            "delta" => Ok(Transport::Delta),
            "sotw" => Ok(Transport::Sotw),
            _ => Err(format!("`{text}` is not a transport; write delta or sotw")),
        });
        let (endpoint, tls) = self.read(&key("server_uri"), Some(&entry.server_uri), Endpoint::parse)?;
        let credentials = self.credentials(&key("channel_creds"), &entry.channel_creds, tls)?;
        Some(Server {
            uri: entry.server_uri.value.clone(),
            endpoint,
            credentials,
            features,
            transport: transport.unwrap_or_default(),
        })
    }

    /// As in gRPC, the first of the list that is supported; and what an `http` or `https` scheme has said already.
    fn credentials(&mut self, key: &str, list: &[shape::ChannelCreds], tls: Option<bool>) -> Option<Credentials> {
        let Some(first) = list.first() else {
            return Some(default_credentials(tls));
        };
        let Some(chosen) = list
            .iter()
            .find(|creds| matches!(creds.kind.value.as_str(), "insecure" | "tls"))
        else {
            let message = format!("`{}` is not supported; write insecure or tls", first.kind.value);
            self.at(Some(first.kind.referenced), key, message);
            return None;
        };
        let wants_tls = chosen.kind.value == "tls";
        if tls.is_some_and(|tls| tls != wants_tls) {
            let message = format!(
                "`{}` contradicts the scheme of server_uri; remove one",
                chosen.kind.value
            );
            self.at(Some(chosen.kind.referenced), key, message);
            return None;
        }
        match &chosen.config.ca_certificate_file {
            Some(file) if !wants_tls => {
                let message = "ca_certificate_file has no use with insecure; remove it or write tls".to_owned();
                self.at(Some(file.referenced), key, message);
                None
            }
            _ if !wants_tls => Some(Credentials::Insecure),
            file => Some(Credentials::Tls {
                ca_certificate_file: file.as_ref().map(|file| (&file.value).into()),
            }),
        }
    }
}

fn default_credentials(tls: Option<bool>) -> Credentials {
    match tls {
        Some(true) => Credentials::Tls {
            ca_certificate_file: None,
        },
        Some(false) | None => Credentials::Insecure,
    }
}

fn plain_server(uri: &str) -> Result<Server, String> {
    let (endpoint, tls) = Endpoint::parse(uri)?;
    Ok(Server {
        uri: uri.to_owned(),
        endpoint,
        credentials: default_credentials(tls),
        features: ServerFeatures::default(),
        transport: Transport::default(),
    })
}

fn set_feature(features: &mut ServerFeatures, name: &str) -> Result<(), String> {
    match name {
        "fail_on_data_errors" => features.fail_on_data_errors = true,
        "resource_timer_is_transient_error" => features.resource_timer_is_transient_error = true,
        // Obsolete, or about clients only.
        "xds_v3" | "ignore_resource_deletion" | "trusted_xds_server" => {}
        _ => {
            return Err(format!(
                "`{name}` is not a server feature; write fail_on_data_errors or resource_timer_is_transient_error"
            ));
        }
    }
    Ok(())
}
