//! The simulation: whole worlds of control planes, a relay and clients. A seed decides each world, a naive model judges it.
//!
//! In a world there are
//!
//! - two or three control planes, each for one class of clients. Some speak the protocol on two streams for each view, in delta
//!   or SotW. They are slow, close early, answer in chunks or with garbage, do not report what is missing (C-16), ignore what a
//!   client declares, send again at once what was rejected (E-22), or answer only when they are asked for all that they have
//!   (E-18). Others publish without a protocol. They fail and return; links break, or silently lose everything on them.
//! - the relay: classes by rules (K-02 to K-04), views that begin and end and may be too many, both halves of the protocol, the
//!   shared answers, and now and then a restart that forgets everything.
//! - six to nine clients of five kinds, in both dialects: Envoys that warm clusters, on one stream or many, gRPC clients, clients
//!   on demand, hostile ones. They are slow, stall, reconnect with or without what they held, and move between classes.
//! - a witness beside each client stream that reads every request and judges every response; `tally` lists the rules that it
//!   checks. At the end everything heals, and what clients and views hold is compared with what the control planes have.
//!
//! Seeds from 1,000,000,000 on are worlds with lists (`lists/`): two to four servers, a list of some of them for names of old
//! style and for each of two authorities, with and without `fallback_on_reachability_only`; replicas that lag behind each other
//! or differ. Servers die, refuse, hang, end streams at once or after one answer, and come back with any content.
//! Some are files, or directories of files, that are torn, emptied, spoiled, moved and removed; some are polled and compare
//! versions only; some are relays with a control plane of their own, which restart, and sometimes are this very relay.
//! Clients ask for collections, by other spellings and by aliases; hostile ones flood the relay with garbage.
//!
//! Seeds from 3,000,000,000 on are such worlds in which all clients but one are hostile: most of what is rare happens to them.
//!
//! The digits before the last seven add features to a world:
//!
//! - 1: variants of names (TP2, `variants`) that come, change and go. Clients send a parameter, none, or one for which there is no
//!   variant, and change it.
//! - 2, with lists: times to live at every server, also at polled ones.
//! - 4, without lists: control planes that end delta streams unanswered, each in its own way, always or now and then (E-23).
//! - 8, without lists: a relay that stands still at times (K-27, `frozen`).
//! - 16, without lists: clients that ask for names that are none (B-32).
//! - 16, with lists: two classes of clients, with different servers for names of old style and the same servers for names under an
//!   authority (F-13).
//! - 32, without lists: control planes that end each stream on which a certain type is asked for, until everything heals (E-15).
//! - 32, with lists: times to live at every server, most of which are files.
//! - 64, without lists: control planes that say the removal of a cluster before the routes that leave it (D-03).
//! - 64, with lists: lists of endpoints (LEDS), to which assignments refer; if there are two classes, only for the class of clients
//!   that read such lists (K-04).
//!
//! With lists the witness judges every response as well, also those to hostile clients, by the views that the stream reads. A
//! follower beside it knows which server's content may be sent. In a lull in which nothing but the outages goes on, and when
//! everything has healed, clients are compared with the views that they read, and at the end with their first servers.
//!
//! The simulation does not judge: content that a control plane never reports as gone (partial SotW; delta servers that ignore what
//! is declared), versions of rejected sets, and which of two contents of one name a client has by an alias.
//!
//! `DISTRIBUTARY_SEEDS=N` runs more seeds, `A..B` the seeds from A to B, `DISTRIBUTARY_SEED=S` one seed with a readable trace. A seed
//! that ever failed stays in `KEPT` and runs unless only others are asked for.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test: what cannot happen must fail it, and its report is printed for people"
)]

mod access;
mod apart;
mod body;
mod bytes;
mod classes;
mod client;
mod farewells;
mod feed;
mod frozen;
mod hops;
mod line;
mod lists;
mod losses;
mod names;
mod origin;
mod people;
mod quiet;
mod reading;
mod relay;
mod rng;
mod served;
mod tally;
mod tenants;
mod truth;
mod upstream;
mod variants;
mod wire;
mod witness;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tally::{Broken, Rule, Tally};
use world::{BESIDES, World};

/// Seeds that have found something once.
const KEPT: &[u64] = &[
    8909, 9801, 10_200, 11_278, 12_160, 12_955, 14_595, 322, 436, 1915, 2159, 2723, 4939, 6151, 8492, 8970, 9925,
    10_318, 10_770, 11_099, 12_198, 13_000, 22_509, 22_718, 29_405, 33_039, 34_021, 44_991, 45_007, 94_131, 96_344,
    48_261, 102_180, 105_044, 140_189, 145_444, 35, 41, 86, 256, 277, 6161, 40_658, 41_794, 51_597, 65_098, 21_315,
    1089, 6367, 7994, 57, 314, 2087, 3361, 3441, 23_728, 41_526, 45_110, 54_378, 92_071, 115_519, 157_390, 134_977,
    171_793, 190_039, 190_745, 207_471, 10_000_123, 10_000_787, 10_004_022, 10_005_137, 10_007_149, 10_035_617,
    10_042_111, 30_031_191, 80_001_288, 40_301_738, 720, 40_000_517, 80_000_143, 80_000_453, 40_006_607, 80_009_383,
    80_503_044, 704_952, 10_702_719, 41_404_379, 11_504_244, 82_003_410, 82_011_973, 3_002_576, 46_002_385, 16_104_271,
    7_005_389, 87_009_556, 8_001_132, 8_410_831, 8_411_332, 9_357_969, 9_453_654, 89_126_404, 89_149_086, 89_105_574,
    89_161_671, 40_002_956, 40_009_319, 9_801_705, 89_823_854,
];
/// The same of worlds with types that end streams, counted from the first of those.
const KEPT_SUSPECTS: &[u64] = &[304_241, 600_755, 704_474, 704_749, 1_401_294, 1_300_465, 6_300_197];
/// The same of worlds with lists of servers, counted from [`LISTS`].
const KEPT_LISTS: &[u64] = &[
    44, 60, 170, 345, 441, 655, 727, 997, 1159, 1264, 1681, 1782, 1973, 1982, 2475, 2646, 2974, 3704, 3812, 4281, 4443,
    5609, 6668, 7616, 7919, 10_892, 14_036, 14_847, 14_939, 17_303, 18_488, 18_621, 18_938, 19_048, 19_502, 10_000_514,
    30_001_724, 30_002_371, 20_000_682, 30_092, 32_711, 10_011_678, 20_012_322, 20_012_547, 20_013_229, 30_010_910,
    30_011_907, 30_012_526, 30_012_823, 30_014_619, 37_941, 38_148, 38_869, 30_016_158, 30_016_581, 30_016_928,
    30_020_197, 44_686, 50_512, 10_030_064, 10_017_819, 10_024_205, 20_014_656, 20_026_970, 20_030_517, 20_018_482,
    20_024_865, 20_024_936, 60_710, 64_787, 376, 10_000_059, 2400, 20_000_935, 20_001_072, 30_000_837, 341, 10_301_738,
    10_301_864, 1540, 10_002_826, 10_000_093, 30_000_175, 301_666, 20_002_678, 20_002_896, 30_002_871, 10_301_515,
    30_002_336, 20_001_666, 10_500_668, 30_501_625, 10_601_732, 10_602_571, 30_602_169, 30_602_741, 10_500_292,
    30_501_582, 20_603_027, 10_601_585, 20_601_011, 20_600_043, 20_603_729, 10_701_003, 20_701_701, 20_701_402,
    10_700_311, 20_700_898, 20_900_584, 30_800_392, 10_900_365, 903_156, 1_000_772, 1_001_903, 11_002_745, 1_102_824,
    1_202_902, 1_103_259, 1_501_800, 1_503_590, 2_000_639, 2_006_011, 2_012_937, 11_602_364, 1_602_949, 12_011_287,
    22_005_401, 22_014_672, 2_014_553, 22_015_280, 23_002_330, 30_000_371, 6_000_703, 16_000_661, 6_100_365, 9_301_379,
];
/// The same of worlds of newer kinds.
const KEPT_NEWER: &[u64] = &[
    180_000_123,
    190_000_023,
    171_001_461,
    641_003_064,
    170_000_550,
    180_000_096,
    800_000_030,
    161_300_124,
    161_402_002,
    161_502_077,
    166_000_605,
    161_504_694,
    186_000_893,
    186_000_943,
    186_001_225,
    167_000_721,
    167_002_426,
    187_000_200,
    819_104_343,
    669_106_562,
    819_100_282,
    819_104_295,
    819_105_667,
    669_300_708,
    819_101_096,
    819_403_066,
    819_405_464,
    819_407_039,
    339_405_204,
    189_404_156,
    189_407_253,
    189_433_283,
    339_432_520,
    489_445_326,
    189_442_466,
    819_432_525,
    339_440_005,
    329_440_189,
    189_462_904,
    489_464_553,
    499_460_064,
    499_460_687,
    499_467_662,
    39_460_912,
    669_463_596,
    649_543_610,
    169_465_988,
    189_541_002,
    169_563_944,
    19_543_266,
    499_571_557,
    819_570_295,
    179_640_317,
    179_720_207,
    199_720_551,
    499_721_849,
    499_722_974,
    819_723_545,
    489_721_445,
    489_722_222,
    659_740_415,
    489_742_039,
    199_762_279,
    189_762_310,
    809_771_401,
    819_761_390,
    169_780_106,
    179_790_453,
    19_790_997,
    489_794_934,
    819_795_046,
    19_802_051,
    659_802_715,
    179_798_761,
    189_799_017,
    189_800_235,
    29_802_745,
    169_800_786,
    499_805_488,
    39_807_081,
    179_811_481,
    189_814_911,
    9_815_429,
    29_820_057,
    819_825_106,
    189_826_914,
    489_838_027,
    489_839_896,
    169_849_563,
    809_862_748,
    489_880_736,
    499_896_682,
];
/// The same of worlds with rules, counted from [`RULED`].
const KEPT_RULED: &[u64] = &[
    274,
    980,
    1043,
    1267,
    1813,
    3248,
    3413,
    10_382,
    40_022_303,
    46_005_955,
    46_009_064,
    46_009_989,
    16_201_488,
    86_000_860,
    86_003_231,
    646_003_267,
];
/// How many seeds every test run tries: what takes a minute of processor time.
const SEEDS: u64 = 2_000;
/// From this seed on worlds have lists of servers.
const LISTS: u64 = 1_000_000_000;
/// From this seed on worlds have rules about what clients may have, and no lists of servers.
const RULED: u64 = 2_000_000_000;
/// From this seed on worlds have lists of servers, and all clients but one are hostile.
const UNRULY: u64 = 3_000_000_000;
/// The additional features of worlds, one after the other.
const KINDS: &[u64] = &[0, 1, 4, 8, 32, 16, 64];
/// The same of those with lists of servers.
const KINDS_LISTS: &[u64] = &[0, 1, 2, 3];
/// The same of those that are newer, after all others.
const KINDS_NEWER: &[u64] = &[16, 17, 18, 19, 32, 33, 48, 49, 64, 65, 66, 80, 81];
/// So many seeds of worlds with lists are tried for each one of these.
const SHARE_NEWER: u64 = 20;
/// So many seeds of worlds without such lists are tried for each one with them.
const SHARE: u64 = 4;
/// The smallest number of steps with faults in one seed.
const STEPS: usize = 300;

/// The number of lines in the trace of a failing seed.
const LINES: usize = 40;

/// One seed from its beginning to its end.
fn live(world: &mut World) -> Result<(), Broken> {
    world.begin();
    let steps = world.rng.range(STEPS, STEPS * 3) * world.width();
    world.run(steps as u64)?;
    world.lull()?;
    world.restore()?;
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
    let lines: Vec<&str> = world.lines().map(String::as_str).collect();
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

/// Returns so many seeds; if they begin at 0, also those of all other kinds, and those that ever failed.
fn all_seeds(from: u64, seeds: u64, listed: u64) -> Vec<u64> {
    let in_lists = KEPT_LISTS.iter().chain(KEPT_NEWER).map(|seed| LISTS + seed);
    let kept = KEPT.iter().copied().chain(in_lists);
    let kept = kept.chain(KEPT_SUSPECTS.iter().map(|seed| 32 * BESIDES + seed));
    let kept = kept.chain(KEPT_RULED.iter().map(|seed| RULED + seed));
    let kept = kept.filter(|_| from == 0);
    let besides = |seed: u64, kinds: &[u64]| {
        let some = kinds.get((seed % BESIDES) as usize % kinds.len());
        seed + some.filter(|_| from == 0).map_or(0, |kind| kind * BESIDES)
    };
    let plain = (from..from + seeds).map(|seed| besides(seed, KINDS));
    let lists = (LISTS..LISTS + listed).map(|seed| besides(seed, KINDS_LISTS));
    let newer = (LISTS..LISTS + listed / SHARE_NEWER).map(|seed| besides(seed, KINDS_NEWER));
    let ruled = (RULED..RULED + listed / SHARE).map(|seed| besides(seed, KINDS));
    let unruly = (UNRULY..UNRULY + listed / SHARE).map(|seed| besides(seed, KINDS_NEWER));
    let others = newer.chain(ruled).chain(unruly);
    kept.chain(plain).chain(lists).chain(others).collect()
}

/// Every rule of the list in `tally` holds at every step of every seed.
#[test]
fn worlds() {
    let base = now();
    if let Ok(seed) = std::env::var("DISTRIBUTARY_SEED") {
        let seed = seed.parse().expect("DISTRIBUTARY_SEED is a number");
        let (world, broken) = run(seed, base, 0);
        println!("{}", tell(seed, base, usize::MAX));
        println!("{} steps", world.tally.steps);
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
    let listed = if from == 0 { seeds / SHARE } else { 0 };
    let all = all_seeds(from, seeds, listed);
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
                    mine.add(&world.tally);
                    if let Some(broken) = broken {
                        println!("seed {seed}: {broken}");
                        failed.lock().expect("no panic in here").push((seed, broken));
                    }
                }
                sum.lock().expect("no panic in here").add(&mine);
            });
        }
    });
    report(&sum.into_inner().expect("no panic in here"), seeds, listed);
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

fn report(tally: &Tally, seeds: u64, listed: u64) {
    println!(
        "{seeds} and {listed} seeds, {} steps, {} responses",
        tally.steps, tally.responses
    );
    for rule in Rule::ALL {
        let count = tally.rules[*rule as usize];
        let warning = if count == 0 { "   NEVER LOOKED AT" } else { "" };
        println!("{:>6} {count:>12}  {}{warning}", rule.id(), rule.what());
    }
}
