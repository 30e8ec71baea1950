// SPDX-License-Identifier: Apache-2.0
//! Sessions on real threads against one writer: no session misses a change, and nothing is left at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use std::thread::Thread;

use xds::Version;

use super::random::Random;
use super::*;

const SESSIONS: usize = 8;
const LIVES: usize = 40;
const MOVES: usize = 60;
const NAMES: usize = 50;
const ROUNDS: usize = 3000;
const DEADLINE: Duration = Duration::from_secs(10);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A session that relies on its bell alone: it looks at a name when it begins to want it, and then when the bell rings.
struct Session {
    seat: Seat,
    held: BTreeMap<Name, Option<Version>>,
    waker: Waker,
}

fn name(n: usize) -> Name {
    Name::from(format!("n{n}"))
}

fn current(view: &View, name: &Name) -> Option<Version> {
    let cut = view.cut();
    let slot = cut.slot(&eds())?;
    slot.resource(name).map(|resource| resource.version())
}

impl Session {
    fn new(view: &Arc<View>) -> Self {
        let unpark = Unpark(std::thread::current());
        Self {
            seat: view.enter(),
            held: BTreeMap::new(),
            waker: Waker::from(Arc::new(unpark)),
        }
    }

    fn turn(&mut self, name: &Name) {
        let wanted = !self.held.contains_key(name);
        let want = Want {
            type_url: eds(),
            target: Target::Name(name.clone()),
            wanted,
            written: None,
        };
        assert_eq!(self.seat.want(&want), Ok(()));
        if wanted {
            self.held.insert(name.clone(), current(self.seat.view(), name));
        } else {
            self.held.remove(name);
        }
    }

    fn look(&mut self) {
        for (_, dirty) in self.seat.bell().take() {
            let cut = self.seat.view().cut();
            let now = |name: &Name| Some(cut.slot(&eds())?.resource(name)?.version());
            match dirty {
                Dirty::All => self.held.iter_mut().for_each(|(name, held)| *held = now(name)),
                Dirty::Names(names) => {
                    for name in names {
                        self.held.entry(name.clone()).and_modify(|held| *held = now(&name));
                    }
                }
            }
        }
    }

    /// Sleeps until the bell rings. Only a lost wake-up makes this take long.
    fn sleep(&self) {
        let mut context = Context::from_waker(&self.waker);
        let begun = start();
        while self.seat.bell().poll(&mut context).is_pending() {
            assert!(begun.elapsed() < DEADLINE, "nobody rang");
            std::thread::park_timeout(DEADLINE);
        }
    }
}

/// Takes and leaves its seat many times. The last time it stays, and must be woken for the end of every round.
fn live(view: &Arc<View>, seed: u64, done: &AtomicUsize) {
    let mut random = Random::new(seed);
    for life in 1..=LIVES {
        let mut session = Session::new(view);
        for _ in 0..MOVES {
            session.turn(&name(random.below(NAMES)));
            session.look();
        }
        if life < LIVES {
            continue;
        }
        let last = name(NAMES);
        session.turn(&last);
        done.fetch_add(1, Ordering::SeqCst);
        for round in 0..=ROUNDS {
            let end = resource(&eds(), last.as_str(), &[], round.to_string().as_bytes()).version();
            while session.held.get(&last) != Some(&Some(end)) {
                session.sleep();
                session.look();
            }
            done.fetch_add(1, Ordering::SeqCst);
        }
        for (name, held) in &session.held {
            assert_eq!(*held, current(view, name), "{name}");
        }
    }
}

/// The only writer of the view. It writes only names that it was told of.
struct Writer {
    view: Arc<View>,
    random: Random,
    now: Instant,
    told: BTreeSet<Name>,
}

impl Writer {
    fn turn(&mut self) {
        self.now += Duration::from_millis(1);
        self.view.settle();
        for want in self.view.take_wants(self.now) {
            let Target::Name(name) = want.target else { continue };
            let changed = if want.wanted {
                self.told.insert(name)
            } else {
                self.told.remove(&name)
            };
            assert!(changed, "told twice");
        }
    }

    fn publish(&mut self, content: usize) {
        let mut updates = Vec::new();
        for name in &self.told {
            if self.random.below(4) == 0 && *name != self::name(NAMES) {
                updates.push(put(&eds(), name.as_str(), &content.to_string()));
            }
        }
        self.view.publish(&[named(&eds(), updates)]);
    }
}

#[test]
fn nobody_misses_a_change_and_nothing_is_left() {
    let linger = Duration::from_millis(5);
    let view = View::new(Class::default(), ViewSettings { linger, ..settings() });
    let done = AtomicUsize::new(0);
    let mut writer = Writer {
        view: view.clone(),
        random: Random::new(0),
        now: start(),
        told: BTreeSet::new(),
    };
    std::thread::scope(|scope| {
        let sessions: Vec<_> = (1..=SESSIONS)
            .map(|seed| {
                let (view, done) = (&view, &done);
                scope.spawn(move || live(view, seed as u64, done))
            })
            .collect();
        // A session that fails ends its thread; then this one must end as well.
        let behind = |rounds: usize| {
            let failed = sessions.iter().any(|session| session.is_finished());
            !failed && done.load(Ordering::SeqCst) < SESSIONS * rounds
        };
        let mut content = 0;
        while behind(1) {
            writer.turn();
            content += 1;
            writer.publish(content);
        }
        writer.turn();
        // Two changes with almost no time between them: the second must ring whatever the session is doing about the first.
        let last = |content: String| named(&eds(), vec![put(&eds(), name(NAMES).as_str(), &content)]);
        for round in 0..ROUNDS {
            view.publish(&[last(format!("{round}, begun"))]);
            (0..writer.random.below(1000)).for_each(|_| std::hint::spin_loop());
            view.publish(&[last(round.to_string())]);
            while behind(round + 2) {
                std::thread::yield_now();
            }
        }
        let end = ROUNDS.to_string();
        let all = writer.told.iter().map(|name| put(&eds(), name.as_str(), &end));
        view.publish(&[named(&eds(), all.collect())]);
    });
    let summary = view.summary();
    assert_eq!((summary.seats, summary.wanted), (0, 0));
    writer.turn();
    writer.now += linger * 2;
    writer.turn();
    assert!(writer.told.is_empty() && view.demand().is_idle());
    assert_eq!(view.cut().slots().count(), 0);
}

/// K-20: the bell of a session that is told of all that the cut shows has rung for every type of a change, and never for a part of it.
#[test]
fn a_change_of_two_types_is_told_whole() {
    let view = View::new(Class::default(), settings());
    let wanting = || {
        let seat = view.enter();
        for type_url in [cds(), eds()] {
            let want = Want {
                type_url,
                target: Target::Name(name(0)),
                wanted: true,
                written: None,
            };
            assert_eq!(seat.want(&want), Ok(()));
        }
        seat
    };
    let (seat, _others) = (wanting(), [(); 50].map(|()| wanting()));
    let change = |round: usize| {
        let one = |type_url| named(&type_url, vec![put(&type_url, name(0).as_str(), &round.to_string())]);
        drop(view.publish(&[one(cds()), one(eds())]));
    };
    let content = |cut: &xds::Cut, type_url: &TypeUrl| Some(cut.slot(type_url)?.resource(&name(0))?.version());
    let end = resource(&eds(), name(0).as_str(), &[], ROUNDS.to_string().as_bytes()).version();
    std::thread::scope(|scope| {
        scope.spawn(|| (0..=ROUNDS).for_each(change));
        let (mut said, mut held) = (BTreeSet::new(), BTreeMap::new());
        let begun = start();
        while held.get(&eds()) != Some(&Some(end)) {
            assert!(begun.elapsed() < DEADLINE, "the end is not told");
            said.extend(seat.bell().take().into_iter().map(|(type_url, _)| type_url));
            let cut = view.cut();
            if !seat.is_told() {
                continue;
            }
            for type_url in [cds(), eds()] {
                let now = content(&cut, &type_url);
                let before = held.insert(type_url.clone(), now).flatten();
                assert!(before == now || said.contains(&type_url), "{type_url}: {said:?}");
            }
            said.clear();
        }
    });
}
