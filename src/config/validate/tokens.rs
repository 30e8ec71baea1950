//! Validates the issuers of tokens.

use std::path::PathBuf;
use std::time::Duration;

use super::{Check, paths};
use crate::config::reading::{Scalar, Spanned};
use crate::config::{Issuer, defaults, quantity, shape};

/// Clocks that differ by more than this are wrong.
const SKEW_MAX: Duration = Duration::from_secs(60);

pub(super) fn issuers(check: &mut Check, written: Vec<Spanned<shape::Issuer>>) -> Vec<Issuer> {
    let mut found: Vec<Issuer> = Vec::new();
    for (at, written) in written.into_iter().enumerate() {
        let Some(issuer) = issuer(check, &format!("jwt[{at}]"), &written) else {
            continue;
        };
        if found.iter().any(|known| known.name == issuer.name) {
            let message = format!("`{}` is there twice; remove one", issuer.name);
            check.at(Some(written.place), format!("jwt[{at}]"), message);
        }
        found.push(issuer);
    }
    found
}

fn issuer(check: &mut Check, key: &str, written: &Spanned<shape::Issuer>) -> Option<Issuer> {
    let written = &written.value;
    let name = check.read(&format!("{key}.issuer"), written.issuer.as_ref(), |text| match text {
        "" => Err("it is empty; write what the tokens have in `iss`".to_owned()),
        text if text.contains(['#', '\n']) => {
            Err("it has a `#` or a line break, so that no identity can name it".to_owned())
        }
        text => Ok(text.to_owned()),
    });
    let keys = paths::read(
        check,
        &format!("{key}.jwks_file"),
        written.jwks_file.as_ref(),
        |text| match text {
            "" => Err("the path is empty; write a JWKS file".to_owned()),
            path => Ok(PathBuf::from(path)),
        },
    );
    let skew = check.read(
        &format!("{key}.clock_skew"),
        written.clock_skew.as_ref(),
        |text| match quantity::duration(text)? {
            skew if skew > SKEW_MAX => Err(format!("`{text}` is too much; write at most 60s, and set the clocks")),
            skew => Ok(skew),
        },
    );
    let audiences = audiences(check, &format!("{key}.audiences"), written.audiences.as_ref());
    Some(Issuer {
        name: name?,
        audiences: audiences?,
        jwks_file: keys?,
        skew: skew.unwrap_or(defaults::CLOCK_SKEW),
    })
}

fn audiences(check: &mut Check, key: &str, written: Option<&Spanned<Vec<Scalar>>>) -> Option<Vec<String>> {
    let written = written?;
    if written.value.is_empty() {
        let message = "the list is empty; write what the tokens have in `aud`, such as distributary".to_owned();
        check.at(Some(written.place), key, message);
        return None;
    }
    Some(written.value.iter().map(|audience| audience.value.clone()).collect())
}
