//! Vector access (Open-Channel SSD 2.0): hosts read, write, copy and erase the flash by lists of sector
//! addresses. A group is a channel, a parallel unit is a die, a chunk is a block of one plane, or a block of
//! each plane.
//!
//! There is no map and no collection. What a start needs to know, it finds on the flash.

mod chunks;
mod events;
mod layout;
mod namespace;
mod recover;
mod report;
mod setup;
mod tag;
pub mod wire;

pub use namespace::VectorNamespace;
pub use setup::{FailedProgram, VectorSetup};
pub use tag::{VectorOob, VectorTag};
