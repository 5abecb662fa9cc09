//! Cuts the power of a device with a layer at every single operation, and compares what comes back with what
//! was promised.
//!
//! A seeded run of writes, trims, flushes and forced unit access is recorded below the layer: every program
//! and erase with what it waited for. A cut before an operation may leave any set of the operations before it
//! that is closed under what each waited for and under the order in a block, and that holds what the host
//! knows to be on the flash; the first operation of a block that is missing may be half done. From each such
//! state the layer is started again. Then every page must hold one of its versions from the last durable one
//! on, whole; the layer must go on working; and after a clean shutdown it must come back with the same bytes.
//! Power is cut again during some of the recoveries, and ten times in a row after others.
//!
//! * [`CrashDevice`] is the device that records.
//! * [`Case`] is one run with all its cuts, [`campaign`] many of them.
//! * [`Subject`] is the host that asks and compares: [`Host`] that of a translation layer; other kinds of
//!   layers bring their own.
//! * [`mod@reference`] is a layer that keeps its promises, or breaks one of them if told to, to test the
//!   harness itself.

mod campaign;
mod device;
mod explore;
mod host;
pub(crate) mod load;
mod order;
mod promise;
mod recorder;
pub mod reference;
mod states;
mod subject;

pub use campaign::{Setup, campaign, finds, nand, nand_of_units, points_from_environment};
pub use device::{Buffer, CrashDevice, Handle};
pub use explore::{Case, Damage, Effort, Failure, Tally};
pub use host::{Host, Layer};
pub use order::OpSet;
pub use subject::{Promises, Site, Subject, Sure};
