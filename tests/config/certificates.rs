// SPDX-License-Identifier: Apache-2.0
//! The TLS files of a listener: which keys can be read, and the errors for files that cannot be used.

use std::path::Path;

use distributary::config::{CertificateFiles, ListenerTls, Supply, TlsVersion};
use distributary::tls::ServerTls;
use rcgen::{
    CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, PKCS_RSA_SHA256, RsaKeySize, date_time_ymd,
};

use peers::folder::Folder;

fn params() -> CertificateParams {
    CertificateParams::new(["relay".to_owned()]).unwrap()
}

fn listener(certificate: &Path, key: &Path, client_ca: Option<&Path>) -> Result<Option<String>, String> {
    let tls = ListenerTls {
        identity: Supply::Files(CertificateFiles {
            certificate_file: certificate.to_owned(),
            private_key_file: key.to_owned(),
        }),
        others: Vec::new(),
        oldest: TlsVersion::default(),
        client_ca: client_ca.map(|path| Supply::Files(path.to_owned())),
        client_crl: None,
    };
    ServerTls::read(&tls, &[])
        .map(|read| read.warnings().first().cloned())
        .map_err(|error| error.to_string())
}

/// Returns the older form of a key, which is a part of its PKCS#8 form, as PEM.
fn older(key: &KeyPair, label: &str, from: usize) -> String {
    pem(label, &key.serialize_der()[from..])
}

fn pem(label: &str, der: &[u8]) -> String {
    use base64::Engine as _;
    let text = base64::prelude::BASE64_STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
}

/// PKCS#8, SEC1 and RSA, whatever else is in the file.
#[test]
fn every_form_of_key() {
    let folder = Folder::new();
    let rsa = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap();
    let ec = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let ed = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    #[rustfmt::skip]
    let rows = [
        (&ec, ec.serialize_pem()),
        (&rsa, rsa.serialize_pem()),
        (&ed, ed.serialize_pem()),
        (&ec, format!("# made by hand\n{}{}", pem("EC PARAMETERS", &[6, 1, 1]), older(&ec, "EC PRIVATE KEY", 29))),
        (&rsa, older(&rsa, "RSA PRIVATE KEY", 26)),
    ];
    for (key, text) in rows {
        let certificate = folder.put("relay.pem", &params().self_signed(key).unwrap().pem());
        let key = folder.put("relay.key", &text);
        assert_eq!(listener(&certificate, &key, Some(&certificate)), Ok(None), "{text}");
    }
}

/// Every error names the file and what is wrong with it.
#[test]
fn bad_files() {
    let folder = Folder::new();
    let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let text = params().self_signed(&key).unwrap().pem();
    let certificate = folder.put("relay.pem", &text);
    let private = folder.put("relay.key", &key.serialize_pem());
    let fits = |path: &Path| listener(path, &private, None).unwrap_err();
    let opens = |path: &Path| listener(&certificate, path, None).unwrap_err();
    let admits = |path: &Path| listener(&certificate, &private, Some(path)).unwrap_err();

    let gone = Path::new("/nowhere/x.pem");
    for said in [fits(gone), opens(gone), admits(gone)] {
        assert!(said.starts_with("/nowhere/x.pem: cannot be read: No such file"));
    }
    let empty = folder.put("empty.pem", "");
    let cut = folder.put("cut.pem", text.trim_end_matches("-----\n"));
    let garbled = folder.put("garbled.pem", &text.replace("MII", "M*I"));
    let hollow = folder.put("hollow.pem", &pem("CERTIFICATE", &[48, 3, 2, 1, 1]));
    let locked = folder.put("locked.key", &pem("ENCRYPTED PRIVATE KEY", &[48, 0]));
    let foreign = folder.put("foreign.key", &other.serialize_pem());
    let nonsense = folder.put("nonsense.key", &pem("PRIVATE KEY", &[48, 0]));
    #[rustfmt::skip]
    let rows = [
        (fits(&empty), &empty, "there is no certificate in it; it must be PEM"),
        (fits(&private), &private, "there is no certificate in it; it must be PEM"),
        (admits(&private), &private, "there is no certificate in it; it must be PEM"),
        (fits(&cut), &cut, "a BEGIN line has no END line"),
        (fits(&garbled), &garbled, "base64"),
        (fits(&hollow), &hollow, "the first certificate in it is bad"),
        (admits(&hollow), &hollow, "certificate 1 in it is not a CA"),
        (opens(&empty), &empty, "there is no private key in it (PKCS#8, SEC1 or RSA, in PEM)"),
        (opens(&certificate), &certificate, "there is no private key in it"),
        (opens(&locked), &locked, "the key in it is encrypted"),
        (opens(&nonsense), &nonsense, "private key"),
        (opens(&foreign), &foreign, "it is not the key of the first certificate in"),
    ];
    for (said, path, words) in rows {
        let expected = format!("{}: ", path.display());
        let rest = said.strip_prefix(&expected).unwrap_or_else(|| panic!("{said}"));
        assert!(rest.contains(words), "{said}");
    }
}

/// A certificate that every client will refuse is only a warning: the relay may start before its certificate is valid.
#[test]
#[expect(clippy::disallowed_methods, reason = "certificates go by the wall clock")]
fn certificates_out_of_time() {
    let folder = Folder::new();
    let key = KeyPair::generate().unwrap();
    let private = folder.put("relay.key", &key.serialize_pem());
    let between = |from, until| {
        let mut params = params();
        (params.not_before, params.not_after) = (from, until);
        let certificate = folder.put("relay.pem", &params.self_signed(&key).unwrap().pem());
        listener(&certificate, &private, None).unwrap()
    };
    let warning = |from, until| between(date_time_ymd(from, 1, 1), date_time_ymd(until, 1, 1));
    assert_eq!(warning(2000, 4000), None);
    let now = std::time::SystemTime::now();
    let minutes = |minutes: u64| std::time::Duration::from_secs(60 * minutes);
    let ending = |lived, left| between((now - minutes(lived)).into(), (now + minutes(left)).into());
    let day = 24 * 60;
    for (lived, left, words) in [
        (365 * day, 10 * day, ["10 days", "9 days"]),
        (40, 19, ["19 min", "18 min"]),
    ] {
        let said = ending(lived, left).unwrap();
        let ends = |left: &&str| said.ends_with(&format!("relay.pem: it ends in {left}; renew it"));
        assert!(words.iter().any(ends), "{said}");
    }
    // An agent of SPIFFE renews a certificate at half of its life.
    for (lived, left) in [(365 * day, 15 * day), (1, 59), (31, 29)] {
        assert_eq!(ending(lived, left), None);
    }
    for (from, until, words) in [(2000, 2001, "expired"), (3999, 4000, "not valid yet")] {
        let words = format!("relay.pem: clients will refuse it: certificate {words}");
        let said = warning(from, until).unwrap();
        assert!(said.contains(&words), "{said}");
    }
}
