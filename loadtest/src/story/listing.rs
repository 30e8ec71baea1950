//! The list of the built-in scenarios, as `distributary-load list` prints it. It only formats.

use super::extent::extent;
use super::file::{BUILT_IN, Scenario};
use crate::report::grid::Grid;

/// Returns a line for each built-in scenario: its name, clients, length and needs, and what happens.
pub(crate) fn listing() -> anyhow::Result<String> {
    let mut grid = Grid::new(["scenario", "clients", "length", "needs", "what happens"]);
    for (name, text) in BUILT_IN {
        let scenario = Scenario::parse(name, text)?;
        let [clients, length, needs] = extent(&scenario);
        grid.rows
            .push(vec![(*name).to_owned(), clients, length, needs, scenario.description]);
    }
    Ok(grid.to_string())
}
