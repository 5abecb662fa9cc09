//! The integration tests of this crate, in one program.

mod cache_article;
mod neighbours;
mod nvm_sets;
mod pm963;
mod policies;
mod reproduce;
mod streams;
