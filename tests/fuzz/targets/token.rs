// SPDX-License-Identifier: Apache-2.0
//! Tokens: whatever the text, the check ends; a token that the issuer did not sign is never good.

use std::sync::LazyLock;
use std::time::Duration;

use distributary::config::{Issuer, KeySource};
use distributary::token::Tokens;

/// A public key whose private half nobody kept.
const KEYS: &str = r#"{"keys": [{"kty": "EC", "crv": "P-256", "kid": "1",
    "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}"#;

static TOKENS: LazyLock<Tokens> = LazyLock::new(|| {
    let keys = std::env::temp_dir().join(format!("distributary-fuzz-{}.json", std::process::id()));
    std::fs::write(&keys, KEYS).expect("the folder for temporary files can be written");
    let issuer = Issuer {
        name: "i".to_owned(),
        audiences: vec!["a".to_owned()],
        keys: KeySource::File(keys.clone()),
        skew: Duration::from_secs(60),
    };
    let tokens = Tokens::read(&[issuer]).expect("the keys are good");
    drop(std::fs::remove_file(keys));
    tokens
});

/// Text in the form of a part of a token.
fn part(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let digits = bytes.chunks(3).flat_map(|three| {
        let bits = three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        (0..=three.len()).map(move |at| char::from(DIGITS[(bits >> (18 - 6 * at) & 63) as usize]))
    });
    digits.collect()
}

pub(crate) fn run(bytes: &[u8]) {
    let token = match bytes.split_first() {
        // The parts are taken from the input, so that the fuzzer need not find out how they are written.
        Some((b'.', parts)) => {
            let parts: Vec<String> = parts.split(|byte| *byte == 0).map(part).collect();
            parts.join(".")
        }
        _ => String::from_utf8_lossy(bytes).into_owned(),
    };
    assert!(TOKENS.check(&token).is_err(), "nobody has signed {token}");
}
