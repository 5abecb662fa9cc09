//! A namespace as one side of a cache.

use crate::regions::ZoneRegions;
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::{
    Allocation, Applied, BlockCommand, Clocked, Completion, Extent, FlashError, FtlError, NamespaceError,
    NamespaceResult, Op, SimTime, Store, StoreError, StoreResult, StoreShape, Subsystem, Token,
};
use std::collections::{BTreeMap, BTreeSet};

/// In a token of a device that keeps bytes: the other bits are the completion time.
const IS_TIME: u64 = 1 << 63;

/// Starts whose completion is unknown, before those long past are forgotten.
const REMEMBERED: usize = 1024;

/// A namespace of any flash stack as a [`Store`]. It owns the whole stack; [`Store::flash`] shows it.
///
/// A translation layer cannot change its state before the operation begins. Without bytes, commands are
/// applied when they are started. With bytes they are carried out when they are applied, at the latest time
/// seen so far, and one that is started later than it was done completes when it is started.
pub struct NamespaceStore {
    subsystem: Box<dyn Subsystem + Send>,
    namespace: u32,
    capacity_bytes: u64,
    page_bytes: u32,
    block_bytes: u32,
    stores_bytes: bool,
    /// Its zones, where these are the regions of the store.
    zones: Option<ZoneRegions>,
    counts: HostCounts,
    /// The latest time that a command came with.
    now: SimTime,
    /// Tokens of the device that nobody watches yet: not completed before this time.
    floors: BTreeMap<u64, SimTime>,
    watched: BTreeMap<u64, SimTime>,
    /// Completions that are not due yet: time and tag.
    late: BTreeSet<(u64, u64)>,
    reports: Vec<Completion>,
}

impl NamespaceStore {
    /// A namespace with commands in multiples of `block_bytes`, which a page of the device must be a multiple
    /// of. Smaller writes than a page cost a read of the rest of the page, as ever. Panics if there is no
    /// such namespace, or the block does not divide its pages.
    pub fn new(subsystem: Box<dyn Subsystem + Send>, namespace: u32, block_bytes: u32) -> Self {
        let info = &subsystem.namespaces()[namespace as usize];
        let (capacity_bytes, page_bytes) = (info.capacity_bytes, info.page_bytes);
        assert!(
            block_bytes > 0 && page_bytes.is_multiple_of(block_bytes),
            "a block of {block_bytes} bytes: expected a divisor of the page of {page_bytes} bytes"
        );
        let stores_bytes =
            subsystem.inspect().sets() > 0 && subsystem.inspect().device(0).capabilities().stores_data;
        Self {
            subsystem,
            namespace,
            capacity_bytes,
            page_bytes,
            block_bytes,
            stores_bytes,
            zones: None,
            counts: HostCounts::default(),
            now: SimTime::ZERO,
            floors: BTreeMap::new(),
            watched: BTreeMap::new(),
            late: BTreeSet::new(),
            reports: Vec::new(),
        }
    }

    /// A zoned namespace, whose zones are the regions of the store. Panics as [`NamespaceStore::new`].
    ///
    /// # Errors
    /// It has no zones, or they cannot be looked at.
    pub fn over_zones(
        subsystem: Box<dyn Subsystem + Send>,
        namespace: u32,
        block_bytes: u32,
    ) -> NamespaceResult<Self> {
        let mut this = Self::new(subsystem, namespace, block_bytes);
        let shape = this.subsystem.namespaces()[namespace as usize].zones;
        let shape = shape.ok_or(NamespaceError::NotSupported { command: "report zones" })?;
        let zones = ZoneRegions::new(&mut *this.subsystem, namespace, shape, this.stores_bytes)?;
        this.capacity_bytes = zones.capacity_bytes();
        this.zones = Some(zones);
        Ok(this)
    }

    /// The stack, to be looked at.
    pub fn subsystem(&self) -> &dyn Subsystem {
        &*self.subsystem
    }

    fn check(&self, command: BlockCommand) -> StoreResult<()> {
        let Extent { offset, len } = command.extent;
        if command.op == Op::Flush {
            return Ok(());
        }
        if command.extent.end() > self.capacity_bytes {
            return Err(StoreError::OutOfRange { offset, len, capacity: self.capacity_bytes });
        }
        let block = self.block_bytes;
        if !offset.is_multiple_of(u64::from(block)) || !len.is_multiple_of(u64::from(block)) {
            return Err(StoreError::Unaligned { offset, len, block });
        }
        Ok(())
    }

    fn submit_now(&mut self, command: BlockCommand, payload: Payload<'_>) -> StoreResult<Token> {
        let outcome = match &mut self.zones {
            None => self
                .subsystem
                .submit(self.namespace, command.into(), payload, self.now)
                .map(|answer| answer.done),
            Some(zones) => zones.submit(&mut *self.subsystem, command, payload, self.now),
        };
        outcome.map_err(|error| refusal(command.extent, &error))
    }

    /// A token that does not complete before `at`, of an operation that was submitted earlier.
    fn not_before(&mut self, token: Token, at: SimTime) -> Token {
        if token == Token::NONE {
            return Token(IS_TIME | at.0);
        }
        if let Some(done) = self.subsystem.completion(token) {
            return Token(IS_TIME | done.max(at).0);
        }
        if self.floors.len() >= REMEMBERED {
            let now = self.now;
            self.floors.retain(|_, floor| *floor > now);
        }
        self.floors.insert(token.0, at);
        token
    }
}

fn refusal(extent: Extent, error: &NamespaceError) -> StoreError {
    let detail = error.to_string();
    match error {
        NamespaceError::Ftl(FtlError::OutOfRange { extent, capacity_bytes }) => {
            StoreError::OutOfRange { offset: extent.offset, len: extent.len, capacity: *capacity_bytes }
        }
        NamespaceError::Ftl(FtlError::ReadOnly { .. } | FtlError::Flash(FlashError::ReadOnly { .. })) => {
            StoreError::ReadOnly { detail }
        }
        NamespaceError::Ftl(FtlError::Flash(FlashError::Injected(_))) => StoreError::Gone { detail },
        _ => StoreError::Io { offset: extent.offset, len: extent.len, detail },
    }
}

impl Store for NamespaceStore {
    fn shape(&self) -> StoreShape {
        StoreShape {
            capacity_bytes: self.capacity_bytes,
            block_bytes: self.block_bytes,
            stores_bytes: self.stores_bytes,
            regions: self.zones.as_ref().map(ZoneRegions::regions),
        }
    }

    fn prepare(&self, op: Op, extent: Extent) {
        if self.zones.is_none() {
            self.subsystem.prepare(self.namespace, op, extent);
        }
    }

    fn apply(&mut self, command: BlockCommand, payload: Payload<'_>) -> StoreResult<Applied> {
        self.counts.count(command, self.page_bytes);
        self.check(command)?;
        if !self.stores_bytes {
            return Ok(Applied::default());
        }
        Ok(Applied(self.submit_now(command, payload)?.0))
    }

    fn start(&mut self, command: BlockCommand, applied: Applied, at: SimTime) -> StoreResult<Token> {
        self.now = self.now.max(at);
        if self.stores_bytes {
            return Ok(self.not_before(Token(applied.0), at));
        }
        self.submit_now(command, Payload::None)
    }

    fn submit(&mut self, command: BlockCommand, payload: Payload<'_>, at: SimTime) -> StoreResult<Token> {
        self.now = self.now.max(at);
        let applied = self.apply(command, payload)?;
        self.start(command, applied, at)
    }

    fn allocation(&self, extent: Extent) -> Allocation {
        match &self.zones {
            None => self.subsystem.allocation(self.namespace, extent),
            Some(zones) => zones.allocation(extent),
        }
    }

    /// Pages are those of the device.
    fn counts(&self) -> HostCounts {
        self.counts
    }

    fn flash(&self) -> Option<&dyn Subsystem> {
        Some(&*self.subsystem)
    }

    fn idle(&mut self, at: SimTime, until: SimTime) -> StoreResult<()> {
        self.now = self.now.max(at);
        self.subsystem.idle(at, until).map_err(|error| refusal(Extent::new(0, 0), &error))
    }

    fn shutdown(&mut self, at: SimTime) -> StoreResult<Token> {
        self.now = self.now.max(at);
        let token = self.subsystem.shutdown(at).map_err(|error| refusal(Extent::new(0, 0), &error))?;
        Ok(if self.stores_bytes { self.not_before(token, at) } else { token })
    }

    fn reset_counters(&mut self, at: SimTime) {
        self.counts = HostCounts::default();
        self.now = at;
        self.floors.clear();
        self.watched.clear();
        self.late.clear();
        self.subsystem.reset_counters(at);
    }
}

impl Clocked for NamespaceStore {
    fn completion(&self, token: Token) -> Option<SimTime> {
        if self.stores_bytes && token.0 & IS_TIME != 0 {
            return Some(SimTime(token.0 & !IS_TIME));
        }
        let floor = self.floors.get(&token.0).copied().unwrap_or_default();
        self.subsystem.completion(token).map(|done| done.max(floor))
    }

    fn watch(&mut self, token: Token, tag: u64) {
        if self.stores_bytes && token.0 & IS_TIME != 0 {
            self.late.insert((token.0 & !IS_TIME, tag));
            return;
        }
        if let Some(floor) = self.floors.remove(&token.0) {
            self.watched.insert(tag, floor);
        }
        self.subsystem.watch(token, tag);
    }

    fn advance(&mut self, until: SimTime, out: &mut Vec<Completion>) {
        if !self.stores_bytes {
            self.subsystem.advance(until, out);
            return;
        }
        self.subsystem.advance(until, &mut self.reports);
        for report in self.reports.drain(..) {
            let floor = self.watched.remove(&report.tag).unwrap_or_default();
            self.late.insert((report.at.max(floor).0, report.tag));
        }
        while let Some(&(at, tag)) = self.late.first()
            && at <= until.0
        {
            self.late.pop_first();
            out.push(Completion { tag, at: SimTime(at) });
        }
    }

    fn next_event(&self) -> Option<SimTime> {
        let late = self.late.first().map(|(at, _)| SimTime(*at));
        self.subsystem.next_event().into_iter().chain(late).min()
    }

    fn idle_from(&self) -> SimTime {
        self.subsystem.idle_from()
    }
}
