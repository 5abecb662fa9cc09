//! The integration tests of this crate, in one program.

mod mqsim_t1_t2;
mod nvm_sets;
mod oob;
mod options;
mod read_first;
mod reference;
mod room;
mod sets;
mod slc;
mod stripes;
