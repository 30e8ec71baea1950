// SPDX-License-Identifier: Apache-2.0
//! Which clients a listener admits, and with which tickets they come back.
//!
//! Owns that no ticket outlives the client's certificate, or the authorities and revocation lists that vouched for it. Does not
//! know how the listener presents itself.

use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ProducesTickets, WebPkiClientVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, UnixTime};
use webpki::{BorrowedCertRevocationList, CertRevocationList};

use super::in_use::Certificate;
use super::pem_file::{BadFile, PemFile};
use super::provider::provider;
use super::validity;
use crate::config::ListenerTls;

/// The files that decide which clients are admitted, as they were when they were read.
pub(super) struct TrustFiles {
    client_ca: Option<PemFile>,
    client_crl: Option<PemFile>,
}

/// Which clients are admitted, by files as they were at one time. Each trust knows only the tickets that it issued itself.
#[derive(Debug)]
pub(super) struct ClientTrust {
    version: [Option<u128>; 2],
    clients: Arc<dyn ClientCertVerifier>,
    tickets: Arc<dyn ProducesTickets>,
}

/// The handshake of one client that must show a certificate (K-34).
///
/// A ticket begins with the time at which the certificate ends, because the library does not compare them. Whoever comes with an
/// old ticket is not refused, but has to show a certificate.
#[derive(Debug)]
pub(super) struct Admission {
    /// The trust of the listener, which may change during the handshake.
    current: Arc<ArcSwap<ClientTrust>>,
    /// The trust when the handshake began.
    begun: Arc<ClientTrust>,
    admitted: Mutex<Option<Admitted>>,
}

/// Who has admitted the client, and until when its certificates are valid.
#[derive(Debug)]
struct Admitted {
    by: Arc<ClientTrust>,
    /// In seconds since 1970.
    until: u64,
}

/// The bytes at the beginning of a ticket.
const UNTIL_BYTES: usize = 8;

impl TrustFiles {
    pub(super) fn read(tls: &ListenerTls) -> Result<Self, BadFile> {
        Ok(Self {
            client_ca: tls.client_ca.as_ref().map(PemFile::authorities).transpose()?,
            client_crl: tls.client_crl.as_deref().map(PemFile::read).transpose()?,
        })
    }

    pub(super) fn version(&self) -> [Option<u128>; 2] {
        [&self.client_ca, &self.client_crl].map(|file| file.as_ref().map(PemFile::version))
    }

    /// Returns the authorities.
    pub(super) fn shown(&self) -> Result<Vec<Certificate>, BadFile> {
        let client_ca = self.client_ca.as_ref();
        client_ca.map_or(Ok(Vec::new()), |file| Ok(Certificate::all(file.path(), &file.chain()?)))
    }

    pub(super) fn warnings(&self) -> Result<Vec<String>, BadFile> {
        let Some(client_ca) = &self.client_ca else {
            return Ok(Vec::new());
        };
        let mut warnings: Vec<String> = validity::ends(client_ca.path(), &client_ca.chain()?).collect();
        if let Some(client_crl) = &self.client_crl {
            let unlisted = unlisted(&client_ca.roots()?, client_crl)?;
            warnings.extend(unlisted.into_iter().map(|at| {
                let (lists, authorities) = (client_crl.path().display(), client_ca.path().display());
                format!(
                    "{lists}: there is no list of authority {} in {authorities}: its clients are refused",
                    at + 1
                )
            }));
        }
        Ok(warnings)
    }

    fn verifier(&self) -> Result<Arc<dyn ClientCertVerifier>, BadFile> {
        let Some(client_ca) = &self.client_ca else {
            return Ok(WebPkiClientVerifier::no_client_auth());
        };
        let roots = client_ca.roots()?;
        let lists = match &self.client_crl {
            Some(client_crl) => {
                if unlisted(&roots, client_crl)?.len() == roots.len() {
                    let authorities = client_ca.path().display();
                    return Err(client_crl.bad(format!("no list in it is by an authority in {authorities}")));
                }
                client_crl.revocation_lists()?
            }
            None => Vec::new(),
        };
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
            .with_crls(lists)
            .build()
            .map_err(|_| client_ca.bad("the certificates in it cannot be used"))
    }
}

/// Returns which authorities have no list in a file.
fn unlisted(roots: &RootCertStore, client_crl: &PemFile) -> Result<Vec<usize>, BadFile> {
    let lists = client_crl.revocation_lists()?;
    let lists: Result<Vec<CertRevocationList<'_>>, _> = lists
        .iter()
        .map(|list| BorrowedCertRevocationList::from_der(list)?.to_owned().map(Into::into))
        .collect();
    let lists = lists.map_err(|error: webpki::Error| {
        client_crl.bad(format!(
            "a revocation list in it is bad, or of a kind that cannot be used ({error})"
        ))
    })?;
    let without = |subject: &[u8]| lists.iter().all(|list| list.issuer() != subject);
    let subjects = roots.roots.iter().map(|root| root.subject.as_ref()).enumerate();
    Ok(subjects
        .filter(|(_, subject)| without(subject))
        .map(|(at, _)| at)
        .collect())
}

impl ClientTrust {
    pub(super) fn new(files: &TrustFiles) -> Result<Self, BadFile> {
        Ok(Self {
            version: files.version(),
            clients: files.verifier()?,
            tickets: Ticketer::new().map_err(|_| BadFile {
                path: "/dev/urandom".into(),
                why: "the system gives no random numbers for session tickets".to_owned(),
            })?,
        })
    }

    pub(super) const fn version(&self) -> [Option<u128>; 2] {
        self.version
    }

    /// Whether clients must show a certificate.
    pub(super) fn wants_certificates(&self) -> bool {
        self.clients.offer_client_auth()
    }

    pub(super) fn clients(&self) -> Arc<dyn ClientCertVerifier> {
        self.clients.clone()
    }

    pub(super) fn tickets(&self) -> Arc<dyn ProducesTickets> {
        self.tickets.clone()
    }
}

impl Admission {
    pub(super) fn new(current: Arc<ArcSwap<ClientTrust>>) -> Self {
        Self {
            begun: current.load_full(),
            current,
            admitted: Mutex::default(),
        }
    }
}

impl ClientCertVerifier for Admission {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.begun.clients.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let by = self.current.load_full();
        let verified = by.clients.verify_client_cert(own, others, now)?;
        let ends = std::iter::once(own)
            .chain(others)
            .map(|certificate| Some(validity::of(certificate)?.until));
        // If one of them cannot be read, the client gets no ticket.
        let until = ends.min().flatten();
        *self.admitted.lock() = until.map(|until| Admitted { by, until });
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.begun.clients.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.begun.clients.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.begun.clients.supported_verify_schemes()
    }
}

impl ProducesTickets for Admission {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        let admitted = self.admitted.lock();
        let until = admitted.as_ref().map_or(0, |admitted| admitted.until);
        let left = until.saturating_sub(UnixTime::now().as_secs());
        u32::try_from(left)
            .unwrap_or(u32::MAX)
            .min(self.begun.tickets.lifetime())
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let admitted = self.admitted.lock();
        let Admitted { by, until } = admitted.as_ref()?;
        by.tickets.encrypt(&[&until.to_be_bytes(), plain].concat())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let by = self.current.load_full();
        let mut plain = by.tickets.decrypt(ticket)?;
        let until = plain.first_chunk::<UNTIL_BYTES>()?;
        let until = u64::from_be_bytes(*until);
        if UnixTime::now().as_secs() > until {
            return None;
        }
        plain.drain(..UNTIL_BYTES);
        *self.admitted.lock() = Some(Admitted { by, until });
        Some(plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trust() -> ClientTrust {
        let files = TrustFiles {
            client_ca: None,
            client_crl: None,
        };
        ClientTrust::new(&files).unwrap()
    }

    fn admission(current: &Arc<ArcSwap<ClientTrust>>, left: i64) -> Admission {
        let admission = Admission::new(current.clone());
        let until = UnixTime::now().as_secs().saturating_add_signed(left);
        *admission.admitted.lock() = Some(Admitted {
            by: current.load_full(),
            until,
        });
        admission
    }

    /// A ticket is good until the certificate ends, at the trust that issued it. The ticket for a ticket ends with the first.
    #[test]
    fn what_a_ticket_is_good_for() {
        let current = Arc::new(ArcSwap::from_pointee(trust()));
        let first = admission(&current, 100).encrypt(b"session").unwrap();
        let again = Admission::new(current.clone());
        assert_eq!(again.encrypt(b"session"), None, "nobody was admitted");
        assert_eq!(again.lifetime(), 0);
        assert_eq!(again.decrypt(&first).unwrap(), b"session");
        assert!((98..=100).contains(&again.lifetime()), "{}", again.lifetime());
        let second = again.encrypt(b"more").unwrap();
        let third = Admission::new(current.clone());
        assert_eq!(third.decrypt(&second).unwrap(), b"more");
        assert!(third.lifetime() <= 100);

        let ended = admission(&current, -1).encrypt(b"session").unwrap();
        assert_eq!(Admission::new(current.clone()).decrypt(&ended), None);
        let long = admission(&current, 1_000_000);
        assert_eq!(long.lifetime(), 12 * 3600);

        let before = Admission::new(current.clone());
        current.store(Arc::new(trust()));
        for late in [before, Admission::new(current)] {
            assert_eq!(late.decrypt(&first), None, "another trust");
        }
    }
}
