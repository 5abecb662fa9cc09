//! The integration tests of this crate, in one program.

mod background;
mod closed_forms;
mod conformance;
mod crash;
mod extending;
mod faults;
mod golden;
mod journal;
mod order;
mod page_map;
mod paged;
mod reclaim_groups;
mod slc;
mod streams;
mod support;
mod unreadable;
mod whole_pieces;
mod worn_out;
