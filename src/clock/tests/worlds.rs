// SPDX-License-Identifier: Apache-2.0
//! Worlds of the relay's time: threads that read the machine's clock, are interrupted, and ask; keepers; a process that is suspended.
//!
//! Owns what must hold: K-27, and that the time never goes back.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{OwnClock, TICK};

const SECOND: Duration = Duration::from_secs(1);
/// A time may be noted so late.
const STEP: Duration = Duration::from_millis(1);
const THREADS: usize = 4;

/// A thread that has read the machine's clock and has not asked for the time yet: what it read, and the latest time that anybody had been
/// told by then.
type Pending = Option<(Instant, Instant)>;

struct World {
    clock: OwnClock,
    dice: u64,
    real: Instant,
    threads: [Pending; THREADS],
    keepers: usize,
    /// When the keeper notes next that the process runs.
    ticks: Instant,
    /// The latest time that anybody was told.
    told: Instant,
    /// What may have been lost so far.
    losable: Duration,
    /// After a suspension: the time at which it began, and until when it must stand.
    stands: Option<(Instant, Instant)>,
    suspended: u64,
}

impl World {
    fn new(seed: u64, real: Instant) -> Self {
        Self {
            clock: OwnClock::new(real),
            dice: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            real,
            threads: [None; THREADS],
            keepers: 0,
            ticks: real,
            told: real,
            losable: Duration::ZERO,
            stands: None,
            suspended: 0,
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        (self.dice >> 11) % bound
    }

    /// A thread that has read the clock asks.
    fn ask(&mut self, (read, floor): (Instant, Instant)) {
        let own = self.clock.at(read);
        assert!(own >= floor, "back by {:?}", floor - own);
        assert!(
            own + self.losable >= read,
            "lost {:?} of {:?}",
            read - own,
            self.losable
        );
        if let Some((began, until)) = self.stands.filter(|(_, until)| self.real < *until) {
            assert!(
                own <= began + STEP,
                "{:?} passed, {:?} too early",
                own - began,
                until - self.real
            );
        }
        self.told = self.told.max(own);
    }

    fn read(&self) -> (Instant, Instant) {
        (self.real, self.told)
    }

    fn tick(&mut self) {
        if self.keepers > 0 && self.ticks <= self.real {
            self.ask(self.read());
            self.ticks = self.real + TICK;
        }
    }

    /// The process runs for so long.
    fn run(&mut self, time: Duration) {
        let end = self.real + time;
        while self.keepers > 0 && self.ticks <= end {
            self.real = self.real.max(self.ticks);
            self.tick();
        }
        self.real = end;
    }

    /// The process stands still for so long. Whoever is first afterwards, the keeper is not late.
    fn suspend(&mut self, time: Duration) {
        let began = self.clock.of(self.real);
        let counted = self.clock.stalls();
        self.real += time;
        if self.keepers > 0 && time > SECOND + TICK {
            self.stands = Some((began, self.real + SECOND - TICK));
        }
        if self.keepers > 0 && time > SECOND {
            self.losable += time + SECOND;
            self.suspended += 1;
        }
        for _ in 0..self.below(3) {
            self.act();
        }
        self.tick();
        let more = self.clock.stalls().count - counted.count;
        let noticed = if self.keepers == 0 || time <= SECOND {
            more == 0
        } else {
            more == 1 || more == 0 && time <= SECOND + TICK
        };
        assert!(noticed, "{time:?} was noticed {more} times");
    }

    /// One thread reads the clock, or asks, or both.
    fn act(&mut self) {
        let at = self.below(THREADS as u64) as usize;
        match (self.threads[at].take(), self.below(3)) {
            (Some(pending), _) => self.ask(pending),
            (None, 0) => self.threads[at] = Some(self.read()),
            (None, _) => self.ask(self.read()),
        }
    }

    fn step(&mut self) {
        match self.below(100) {
            0..40 => self.act(),
            40..70 => {
                let micros = self.below(2_000);
                self.run(Duration::from_micros(micros));
            }
            70..92 => {
                let millis = self.below(3_000);
                self.run(Duration::from_millis(millis));
            }
            92..97 => {
                let longest = [900, 1_050, 1_200, 3_000, 60_000, 3_600_000][self.below(6) as usize];
                let micros = self.below(longest * 1_000);
                self.suspend(Duration::from_micros(micros));
            }
            97..99 if self.keepers > 0 => {
                self.clock.leave(self.real);
                self.keepers -= 1;
            }
            _ => {
                self.clock.begin(self.real);
                self.ticks = if self.keepers == 0 { self.real } else { self.ticks };
                self.keepers += 1;
            }
        }
    }
}

fn apart(one: Instant, other: Instant) -> Duration {
    one.max(other) - one.min(other)
}

#[expect(clippy::disallowed_methods, reason = "any instant will do")]
fn some_instant() -> Instant {
    Instant::now()
}

/// Whatever the threads were doing when the process was suspended: no time goes back, none is lost but what the process stood and a second,
/// and none passes before what arrived meanwhile was read.
#[test]
fn time_never_goes_back_and_loses_what_the_process_stood() {
    let base = some_instant();
    let mut suspended = 0;
    for seed in 0..400 {
        let mut world = World::new(seed, base);
        for _ in 0..600 {
            world.step();
        }
        suspended += world.suspended;
    }
    assert!(suspended > 3_000, "{suspended}");
}

/// Three days of a keeper, with a suspension each hour: all of it is lost once, and nothing else.
#[test]
fn days_of_a_keeper() {
    let mut world = World::new(7, some_instant());
    world.clock.begin(world.real);
    world.keepers = 1;
    let start = world.real;
    for hour in 0..72 {
        world.run(Duration::from_secs(3_600));
        world.suspend(Duration::from_secs(2 + hour * 10));
        world.run(2 * SECOND);
        assert!(world.told + world.losable + TICK >= world.real);
    }
    let lost = (world.real - start) - (world.told - start);
    let stood: u64 = (0..72).map(|hour| 2 + hour * 10).sum();
    let stood = Duration::from_secs(stood);
    assert!(
        lost >= stood && lost <= stood + 72 * SECOND + TICK,
        "{lost:?} of {stood:?}"
    );
    assert_eq!(world.clock.stalls().count, 72);
    assert!(world.clock.stalls().stood.abs_diff(stood) <= 72 * TICK);
}

/// Moments are shown as when they were, also those before a suspension; what was set for later is due when that much has passed.
#[test]
fn moments_are_where_they_were() {
    let start = some_instant();
    let mut world = World::new(1, start);
    world.clock.begin(start);
    world.keepers = 1;
    let mut noted = Vec::new();
    for _ in 0..20 {
        world.run(30 * SECOND);
        noted.push((world.clock.at(world.real), world.real));
        world.suspend(100 * SECOND);
        world.run(2 * SECOND);
    }
    for (own, real) in noted {
        assert!(apart(world.clock.real(own), real) <= TICK);
    }
    let own = world.clock.at(world.real);
    assert_eq!(world.clock.due(own + SECOND), world.real + SECOND);
    assert_eq!(world.clock.real(own + SECOND), world.real + SECOND);
    // A wait that begins while the time stands still begins when it goes on.
    world.suspend(5 * SECOND);
    let stands = world.clock.at(world.real);
    assert_eq!(
        world.clock.after(world.real, SECOND).0,
        Some(world.clock.due(stands + SECOND))
    );
}

/// Threads that really run beside each other.
#[test]
fn threads_see_one_time() {
    let base = some_instant();
    let clock = OwnClock::new(base);
    clock.begin(base);
    let (micros, told, over) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let ask = || {
        let floor = told.load(Ordering::SeqCst);
        let real = base + Duration::from_micros(micros.load(Ordering::SeqCst));
        let own = clock.at(real).saturating_duration_since(base).as_nanos() as u64;
        assert!(own >= floor, "back by {} ns", floor - own);
        told.fetch_max(own, Ordering::SeqCst);
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    ask();
                }
            });
        }
        for step in 0..40_000_u64 {
            let pause = if step % 50 == 49 { 1_500_000 + step * 100 } else { 700 };
            micros.fetch_add(pause, Ordering::SeqCst);
            ask();
        }
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(clock.stalls().count, 800);
}
