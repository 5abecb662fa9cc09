//! A loss of power at a given operation.

use super::{Operations, pass_on};
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::rng::{below, seeded};
use nandscape_core::{
    Applied, BlockCommand, Clocked, Extent, Hint, Op, SimTime, Store, StoreError, StoreResult, Token,
};
use std::collections::BTreeMap;

/// What becomes of writes that no completed flush covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// All are lost.
    Lost,
    /// All are kept, that of the very operation too.
    Kept,
    /// Each block holds what it held after the last flush or after any write since, by chance.
    Torn {
        /// Of the chance.
        seed: u64,
    },
}

/// Blocks since the last completed flush: the content then, and later writes with their numbers.
type Volatile = BTreeMap<u64, Vec<(u64, Box<[u8]>)>>;

/// A store with bytes that loses power when the operation with a given number ([`Operations`]) is submitted
/// to it or to another store with the same counter. Everything fails then, until [`Cut::restore`].
///
/// A flush covers what was submitted before it, and counts once it has completed at the time of a later
/// command. To know what a write replaces, that is read from the store below, which is counted there and
/// takes no time; [`Store::counts`] of this one counts what was asked of it.
pub struct Cut {
    store: Box<dyn Store + Send>,
    operations: Operations,
    lost_at: u64,
    volatile: Volatile,
    /// Flushes that have not completed yet: number and token.
    flushes: Vec<(u64, Token)>,
    counts: HostCounts,
}

impl Cut {
    /// A store that loses power at operation `lost_at`; `u64::MAX` is never. Panics if it keeps no bytes.
    pub fn new(store: Box<dyn Store + Send>, operations: Operations, lost_at: u64) -> Self {
        assert!(store.stores_bytes(), "a store without bytes has nothing to lose");
        let (volatile, flushes) = (Volatile::new(), Vec::new());
        Self { store, operations, lost_at, volatile, flushes, counts: HostCounts::default() }
    }

    /// The power goes at the operation `lost_at` instead.
    pub const fn set_lost_at(&mut self, lost_at: u64) {
        self.lost_at = lost_at;
    }

    /// Whether the power is gone.
    pub fn is_cut(&self) -> bool {
        self.operations.count() > self.lost_at
    }

    /// Blocks whose content depends on the [`Fate`].
    pub fn volatile_blocks(&self) -> u64 {
        self.volatile.len() as u64
    }

    /// Power comes back at `at`, and goes again at operation `lost_at`. The store holds what `fate` leaves.
    pub fn restore(&mut self, fate: Fate, at: SimTime, lost_at: u64) -> StoreResult<()> {
        self.settle(at);
        let mut chance = seeded(if let Fate::Torn { seed } = fate { seed } else { 0 });
        let block = self.store.block_bytes();
        for (number, versions) in std::mem::take(&mut self.volatile) {
            let version = match fate {
                Fate::Lost => 0,
                Fate::Kept => versions.len() - 1,
                Fate::Torn { .. } => below(&mut chance, versions.len() as u64) as usize,
            };
            let extent = Extent::new(number * u64::from(block), u64::from(block));
            let command = BlockCommand::new(Op::Write, extent, Hint::default());
            self.store.apply(command, Payload::Write(&versions[version].1))?;
        }
        self.store.reset_counters(at);
        self.flushes.clear();
        self.lost_at = lost_at;
        Ok(())
    }

    /// Everything before the flush with this number is durable.
    fn settle_to(&mut self, flush: u64) {
        self.volatile.retain(|_, versions| {
            let newest = versions.iter().rposition(|(number, _)| *number < flush).unwrap_or(0);
            versions.drain(..newest);
            versions.len() > 1
        });
    }

    /// Forgets what completed flushes have made durable.
    fn settle(&mut self, at: SimTime) {
        let store = &self.store;
        let mut durable = None;
        self.flushes.retain(|(number, token)| {
            let is_done = store.completion(*token).is_some_and(|done| done <= at);
            if is_done {
                durable = durable.max(Some(*number));
            }
            !is_done
        });
        if let Some(durable) = durable {
            self.settle_to(durable);
        }
    }

    /// Notes what each block of a write holds after it.
    fn note(&mut self, number: u64, command: BlockCommand, data: &[u8]) -> StoreResult<()> {
        let block = u64::from(self.store.block_bytes());
        let first = command.extent.offset / block;
        for (index, new) in data.chunks(block as usize).enumerate() {
            let key = first + index as u64;
            if !self.volatile.contains_key(&key) {
                let mut old = vec![0; block as usize].into_boxed_slice();
                let extent = Extent::new(key * block, block);
                let read = BlockCommand::new(Op::Read, extent, Hint::default());
                self.store.apply(read, Payload::Read(&mut old))?;
                // As old as anything.
                self.volatile.insert(key, vec![(0, old)]);
            }
            let versions = self.volatile.get_mut(&key).expect("it was put there");
            versions.push((number, new.into()));
        }
        Ok(())
    }

    /// Numbers, counts and checks a command, and notes what it replaces.
    fn begin(&mut self, command: BlockCommand, payload: &Payload<'_>) -> StoreResult<u64> {
        if self.is_cut() {
            return Err(self.gone());
        }
        let number = self.operations.next();
        self.counts.count(command, self.store.block_bytes());
        if command.op != Op::Flush {
            crate::base::check(command.extent, self.store.capacity_bytes(), self.store.block_bytes())?;
        }
        match (command.op, payload) {
            (Op::Write, Payload::Write(data)) => self.note(number, command, data)?,
            (Op::Write | Op::Trim | Op::WriteZeroes, _) => {
                self.note(number, command, &vec![0; command.extent.len as usize])?;
            }
            (Op::Read | Op::Flush, _) => {}
        }
        if number >= self.lost_at { Err(self.gone()) } else { Ok(number) }
    }

    fn gone(&self) -> StoreError {
        StoreError::Gone { detail: format!("power was lost at operation {}", self.lost_at) }
    }
}

impl Clocked for Cut {
    nandscape_core::delegate_clock!(self, self.store);
}

impl Store for Cut {
    pass_on!(self, self.store; shape, allocation, flash);

    /// A flush counts once applied: who applies more starts none of that before the flush has completed.
    fn apply(&mut self, command: BlockCommand, payload: Payload<'_>) -> StoreResult<Applied> {
        let number = self.begin(command, &payload)?;
        let applied = self.store.apply(command, payload)?;
        if command.op == Op::Flush {
            self.settle_to(number);
        }
        Ok(applied)
    }

    fn start(&mut self, command: BlockCommand, applied: Applied, at: SimTime) -> StoreResult<Token> {
        if self.is_cut() { Err(self.gone()) } else { self.store.start(command, applied, at) }
    }

    fn submit(&mut self, command: BlockCommand, payload: Payload<'_>, at: SimTime) -> StoreResult<Token> {
        self.settle(at);
        let number = self.begin(command, &payload)?;
        let token = self.store.submit(command, payload, at)?;
        if command.op == Op::Flush {
            self.flushes.push((number, token));
        }
        Ok(token)
    }

    fn counts(&self) -> HostCounts {
        self.counts
    }

    fn idle(&mut self, at: SimTime, until: SimTime) -> StoreResult<()> {
        if self.is_cut() { Err(self.gone()) } else { self.store.idle(at, until) }
    }

    /// Counts as a flush.
    fn shutdown(&mut self, at: SimTime) -> StoreResult<Token> {
        if self.is_cut() {
            return Err(self.gone());
        }
        let number = self.operations.next();
        self.settle(at);
        if number >= self.lost_at {
            return Err(self.gone());
        }
        let token = self.store.shutdown(at)?;
        self.flushes.push((number, token));
        Ok(token)
    }

    fn reset_counters(&mut self, at: SimTime) {
        self.settle(at);
        self.counts = HostCounts::default();
        self.store.reset_counters(at);
    }
}
