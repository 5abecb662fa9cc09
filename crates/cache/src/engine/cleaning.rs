//! Cleaning: the policies are asked, and what they plan is begun.

use super::{Cache, CacheError, Result};
use nandscape_core::SimTime;
use nandscape_policies::cleaning::{Cleaning, Needs, Plan};
use nandscape_policies::eviction::Eviction;

impl<E: Eviction> Cache<E> {
    /// Who cleans from now on; nobody, where there are none. Several policies each start what they want; they
    /// see what all of them do.
    pub fn set_cleanings(&mut self, policies: Vec<Box<dyn Cleaning + Send>>) {
        let (ways, now) = (self.directory.ways(), self.timeline.now());
        self.writeback.set_policies(policies, &self.directory.slots, ways, now);
    }

    /// Asks the policies until none of them wants to begin anything more.
    #[cold]
    fn clean_up(&mut self) {
        if !self.writeback.has_policies() {
            return;
        }
        let mut members = std::mem::take(&mut self.writeback.members);
        self.begin_tries();
        let mut has_failed = false;
        loop {
            let mut begun = 0;
            for member in &mut members {
                while !has_failed {
                    let (used, now) = (self.used(), self.timeline.now());
                    let Some(view) = self.writeback.view(&self.directory, used, member.needs, now) else {
                        break;
                    };
                    let blocks = self.follow(&member.plan(&view), member.needs);
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
        self.writeback.answered(members, has_failed, self.timeline.now());
    }

    /// Begins what a plan says; gives how many blocks these were.
    fn follow(&mut self, plan: &Plan, needs: Needs) -> Result<u32, ()> {
        if plan.blocks == 0 || plan.writes == 0 {
            return Ok(0);
        }
        let (slots, front) = self.writeback.choose(&self.directory, plan, needs);
        let done = self.write_batch(&slots, plan.writes, front, plan.in_turn);
        self.writeback.chosen = slots;
        if self.timeline.news.has_noticed() {
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

    /// When cleaning is due next; [`SimTime::MAX`] if only after a request.
    pub fn cleaning_due(&self) -> SimTime {
        self.writeback.again()
    }

    /// When a store is to do something next, whoever cleans.
    pub fn next_step(&self) -> Option<SimTime> {
        self.timeline.next_event()
    }

    /// Does what is due until `until`.
    pub fn catch_up(&mut self, until: SimTime) -> Result<()> {
        self.pass(until, true)
    }

    /// Cleaning goes on a pause after `at`: stores that take no time in the model have taken it in reality,
    /// and requests wait.
    pub fn postpone_cleaning(&mut self, at: SimTime) {
        self.writeback.postpone(at);
    }

    /// What a host command has changed is told to whoever cleans.
    #[inline]
    pub(super) fn after_command(&mut self) {
        if self.writeback.is_asked() {
            self.clean_up_and_commit();
        }
    }

    #[cold]
    fn clean_up_and_commit(&mut self) {
        self.clean_up();
        if self.durability.commits.is_due
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
        if self.writeback.has_policies() {
            self.clean_up_and_commit();
        }
    }

    /// Does what is due until `until` in the order of time: what the stores do and what follows from it, and
    /// cleaning. Of what stores do at `until` by themselves only if it is `inclusive`.
    pub(super) fn pass(&mut self, until: SimTime, inclusive: bool) -> Result<()> {
        loop {
            let due = self.writeback.again();
            let is_due = due <= until;
            let target = until.min(due);
            let is_there = self.timeline.run(target, inclusive || is_due);
            self.settle_fills()?;
            if is_there && is_due {
                self.writeback.ask();
            }
            if self.writeback.is_asked() {
                self.clean_up_and_commit();
            } else if is_there && !is_due {
                return Ok(());
            }
        }
    }
}
