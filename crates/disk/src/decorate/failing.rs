//! Errors when and where they are asked for.

use super::{Operations, pass_on};
use nandscape_core::command::Payload;
use nandscape_core::{
    Applied, BlockCommand, Clocked, Extent, Op, SimTime, Store, StoreError, StoreResult, Token,
};

/// Which commands a fault is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The one with this number ([`Operations`]).
    At(u64),
    /// Reads that touch this range.
    Reading(Extent),
    /// Writes, trims and zeroing that touch this range.
    Writing(Extent),
    /// All from this number on.
    From(u64),
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An error of the part concerned. A failed write has written the first half of its blocks, rounded down.
    Io,
    /// Nothing can be written; reads go on.
    ReadOnly,
    /// The device is gone, now and for good.
    Gone,
}

/// A store that fails.
pub struct Failing {
    store: Box<dyn Store + Send>,
    operations: Operations,
    faults: Vec<(When, Fault)>,
    is_gone: bool,
}

impl Failing {
    /// A store with faults, of which the first that fits a command counts.
    pub fn new(
        store: Box<dyn Store + Send>,
        operations: Operations,
        faults: impl IntoIterator<Item = (When, Fault)>,
    ) -> Self {
        Self { store, operations, faults: faults.into_iter().collect(), is_gone: false }
    }

    /// Other faults from now on. What is gone stays gone.
    pub fn set_faults(&mut self, faults: impl IntoIterator<Item = (When, Fault)>) {
        self.faults = faults.into_iter().collect();
    }

    fn fault(&self, number: u64, command: BlockCommand) -> Option<(Fault, Extent)> {
        let is_write = matches!(command.op, Op::Write | Op::Trim | Op::WriteZeroes);
        self.faults.iter().find_map(|(when, fault)| {
            let part = match when {
                When::At(at) => (number == *at).then_some(command.extent),
                When::From(from) => (number >= *from).then_some(command.extent),
                When::Reading(range) if command.op == Op::Read => common(*range, command.extent),
                When::Writing(range) if is_write => common(*range, command.extent),
                When::Reading(_) | When::Writing(_) => None,
            };
            let part = part.filter(|_| *fault != Fault::ReadOnly || is_write)?;
            Some((*fault, part))
        })
    }

    fn gone() -> StoreError {
        StoreError::Gone { detail: "it was taken away".to_owned() }
    }
}

/// The bytes that two ranges share.
fn common(a: Extent, b: Extent) -> Option<Extent> {
    let offset = a.offset.max(b.offset);
    let end = a.end().min(b.end());
    (offset < end).then(|| Extent::new(offset, end - offset))
}

impl Clocked for Failing {
    nandscape_core::delegate_clock!(self, self.store);
}

impl Store for Failing {
    pass_on!(self, self.store; shape, allocation, flash, counts, reset_counters);

    fn apply(&mut self, command: BlockCommand, payload: Payload<'_>) -> StoreResult<Applied> {
        let number = self.operations.next();
        if self.is_gone {
            return Err(Self::gone());
        }
        match self.fault(number, command) {
            None => self.store.apply(command, payload),
            Some((Fault::Gone, _)) => {
                self.is_gone = true;
                Err(Self::gone())
            }
            Some((Fault::ReadOnly, _)) => Err(StoreError::ReadOnly { detail: "asked for".to_owned() }),
            Some((Fault::Io, part)) => {
                if let Payload::Write(data) = payload {
                    let block = u64::from(self.store.block_bytes());
                    let half = command.extent.len / block / 2 * block;
                    if half > 0 {
                        let command =
                            BlockCommand { extent: Extent::new(command.extent.offset, half), ..command };
                        self.store.apply(command, Payload::Write(&data[..half as usize]))?;
                    }
                }
                let detail = format!("asked for, at operation {number}");
                Err(StoreError::Io { offset: part.offset, len: part.len, detail })
            }
        }
    }

    fn start(&mut self, command: BlockCommand, applied: Applied, at: SimTime) -> StoreResult<Token> {
        if self.is_gone { Err(Self::gone()) } else { self.store.start(command, applied, at) }
    }

    fn idle(&mut self, at: SimTime, until: SimTime) -> StoreResult<()> {
        if self.is_gone { Err(Self::gone()) } else { self.store.idle(at, until) }
    }

    fn shutdown(&mut self, at: SimTime) -> StoreResult<Token> {
        if self.is_gone { Err(Self::gone()) } else { self.store.shutdown(at) }
    }
}
