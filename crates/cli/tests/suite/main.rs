//! The integration tests of this crate, in one program.

mod cache;
mod cache_files;
mod cli;
mod conclusions;
mod documents;
mod fuzz_corpus;
mod hostile;
mod interrupts;
mod names;
mod readme;
mod reproduce;
mod results;
mod seeds;
mod states;
mod sweep;
mod terminal;
mod trust;
mod zones;
