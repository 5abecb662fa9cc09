//! The composition root: a checked configuration in, a running stack out. The only place (tests apart) where media,
//! translation layers, namespaces and workloads meet.
//!
//! * [`config`]: TOML tables merged (preset < file < flags), then checked into a [`StackConfig`].
//! * [`presets`]: device descriptions that ship with nandscape.
//! * [`mod@build`]: a configuration becomes a [`nandscape_core::Namespace`].
//! * [`replay`], [`compare`]: replay one configuration, or compare several.

pub mod build;
pub mod config;
pub mod memory;
pub mod presets;
pub mod reproduce;
mod run;

pub use build::build;
pub use config::{ConfigError, StackConfig, Typed};
pub use nandscape_report::Run;
pub use run::{CompareOptions, RunError, RunOptions, compare, replay};
