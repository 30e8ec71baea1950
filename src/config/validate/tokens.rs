// SPDX-License-Identifier: Apache-2.0
//! Validates the issuers of tokens.

use super::check::text;
use super::{Check, paths};
use crate::config::reading::{Scalar, Spanned};
use crate::config::uri::https;
use crate::config::{Credentials, Issuer, JwksUri, KeySource, Supply, Tls, shape};
use crate::json::Place;

pub(super) fn issuers(check: &mut Check, written: Vec<Spanned<shape::Issuer>>) -> Vec<Issuer> {
    let mut found: Vec<Issuer> = Vec::new();
    for (at, written) in written.into_iter().enumerate() {
        let Some(issuer) = issuer(check, &format!("jwt[{at}]"), &written) else {
            continue;
        };
        if found.iter().any(|known| known.name == issuer.name) {
            let message = format!("`{}` is there twice; remove one", issuer.name);
            check.at(written.place, format!("jwt[{at}]"), message);
        }
        found.push(issuer);
    }
    found
}

fn issuer(check: &mut Check, key: &str, written: &Spanned<shape::Issuer>) -> Option<Issuer> {
    let (written, place) = (&written.value, written.place);
    let name = check.read(&format!("{key}.issuer"), written.issuer.as_ref(), |text| match text {
        "" => Err("it is empty; write what the tokens have in `iss`".to_owned()),
        text if text.contains(['#', '\n']) => {
            Err("it has a `#` or a line break, so that no identity can name it".to_owned())
        }
        text => Ok(text.to_owned()),
    });
    let keys = keys(check, key, written, place);
    let audiences = audiences(check, &format!("{key}.audiences"), written.audiences.as_ref());
    Some(Issuer {
        name: name?,
        audiences: audiences?,
        keys: keys?,
        skew: written.clock_skew,
    })
}

/// Returns where the keys are: in a file, or at an address.
fn keys(check: &mut Check, key: &str, written: &shape::Issuer, place: Place) -> Option<KeySource> {
    let mut file = |name: &str, file: Option<&Scalar>, what| {
        let empty = format!("the path is empty; write {what}");
        paths::read(check, &format!("{key}.{name}"), file, text(&empty))
    };
    let jwks_file = file("jwks_file", written.jwks_file.as_ref(), "a JWKS file");
    let authorities = file(
        "ca_certificate_file",
        written.ca_certificate_file.as_ref(),
        "a PEM file",
    );
    let token_file = file("token_file", written.token_file.as_ref(), "the file of a token");
    let Some(uri) = &written.jwks_uri else {
        let of_uri = [
            ("ca_certificate_file", &written.ca_certificate_file),
            ("token_file", &written.token_file),
        ];
        for (name, file) in of_uri {
            if let Some(file) = file {
                let message = "it has no use without `jwks_uri`; remove it";
                check.at(file.place, format!("{key}.{name}"), message);
            }
        }
        if written.jwks_file.is_none() {
            let message = "its keys are missing; write `jwks_uri` or `jwks_file`";
            check.at(place, key, message);
        }
        return jwks_file.map(KeySource::File);
    };
    if let Some(file) = &written.jwks_file {
        let message = "the keys are at `jwks_uri` or in a file, not in both; remove one";
        check.at(file.place, format!("{key}.jwks_file"), message);
    }
    let (endpoint, path) = check.read(&format!("{key}.jwks_uri"), Some(uri), https)?;
    Some(KeySource::Uri(Box::new(JwksUri {
        uri: uri.value.clone(),
        endpoint,
        path,
        credentials: Credentials::Tls(Tls {
            authorities: authorities.map(Supply::Files),
            ..Tls::default()
        }),
        token_file,
    })))
}

fn audiences(check: &mut Check, key: &str, written: Option<&Spanned<Vec<Scalar>>>) -> Option<Vec<String>> {
    let written = written?;
    check.filled(
        key,
        written,
        "write what the tokens have in `aud`, such as distributary",
    );
    let audiences: Vec<String> = written.value.iter().map(|audience| audience.value.clone()).collect();
    (!audiences.is_empty()).then_some(audiences)
}
