// SPDX-License-Identifier: Apache-2.0
//! The list of the built-in scenarios, as `distributary-load list` prints it. It only formats.

use super::file::{BUILT_IN, Scenario};
use crate::report::grid::Grid;

/// Returns a line for each built-in scenario: its name, its clients, and what happens.
pub(crate) fn listing() -> anyhow::Result<String> {
    let mut grid = Grid::new(["scenario", "clients", "what happens"]);
    for (name, text) in BUILT_IN {
        let scenario = Scenario::read(name, text, None, &[])?;
        let clients = scenario.clients.count.to_string();
        grid.rows.push(vec![(*name).to_owned(), clients, scenario.description]);
    }
    Ok(grid.to_string())
}
