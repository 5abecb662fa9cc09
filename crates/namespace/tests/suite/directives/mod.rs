//! Conformance of the directives: rules as tables, structures byte by byte, and random commands against
//! simple models.

mod bench;
mod codec;
mod fdp;
pub mod flash;
mod model;
mod scsi;
mod streams;
