//! Where `spiffe` may be written, and what a build says that has no support for it. `workload` reads it in builds that have.

use std::path::PathBuf;

use crate::config::{Identity, Supply};

/// The relay's certificate, and whom it trusts; none where nothing says so.
pub(super) type Supplies = (Option<Supply<Identity>>, Option<Supply<PathBuf>>);

pub(super) const NOT_BOTH: &str = "`spiffe` brings the certificate and its key; remove one of them";

#[cfg(not(feature = "spiffe"))]
impl super::Check {
    pub(super) fn workload(&mut self, key: &str, written: &crate::config::reading::Raw) -> Option<Supplies> {
        let message = "this build has no support for it; build with `--features spiffe`, or use spiffe-helper";
        let place = written.0.as_ref().map(crate::json::Tree::place);
        self.at(place, key, message.to_owned());
        None
    }
}
