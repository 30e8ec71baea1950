// SPDX-License-Identifier: Apache-2.0
//! The sessions of one view, and the sets of what they lease: equal sets of one type are kept once.
//!
//! Owns the numbers of sessions and sets, and which session has which. Does not know what a lease is.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::members::Members;
use super::seated::Seated;
use super::set::Set;
use super::slab::Slab;
use crate::claims::Claims;
use classes::Node;
use xds::TypeUrl;

/// All sessions of one view, and what they lease: one set for each type of which a session leases anything. A set that only one
/// session has is changed in place; one that several have is copied first. A session whose leases have not changed for a while gets
/// the set that equals its own, if there is one. Lock order: this, then shards, then the leases of a set.
#[derive(Default)]
pub(crate) struct Sets(RwLock<Tables>);

#[derive(Default)]
struct Tables {
    places: Slab<Occupant>,
    groups: Slab<SharedSet>,
    /// The sets that other sessions may share, by hash: their content does not change while they are here.
    listed: HashMap<u64, u32>,
}

struct Occupant {
    seated: Arc<Seated>,
    has: Vec<Membership>,
}

struct Membership {
    type_url: TypeUrl,
    set: u32,
    /// Its position among the members.
    at: u32,
}

struct SharedSet {
    set: Arc<Set>,
    members: Members,
    /// The hash by which it is listed.
    listed: Option<u64>,
}

/// A set that a session may change.
pub(crate) enum Own {
    /// This one; nobody else has it.
    Set(Arc<Set>),
    /// The caller must copy the first one, which is shared, into the second one, and then call [`Sets::take_copy`].
    Copy(Arc<Set>, Arc<Set>),
}

impl Sets {
    pub(crate) fn enter(
        &self,
        owner: Option<Arc<str>>,
        claims: Arc<Claims>,
        node: Option<Arc<Node>>,
    ) -> (u32, Arc<Seated>) {
        let seated = Arc::new(Seated::new(owner, claims, node));
        let place = Occupant {
            seated: seated.clone(),
            has: Vec::new(),
        };
        (self.write().places.insert(place), seated)
    }

    /// Removes a session. Returns the sets that nobody has any more, which the caller must dissolve.
    pub(crate) fn leave(&self, seat: u32) -> Vec<Arc<Set>> {
        let mut tables = self.write();
        let Some(Occupant { seated, has }) = tables.places.remove(seat) else {
            return Vec::new();
        };
        let left = has.iter().filter_map(|has| tables.part(has, seated.claims()));
        left.collect()
    }

    /// Returns the set that a session has of a type, and whether it may be changed in place.
    pub(crate) fn find(&self, seat: u32, type_url: &TypeUrl) -> Option<(Arc<Set>, bool)> {
        let tables = self.read();
        let group = tables.0.groups.get(tables.0.membership(seat, type_url)?.set)?;
        Some((group.set.clone(), group.is_private()))
    }

    /// Returns the set of a type that a session may change.
    pub(crate) fn own(&self, seat: u32, type_url: &TypeUrl) -> Own {
        let mut tables = self.write();
        let has = tables.membership(seat, type_url).map(|has| has.set);
        let Some(group) = has.and_then(|number| tables.groups.get(number)) else {
            let set = tables.open();
            tables.join(seat, type_url, set.number);
            return Own::Set(set);
        };
        let set = group.set.clone();
        if group.members.len() > 1 {
            return Own::Copy(set, tables.open());
        }
        tables.unlist(set.number);
        Own::Set(set)
    }

    /// Gives the copy to a session. Returns the set that it had, if nobody has that any more.
    pub(crate) fn take_copy(&self, seat: u32, type_url: &TypeUrl, copy: u32) -> Option<Arc<Set>> {
        let mut tables = self.write();
        let left = tables.depart(seat, type_url);
        tables.join(seat, type_url, copy);
        left
    }

    /// A session leases nothing of the type any more. Returns the set that it had, if nobody has that any more.
    pub(crate) fn drop_set(&self, seat: u32, type_url: &TypeUrl) -> Option<Arc<Set>> {
        self.write().depart(seat, type_url)
    }

    /// Makes the private sets of a session small and lets others share them, except sets with more than `most` leases. Returns
    /// how much was looked at, and the sets that nobody has any more because there was an equal one.
    pub(crate) fn settle(&self, seat: u32, most: usize) -> (usize, Vec<Arc<Set>>) {
        let tables = self.read();
        let place = tables.0.places.get(seat);
        let groups = place.into_iter().flat_map(|place| &place.has);
        let groups = groups.filter_map(|has| Some((has.type_url.clone(), tables.0.groups.get(has.set)?)));
        let open: Vec<_> = groups
            .filter(|(_, group)| group.is_private() && group.set.len() <= most)
            .map(|(type_url, group)| (type_url, group.set.clone()))
            .collect();
        drop(tables);
        let (mut work, mut left) = (0, Vec::new());
        for (type_url, set) in open {
            let hash = set.rest();
            work += 1 + set.len();
            left.extend(self.write().list(seat, &type_url, &set, hash));
        }
        (work, left)
    }

    /// Frees the number of a set that was dissolved.
    pub(crate) fn close(&self, set: &Set) {
        self.write().groups.remove(set.number);
    }

    /// Locks all for reading. The holder must not lock this again, must not change anything here, and must not wake anybody.
    pub(crate) fn read(&self) -> ReadTables<'_> {
        let sole = Sole::new();
        ReadTables(self.0.read(), sole)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tables> {
        drop(Sole::new());
        self.0.write()
    }
}

impl Tables {
    fn membership(&self, seat: u32, type_url: &TypeUrl) -> Option<&Membership> {
        let place = self.places.get(seat)?;
        place.has.iter().find(|has| has.type_url == *type_url)
    }

    /// Creates a set that nobody has yet.
    fn open(&mut self) -> Arc<Set> {
        let set = Arc::new(Set::new(self.groups.next()));
        self.groups.insert(SharedSet {
            set: set.clone(),
            members: Members::default(),
            listed: None,
        });
        set
    }

    fn join(&mut self, seat: u32, type_url: &TypeUrl, set: u32) {
        let (Some(group), Some(place)) = (self.groups.get_mut(set), self.places.get_mut(seat)) else {
            return;
        };
        if group.members.len() == 0 {
            place.seated.claims().add(group.set.claimed());
        }
        place.has.reserve_exact(1);
        place.has.push(Membership {
            type_url: type_url.clone(),
            set,
            at: group.members.push(seat),
        });
    }

    fn depart(&mut self, seat: u32, type_url: &TypeUrl) -> Option<Arc<Set>> {
        let Occupant { seated, has } = self.places.get_mut(seat)?;
        let at = has.iter().position(|has| has.type_url == *type_url)?;
        let (seated, has) = (seated.clone(), has.swap_remove(at));
        self.part(&has, seated.claims())
    }

    /// Removes a member, with its claims. Returns the set if that was the last one; it keeps its number until it is dissolved.
    fn part(&mut self, has: &Membership, claims: &Claims) -> Option<Arc<Set>> {
        let group = self.groups.get_mut(has.set)?;
        let moved = group.members.swap_remove(has.at);
        let left = (group.members.len() == 0).then(|| group.set.clone());
        if has.at == 0 {
            let next = group.members.iter().next().and_then(|next| self.places.get(next));
            claims.subtract(group.set.claimed());
            next.into_iter()
                .for_each(|next| next.seated.claims().add(group.set.claimed()));
        }
        if left.is_some() {
            self.unlist(has.set);
        }
        let place = moved.and_then(|moved| self.places.get_mut(moved));
        if let Some(other) = place.and_then(|place| place.has.iter_mut().find(|other| other.set == has.set)) {
            other.at = has.at;
        }
        left
    }

    fn unlist(&mut self, set: u32) {
        if let Some(group) = self.groups.get_mut(set)
            && let Some(hash) = group.listed.take()
        {
            self.listed.remove(&hash);
            if self.listed.len() * 4 < self.listed.capacity() {
                self.listed.shrink_to_fit();
            }
        }
    }

    /// Lists the set, or moves its only member to an equal listed one. Returns the set if nobody has it any more.
    fn list(&mut self, seat: u32, type_url: &TypeUrl, set: &Arc<Set>, hash: u64) -> Option<Arc<Set>> {
        let Some(listed) = self.listed.get(&hash).copied() else {
            self.listed.insert(hash, set.number);
            self.groups.get_mut(set.number)?.listed = Some(hash);
            return None;
        };
        // A hash that collides must not give one session the leases of another one.
        if !self.groups.get(listed)?.set.equals(set) {
            return None;
        }
        let left = self.depart(seat, type_url);
        self.join(seat, type_url, listed);
        left
    }
}

impl SharedSet {
    /// Whether only one session has it, and no other session may get it.
    const fn is_private(&self) -> bool {
        self.members.len() == 1 && self.listed.is_none()
    }
}

/// The sessions and sets that are there.
pub(crate) struct ReadTables<'a>(RwLockReadGuard<'a, Tables>, Sole);

/// The only lock of this kind that a thread holds. A thread that reads and locks again waits for ever: always if it locks for
/// writing, and if it locks for reading only when another thread has begun to wait for writing in between. So builds with debug
/// assertions fail whenever a thread that reads locks again.
struct Sole;

#[cfg(debug_assertions)]
thread_local! {
    static LOCKED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

impl Sole {
    #[inline]
    fn new() -> Self {
        #[cfg(debug_assertions)]
        assert!(!LOCKED.replace(true), "a thread locks the sessions of views twice");
        Self
    }
}

impl Drop for Sole {
    #[inline]
    fn drop(&mut self) {
        #[cfg(debug_assertions)]
        LOCKED.set(false);
    }
}

impl ReadTables<'_> {
    /// How many sessions there are.
    pub(crate) fn len(&self) -> usize {
        self.0.places.len()
    }

    /// How many sets there are.
    pub(crate) fn sets(&self) -> usize {
        self.0.groups.len()
    }

    /// One past the highest number of a set.
    pub(crate) fn end(&self) -> usize {
        self.0.groups.end()
    }

    /// The session with this number, if it is still there.
    pub(crate) fn seated(&self, seat: u32) -> Option<&Arc<Seated>> {
        self.0.places.get(seat).map(|place| &place.seated)
    }

    /// The claims of the connection to which those of a set belong.
    pub(super) fn claims(&self, set: u32) -> Option<&Claims> {
        self.members(set).next().map(|seated| &**seated.claims())
    }

    /// A set is the first now that waits for a lease.
    pub(super) fn claim(&self, set: &Set) {
        set.claim(self.claims(set.number));
    }

    /// A set was the first that waited for a lease.
    pub(super) fn unclaim(&self, set: &Set) {
        set.unclaim(self.claims(set.number));
    }

    pub(crate) fn set(&self, number: u32) -> Option<&Set> {
        self.0.groups.get(number).map(|group| &*group.set)
    }

    /// The sessions that have this set.
    pub(crate) fn members(&self, set: u32) -> impl Iterator<Item = &Arc<Seated>> {
        self.seats(set).filter_map(|seat| self.seated(seat))
    }

    /// The numbers of the sessions that have this set.
    pub(crate) fn seats(&self, set: u32) -> impl Iterator<Item = u32> {
        let group = self.0.groups.get(set).into_iter();
        group.flat_map(|group| group.members.iter())
    }

    /// All sessions with their numbers, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Arc<Seated>)> {
        self.0.places.iter().map(|(seat, place)| (seat, &place.seated))
    }

    /// All sessions, and whether they lease anything.
    pub(crate) fn leasing(&self) -> impl Iterator<Item = (bool, &Seated)> {
        let places = self.0.places.iter().map(|(_, place)| place);
        places.map(|place| (!place.has.is_empty(), &*place.seated))
    }
}
