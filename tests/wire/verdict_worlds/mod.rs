//! Verdicts among clients that answer by themselves: stories of control planes, and worlds that a seed decides.

mod agent;
mod chance;
mod stories;
mod worlds;
