//! The composition root: a checked configuration in, a running stack out. The only place (tests apart) where
//! media, translation layers, namespaces and workloads meet.
//!
//! * [`config`]: TOML tables merged (preset < file < flags), then checked into a [`StackConfig`].
//! * [`presets`]: device descriptions that ship with nandscape.
//! * [`host`]: who chooses the stream of a write.
//! * [`cache`]: a disk, and flash or memory in front of it.
//! * [`partition`]: how the device is divided into NVM sets and namespaces.
//! * [`faults`]: what is to go wrong with the flash.
//! * [`kinds`], [`stacks`]: the interface of the flash, and host software over it.
//! * [`interfaces`]: what stands between hosts and the device: directives, and streams by what a file system
//!   keeps in a block.
//! * [`journal`]: the journal of a device that keeps bytes.
//! * [`mod@build`]: a configuration becomes a [`nandscape_core::Subsystem`].
//! * [`StateUse`]: states of preconditioned devices, in files.
//! * [`storing`]: the same over a device that keeps bytes, in memory or in an image file.
//! * [`jobs`]: fio job files; [`HostRecordings`]: the recordings that their jobs issue.
//! * [`replay`], [`compare`]: replay one configuration, or compare several.
//! * [`fn@values`]: lists and ranges of values, as typed.
//! * [`past_runs`]: results of earlier runs, to be compared again.

pub mod build;
mod caching;
pub mod config;
mod error;
pub mod faults;
mod fit;
mod flash;
pub mod host;
pub mod interfaces;
pub mod jobs;
pub mod journal;
mod keys;
pub mod kinds;
mod logs;
mod mapped;
mod memory;
mod options;
pub mod partition;
mod past;
pub mod presets;
mod recordings;
mod run;
mod seeds;
pub mod stacks;
mod state;
pub mod storing;
mod timing;
mod trust;
mod values;

pub use build::{build, build_subsystem};
pub use config::cache;
pub use config::{ConfigError, Sources, StackConfig, Typed};
pub use error::RunError;
pub use fit::{Fitted, Said, fit, has_footprint, said, suits_default_drive};
pub use keys::text_of;
pub use mapped::LostPage;
pub use nandscape_image::{Contents, Findings, Header, ImageHandle, Problem, Snapshot};
pub use nandscape_report::Run;
pub use options::{CompareOptions, RunOptions, pool};
pub use past::{Past, past_runs};
pub use recordings::HostRecordings;
pub use run::{compare, replay, replay_seeds};
pub use state::StateUse;
pub use storing::{Storage, StorageError, Stored, build_stored, build_storing};
pub use values::{MOST_VALUES, seeds, values};
