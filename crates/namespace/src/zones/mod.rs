//! Zoned namespaces (NVMe ZNS 1.1): the state machine of zones ([`ZoneTable`]), the wire forms of what is
//! said of them ([`wire`]), and their data on flash with its metadata log and recovery ([`ZonedNamespace`]).

mod body;
mod contents;
mod conventional;
mod failures;
mod held;
mod layout;
mod log;
mod metadata;
mod mixed;
mod namespace;
mod pool;
mod recover;
mod replace;
mod report;
mod sabotage;
mod setup;
mod stripes;
mod table;
mod tag;
pub mod wire;
mod write;

pub use body::FlashRules;
pub use conventional::BlockPart;
pub use layout::{RandomAreas, ZoneLayout};
pub use mixed::with_conventional;
pub use namespace::ZonedNamespace;
pub use recover::ZoneStartError;
pub use sabotage::Sabotage;
pub use setup::{CommandTimes, ZoneSetup};
pub use stripes::ZoneStripes;
pub use table::{Change, Restored, Written, ZoneTable};
pub use tag::{ImpliedOob, ZoneOob, ZoneTag};
