//! The integration tests of this crate, in one program.

mod answer;
mod browser;
mod golden;
mod html;
mod placement;
mod sample;
