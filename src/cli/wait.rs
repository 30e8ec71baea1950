// SPDX-License-Identifier: Apache-2.0
//! `distributary wait`: waits until clients have accepted a resource.
//!
//! Owns when that is so, over several relays. The relays count.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write;
use std::time::Duration;

use anyhow::bail;
use clap::Args;

use super::asking::{AdminAccess, Bounds, Relay, encoded, now, share, time};
use crate::answers::{ContentRow, Holders, Whole};
use crate::xds::{TypeUrl, printable};

/// Wait until the clients that ask for a resource have accepted it; exit code 1 says who has not
#[derive(Debug, Args)]
pub(super) struct WaitCommand {
    /// The resource, such as cds/web; with @VERSION, that content and no other: the relay's version of it, or the control plane's
    /// own. What follows the last @ is the version; write a@b@ for a resource with the name a@b
    #[arg(value_name = "TYPE/NAME[@VERSION]", value_parser = WaitTarget::read)]
    target: WaitTarget,
    /// Which share of these clients
    #[arg(long = "for", value_name = "PERCENT", default_value = "100%", value_parser = share)]
    share: f64,
    /// At least so many clients; with 0 it is enough that nobody asks for it
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    at_least: usize,
    /// Only clients of nodes with this id; * stands for any text
    #[arg(long, value_name = "ID")]
    node: Option<String>,
    /// Only clients of this class, as /clients shows it; * stands for any text
    #[arg(long, value_name = "CLASS")]
    class: Option<String>,
    /// How long to wait
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    timeout: Duration,
    #[command(flatten)]
    access: AdminAccess,
}

#[derive(Clone, Debug)]
struct WaitTarget {
    type_url: TypeUrl,
    name: String,
    version: Option<String>,
}

/// How far the clients of one relay are.
struct WaitProgress {
    accepted: usize,
    all: usize,
    /// Some who have not accepted it.
    others: Vec<String>,
    /// Why the count is not about the right content.
    other_content: Option<&'static str>,
}

/// How often relays are asked.
const PACE: Duration = Duration::from_millis(250);
/// A relay knows only what clients have made it ask for, whether a control plane has it or a file.
const NOBODY: &str = "no client asks for it, and no client was given it";

impl WaitTarget {
    fn read(text: &str) -> Result<Self, String> {
        let (type_url, rest) = text.split_once('/').ok_or("write TYPE/NAME, such as cds/web")?;
        let type_url = type_url.parse().map_err(|error| format!("`{type_url}` is {error}"))?;
        let (name, version) = rest.rsplit_once('@').unwrap_or((rest, ""));
        if name.is_empty() {
            return Err("the name is empty; write TYPE/NAME, such as cds/web".to_owned());
        }
        Ok(Self {
            type_url,
            name: name.to_owned(),
            version: Some(version.to_owned()).filter(|version| !version.is_empty()),
        })
    }
}

impl WaitCommand {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<()> {
        let deadline = now() + self.timeout;
        loop {
            let found = self.look()?;
            if let Some((accepted, all)) = self.is_reached(&found) {
                writeln!(out, "accepted by {accepted} of {all} clients")?;
                return Ok(());
            }
            if now() >= deadline {
                bail!("not accepted within {:?}{}", self.timeout, self.missing(&found));
            }
            std::thread::sleep(PACE);
        }
    }

    /// Asks each relay. None: it knows nothing of the resource.
    fn look(&self) -> anyhow::Result<Vec<(String, Option<WaitProgress>)>> {
        let whom = [("node", &self.node), ("class", &self.class)].into_iter();
        let whom = whom.filter_map(|(key, text)| Some(format!("&{key}={}", encoded(text.as_deref()?))));
        let path = format!(
            "/resources/{}?type={}{}",
            encoded(&self.target.name),
            encoded(self.target.type_url.full_name()),
            whom.collect::<String>()
        );
        let each = self.access.each(|relay| self.look_at(relay, &path));
        each.into_iter().map(|(relay, found)| Ok((relay, found?))).collect()
    }

    fn look_at(&self, relay: Relay<'_>, path: &str) -> anyhow::Result<Option<WaitProgress>> {
        Ok(match relay.ask("GET", path, b"", Bounds::LIST)? {
            (404, _) => None,
            answer => Some(self.progress(&relay.read(&relay.body(answer)?, path)?)),
        })
    }

    fn progress(&self, said: &Whole) -> WaitProgress {
        let is_meant = |content: &&ContentRow| match &self.target.version {
            None => true,
            Some(wanted) => {
                let said = content.said.as_ref().and_then(|said| said.version_info.as_ref());
                [content.listed.version.as_ref(), said].contains(&Some(wanted))
            }
        };
        let meant = said.contents.iter().filter(is_meant);
        let meant: BTreeSet<&String> = meant.filter_map(|content| content.listed.version.as_ref()).collect();
        let other_content = match said.contents.iter().any(|content| content.listed.version.is_some()) {
            false => Some("it has no content"),
            true if meant.is_empty() => Some("it has another version"),
            true => None,
        };
        let accepted = |of: &Holders| match &self.target.version {
            None => of.count,
            Some(_) => {
                let meant = of.versions.iter().filter(|(version, _)| meant.contains(version));
                meant.map(|(_, count)| count).sum()
            }
        };
        let some = said.clients.values().flat_map(|of| &of.some);
        WaitProgress {
            accepted: said.clients.get("accepted").map_or(0, accepted),
            all: said.clients.values().map(|of| of.count).sum(),
            others: some.map(|one| printable(&one.node).into_owned()).collect(),
            other_content,
        }
    }

    /// Returns how many clients have accepted it, of how many, if that is enough.
    fn is_reached(&self, found: &[(String, Option<WaitProgress>)]) -> Option<(usize, usize)> {
        let known = || found.iter().filter_map(|(_, progress)| progress.as_ref());
        if known().next().is_none() || known().any(|one| one.other_content.is_some()) {
            return None;
        }
        let accepted: usize = known().map(|one| one.accepted).sum();
        let all: usize = known().map(|one| one.all).sum();
        let enough = accepted >= self.at_least && accepted as f64 >= all as f64 * self.share;
        enough.then_some((accepted, all))
    }

    /// Returns what is missing, in a line for each relay.
    fn missing(&self, found: &[(String, Option<WaitProgress>)]) -> String {
        let mut text = String::new();
        for (relay, progress) in found {
            let what = match progress {
                None => NOBODY.to_owned(),
                Some(WaitProgress {
                    other_content: Some(why),
                    ..
                }) => (*why).to_owned(),
                Some(one) => {
                    let names = one.others.join(", ");
                    format!("accepted by {} of {} clients; not by: {names}", one.accepted, one.all)
                }
            };
            // Writing to memory cannot fail.
            let _ = write!(text, "\n{relay}: {what}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for() {
        let read = |text: &str| WaitTarget::read(text).map(|target| (target.name, target.version));
        let named = |name: &str, version: Option<&str>| Ok((name.to_owned(), version.map(str::to_owned)));
        assert_eq!(read("cds/web"), named("web", None));
        assert_eq!(read("eds/ns/web@7f8c"), named("ns/web", Some("7f8c")));
        assert_eq!(read("CDS/web@blue@v1"), named("web@blue", Some("v1")));
        assert_eq!(read("cds/web@blue@"), named("web@blue", None));
        for wrong in ["web", "xyz/web", "cds/", "cds/@v1"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!((share("99.5%"), share("0")), (Ok(0.995), Ok(0.0)));
        assert!(share("101%").is_err() && share("x").is_err());
    }
}
