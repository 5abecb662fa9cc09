//! The integration tests of this crate, in one program.

mod cached;
mod compression;
mod config;
mod configs;
mod directives;
mod faults;
mod file_system;
mod host;
mod interfaces;
mod job_files;
mod journal;
mod objects;
mod past;
mod sets;
mod slc;
mod stacks;
mod state;
mod storing;
mod support;
mod thesis_golden;
mod timing;
mod units;
mod values;
