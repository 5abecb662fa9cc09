//! Cleaning: what the policies are told, when they are asked, and which blocks a plan means.

use super::{Cache, CacheError};
use crate::dirty::DirtyIndex;
use nandscape_core::SimTime;
use nandscape_policies::BlockKey;
use nandscape_policies::cleaning::{Cleaning, Needs, Order, Plan, View};
use nandscape_policies::eviction::Eviction;

/// After an error of a disk, cleaning pauses for so long.
const RETRY_NS: u64 = 1_000_000_000;

/// Between two batches for stores that take no time (files), so that requests have their turn.
const PAUSE_NS: u64 = 5_000_000;

/// Slots that are looked at for each block in the order of eviction, before the rest is taken in the order of
/// the disk.
const LOOKED_AT: usize = 64;

/// What cleaning needs beside the slots; there is none where nobody cleans.
pub(super) struct Cleaner {
    members: Vec<Member>,
    /// Dirty blocks; ages, if kept, since they became dirty.
    dirty: DirtyIndex,
    /// The same with ages since the last write, where both are looked at, or only these.
    written: Option<DirtyIndex>,
    /// Where the order of the disk goes on.
    hand: BlockKey,
    /// Which set comes next in the order of eviction.
    next_set: u32,
    under_way: u32,
    /// Blocks that were written the moment they were begun count as under way until a while later: a policy
    /// limits what it does at a time by what is under way, and stores that take no time would have
    /// everything cleaned at once.
    written_at_once: u32,
    pause_until: SimTime,
    cleaned: u64,
    started: u64,
    writes: u64,
    waited: u64,
    last_request: SimTime,
    /// When to ask again; [`SimTime::MAX`] if only on occasion.
    again: SimTime,
    is_asked: bool,
    batch: Vec<u32>,
}

struct Member {
    policy: Box<dyn Cleaning + Send>,
    needs: Needs,
    again: Option<SimTime>,
}

impl Cleaner {
    fn index(&self, needs: Needs) -> &DirtyIndex {
        match (&self.written, needs) {
            (Some(written), Needs::SinceWritten) => written,
            _ => &self.dirty,
        }
    }

    fn indexes(&mut self) -> impl Iterator<Item = &mut DirtyIndex> {
        [Some(&mut self.dirty), self.written.as_mut()].into_iter().flatten()
    }

    /// A block has become dirty.
    pub fn insert(&mut self, key: BlockKey, slot: u32, at: SimTime) {
        self.is_asked = true;
        for index in self.indexes() {
            index.insert(key, slot, at);
        }
    }

    /// A block is no longer dirty.
    pub fn remove(&mut self, key: BlockKey, slot: u32) {
        for index in self.indexes() {
            index.remove(key, slot);
        }
    }

    /// A dirty block was written again.
    pub fn rewrite(&mut self, slot: u32, at: SimTime) {
        if let Some(written) = &mut self.written {
            written.rewrite(slot, at);
        }
    }

    /// A dirty block lies elsewhere now.
    pub fn relabel(&mut self, from: u32, to: u32) {
        self.indexes().for_each(|index| index.relabel(from, to));
    }

    /// A disk write has begun, with which so many blocks are clean.
    pub fn begun(&mut self, blocks: u32) {
        self.under_way += blocks;
        self.started += u64::from(blocks);
        self.writes += 1;
    }

    /// Too much is dirty for a block to come in at once, or at all.
    const fn note_waited(&mut self) {
        self.waited += 1;
        self.is_asked = true;
    }

    /// Blocks that are now on the disk.
    pub fn ended(&mut self, blocks: u32) {
        // Those that a policy began that is gone are not among them.
        self.under_way = self.under_way.saturating_sub(blocks);
        self.cleaned += u64::from(blocks);
        self.is_asked = true;
    }

    /// Blocks were written the moment they were begun.
    pub fn wrote_at_once(&mut self, blocks: u32, at: SimTime) {
        if at >= self.pause_until {
            (self.pause_until, self.written_at_once) = (at + PAUSE_NS, 0);
        }
        self.written_at_once += blocks;
    }

    /// Blocks that count as under way at `at`.
    fn busy(&self, at: SimTime) -> u32 {
        self.under_way + if at < self.pause_until { self.written_at_once } else { 0 }
    }

    /// A host asks for something.
    pub const fn note_request(&mut self, at: SimTime) {
        self.last_request = at;
    }

    pub const fn is_asked(&self) -> bool {
        self.is_asked
    }

    pub const fn ask(&mut self) {
        self.is_asked = true;
    }

    /// When the policies are to be asked though nothing happens.
    pub const fn again(&self) -> SimTime {
        self.again
    }

    pub fn memory_bytes(&self) -> u64 {
        self.dirty.memory_bytes() + self.written.as_ref().map_or(0, DirtyIndex::memory_bytes)
    }
}

/// Blocks that a plan means, and how many of them were found before the one that the write was begun for.
struct Chosen {
    slots: Vec<u32>,
    front: u32,
}

impl<E: Eviction> Cache<E> {
    /// Who cleans from now on; nobody, where there are none. Several policies each start what they want; they
    /// see what all of them do.
    pub fn set_cleanings(&mut self, policies: Vec<Box<dyn Cleaning + Send>>) {
        self.cleaner = None;
        if policies.is_empty() {
            return;
        }
        let members =
            policies.into_iter().map(|policy| Member { needs: policy.needs(), policy, again: None });
        let members: Vec<Member> = members.collect();
        let has = |needs| members.iter().any(|member: &Member| member.needs == needs);
        let (count, now) = (self.slots.count(), self.steps.now());
        let ways = self.ways();
        let index = |has_ages| DirtyIndex::new(count, ways, has_ages);
        let mut cleaner = Cleaner {
            dirty: index(has(Needs::SinceDirty)),
            written: has(Needs::SinceWritten).then(|| index(true)),
            members,
            hand: BlockKey(0),
            next_set: 0,
            under_way: 0,
            pause_until: SimTime::ZERO,
            written_at_once: 0,
            cleaned: 0,
            started: 0,
            writes: 0,
            waited: 0,
            last_request: now,
            again: now,
            is_asked: true,
            batch: Vec::new(),
        };
        for slot in (0..count).filter(|slot| self.slots.dirty_bits(*slot) != 0) {
            cleaner.insert(self.slots.key(slot), slot, now);
        }
        self.cleaner = Some(Box::new(cleaner));
    }

    fn view(&self, cleaner: &Cleaner, needs: Needs) -> View {
        let (index, at) = (cleaner.index(needs), self.steps.now());
        let busy = cleaner.busy(at);
        View {
            at,
            slots: self.slots.count(),
            used: self.used(),
            dirty: index.len() + busy,
            oldest: index.oldest().map(|(_, at)| at),
            last_request: cleaner.last_request,
            cleaning: busy,
            cleaned: cleaner.cleaned,
            started: cleaner.started,
            writes: cleaner.writes,
            waited: cleaner.waited,
            ways: self.ways(),
            fullest: index.fullest_set(),
        }
    }

    /// Asks the policies until none of them wants to begin anything more.
    #[cold]
    pub(super) fn clean_up(&mut self) {
        let Some(cleaner) = &mut self.cleaner else { return };
        let mut members = std::mem::take(&mut cleaner.members);
        self.begin_tries();
        let mut has_failed = false;
        loop {
            let mut begun = 0;
            for member in &mut members {
                while !has_failed {
                    let Some(cleaner) = &mut self.cleaner else { break };
                    cleaner.is_asked = false;
                    let cleaner = self.cleaner.as_deref().expect("it is there");
                    let view = self.view(cleaner, member.needs);
                    let plan = member.policy.plan(&view);
                    member.again = plan.again.map(|again| again.max(view.at + 1));
                    let blocks = self.follow(&plan, member.needs);
                    has_failed = blocks.is_err();
                    begun += blocks.unwrap_or(0);
                    if blocks == Ok(0) {
                        break;
                    }
                }
            }
            if begun == 0 || has_failed {
                break;
            }
        }
        let now = self.steps.now();
        let again = members.iter().filter_map(|member| member.again).min().unwrap_or(SimTime::MAX);
        if let Some(cleaner) = &mut self.cleaner {
            cleaner.members = members;
            cleaner.is_asked = false;
            let pause = if now < cleaner.pause_until { cleaner.pause_until } else { SimTime::MAX };
            cleaner.again = if has_failed { now + RETRY_NS } else { again.min(pause) };
        }
    }

    /// Begins what a plan says; gives how many blocks these were.
    fn follow(&mut self, plan: &Plan, needs: Needs) -> Result<u32, ()> {
        if plan.blocks == 0 || plan.writes == 0 {
            return Ok(0);
        }
        let Chosen { slots, front } = self.choose(plan, needs);
        let done = self.write_batch(&slots, plan.writes, front, plan.in_turn);
        if let Some(cleaner) = &mut self.cleaner {
            cleaner.batch = slots;
        }
        if self.steps.has_noticed() {
            self.take_notices();
        }
        let own = self.meter.shared();
        own.idle_cleanings += if plan.until.is_some() { u64::from(done.blocks) } else { 0 };
        match done.error {
            None => Ok(done.blocks + done.parts),
            // What it concerned is elsewhere now.
            Some(CacheError::Fast(error)) => {
                self.degrade(error).map(|()| 1).map_err(|error| self.keep_error(error))
            }
            // Nothing is lost: it stays dirty, and is tried again.
            Some(_) => Err(()),
        }
    }

    /// The blocks that a plan means, in the order of the disk.
    fn choose(&mut self, plan: &Plan, needs: Needs) -> Chosen {
        let Some(mut cleaner) = self.cleaner.take() else { return Chosen { slots: Vec::new(), front: 0 } };
        let mut slots = std::mem::take(&mut cleaner.batch);
        slots.clear();
        let most = plan.blocks as usize;
        let mut front = 0;
        match plan.order {
            Order::Oldest => {
                let most = most.min(plan.writes as usize);
                let index = cleaner.index(needs);
                let old = index.by_age().take_while(|(_, at)| plan.until.is_none_or(|until| *at <= until));
                let old = old.map(|(slot, _)| slot);
                slots.extend(
                    old.filter(|slot| plan.set.is_none_or(|set| self.slots.set_of(*slot) == set)).take(most),
                );
            }
            Order::Eviction => {
                self.choose_coldest(&mut cleaner, plan, needs, &mut slots);
                if slots.is_empty() {
                    front = self.choose_on_disk(&mut cleaner, plan, needs, &mut slots);
                }
            }
            Order::Disk => front = self.choose_on_disk(&mut cleaner, plan, needs, &mut slots),
        }
        if plan.order != Order::Disk {
            slots.sort_unstable_by_key(|slot| self.slots.key(*slot));
        }
        self.cleaner = Some(cleaner);
        Chosen { slots, front }
    }

    fn is_old(cleaner: &Cleaner, plan: &Plan, needs: Needs, slot: u32) -> bool {
        let since = cleaner.index(needs).since(slot);
        plan.until.is_none_or(|until| since.is_none_or(|since| since <= until))
    }

    /// Runs of neighbours from the hand on, going round. Gives how many blocks lie before the ones that the
    /// runs were found by.
    fn choose_on_disk(&self, cleaner: &mut Cleaner, plan: &Plan, needs: Needs, slots: &mut Vec<u32>) -> u32 {
        if let Some(set) = plan.set {
            self.choose_in_set(cleaner, plan, needs, set, slots);
            return 0;
        }
        let mut front = 0;
        let mut seen = 0;
        let mut room = plan.blocks;
        while room > 0 && seen < cleaner.dirty.len() {
            let Some(key) = cleaner.dirty.next_on_disk(cleaner.hand) else { break };
            let Some((first, length)) = cleaner.dirty.run(key, room) else { break };
            seen += length;
            cleaner.hand = BlockKey(first.0 + u64::from(length));
            front += (key.0 - first.0) as u32;
            let keys = (first.0..first.0 + u64::from(length)).map(BlockKey);
            let found = keys.filter_map(|key| self.index.find(key, &self.slots));
            let before = slots.len();
            slots.extend(found.filter(|slot| Self::is_old(cleaner, plan, needs, *slot)));
            room -= ((slots.len() - before) as u32).min(room);
        }
        front
    }

    /// The dirty blocks of a set from the hand on, going round.
    fn choose_in_set(
        &self,
        cleaner: &mut Cleaner,
        plan: &Plan,
        needs: Needs,
        set: u32,
        slots: &mut Vec<u32>,
    ) {
        let base = self.slots.base(set);
        let ways = self.ways();
        let is_chosen =
            |slot: &u32| self.slots.dirty_bits(*slot) != 0 && Self::is_old(cleaner, plan, needs, *slot);
        slots.extend((base..base + ways).filter(is_chosen));
        slots.sort_unstable_by_key(|slot| self.slots.key(*slot));
        let place = slots.partition_point(|slot| self.slots.key(*slot) < cleaner.hand);
        slots.rotate_left(place);
        slots.truncate(plan.blocks as usize);
        if let Some(last) = slots.last() {
            cleaner.hand = BlockKey(self.slots.key(*last).0 + 1);
        }
    }

    /// Those that the eviction policy would let go next; of several sets, from one after the other.
    fn choose_coldest(&self, cleaner: &mut Cleaner, plan: &Plan, needs: Needs, slots: &mut Vec<u32>) {
        let sets = self.policies.len() as u32;
        let most = plan.blocks as usize;
        let mut left = LOOKED_AT * most + 1024;
        for _ in 0..sets {
            let set = plan.set.unwrap_or(cleaner.next_set);
            cleaner.next_set = (set + 1) % sets;
            if cleaner.dirty.len_of_set(set) > 0 {
                let base = self.slots.base(set);
                self.policies[set as usize].coldest(&mut |local| {
                    let slot = base + local;
                    if self.slots.dirty_bits(slot) != 0 && Self::is_old(cleaner, plan, needs, slot) {
                        slots.push(slot);
                    }
                    left -= 1;
                    slots.len() < most && left > 0
                });
            }
            if slots.len() >= most || left == 0 || plan.set.is_some() {
                break;
            }
        }
    }

    /// Too much is dirty for a block to come in at once, or at all. Whoever cleans is asked after the
    /// command.
    #[cold]
    pub(super) fn note_waited(&mut self) {
        if let Some(cleaner) = &mut self.cleaner {
            cleaner.note_waited();
        }
    }

    /// When cleaning is due next; [`SimTime::MAX`] if only after a request.
    pub fn cleaning_due(&self) -> SimTime {
        self.cleaner.as_ref().map_or(SimTime::MAX, |cleaner| cleaner.again())
    }

    /// When a store is to do something next, whoever cleans.
    pub fn next_step(&self) -> Option<SimTime> {
        self.steps.next_event()
    }

    /// Does what is due until `until`.
    pub fn catch_up(&mut self, until: SimTime) -> Result<(), CacheError> {
        self.pass(until, true)
    }

    /// Cleaning goes on a pause after `at`: stores that take no time in the model have taken it in reality,
    /// and requests wait.
    pub fn postpone_cleaning(&mut self, at: SimTime) {
        if let Some(cleaner) = &mut self.cleaner {
            cleaner.pause_until = cleaner.pause_until.max(at + PAUSE_NS);
            cleaner.again = cleaner.again.max(cleaner.pause_until);
        }
    }

    /// What a host command has changed is told to whoever cleans.
    #[inline]
    pub(super) fn after_command(&mut self) {
        if self.cleaner.as_ref().is_some_and(|cleaner| cleaner.is_asked()) {
            self.clean_up_and_commit();
        }
    }

    #[cold]
    fn clean_up_and_commit(&mut self) {
        self.clean_up();
        if self.must_commit
            && let Err(error) = self.commit_together()
        {
            let done = if let CacheError::Fast(error) = error { self.degrade(error) } else { Err(error) };
            if let Err(error) = done {
                self.keep_error(error);
            }
        }
    }

    /// No host has anything to do.
    pub(super) fn clean_while_idle(&mut self) {
        if self.cleaner.is_some() {
            self.clean_up_and_commit();
        }
    }

    /// Does what is due until `until` in the order of time: what the stores do and what follows from it, and
    /// cleaning. Of what stores do at `until` by themselves only if it is `inclusive`.
    pub(super) fn pass(&mut self, until: SimTime, inclusive: bool) -> Result<(), CacheError> {
        loop {
            let due = self.cleaner.as_ref().map_or(SimTime::MAX, |cleaner| cleaner.again());
            let is_due = due <= until;
            let target = until.min(due);
            let is_there = self.steps.run(target, inclusive || is_due);
            self.settle_fills()?;
            if is_there
                && is_due
                && let Some(cleaner) = &mut self.cleaner
            {
                cleaner.ask();
            }
            if self.cleaner.as_ref().is_some_and(|cleaner| cleaner.is_asked()) {
                self.clean_up_and_commit();
            } else if is_there && !is_due {
                return Ok(());
            }
        }
    }
}
