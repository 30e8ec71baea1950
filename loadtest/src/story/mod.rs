// SPDX-License-Identifier: Apache-2.0
//! The scenarios, which are played from a text.
//!
//! Owns what happens in a run, what must hold, and what the keys of a scenario mean. Refuses to know how figures are shown.

mod asking;
mod cast;
mod chaos;
mod check;
pub(crate) mod command;
mod contender;
mod expect;
pub(crate) mod file;
mod foreign;
pub(crate) mod keys;
mod listing;
mod manner;
mod outside;
mod past;
mod phase;
pub(crate) mod play;
mod profiles;
mod ramp;
mod reading;
mod returning;
mod scout;
mod streams;
mod telling;

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::bail;

use crate::command::arguments::Arguments;
use crate::measure::now;
use crate::measure::record::Recorder;
use file::Scenario;
pub(crate) use listing::listing;
use reading::Faults;

/// Open files beyond one for each end of a connection.
const FILES_BESIDES: u64 = 200;

/// Plays the scenario. `say` gets a text for each step.
pub(crate) async fn play(arguments: &Arguments, recorder: &Recorder, say: &mut impl FnMut(&str)) -> anyhow::Result<()> {
    let scenario = Scenario::find(arguments.scenario(), &arguments.set)?;
    let missing = scenario.missing(arguments.is_foreign());
    if !missing.is_empty() {
        // Without places, because flags have changed what the file says.
        let name = arguments.scenario();
        bail!(Faults(
            missing.iter().map(|it| format!("{name}: {}", it.what)).collect()
        ));
    }
    play::run(&scenario, arguments, recorder, say).await
}

/// The address that means any free port of this machine.
fn local() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}
