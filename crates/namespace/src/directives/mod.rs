//! Directives of NVMe: Streams (base specification 2.2, section 8.1.8.3) and Data Placement with flexible
//! data placement (section 8.1.10), as state machines without sockets. What tells a host's writes apart here
//! is a log number, which a translation layer understands ([`nandscape_core::Logs::logs`]).
//!
//! * [`Directives`] is the state of a subsystem: controllers, hosts, namespaces and endurance groups. It
//!   answers Directive Send and Receive, I/O Management Send and Receive, features 1Dh and 1Eh and log pages
//!   20h to 23h, byte by byte as in the standard, and gives every write its log.
//! * [`DirectedSubsystem`] puts it in front of a subsystem: hints become directives, directives become logs.
//! * [`scsi`] maps the stream commands of SCSI (T10 SBC-4) onto the same state.
//!
//! Streams and flexible data placement exclude each other in an endurance group.

pub mod fdp;
mod fdp_commands;
pub mod identify;
mod report;
pub mod scsi;
mod state;
pub mod streams;
mod subsystem;
mod wire;

pub use fdp_commands::IoManagement;
pub use state::{ControllerId, Directives, DirectivesConfig, HostId, Logs};
pub use streams::Route;
pub use subsystem::{DirectedSubsystem, HintMeaning};
pub(crate) use wire::transfer;
pub use wire::{
    BROADCAST, DATA_PLACEMENT, DIRECTIVE_RECEIVE, DIRECTIVE_SEND, DirectiveCommand, IDENTIFY,
    OACS_DIRECTIVES, STREAMS, WriteDirective,
};
