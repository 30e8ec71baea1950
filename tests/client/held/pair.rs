// SPDX-License-Identifier: Apache-2.0
//! Two sources of one client's types: one with most of them, and one beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use xds::{Cut, Dialect, Name, Neighbour, OtherViews, Owners, ServerState, TypeUrl};

use super::plane::{cluster, endpoints, listener, route};
use super::stage::{Stage, USUAL};
use crate::{CDS, EDS, LDS, RDS, ms};

/// What is at hand of the servers of a source for the other one, by numbers.
type Shown = Arc<Mutex<Vec<(usize, Arc<Cut>)>>>;

/// Both. The clients of one are the clients of the other.
pub(crate) struct Pair {
    pub(crate) main: Stage,
    pub(crate) aside: Stage,
    /// Another server of the source beside, which some clients read.
    pub(crate) canary: Option<Box<Stage>>,
    /// The number of a server that no client reads: of the one beside (1), or of that other one (2).
    pub(crate) standby: Option<usize>,
    /// What clients want of the source beside.
    there: Vec<(String, String)>,
    shown: [Shown; 2],
    /// The types that come from the one beside.
    theirs: BTreeSet<&'static str>,
    /// What clients ask for by name.
    pub(crate) leased: Arc<Mutex<BTreeSet<String>>>,
}

impl Pair {
    /// Listener `l` names route `r`, which leads to cluster `a`, and all of it is there; of `b`, only the cluster is. `theirs`: the types
    /// that come from the source beside. `wants`: what clients want beside all listeners, and `r`.
    pub(crate) fn new(dialect: Dialect, theirs: &[&'static str], wants: &[(&str, &str)]) -> Self {
        let theirs: BTreeSet<&'static str> = theirs.iter().copied().collect();
        let all = [&[(LDS, "*"), (RDS, "r"), (EDS, "a"), (EDS, "b")], wants].concat();
        let (there, here): (Vec<_>, Vec<_>) = all.into_iter().partition(|(kind, _)| theirs.contains(kind));
        let (mut main, mut aside) = (Stage::new(dialect, USUAL, &here), Stage::new(dialect, USUAL, &there));
        let shown: [Shown; 2] = std::array::from_fn(|_| Arc::new(Mutex::new(vec![(1, Arc::default())])));
        let leased = Arc::new(Mutex::new(BTreeSet::from(["r".to_owned()])));
        main.other_views = Some(Others::of(&shown[1]).other_views(true, &theirs, &leased));
        aside.other_views = Some(Others::of(&shown[0]).other_views(false, &theirs, &leased));
        let there = there
            .iter()
            .map(|(kind, name)| (String::from(*kind), String::from(*name)));
        let mut pair = Self {
            main,
            aside,
            canary: None,
            standby: None,
            there: there.collect(),
            shown,
            theirs,
            leased,
        };
        pair.put(LDS, "l", listener("l", "r", 80));
        pair.put(RDS, "r", route("r", &["a"]));
        pair.put(CDS, "a", cluster("a"));
        pair.put(CDS, "b", cluster("b"));
        pair.put(EDS, "a", endpoints("a", 1));
        pair.pass(ms(500));
        pair.main.heard();
        pair.aside.heard();
        pair
    }

    /// There is another server of the source beside from now on. Its clients have read what the first one serves.
    pub(crate) fn begin_canary(&mut self) {
        let there: Vec<_> = self.there.iter().map(|(kind, name)| (&**kind, &**name)).collect();
        let mut canary = Stage::new(self.aside.dialect, USUAL, &there);
        canary.upstream.now = self.aside.upstream.now;
        let others = Others::of(&self.shown[0]);
        canary.other_views = Some(others.other_views(false, &self.theirs, &self.leased));
        if self.aside.above.is_some() {
            canary.put_between();
        }
        self.canary = Some(Box::new(canary));
    }

    /// Another view whose clients read the source beside.
    pub(crate) fn another_main(&self, wants: &[(&str, &str)]) -> Stage {
        let mut stage = Stage::new(self.main.dialect, USUAL, wants);
        stage.upstream.now = self.main.upstream.now;
        stage.other_views = Some(Others::of(&self.shown[1]).other_views(true, &self.theirs, &self.leased));
        stage
    }

    /// Some clients have fallen back to the server of most types, and read everything from it. In `asking`, they want what is leased.
    pub(crate) fn fall_back_to_main(&mut self, asking: &[Option<usize>]) {
        let mut others = Others::of(&self.shown[1]);
        (others.own_counts, others.asking) = (true, asking.to_vec());
        self.main.other_views = Some(others.other_views(true, &self.theirs, &self.leased));
    }

    /// The same for the server beside, which has these as well.
    pub(crate) fn fall_back_to_aside(&mut self, has: &[(&str, &str, Bytes)]) {
        let mut others = Others::of(&self.shown[0]);
        others.own_counts = true;
        self.aside.other_views = Some(others.other_views(false, &self.theirs, &self.leased));
        for (kind, name, body) in has {
            self.aside.upstream.want(kind, name);
            self.aside.put(kind, name, body.clone());
        }
        self.pass(ms(3000));
        self.aside.heard();
    }

    /// All servers, by their numbers.
    pub(crate) fn stages(&mut self) -> impl Iterator<Item = &mut Stage> {
        let canary = self.canary.as_deref_mut();
        [&mut self.main, &mut self.aside].into_iter().chain(canary)
    }

    pub(crate) fn stage(&self, number: usize) -> &Stage {
        match number {
            0 => &self.main,
            1 => &self.aside,
            _ => self.canary.as_deref().unwrap(),
        }
    }

    pub(crate) fn of(&mut self, kind: &str) -> &mut Stage {
        match self.theirs.contains(kind) {
            true => &mut self.aside,
            false => &mut self.main,
        }
    }

    /// The type's control plane has this resource from now on.
    pub(crate) fn put(&mut self, kind: &str, name: &str, body: Bytes) {
        self.of(kind).put(kind, name, body);
    }

    pub(crate) fn say(&mut self, kind: &str, name: &str, body: Bytes) {
        self.put(kind, name, body);
        self.exchange();
    }

    pub(crate) fn remove(&mut self, kind: &str, name: &str) {
        self.of(kind).remove(kind, name);
    }

    /// All say what they have, and see what the others have.
    pub(crate) fn exchange(&mut self) {
        for _ in 0..4 {
            self.stages().for_each(Stage::exchange);
            self.look();
        }
    }

    /// Each sees what the others have.
    pub(crate) fn look(&mut self) {
        let standby = self.standby;
        let shown = |stage: &mut Stage| {
            let cut = stage.upstream.cut.with_holds(stage.holds.clone());
            Arc::new(cut.with_server_state(stage.state))
        };
        let mut all = self.stages().map(shown);
        let main = all.next().into_iter().map(|cut| (1, cut)).collect();
        let there = (1..).zip(all).filter(|(number, _)| standby != Some(*number)).collect();
        *self.shown[0].lock().unwrap() = main;
        *self.shown[1].lock().unwrap() = there;
        self.stages().for_each(|stage| stage.publish(Vec::new()));
    }

    /// The server of the source beside is there, or away.
    pub(crate) fn tell(&mut self, state: ServerState) {
        self.aside.state = state;
        self.exchange();
    }

    /// Lets time pass, in small steps: each sees what the other one has at once.
    pub(crate) fn pass(&mut self, time: Duration) {
        let mut left = time;
        self.exchange();
        while !left.is_zero() {
            let step = left.min(ms(10));
            self.tick(step);
            left -= step;
        }
        self.exchange();
    }

    /// Both, after this time.
    pub(crate) fn after(&mut self, time: Duration) -> &mut Self {
        self.pass(time);
        self
    }

    /// A moment passes, and each sees what the other one has.
    pub(crate) fn tick(&mut self, time: Duration) {
        self.stages().for_each(|stage| stage.pass(time));
        self.look();
    }

    /// When something happens next by itself.
    pub(crate) fn due(&mut self) -> Option<Instant> {
        self.stages().filter_map(|stage| stage.due()).min()
    }

    /// The route leads to these clusters from now on.
    pub(crate) fn lead(&mut self, clusters: &[&str]) {
        self.put(RDS, "r", route("r", clusters));
        self.exchange();
    }

    /// Whether clients are served a route that leads to these.
    pub(crate) fn leads(&mut self, clusters: &[&str]) -> bool {
        self.of(RDS).body(RDS, "r") == Some(route("r", clusters))
    }
}

/// What clients read of the other source, from the point of one.
struct Others {
    shown: Shown,
    /// Whether some of them read that from this server as well.
    own_counts: bool,
    /// The views in which they want what is leased.
    asking: Vec<Option<usize>>,
}

impl Others {
    fn of(shown: &Shown) -> Self {
        Self {
            shown: shown.clone(),
            own_counts: false,
            asking: vec![None, Some(1), Some(2)],
        }
    }

    fn other_views(
        self,
        is_main: bool,
        theirs: &BTreeSet<&'static str>,
        leased: &Arc<Mutex<BTreeSet<String>>>,
    ) -> OtherViews {
        let leased = leased.clone();
        let full = |kind: &&str| (TypeUrl::new(kind).full_name().into(), Arc::from("#aside"));
        let owners = Owners::new([], theirs.iter().map(full).collect::<BTreeMap<_, _>>());
        let mut here = vec![None, Some(Arc::from("#aside"))];
        if !self.own_counts {
            here.retain(|owner| owner.is_none() == is_main);
        }
        let (shown, own_counts) = (self.shown, self.own_counts);
        let find = move |from: Option<&str>, of: Option<&str>| {
            let own = Neighbour {
                view: None,
                cut: Arc::default(),
            };
            if from == of || of.is_none() == is_main {
                return vec![own];
            }
            let others = shown.lock().unwrap().clone().into_iter();
            let others = others.map(|(view, cut)| Neighbour { view: Some(view), cut });
            others.chain(own_counts.then_some(own)).collect()
        };
        let asking = self.asking;
        let wants = move |_: &TypeUrl, name: &Name| match leased.lock().unwrap().contains(name.as_str()) {
            true => asking.clone(),
            false => Vec::new(),
        };
        OtherViews::new(owners, here, find, wants)
    }
}
