// SPDX-License-Identifier: Apache-2.0
//! The simulation: whole worlds of control planes, a relay and clients. A seed decides each world, a naive model judges it.
//!
//! In a world there are
//!
//! - two or three control planes, each for one class of clients. Some speak the protocol on two streams for each view, in delta
//!   or SotW. They are slow, close early, answer in chunks or with garbage, do not report what is missing (C-16), ignore what a
//!   client declares, send again at once what was rejected (E-22), or answer only when they are asked for all that they have
//!   (E-18). They fail and return; links break, or silently lose everything on them.
//! - the relay: classes by rules (K-02 to K-04), views that begin and end and may be too many, both halves of the protocol, the
//!   shared answers, and now and then a restart that forgets everything, or all but its snapshots (`disk`).
//! - six to nine clients of five kinds, in both dialects: Envoys that warm clusters, on one stream or many, gRPC clients, clients
//!   on demand, hostile ones. They are slow, stall, reconnect with or without what they held, and move between classes.
//! - a judge (`judge`): observers of one log of events, each below 150 lines. Where an observer must know what a client holds, it asks
//!   the client; what exists, the views. Faults stop at random times and everything comes to rest: then clients are compared with the
//!   views that they read, and these with the control planes. At any time nothing that is wanted is removed or left out unless it is
//!   known to be gone; nothing is sent that no server said or that the rules forbid; what is sent again has a reason, as often as the
//!   formula of the protocol says; whoever asks is answered; routes and clusters come and go in order; what is kept is bounded.
//!   `tally` says how often each of these was at stake.
//!
//! A world has these parts (`world` has the loop of events, which is the same for all kinds of worlds):
//!
//! - `course`: what all others share: the `clock`, the agenda of `event`s, chance, trace and tally.
//! - `origins`: the control planes. A `zone` is one, with the relay's `writer` of its view and the streams between them (`upstream`,
//!   whose events are in `hops`). In `lists/` are servers in lists, and those that are relays themselves.
//! - `relay`: its settings, views, shared answers and rules. `network`: the `stream`s of the clients; `session` runs the relay's half.
//! - `client/`: the clients; `people` has their lives and the faults. `judge/`: the observers.
//!
//! Seeds from 1,000,000,000 on are worlds with lists (`lists/`): two to four servers, a list of some of them for names of old
//! style and for each of two authorities, with and without `fallback_on_reachability_only`; replicas that lag behind each other
//! or differ. Servers die, refuse, hang, end streams at once or after one answer, and come back with any content.
//! Some are relays with a control plane of their own, which restart, and sometimes are this very relay.
//! Clients ask for collections and by other spellings; hostile ones flood the relay with garbage.
//!
//! Seeds from 3,000,000,000 on are such worlds in which all clients but one are hostile: most of what is rare happens to them.
//!
//! Clients reject (B-22, K-37), the views are told what they use meanwhile, and who has nothing is offered older content.
//!
//! What is not here: clients of several versions are in `tests/wire/rejected`, files and polls in `tests/files` and `tests/upstream`,
//! what several sources say in which order in `tests/client/held`, control planes that refuse a dialect or a type in `tests/upstream`.
//!
//! The digits before the last seven add features to a world:
//!
//! - 1: control planes that forget a part or all of what they had, relays that restart with their snapshots, rules for held removals
//!   that change, and people (`amnesia`).
//! - 2, with lists: times to live at every server.
//! - 4, with lists: reloads at any step. A type moves between the servers at the top and two sources; a source comes and goes; a canary
//!   begins, grows, shrinks and ends; a list has other servers, or others first.
//! - 8, without lists: a relay that stands still at times (K-27, `clock`).
//! - 16, without lists: clients that ask for names that are none (B-32).
//! - 16, with lists: two classes of clients, with different servers for names of old style and the same servers for names under an
//!   authority (F-13).
//! - 32, without lists: control planes that answer nothing for a type while they lack a name that is asked for, as java-control-plane over
//!   SotW (E-27).
//! - 64, without lists: control planes that say the removal of a cluster before the routes that leave it (D-03).
//! - 64, with lists: lists of endpoints (LEDS), to which assignments refer; if there are two classes, only for the class of clients
//!   that read such lists (K-04).
//!
//! The judge allows whatever the rulings leave open: to repeat things after a rejection, a move, a cut-off answer or a reconnect, to
//! remove what is not asked for any more, and versions in the middle of an answer. It does not judge content that a control plane never
//! reports as gone (partial SotW; delta servers that ignore what is declared), and what a client lacks because it rejected it, until
//! the view has something else.
//!
//! `DISTRIBUTARY_SEEDS=N` runs more seeds, `A..B` the seeds from A to B, `DISTRIBUTARY_SEED=S` one seed with a readable trace. A seed
//! that ever failed stays in `KEPT` and runs unless only others are asked for.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test: what cannot happen must fail it, and its report is printed for people"
)]

#[macro_use]
mod tally;

mod abilities;
mod access;
mod amnesia;
mod besides;
mod body;
mod book;
mod classes;
mod client;
mod clock;
mod course;
mod disk;
mod event;
mod hops;
mod judge;
mod line;
mod lists;
mod losses;
mod names;
mod network;
mod origin;
mod origins;
mod people;
mod quiet;
mod reading;
mod relay;
mod rng;
mod scene;
mod session;
mod stream;
mod truth;
mod turn;
mod upstream;
mod wire;
mod words;
mod world;
mod writer;
mod zone;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use besides::BESIDES;
use tally::{Broken, Rule, Tally};
use world::World;

/// Seeds that have found something once, since the worlds are as they are.
const KEPT: &[u64] = &[];
/// Seeds that fail for a reason that is known and not cured. They run only if they are asked for.
const KNOWN: &[u64] = &[1_050_000_032];
/// How many seeds every test run tries. CI tries more.
const SEEDS: u64 = 100;
/// From this seed on worlds have lists of servers.
const LISTS: u64 = 1_000_000_000;
/// From this seed on worlds have rules about what clients may have, and no lists of servers.
const RULED: u64 = 2_000_000_000;
/// From this seed on worlds have lists of servers, and all clients but one are hostile.
const UNRULY: u64 = 3_000_000_000;
/// What a run of all kinds plays: the first seed, of how many seeds one, and the additional features, one after the other. Worlds whose
/// control planes are silent while they lack a name (32) run only if they are asked for.
const KINDS: &[(u64, u64, &[u64])] = &[
    (0, 1, &[0, 8, 16, 64]),
    (LISTS, 4, &[0, 2]),
    // Several classes of clients, or lists of endpoints.
    (LISTS, 80, &[16, 18, 64, 66, 80]),
    (RULED, 16, &[0, 8, 16, 64]),
    (UNRULY, 16, &[16, 18, 64, 66, 80]),
    // Control planes that forget.
    (0, 8, &[1, 65, 9, 17, 1]),
    (LISTS, 8, &[1, 65, 9, 17]),
    // Reloads.
    (LISTS, 20, &[4, 6, 5, 20, 68]),
];
/// The smallest number of steps with faults in one seed.
const STEPS: usize = 300;

/// There are fewer lulls than this before the end.
const LULLS: usize = 3;
/// The number of lines in the trace of a failing seed.
const LINES: usize = 40;

/// One seed from its beginning to its end.
fn live(world: &mut World) -> Result<(), Broken> {
    world.begin();
    let mut steps = world.course.rng.range(STEPS, STEPS * 3) * world.origins.width();
    for _ in 0..world.course.rng.below(LULLS) {
        let part = world.course.rng.range(0, steps);
        world.run(part as u64)?;
        world.pause()?;
        steps -= part;
    }
    world.run(steps as u64)?;
    world.lull()?;
    world.origins.restore(&mut world.course)?;
    world.calm_down()?;
    world.judge()?;
    world.close_lower()?;
    world.leave()
}

/// Runs a seed; what it broke, if anything, and the world as it then was.
fn run(seed: u64, base: Instant, lines: usize) -> (World, Option<String>) {
    let mut world = World::new(seed, base, lines);
    match seed {
        0..LISTS => {}
        RULED..UNRULY => world = world.with_rules(seed),
        LISTS..RULED | UNRULY.. => world = world.with_lists(seed),
    }
    let broken = match catch_unwind(AssertUnwindSafe(|| live(&mut world))) {
        Ok(Ok(())) => None,
        Ok(Err(broken)) => Some(broken.to_string()),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Some(format!("panic: {}", text.unwrap_or_default()))
        }
    };
    (world, broken)
}

/// Prints the trace of a seed.
fn tell(seed: u64, base: Instant, lines: usize) -> String {
    let (world, broken) = run(seed, base, lines);
    let lines: Vec<&str> = world.course.lines().map(String::as_str).collect();
    let verdict = broken.unwrap_or_else(|| "nothing is wrong".to_owned());
    format!("{}\nseed {seed}: {verdict}", lines.join("\n"))
}

#[expect(
    clippy::disallowed_methods,
    reason = "every world begins at some instant, and none looks at the clock again"
)]
fn now() -> Instant {
    Instant::now()
}

/// Returns so many seeds; if they begin at 0, those of all kinds, and those that ever failed.
fn all_seeds(from: u64, seeds: u64) -> Vec<u64> {
    if from > 0 {
        return (from..from + seeds).collect();
    }
    let of_kind = |(first, share, kinds): &(u64, u64, &'static [u64])| {
        let (first, kinds) = (*first, *kinds);
        (first..first + seeds / share).zip(kinds.iter().cycle())
    };
    let all = KINDS.iter().flat_map(of_kind);
    let all = all.map(|(seed, kind)| seed + kind * BESIDES);
    let all = all.filter(|seed| !KNOWN.contains(seed));
    KEPT.iter().copied().chain(all).collect()
}

/// Every rule of the list in `tally` holds in every world.
#[test]
fn worlds() {
    let base = now();
    if let Ok(seed) = std::env::var("DISTRIBUTARY_SEED") {
        let seed = seed.parse().expect("DISTRIBUTARY_SEED is a number");
        let (world, broken) = run(seed, base, 0);
        println!("{}", tell(seed, base, usize::MAX));
        println!("{} steps", world.course.tally.steps);
        assert_eq!(broken, None, "seed {seed}");
        return;
    }
    let more = std::env::var("DISTRIBUTARY_SEEDS").ok();
    let number = |text: &str| text.parse().expect("DISTRIBUTARY_SEEDS is N or A..B");
    let (from, seeds) = match more.as_deref().map(|text| text.split_once("..").ok_or(text)) {
        None => (0, SEEDS),
        Some(Err(count)) => (0, number(count)),
        Some(Ok((from, to))) => (number(from), number(to) - number(from)),
    };
    let all = all_seeds(from, seeds);
    let next = AtomicUsize::new(0);
    let sum = Mutex::new(Tally::default());
    let failed: Mutex<Vec<(u64, String)>> = Mutex::default();
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut mine = Tally::default();
                loop {
                    let seed = all.get(next.fetch_add(1, Ordering::Relaxed)).copied();
                    let enough = failed.lock().expect("no panic in here").len() >= 5;
                    let Some(seed) = seed.filter(|_| !enough) else {
                        break;
                    };
                    let (world, broken) = run(seed, base, 0);
                    mine.add(&world.course.tally);
                    if let Some(broken) = broken {
                        println!("seed {seed}: {broken}");
                        failed.lock().expect("no panic in here").push((seed, broken));
                    }
                }
                sum.lock().expect("no panic in here").add(&mine);
            });
        }
    });
    report(&sum.into_inner().expect("no panic in here"), all.len(), from == 0);
    let mut failed = failed.into_inner().expect("no panic in here");
    failed.sort();
    if let Some((seed, broken)) = failed.first() {
        let story = tell(*seed, base, LINES);
        assert!(
            story.contains(broken.as_str()),
            "seed {seed} does not repeat itself: {broken}\n{story}"
        );
        panic!("{story}\n(replay with DISTRIBUTARY_SEED={seed})");
    }
}

fn report(tally: &Tally, seeds: usize, all_kinds: bool) {
    println!("{seeds} seeds, {} steps, {} responses", tally.steps, tally.responses);
    for rule in Rule::ALL {
        let count = tally.rules[*rule as usize];
        // Only a run of all kinds of worlds looks at every rule.
        let never = if count == 0 && all_kinds {
            "   NEVER LOOKED AT"
        } else {
            ""
        };
        println!("{:>6} {count:>12}  {}{never}", rule.id(), rule.what());
    }
}
