//! Namespaces over the sets of one device.

mod standard;

pub use standard::{NvmSetError, SetFacts};

use crate::sets::{Order, Shared};
use nandscape_core::clock::step_to_completion;
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::{
    Allocation, BlockCommand, CauseTable, Clocked, Command, Completion, Control, Extent, FlashDevice,
    FlashState, Ftl, FtlError, FtlResult, HostReports, Inspect, Layers, LogControl, NamespaceInfo,
    NamespaceResult, Op, OpCounts, SimTime, Submitted, Subsystem, Token, state,
};
use standard::Standard;
use std::ops::DerefMut;

/// A device that the sets of a subsystem share.
pub type SharedDevice = Shared<dyn FlashDevice + Send>;

/// One NVM set: a translation layer over its own part of the device.
pub struct NvmSet {
    /// The layer.
    pub ftl: Box<dyn Ftl + Send>,
    /// Endurance group the set belongs to.
    pub endurance_group: u16,
    /// What the configuration says about it.
    pub facts: SetFacts,
}

/// A namespace that is to be: a range of the logical space of one set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceSpec {
    /// Name by which job files address it.
    pub name: String,
    /// Index of its set.
    pub set: u16,
    /// First byte in the set's logical space.
    pub offset_bytes: u64,
    /// Size. Offset and size are whole pages, so that no page belongs to two namespaces.
    pub capacity_bytes: u64,
}

/// Namespaces that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum SubsystemError {
    #[error(
        "namespace '{name}' ends at byte {end} of set {set}: expected at most its capacity of {capacity_bytes} bytes"
    )]
    OutsideSet { name: String, set: u16, end: u64, capacity_bytes: u64 },
    #[error("namespace '{name}' lies in set {set}: expected a set below {sets}")]
    NoSuchSet { name: String, set: u16, sets: usize },
    #[error("namespaces '{first}' and '{second}' overlap in set {set}: expected ranges apart")]
    Overlap { first: String, second: String, set: u16 },
    #[error("namespace '{name}' does not begin and end at a page of {page_bytes} bytes, or is empty")]
    Unaligned { name: String, page_bytes: u32 },
}

#[derive(Debug)]
struct Space {
    set: usize,
    offset_bytes: u64,
    capacity_bytes: u64,
    page_bytes: u32,
    counts: HostCounts,
}

/// Namespaces as ranges of the logical spaces of NVM sets, one translation layer a set.
///
/// Namespaces of one set share its layer and its garbage collection; namespaces of different sets meet only
/// on the channel buses and the host link of the device.
pub struct NvmSubsystem {
    infos: Vec<NamespaceInfo>,
    spaces: Vec<Space>,
    /// One a set.
    layers: Vec<Box<dyn Ftl + Send>>,
    /// By set, its endurance group.
    groups: Vec<u16>,
    /// The whole device below the parts; absent where one set has the device for itself, without a lock.
    shared: Option<SharedDevice>,
    /// What the parts are told of causes and order, where a file system of the host is above.
    order: Option<Order>,
    standard: Standard,
}

state!(impl [] Space { saved: counts; fixed: set, offset_bytes, capacity_bytes, page_bytes; });

state!(impl [] NvmSubsystem {
    saved: standard;
    tables: spaces, layers;
    parts: shared, order;
    fixed: infos, groups;
});

impl NvmSubsystem {
    /// One namespace that covers a whole translation layer.
    pub fn plain(ftl: Box<dyn Ftl + Send>) -> Self {
        let page_bytes = u64::from(ftl.device().geometry().page_bytes);
        let capacity_bytes = ftl.logical_pages() * page_bytes;
        let spec = NamespaceSpec { name: "ns1".to_owned(), set: 0, offset_bytes: 0, capacity_bytes };
        let set = NvmSet { ftl, endurance_group: 0, facts: SetFacts::default() };
        Self::whole(set, &[spec]).expect("a layer has room for all of itself")
    }

    /// One set over a device of its own.
    pub fn whole(set: NvmSet, namespaces: &[NamespaceSpec]) -> Result<Self, SubsystemError> {
        Self::checked(None, vec![set], namespaces)
    }

    /// Sets over parts of `shared`.
    pub fn divided(
        shared: SharedDevice,
        sets: Vec<NvmSet>,
        namespaces: &[NamespaceSpec],
    ) -> Result<Self, SubsystemError> {
        Self::checked(Some(shared), sets, namespaces)
    }

    /// The same, for host software that states cause and order of its commands; every part has this `order`.
    #[must_use]
    pub fn ordered(self, order: Order) -> Self {
        Self { order: Some(order), ..self }
    }

    fn checked(
        shared: Option<SharedDevice>,
        sets: Vec<NvmSet>,
        namespaces: &[NamespaceSpec],
    ) -> Result<Self, SubsystemError> {
        let standard = Standard::new(&sets);
        let groups = sets.iter().map(|set| set.endurance_group).collect();
        let layers = sets.into_iter().map(|set| set.ftl).collect();
        let mut this =
            Self { infos: Vec::new(), spaces: Vec::new(), layers, groups, shared, order: None, standard };
        for (index, spec) in namespaces.iter().enumerate() {
            this.add(spec)?;
            let overlap = namespaces[..index].iter().find(|other| {
                other.set == spec.set
                    && other.offset_bytes < spec.offset_bytes + spec.capacity_bytes
                    && spec.offset_bytes < other.offset_bytes + other.capacity_bytes
            });
            if let Some(other) = overlap {
                let (first, second) = (other.name.clone(), spec.name.clone());
                return Err(SubsystemError::Overlap { first, second, set: spec.set });
            }
        }
        this.keep_windows(SimTime::ZERO);
        Ok(this)
    }

    fn add(&mut self, spec: &NamespaceSpec) -> Result<(), SubsystemError> {
        let name = spec.name.clone();
        let Some(layer) = self.layers.get(usize::from(spec.set)) else {
            return Err(SubsystemError::NoSuchSet { name, set: spec.set, sets: self.layers.len() });
        };
        let page_bytes = layer.device().geometry().page_bytes;
        let is_whole = |bytes: u64| bytes.is_multiple_of(u64::from(page_bytes));
        if spec.capacity_bytes == 0 || !is_whole(spec.offset_bytes) || !is_whole(spec.capacity_bytes) {
            return Err(SubsystemError::Unaligned { name, page_bytes });
        }
        let capacity_bytes = layer.logical_pages() * u64::from(page_bytes);
        let end = spec.offset_bytes.saturating_add(spec.capacity_bytes);
        if end > capacity_bytes {
            return Err(SubsystemError::OutsideSet { name, set: spec.set, end, capacity_bytes });
        }
        self.spaces.push(Space {
            set: usize::from(spec.set),
            offset_bytes: spec.offset_bytes,
            capacity_bytes: spec.capacity_bytes,
            page_bytes,
            counts: HostCounts::default(),
        });
        self.infos.push(NamespaceInfo {
            name,
            capacity_bytes: spec.capacity_bytes,
            page_bytes,
            set: spec.set,
            endurance_group: self.groups[usize::from(spec.set)],
            zones: None,
            objects: false,
        });
        Ok(())
    }

    fn with_device<T>(&self, look: impl FnOnce(&dyn FlashState) -> T) -> T {
        match &self.shared {
            Some(shared) => look(&*shared.lock().expect(UNBROKEN)),
            None => look(self.layers[0].device()),
        }
    }

    fn with_device_mut<T>(&mut self, act: impl FnOnce(&mut dyn FlashState) -> T) -> T {
        match &self.shared {
            Some(shared) => act(shared.lock().expect(UNBROKEN).deref_mut()),
            None => act(self.layers[0].device_mut()),
        }
    }
}

const UNBROKEN: &str = "nobody panicked while holding the device";

/// Does a command on a translation layer.
#[inline]
fn execute(
    ftl: &mut (dyn Ftl + Send),
    command: BlockCommand,
    payload: Payload<'_>,
    at: SimTime,
) -> FtlResult<Token> {
    let BlockCommand { op, extent, hint, is_durable } = command;
    let done = match (op, payload) {
        (Op::Read, Payload::Read(data)) => ftl.read(extent, Some(data), at),
        (Op::Read, _) => ftl.read(extent, None, at),
        (Op::Write, Payload::Write(data)) => ftl.write(extent, Some(data), hint, at),
        (Op::Write, _) => ftl.write(extent, None, hint, at),
        (Op::Trim, _) => ftl.trim(extent, at),
        (Op::WriteZeroes, _) => ftl.write_zeroes(extent, at),
        (Op::Flush, _) => ftl.flush(at),
    }?;
    if !is_durable {
        return Ok(done);
    }
    let flushed = ftl.flush(at)?;
    Ok(ftl.device_mut().join(done, flushed))
}

impl Subsystem for NvmSubsystem {
    fn namespaces(&self) -> &[NamespaceInfo] {
        &self.infos
    }

    #[inline]
    fn prepare(&self, namespace: u32, _: Op, extent: Extent) {
        let space = &self.spaces[namespace as usize];
        if extent.end() <= space.capacity_bytes {
            let extent = Extent::new(space.offset_bytes + extent.offset, extent.len);
            self.layers[space.set].prepare(extent);
        }
    }

    /// A durable command is one with a flush of its set behind it, and counts as both.
    fn submit(&mut self, namespace: u32, command: Command, payload: Payload<'_>, at: SimTime) -> Submitted {
        let command = command.into_block()?;
        let space = &self.spaces[namespace as usize];
        let extent = command.extent;
        if extent.end() > space.capacity_bytes {
            return Err(FtlError::OutOfRange { extent, capacity_bytes: space.capacity_bytes }.into());
        }
        let inside = Extent::new(space.offset_bytes + extent.offset, extent.len);
        let index = space.set;
        if self.standard.is_watching && matches!(command.op, Op::Read | Op::Write) {
            let pages = if command.op == Op::Write { inside.page_count(space.page_bytes) } else { 0 };
            self.observe(index, command.op == Op::Write, inside.len, pages, at)?;
        }
        let inside = BlockCommand { extent: inside, ..command };
        let done = execute(&mut *self.layers[index], inside, payload, at);
        // One that ended in the middle, for lack of room, has cost what it has.
        if !matches!(done, Err(FtlError::ReadOnly { .. })) {
            let space = &mut self.spaces[namespace as usize];
            space.counts.count(command, space.page_bytes);
            if command.is_durable {
                space.counts.count(BlockCommand::FLUSH, space.page_bytes);
            }
        }
        Ok(done?.into())
    }

    fn join(&mut self, a: Token, b: Token) -> Token {
        self.with_device_mut(|device| device.join(a, b))
    }

    fn idle(&mut self, at: SimTime, until: SimTime) -> NamespaceResult<()> {
        if self.standard.is_watching {
            self.pass_windows(at);
        }
        for layer in &mut self.layers {
            layer.idle(at, until)?;
        }
        Ok(())
    }

    fn shutdown(&mut self, at: SimTime) -> NamespaceResult<Token> {
        let mut done = Token::NONE;
        for layer in &mut self.layers {
            let closed = layer.shutdown(at)?;
            done = layer.device_mut().join(done, closed);
        }
        Ok(done)
    }

    fn allocation(&self, namespace: u32, extent: Extent) -> Allocation {
        let space = &self.spaces[namespace as usize];
        self.layers[space.set].allocation(Extent::new(space.offset_bytes + extent.offset, extent.len))
    }

    fn inspect(&self) -> Inspect<'_> {
        Inspect {
            layers: Layers::Sets(&self.layers),
            has_logs: true,
            hosts: Some(self),
            ..Inspect::default()
        }
    }

    fn control(&mut self) -> Control<'_> {
        if self.order.is_none() {
            return Control { nvme: Some(self), ..Control::default() };
        }
        Control { issue: self.order.as_mut().map(|order| order as _), ..Control::default() }
    }

    fn reset_counters(&mut self, at: SimTime) {
        for space in &mut self.spaces {
            space.counts = HostCounts::default();
        }
        for layer in &mut self.layers {
            layer.reset_stats();
            layer.device_mut().reset_counters();
            layer.device_mut().reset_time(at);
        }
        self.with_device_mut(|device| device.reset_counters());
        self.keep_windows(at);
    }

    /// Besides the layers' own invariants: what the parts count sums up to what the whole device counts.
    fn check_invariants(&self) {
        let mut sum = OpCounts::default();
        for layer in &self.layers {
            layer.check_invariants();
            let own: &CauseTable = layer.device().counters();
            assert_eq!(own.total(), layer.device().tally().totals, "causes of a set");
            sum.add(own.total());
        }
        self.with_device(|device| {
            assert_eq!(sum, device.counters().total(), "sum of the sets against the device");
            assert_eq!(sum, device.tally().totals, "sum of the sets against the medium");
        });
    }
}

impl HostReports for NvmSubsystem {
    fn host_counts(&self, namespace: u32) -> HostCounts {
        self.spaces[namespace as usize].counts
    }
}

impl LogControl for NvmSubsystem {
    fn renew_log(&mut self, set: u16, log: u16, at: SimTime) -> NamespaceResult<u64> {
        Ok(self.layers[usize::from(set)].renew_log(log, at)?)
    }
}

impl Clocked for NvmSubsystem {
    fn completion(&self, token: Token) -> Option<SimTime> {
        self.with_device(|device| device.completion(token))
    }

    fn watch(&mut self, token: Token, tag: u64) {
        self.with_device_mut(|device| device.watch(token, tag));
    }

    fn advance(&mut self, until: SimTime, out: &mut Vec<Completion>) {
        // Windows change on time, but are no events, lest waiting for the last event never ends.
        while self.standard.is_watching
            && until < SimTime::MAX
            && let Some(due) = self.window_due(until)
        {
            self.with_device_mut(|device| device.advance(due, out));
            self.pass_windows(due);
        }
        self.with_device_mut(|device| device.advance(until, out));
    }

    fn next_event(&self) -> Option<SimTime> {
        self.with_device(|device| device.next_event())
    }

    fn advance_to_completion(&mut self, until: SimTime, out: &mut Vec<Completion>) -> Option<SimTime> {
        if self.standard.is_watching {
            return step_to_completion(self, until, out);
        }
        self.with_device_mut(|device| device.advance_to_completion(until, out))
    }

    fn idle_from(&self) -> SimTime {
        self.with_device(|device| device.idle_from())
    }
}
