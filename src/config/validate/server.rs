//! The part of the check that is about one control plane.

use super::Check;
use crate::config::shape;
use crate::config::uri::Located;
use crate::config::{Credentials, Grpc, Rest, Server, Source, Tls, Transport};
use crate::xds::ServerFeatures;

impl Check {
    /// An entry of a list that has nothing but its URI.
    pub(super) fn plain_server(uri: &str) -> Result<Server, String> {
        let source = match Located::parse(uri)? {
            Located::Files(path) => Source::Files(path),
            Located::Grpc { endpoint, tls } => Source::Grpc(Grpc {
                endpoint,
                credentials: default_credentials(tls.unwrap_or_default()),
                token: None,
                transport: Transport::default(),
            }),
            Located::Rest { endpoint, tls, prefix } => Source::Rest(Rest {
                endpoint,
                credentials: default_credentials(tls),
                token: None,
                prefix,
            }),
        };
        Ok(Server {
            uri: uri.to_owned(),
            source,
            features: ServerFeatures::default(),
        })
    }

    pub(super) fn server(&mut self, key: &str, entry: &shape::XdsServer) -> Option<Server> {
        let key = |name: &str| format!("{key}.{name}");
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
        let located = self.read(&key("server_uri"), Some(&entry.server_uri), Located::parse)?;
        let source = match located {
            Located::Files(path) => Source::Files(path),
            Located::Grpc { endpoint, tls } => Source::Grpc(Grpc {
                endpoint,
                credentials: self.credentials(&key("channel_creds"), &entry.channel_creds, tls)?,
                token: None,
                transport: transport.unwrap_or_default(),
            }),
            Located::Rest { endpoint, tls, prefix } => Source::Rest(Rest {
                endpoint,
                credentials: self.credentials(&key("channel_creds"), &entry.channel_creds, Some(tls))?,
                token: None,
                prefix,
            }),
        };
        Some(Server {
            uri: entry.server_uri.value.clone(),
            source,
            features,
        })
    }

    /// As in gRPC, the first of the list that is supported; and what an `http` or `https` scheme has said already.
    fn credentials(&mut self, key: &str, list: &[shape::ChannelCreds], tls: Option<bool>) -> Option<Credentials> {
        let Some(first) = list.first() else {
            return Some(default_credentials(tls.unwrap_or_default()));
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
            file => Some(Credentials::Tls(Tls {
                ca_certificate_file: file.as_ref().map(|file| (&file.value).into()),
                identity: None,
            })),
        }
    }
}

fn default_credentials(tls: bool) -> Credentials {
    if tls {
        Credentials::Tls(Tls::default())
    } else {
        Credentials::Insecure
    }
}

fn set_feature(features: &mut ServerFeatures, name: &str) -> Result<(), String> {
    match name {
        "fail_on_data_errors" => features.fail_on_data_errors = true,
        "ignore_resource_deletion" => features.ignore_resource_deletion = true,
        // G-14: its documents spell it in two ways.
        "resource_timer_is_transient_error" | "resource_timer_is_transient_failure" => {
            features.resource_timer_is_transient_error = true;
        }
        "trusted_xds_server" => features.trusted_xds_server = true,
        // Says nothing any more.
        "xds_v3" => {}
        _ => {
            return Err(format!(
                "`{name}` is not a server feature; write fail_on_data_errors, ignore_resource_deletion, \
                 resource_timer_is_transient_error or trusted_xds_server"
            ));
        }
    }
    Ok(())
}
