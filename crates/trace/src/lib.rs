//! Workload input: what a replay is fed with.
//!
//! A workload is named by one text, a [`WorkloadSpec`]: a trace file, `-` for standard input, or a generator
//! such as `uniform:span=80%,bs=4k,count=10M`. [`Workload`] opens it any number of times as a stream of
//! [`IoRecord`](nandscape_core::IoRecord)s, in constant memory, with the wrappers that [`OpenOptions`] asks
//! for: volume filter, limit, dense remap, time scale, repetition. [`open`] does it once.
//!
//! * [`formats`]: one file per trace format, in one registry: detection, reader and, where it makes sense,
//!   writer.
//! * [`generators`]: synthetic loads, seeded and repeatable.
//! * [`stats`]: what a load looks like.
//! * [`mod@write`]: conversion to any writable format.
//!
//! ```
//! use nandscape_trace::{OpenOptions, Target, open};
//!
//! let target = Target { capacity_bytes: 1 << 30, ..Target::NONE };
//! let reader = open("uniform:span=80%,bs=4k,count=1000", &OpenOptions::default(), target)?;
//! assert_eq!(reader.count(), 1000);
//! # Ok::<(), nandscape_core::TraceError>(())
//! ```

mod binary;
mod decode;
mod error;
mod fields;
pub mod formats;
mod frames;
mod gate;
pub mod generators;
mod lines;
mod options;
mod order;
mod pages;
pub mod recording;
mod source;
pub mod stats;
mod text;
mod workload;
mod wrappers;
pub mod write;
mod writer;

pub use decode::unpacked;
pub use options::{BoxReader, OpenOptions, Target};
pub use pages::PageSet;
pub use stats::{StatsOptions, TraceStats};
pub use workload::{Workload, WorkloadSpec, open};
pub use write::{Converted, convert};
