//! What a subsystem shows, and what can be asked of it besides commands: structs of parts, any of which may
//! be absent. A wrapper takes what the subsystem below gives and replaces what is different in front of it.

use crate::cached::{CacheControl, CacheReport};
use crate::cause::Cause;
use crate::clock::Token;
use crate::command::HostCounts;
use crate::device::FlashState;
use crate::error::NamespaceResult;
use crate::ftl::{FlashLayer, Ftl};
use crate::kinds::KindReport;
use crate::nvme::NvmeControl;
use crate::object::{ObjectFlashReport, ObjectReport};
use crate::placement::PlacementReport;
use crate::time::SimTime;
use crate::vector::{ChunkDescriptor, VectorCounts, VectorGeometry};
use crate::zone::{Zone, ZoneContents, ZoneCounts, ZoneShape};

/// Counts what hosts ask for.
pub trait HostReports {
    /// What hosts asked of a namespace since the last reset.
    fn host_counts(&self, namespace: u32) -> HostCounts;
}

/// Tells writes apart by streams or placement handles.
pub trait PlacementReports {
    /// What it counted since the last reset.
    fn placement(&self) -> PlacementReport;
}

/// Tells writes apart by what the blocks hold.
pub trait KindReports {
    /// Writes to a namespace by what the blocks hold.
    fn kinds(&self, namespace: u32) -> KindReport;
}

/// Caches.
pub trait CacheReports {
    /// What it counted since the last reset.
    fn cache(&self) -> CacheReport;
}

/// Tells of zones. A layer of the host over zones tells of those below it.
pub trait ZoneReports {
    /// What never changes of the zones of a namespace.
    fn zone_shape(&self, namespace: u32) -> ZoneShape;

    /// What a report says of a zone.
    fn zone(&self, namespace: u32, zone: u32) -> Zone;

    /// What a zone holds, as far as a layer of the host knows.
    fn contents(&self, namespace: u32, zone: u32) -> ZoneContents;

    /// What happened to the zones of a namespace since the last reset.
    fn zone_counts(&self, namespace: u32) -> ZoneCounts;
}

/// Tells of chunks.
pub trait VectorReports {
    /// The shape of a namespace.
    fn geometry(&self, namespace: u32) -> VectorGeometry;

    /// What a report says of a chunk, by its number.
    fn chunk(&self, namespace: u32, chunk: u32) -> ChunkDescriptor;

    /// What happened to the chunks of a namespace since the last reset.
    fn vector_counts(&self, namespace: u32) -> VectorCounts;
}

/// Stores objects.
pub trait ObjectReports {
    /// How its space is used now, and what it did since the last reset. Looks at every object.
    fn objects(&self) -> ObjectReport;

    /// The part of it that a store on the device itself counts, at once; `None` of others.
    fn on_flash(&self) -> Option<ObjectFlashReport>;
}

/// The layers over a flash device: one for each NVM set, or a single one of another kind.
#[derive(Clone, Copy, Default)]
pub enum Layers<'a> {
    /// There is no flash.
    #[default]
    None,
    /// A translation layer for each set.
    Sets(&'a [Box<dyn Ftl + Send>]),
    /// One layer that need not be a translation layer.
    One(&'a (dyn FlashLayer + Send)),
}

impl<'a> Layers<'a> {
    /// How many there are.
    pub const fn len(self) -> usize {
        match self {
            Self::None => 0,
            Self::Sets(layers) => layers.len(),
            Self::One(_) => 1,
        }
    }

    /// Whether there is no flash.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// That of a set. Panics where there is no such set.
    pub fn get(self, set: usize) -> &'a (dyn FlashLayer + Send) {
        match self {
            Self::Sets(layers) => &*layers[set],
            Self::One(layer) if set == 0 => layer,
            _ => panic!("set {set} of {}", self.len()),
        }
    }

    /// That of the first set.
    pub fn first(self) -> Option<&'a (dyn FlashLayer + Send)> {
        self.iter().next()
    }

    /// That of a set alone; nothing where there is no such set.
    #[must_use]
    pub fn only(self, set: usize) -> Self {
        match self {
            Self::Sets(layers) => layers.get(set..=set).map_or(Self::None, Self::Sets),
            Self::One(_) if set == 0 => self,
            _ => Self::None,
        }
    }

    /// All of them.
    pub fn iter(self) -> impl Iterator<Item = &'a (dyn FlashLayer + Send)> {
        (0..self.len()).map(move |set| self.get(set))
    }
}

/// What a [`crate::Subsystem`] shows of itself. Reports are made when they are asked for.
#[derive(Clone, Copy, Default)]
pub struct Inspect<'a> {
    /// The layers over its flash.
    pub layers: Layers<'a>,
    /// Whether hosts can reach other logs of the layers than the first.
    pub has_logs: bool,
    /// What hosts asked for.
    pub hosts: Option<&'a dyn HostReports>,
    /// A directive (streams, data placement), where there is one.
    pub placement: Option<&'a dyn PlacementReports>,
    /// Something that looks at what blocks hold, where there is one.
    pub kinds: Option<&'a dyn KindReports>,
    /// A cache, where there is one.
    pub cache: Option<&'a dyn CacheReports>,
    /// Zones, where a namespace has any.
    pub zones: Option<&'a dyn ZoneReports>,
    /// Chunks, where a namespace has vector access.
    pub vectors: Option<&'a dyn VectorReports>,
    /// A store of objects, where there is one.
    pub objects: Option<&'a dyn ObjectReports>,
    /// Memory of software of the host that is no layer, in bytes.
    pub host_bytes: u64,
}

impl<'a> Inspect<'a> {
    /// NVM sets; 1 where the device is not divided, 0 where there is no flash (a cache of memory in front of
    /// a disk).
    pub const fn sets(&self) -> u16 {
        self.layers.len() as u16
    }

    /// The layer of a set.
    pub fn layer(&self, set: u16) -> &'a (dyn FlashLayer + Send) {
        self.layers.get(usize::from(set))
    }

    /// The flash of a set, with that set's own geometry, counters and wear.
    pub fn device(&self, set: u16) -> &'a dyn FlashState {
        self.layer(set).device()
    }

    /// Logs of a set that hosts can reach, see [`crate::Logs::logs`].
    pub fn logs(&self, set: u16) -> u16 {
        if self.has_logs { self.layer(set).logs() } else { 1 }
    }

    /// What hosts asked of a namespace since the last reset.
    pub fn host_counts(&self, namespace: u32) -> HostCounts {
        self.hosts.map(|hosts| hosts.host_counts(namespace)).unwrap_or_default()
    }

    /// What a directive counted since the last reset.
    pub fn placement(&self) -> Option<PlacementReport> {
        self.placement.map(PlacementReports::placement)
    }

    /// Writes to a namespace by what the blocks hold.
    pub fn kinds(&self, namespace: u32) -> Option<KindReport> {
        self.kinds.map(|kinds| kinds.kinds(namespace))
    }

    /// How a store of objects uses its space, and what it did since the last reset.
    pub fn objects(&self) -> Option<ObjectReport> {
        self.objects.map(ObjectReports::objects)
    }

    /// What a cache counted since the last reset.
    pub fn cache(&self) -> Option<CacheReport> {
        self.cache.map(CacheReports::cache)
    }
}

/// Takes commands of host software, which submits them for reasons of its own and in an order of its own: a
/// translation layer of the host moves data because it collects, and writes it once it was read.
pub trait IssueControl {
    /// Commands submitted from now on are issued because of `cause`, by a host that waits for `after` before
    /// it submits them. A subsystem starts with [`Cause::Host`] and [`Token::NONE`].
    fn issue(&mut self, cause: Cause, after: Token);
}

/// Work that need not delay an answer, of a layer whose commands may do more than what they were sent for.
pub trait Chores {
    /// From now on such work is left for later, as far as that makes no promise untrue: for the calls of
    /// [`Chores::chore`], or for later commands. Without this, commands do it themselves.
    fn postpone(&mut self);

    /// Does a part of what was left, about as much as the commands since the last call have added.
    fn chore(&mut self, at: SimTime) -> NamespaceResult<()>;
}

/// What can be asked of a [`crate::Subsystem`] besides commands.
#[derive(Default)]
pub struct Control<'a> {
    /// A cache, where it can be told something.
    pub cache: Option<&'a mut dyn CacheControl>,
    /// What NVMe commands administer, where there is an NVMe device.
    pub nvme: Option<&'a mut dyn NvmeControl>,
    /// Causes and order of commands, where host software can state them.
    pub issue: Option<&'a mut dyn IssueControl>,
    /// Work that can be done between commands, where there is any.
    pub chores: Option<&'a mut dyn Chores>,
}
