//! Vocabulary of nandscape: what every other crate speaks and nothing that does I/O, spawns a thread or reads
//! a clock.
//!
//! * [`geometry`], [`addr`]: where things are on flash. [`Geometry`] alone does address arithmetic.
//! * [`time`]: virtual nanoseconds. Nothing below the replay loop or a server reads a clock.
//! * [`device`]: the [`FlashDevice`] contract that every medium, decorator and scheduler fulfils;
//!   [`journal`]: what a layer asks of the journal of one that has one.
//! * [`divide`]: division by a constant of the device.
//! * [`ftl`]: the [`Ftl`] contract of a translation layer.
//! * [`clock`]: tokens and their completions, for everything that takes virtual time.
//! * [`command`]: what hosts ask for; [`error`]: why it is refused.
//! * [`cached`]: what a cache counted.
//! * [`placement`]: what directives (streams, data placement) counted.
//! * [`store`]: what a cache joins two of: a range of bytes behind any device.
//! * [`subsystem`]: the [`Subsystem`] contract: what hosts see; [`inspect`]: what it shows besides.
//! * [`class`]: what an error means to a client; [`nvme`]: commands that administer, and status codes.
//! * [`cause`]: operation counters by cause; [`record`]: one request of a workload; [`origin`]: who issued
//!   it.
//! * [`kinds`]: writes by what blocks hold.
//! * [`ranges`]: ranges of blocks with a value each.
//! * [`recovery`]: what a start from flash found and did.
//! * [`registry`]: entries and their parameters; [`params`]: typed keys and checked parameter sets;
//!   [`units`]: sizes, times and counts as typed by people.
//! * [`zone`]: the zoned command set; [`vector`]: the vector command set; [`object`]: that of objects.
//! * [`rng`]: named, value-stable random generators.
//! * [`sample`]: samplers built on it: Zipf, scattering.
//! * [`mod@state`]: the state of a stack, saved and loaded.

pub mod addr;
pub mod cached;
pub mod cause;
pub mod class;
pub mod clock;
pub mod command;
pub mod device;
pub mod divide;
pub mod error;
pub mod flash_error;
pub mod ftl;
pub mod geometry;
pub mod inspect;
pub mod journal;
pub mod kinds;
pub mod nvme;
pub mod object;
pub mod origin;
mod outstanding;
pub mod params;
pub mod placement;
pub mod ranges;
pub mod record;
pub mod recovery;
pub mod registry;
pub mod rng;
pub mod sample;
pub mod slc;
pub mod state;
pub mod store;
pub mod subsystem;
pub mod time;
pub mod units;
pub mod vector;
pub mod zone;

pub use addr::{BlockId, Extent, Lpn, Ppn, UnitId};
pub use cached::{BypassCount, CacheControl, CacheCounts, CacheReport, NotModelled};
pub use cause::{Cause, CauseTable, MediumHealth, MediumTally, OpCounts};
pub use class::ErrorClass;
pub use clock::{Clocked, Completion, Token};
pub use command::{Answer, BlockCommand, Command, Op, Reply};
pub use device::{
    AnyDevice, Barrier, BlockState, Capabilities, FlashDevice, FlashResult, FlashState, Issue, MapJournal,
    Oob, OutOfBand, PageRead, ReadResult, Sender, Stripe, Striped, Way, program_each,
};
pub use divide::{Divider, Splitter};
pub use error::{NamespaceError, NamespaceResult, StoreError, StoreResult};
pub use flash_error::{FlashError, InjectedFault, JournalRefusal};
pub use ftl::{
    Allocation, Cost, Deferral, FlashLayer, Ftl, FtlError, FtlResult, FtlStats, Hint, LogStatus, Logs,
    MapCacheStats, Mapping, QuietRoom, SlcStatus,
};
pub use geometry::{Geometry, GeometryError, SuperblockLayout, scaled_blocks};
pub use inspect::{
    CacheReports, Chores, Control, HostReports, Inspect, IssueControl, KindReports, Layers, ObjectReports,
    PlacementReports, VectorReports, ZoneReports,
};
pub use kinds::{KindCount, KindReport};
pub use nvme::{LogControl, NvmeCommand, NvmeControl, NvmeQueue, NvmeReply, NvmeResult, NvmeStatus};
pub use object::{
    ObjectAttributes, ObjectCommand, ObjectError, ObjectFlashReport, ObjectId, ObjectReport, ObjectSpace,
    ObjectStatus,
};
pub use origin::{BlockKind, MetadataClass, Origin};
pub use outstanding::{Outstanding, wait};
pub use params::{Key, Params, Word};
pub use placement::{FdpReport, PlacementReport, StreamReport};
pub use record::{IoRecord, TraceError, TraceOp, TraceReader, WorkloadInfo};
pub use recovery::RecoveryReport;
pub use registry::{Info, Param, ParamError, ParamKind};
pub use slc::SlcBlocks;
pub use state::{Archive, State, StateError, StateResult};
pub use store::{Applied, Regions, Store, StoreShape};
pub use subsystem::{Layered, NamespaceInfo, Submitted, Subsystem};
pub use time::SimTime;
