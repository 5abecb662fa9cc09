//! The integration tests of this crate, in one program.

mod cache_article;
mod cached;
mod caches;
mod compression;
mod config;
mod configs;
mod directives;
mod file_system;
mod host;
mod job_files;
mod journal;
mod neighbours;
mod nvm_sets;
mod pm963;
mod policies;
mod reproduce;
mod sets;
mod storing;
mod streams;
mod thesis_golden;
mod timing;
