//! A world: control planes, one relay, clients, and their time.
//!
//! Owns the queue of events and the network. Knows nothing of the content of messages.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::task::Wake;
use std::time::{Duration, Instant};

use cache::{Library, Routes, Scopes};
use protocol::{StreamSettings, StreamTimers};

use super::access::Permits;
use super::body::Type;
use super::classes::{self, Profile};
use super::client::{Act, Client};
use super::feed::Zone;
use super::frozen::Own;
use super::judge::Judge;
use super::lists::{Lists, Pass};
use super::relay::Stream;
use super::rng::Rng;
use super::tally::{Broken, Tally};
use super::truth::{Step, Truth};
use super::upstream::Hop;

/// Something that happens at a time.
#[derive(Debug)]
pub(crate) enum Event {
    /// An operator begins a change.
    Plan(usize),
    /// One step of it.
    Step(usize, Step),
    /// The relay hears from a control plane, or has something to ask it.
    Upstream(usize),
    /// Something happens on the way to a control plane.
    Hop(Hop),
    /// A control plane says what is new, or with `true` confirms what it said.
    Utter(usize, bool),
    /// The head of a stream's pipe arrives.
    ToRelay(u64),
    ToClient(u64),
    /// The relay's task for a stream runs, because its bell rang or because it is time.
    Turn(u64),
    Timer(u64),
    /// One side learns that the stream has ended.
    EndAtRelay(u64),
    EndAtClient(u64),
    /// The client has read a response: the transport can take one more.
    Credit(u64),
    Heal(u64),
    Act(usize, Act),
    Fault,
    /// The relay looks for views that no session uses.
    Sweep,
    /// The control plane of a zone can be reached again.
    Reach(usize),
    /// The control plane of a zone has not answered for a name in time.
    Silence(usize, Type, String),
    /// A server begins to behave otherwise.
    Sway(usize),
    /// A server takes over what another one has.
    Adopt,
    /// The relay looks at the files of a server.
    Look(usize),
    /// Something happens between the relay and a server that it polls.
    Poll(Pass),
    /// The operator changes the rules.
    Decree,
    /// A control plane forgets something, and knows it again.
    Forget(usize),
    Recall(usize, Box<Truth>),
    /// The operator changes what is held.
    Guard,
}

impl Event {
    /// Whether it is one of those that go on for ever, whether anything happens or not.
    const fn is_routine(&self) -> bool {
        matches!(self, Self::Poll(_))
    }
}

/// Messages on their way in one direction of one stream.
#[derive(Debug)]
pub(crate) struct Pipe<T> {
    messages: VecDeque<T>,
    last: Duration,
    /// Messages that would have arrived while the link was stalled.
    late: usize,
}

impl<T> Default for Pipe<T> {
    fn default() -> Self {
        Self {
            messages: VecDeque::new(),
            last: Duration::ZERO,
            late: 0,
        }
    }
}

impl<T> Pipe<T> {
    /// When the message arrives: never before the one in front of it.
    pub(crate) fn send(&mut self, message: T, at: Duration) -> Duration {
        self.messages.push_back(message);
        self.last = self.last.max(at);
        self.last
    }

    pub(crate) fn arrive(&mut self, stalled: bool) -> Option<T> {
        if stalled {
            self.late += 1;
            return None;
        }
        self.messages.pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// What is on its way.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.messages.iter()
    }

    pub(crate) fn take_late(&mut self) -> usize {
        std::mem::take(&mut self.late)
    }
}

/// The streams whose bells have rung.
#[derive(Default)]
pub(crate) struct Woken(Mutex<Vec<u64>>);

/// The waker of one stream.
pub(crate) struct Ringer {
    pub(crate) stream: u64,
    pub(crate) woken: Arc<Woken>,
}

impl Wake for Ringer {
    fn wake(self: Arc<Self>) {
        self.woken.wake(self.stream);
    }
}

impl Woken {
    pub(crate) fn wake(&self, stream: u64) {
        self.0.lock().expect("one thread").push(stream);
    }
}

/// The additional features of a world, from its seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Besides {
    /// Control planes that forget (D-10).
    pub(crate) amnesia: bool,
    /// Where there are lists: times to live at every server, those that are polled as well.
    pub(crate) ttls: bool,
    /// Control planes that end delta streams without an answer (E-23).
    pub(crate) refusals: bool,
    /// Control planes that end streams for a type (E-15).
    pub(crate) shunned: bool,
    /// The relay stands still at times (K-27).
    pub(crate) frozen: bool,
    /// Where there are lists: several classes of clients.
    pub(crate) classes: bool,
    /// Where there are lists: files in which there are times to live.
    pub(crate) files: bool,
    /// Where there are lists: endpoints in lists of their own (LEDS).
    pub(crate) endpoints: bool,
    /// Clients whose requests contain names that are none (B-32).
    pub(crate) slips: bool,
    /// Control planes that say the removal of a cluster before the routes that leave it (D-03).
    pub(crate) hasty: bool,
    /// Where there are lists: all clients but one are hostile.
    pub(crate) unruly: bool,
}

/// The digits of a seed above this number are the additional features of its world.
pub(crate) const BESIDES: u64 = 10_000_000;

/// Separates the random numbers of refusals from all others.
const REFUSALS: u64 = 0x5eed_0000_0023;

impl Besides {
    const fn of(seed: u64) -> Self {
        let all = seed / BESIDES % 100;
        let unruly = seed >= super::UNRULY;
        let lists = seed >= super::LISTS && seed < super::RULED || unruly;
        Self {
            amnesia: all & 1 > 0,
            ttls: all & 2 > 0 || all & 32 > 0 && lists,
            refusals: all & 4 > 0,
            shunned: all & 32 > 0 && !lists,
            frozen: all & 8 > 0,
            classes: all & 16 > 0,
            files: all & 32 > 0 && lists,
            endpoints: all & 64 > 0 && lists,
            slips: all & 16 > 0 && !lists,
            hasty: all & 64 > 0 && !lists,
            unruly,
        }
    }
}

/// A world and all that is in it.
pub(crate) struct World {
    base: Instant,
    pub(crate) now: Duration,
    /// The relay's own time.
    pub(crate) own: Own,
    queue: BTreeMap<(Duration, u64), Event>,
    order: u64,
    /// The number of events in the queue that are not routine, and when the last such event happened.
    lively: usize,
    stirred: Duration,
    pub(crate) rng: Rng,
    pub(crate) tally: Tally,
    lines: VecDeque<String>,
    /// How many lines of the trace are kept.
    kept: usize,
    pub(crate) settings: Arc<StreamSettings>,
    /// The shared answers.
    pub(crate) answers: Library,
    pub(crate) judge: Judge,
    pub(crate) besides: Besides,
    /// The random numbers of refusals.
    pub(crate) refusals: Rng,
    pub(crate) profiles: Vec<Profile>,
    pub(crate) zones: Vec<Zone>,
    /// In worlds where each authority has servers of its own: the lists. The servers are the zones.
    pub(crate) lists: Option<Box<Lists>>,
    /// What clients may have, in worlds with rules about that.
    pub(crate) permits: Option<Permits>,
    pub(crate) scopes: Scopes,
    /// The most views that there may be; 0: no bound.
    pub(crate) views: usize,
    pub(crate) streams: BTreeMap<u64, Box<Stream>>,
    pub(crate) clients: Vec<Client>,
    pub(crate) last_stream: u64,
    pub(crate) woken: Arc<Woken>,
    /// Whether all participants behave by now.
    pub(crate) calm: bool,
    /// Slowest delivery of this world's links, in milliseconds.
    pub(crate) slowness: usize,
}

/// Longer than any back-off of polls.
const ROUTINE: Duration = Duration::from_secs(200);
/// A world that does not come to rest within so many steps never will.
const RESTLESS: u64 = 60_000;

impl World {
    pub(crate) fn new(seed: u64, base: Instant, kept: usize) -> Self {
        let mut rng = Rng::new(seed);
        let chunk = *rng.pick(&[120, 300, 1 << 21]).expect("there are some");
        let pace = if rng.chance(20) {
            rng.millis(10, 800)
        } else {
            Duration::ZERO
        };
        let slowness = *rng.pick(&[2, 30, 400, 3000]).expect("there are some");
        let profiles = classes::profiles(&mut rng);
        let besides = Besides::of(seed);
        let mut zones: Vec<Zone> = (0..profiles.len()).map(|zone| Zone::new(zone, &mut rng)).collect();
        let routing = zones.iter_mut().filter(|zone| besides.hasty && zone.wire.is_some());
        routing.for_each(|zone| zone.truth = zone.truth.clone().hasty());
        let mut refusals = Rng::new(seed ^ REFUSALS);
        for wire in zones.iter_mut().filter_map(|zone| zone.wire.as_mut()) {
            wire.trouble(besides, &mut refusals);
        }
        let rules = classes::rules(&mut rng);
        let settings = StreamSettings {
            timers: StreamTimers {
                pace,
                ..StreamTimers::default()
            },
            ..classes::stream_settings(&rules)
        };
        let views = if rng.chance(30) {
            rng.range(1, profiles.len() - 1)
        } else {
            0
        };
        Self {
            base,
            now: Duration::ZERO,
            own: Own::new(base),
            queue: BTreeMap::new(),
            order: 0,
            lively: 0,
            stirred: Duration::ZERO,
            rng,
            tally: Tally::default(),
            judge: Judge::default(),
            lines: VecDeque::new(),
            kept,
            settings: Arc::new(settings),
            answers: Library::new(1 << 16, chunk),
            besides,
            refusals,
            profiles,
            zones,
            lists: None,
            scopes: classes::scopes(&rules, Routes::default(), views),
            permits: None,
            views,
            streams: BTreeMap::new(),
            clients: Vec::new(),
            last_stream: 0,
            woken: Arc::default(),
            calm: false,
            slowness,
        }
    }

    /// The relay's time.
    pub(crate) const fn instant(&self) -> Instant {
        self.own.now()
    }

    /// Converts an instant of the relay to the world's time, rounded up as timers do.
    pub(crate) fn time(&self, instant: Instant) -> Duration {
        self.own.real(instant).saturating_duration_since(self.base)
    }

    /// Time passes in which nothing happens.
    pub(crate) fn skip(&mut self, time: Duration) {
        self.now += time;
        self.own.advance(self.base, self.now);
    }

    pub(crate) fn at(&mut self, time: Duration, event: Event) {
        self.order += 1;
        self.lively += usize::from(!event.is_routine());
        self.queue.insert((time.max(self.now), self.order), event);
    }

    pub(crate) fn after(&mut self, delay: Duration, event: Event) {
        self.at(self.now + delay, event);
    }

    pub(crate) fn delay(&mut self) -> Duration {
        let most = if self.rng.chance(10) {
            self.slowness * 4
        } else {
            self.slowness
        };
        self.rng.millis(0, most)
    }

    /// Adds a line to the trace, if one is kept.
    pub(crate) fn log(&mut self, line: impl FnOnce() -> String) {
        if self.kept == 0 {
            return;
        }
        if self.lines.len() == self.kept {
            self.lines.pop_front();
        }
        self.lines
            .push_back(format!("{:>9.3}  {}", self.now.as_secs_f64(), line()));
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = &String> {
        self.lines.iter()
    }

    /// Runs this many steps with faults.
    pub(crate) fn run(&mut self, steps: u64) -> Result<(), Broken> {
        let end = self.tally.steps + steps;
        while self.tally.steps < end && self.step()? {}
        Ok(())
    }

    /// Runs until only routine events are left, and nothing else has happened for long.
    pub(crate) fn rest(&mut self) -> Result<(), Broken> {
        let end = self.tally.steps + RESTLESS;
        while (self.lively > 0 || self.now < self.stirred + ROUTINE) && self.step()? {
            if self.tally.steps > end {
                return broken!(Held, "the world does not come to rest");
            }
        }
        Ok(())
    }

    /// Runs for this time.
    pub(crate) fn pass(&mut self, time: Duration) -> Result<(), Broken> {
        let end = self.now + time;
        while self.queue.first_key_value().is_some_and(|((at, _), _)| *at <= end) {
            self.step()?;
        }
        self.now = end;
        self.own.advance(self.base, end);
        Ok(())
    }

    fn step(&mut self) -> Result<bool, Broken> {
        let Some(((time, _), event)) = self.queue.pop_first() else {
            return Ok(false);
        };
        self.now = time;
        self.own.advance(self.base, time);
        self.tally.steps += 1;
        if !event.is_routine() {
            self.lively -= 1;
            self.stirred = time;
        }
        if let Some(event) = self.defer(event) {
            self.happen(event)?;
        }
        if let Some(broken) = self.own.broken.take() {
            return Err(broken);
        }
        self.see_views()?;
        self.see_holds()?;
        let woken = std::mem::take(&mut *self.woken.0.lock().expect("one thread"));
        for stream in woken {
            let delay = self.rng.millis(0, 3);
            self.after(delay, Event::Turn(stream));
        }
        Ok(true)
    }

    fn happen(&mut self, event: Event) -> Result<(), Broken> {
        match event {
            Event::Plan(zone) => self.plan(zone),
            Event::Step(zone, step) => self.change(zone, &step),
            Event::Upstream(zone) => return self.upstream(zone),
            Event::Hop(hop) => return self.hop(hop),
            Event::Utter(zone, beat) => self.utter(zone, beat),
            Event::ToRelay(stream) => return self.arrive_at_relay(stream),
            Event::ToClient(stream) => return self.arrive_at_client(stream),
            Event::Turn(stream) => return self.turn(stream),
            Event::Timer(stream) => return self.timer(stream),
            Event::EndAtRelay(stream) => self.end_at_relay(stream),
            Event::EndAtClient(stream) => self.end_at_client(stream),
            Event::Credit(stream) => return self.credit(stream),
            Event::Heal(stream) => self.heal(stream),
            Event::Act(client, act) => return self.act(client, act),
            Event::Fault => return self.fault(),
            Event::Sweep => self.sweep(),
            Event::Reach(zone) => self.reach(zone),
            Event::Silence(zone, kind, name) => self.silence(zone, kind, name),
            Event::Sway(server) => return self.sway(server),
            Event::Adopt => self.adopt(),
            Event::Look(server) => return self.look(server),
            Event::Poll(pass) => return self.pass_on(pass),
            Event::Decree => return self.decree(),
            Event::Forget(zone) => return self.forget(zone),
            Event::Recall(zone, before) => return self.recall(zone, &before),
            Event::Guard => self.reset_guard(),
        }
        Ok(())
    }
}
