// SPDX-License-Identifier: Apache-2.0
//! What a client's certificate says of the client.
//!
//! Owns which names of a certificate are an identity, and the form of SPIFFE identities. Knows nothing of trust: the handshake has
//! checked the certificate.

use rustls_pki_types::CertificateDer;
use webpki::EndEntityCert;

use super::{TEXT_BYTES_MAX, is_text, names, subject};

/// What a certificate says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Certified {
    /// The texts for the client's [`super::Identity`].
    pub texts: Vec<String>,
    /// Why a SPIFFE name in the certificate is not one of them.
    pub fault: Option<SvidFault>,
    /// Of which kinds it has names that are not among the texts.
    pub lost: Lost,
}

/// Kinds of names of which a certificate has some that cannot be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost([bool; KINDS.len()]);

/// The kinds of names of a certificate.
const KINDS: [&str; 4] = ["spiffe:", "uri:", "dns:", "subject:"];

impl From<[bool; KINDS.len()]> for Lost {
    fn from(lost: [bool; KINDS.len()]) -> Self {
        Self(lost)
    }
}

impl Lost {
    /// Everything: the certificate cannot be read.
    const ALL: Self = Self([true; KINDS.len()]);

    /// Returns the words of the kinds.
    pub(super) fn kinds(self) -> impl Iterator<Item = &'static str> {
        KINDS
            .into_iter()
            .zip(self.0)
            .filter_map(|(kind, lost)| lost.then_some(kind))
    }
}

/// Why a certificate with a SPIFFE name is no valid SVID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SvidFault {
    /// X509-SVID: "An X.509 SVID MUST contain exactly one URI SAN".
    #[error("its certificate has a SPIFFE name and {0} other URIs; a SPIFFE certificate has exactly one URI")]
    Several(usize),
    /// The name breaks the rules of SPIFFE.
    #[error("the SPIFFE name in its certificate is malformed; it must be spiffe://TRUST-DOMAIN/PATH")]
    Malformed,
}

const SPIFFE: &str = "spiffe://";
const TRUST_DOMAIN_BYTES_MAX: usize = 255;

/// Returns what this certificate says: `spiffe://` names, other `uri:` names, `dns:` names, and the `subject:`.
#[must_use]
pub fn certified(certificate: &CertificateDer<'_>) -> Certified {
    let der = certificate;
    let Ok(certificate) = EndEntityCert::try_from(der) else {
        return Certified {
            lost: Lost::ALL,
            ..Certified::default()
        };
    };
    let (spiffe, others): (Vec<&str>, Vec<&str>) = certificate.valid_uri_names().partition(|uri| is_spiffe(uri));
    let spiffe_names = spiffe.len();
    let (spiffe, fault) = match *spiffe {
        [] => (None, None),
        [one] if others.is_empty() && is_valid(one) => (Some(one.to_owned()), None),
        [_] if others.is_empty() => (None, Some(SvidFault::Malformed)),
        [_, ..] => (None, Some(SvidFault::Several(spiffe.len() + others.len() - 1))),
    };
    let (uris, names) = (others.len() + spiffe_names, certificate.valid_dns_names().count());
    // The library passes over names that are not valid.
    let there = names::of(der).unwrap_or(names::Count::UNKNOWN);
    let subject = subject::text(certificate.subject());
    let no_subject = subject.is_none() && !certificate.subject().is_empty();
    let all = [
        (spiffe.into_iter().collect(), fault.is_some() || there.uris != uris),
        (
            others.into_iter().map(|uri| format!("uri:{uri}")).collect(),
            there.uris != uris,
        ),
        (
            certificate
                .valid_dns_names()
                .map(|name| format!("dns:{}", name.to_ascii_lowercase()))
                .collect(),
            there.dns != names,
        ),
        (
            subject
                .into_iter()
                .map(|subject| format!("subject:{subject}"))
                .collect(),
            no_subject,
        ),
    ];
    let lost = all
        .each_ref()
        .map(|(texts, lost): &(Vec<String>, bool)| *lost || !texts.iter().all(|text| is_text(text)));
    Certified {
        texts: all.into_iter().flat_map(|(texts, _)| texts).collect(),
        fault,
        lost: Lost(lost),
    }
}

/// Whether it claims to be a SPIFFE name, good or bad.
fn is_spiffe(uri: &str) -> bool {
    let scheme = uri.split(':').next().unwrap_or_default();
    scheme.eq_ignore_ascii_case("spiffe")
}

/// Whether it is a valid SPIFFE name of a workload: a trust domain, and a path without empty, `.` or `..` segments.
fn is_valid(uri: &str) -> bool {
    let Some((domain, path)) = uri.strip_prefix(SPIFFE).and_then(|rest| rest.split_once('/')) else {
        return false;
    };
    let of_domain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._".contains(&byte);
    let of_path = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_segment = |segment: &str| !matches!(segment, "" | "." | "..") && segment.bytes().all(of_path);
    (1..=TRUST_DOMAIN_BYTES_MAX).contains(&domain.len())
        && domain.bytes().all(of_domain)
        && path.split('/').all(is_segment)
        && uri.len() <= TEXT_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    use super::*;

    fn of(names: &[&str]) -> Certified {
        let mut params = CertificateParams::new([]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "acme");
        params.distinguished_name.push(DnType::CommonName, "edge,1");
        let name = |name: &&str| match name.split_once(':') {
            Some(_) => SanType::URI((*name).try_into().unwrap()),
            None => SanType::DnsName((*name).try_into().unwrap()),
        };
        params.subject_alt_names = names.iter().map(name).collect();
        let signed = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        certified(signed.der())
    }

    #[test]
    fn names_of_a_certificate() {
        let good = of(&["spiffe://td.example/ns/a/sa/b", "Edge.example.com", "*.example.com"]);
        let subject = "subject:CN=edge\\,1,O=acme";
        assert_eq!(
            (good.texts.as_slice(), good.fault),
            (
                [
                    "spiffe://td.example/ns/a/sa/b",
                    "dns:edge.example.com",
                    "dns:*.example.com",
                    subject
                ]
                .map(String::from)
                .as_slice(),
                None
            )
        );
        assert_eq!(
            of(&["ip:10.0.0.1"]).texts,
            ["uri:ip:10.0.0.1", subject],
            "no URI is another source's text"
        );
        let none = certified(&CertificateDer::from(&b"no certificate"[..]));
        assert_eq!((none.texts.len(), none.lost), (0, Lost::ALL));
    }

    /// S-11: what cannot be kept is not passed over in silence.
    #[test]
    fn names_that_cannot_be_kept() {
        let long = format!("https://{}", "a".repeat(TEXT_BYTES_MAX));
        for (names, lost) in [
            (&["spiffe://td/a", "Edge.example.com"][..], &[][..]),
            (&["https://a", "https://b", "a.b", "*.b.c"], &[]),
            (&["spiffe://td/a", "spiffe://td/b"], &["spiffe:"]),
            (&["a.b", "a b"], &["dns:"]),
            (&["a.b", "a\u{1}.b"], &["dns:"]),
            (&["https://a\u{1}"], &["uri:"]),
            (&[&*long], &["uri:"]),
            (&["spiffe://td/a\u{1}", "a_b", "-"], &["spiffe:", "dns:"]),
        ] {
            let found = of(names);
            assert_eq!(found.lost.kinds().collect::<Vec<_>>(), lost, "{names:?}");
        }
    }

    #[test]
    fn a_svid_has_one_name() {
        for (names, others) in [
            (&["spiffe://td/a", "spiffe://td/b"][..], 1),
            (&["spiffe://td/a", "https://td/b"], 1),
            (&["spiffe://td/a", "SPIFFE://td/b", "spiffe:c"], 2),
        ] {
            let found = of(names);
            assert_eq!(found.fault, Some(SvidFault::Several(others)), "{names:?}");
            assert!(!found.texts.iter().any(|text| text.starts_with(SPIFFE)), "{found:?}");
        }
        let long = format!("spiffe://td/{}", "a".repeat(TEXT_BYTES_MAX));
        for name in [
            "spiffe://td",
            "spiffe://td/",
            "spiffe:///a",
            "spiffe://td/a/../b",
            "spiffe://td//a",
            "spiffe://td/a?b",
            "spiffe://td:80/a",
            "spiffe://TD/a",
            "SPIFFE://td/a",
            "spiffe://td/a%20b",
            &long,
        ] {
            let found = of(&[name]);
            assert_eq!(found.fault, Some(SvidFault::Malformed), "{name}");
            assert_eq!(found.texts.len(), 1, "only the subject: {found:?}");
        }
    }
}
