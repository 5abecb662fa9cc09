//! Synthetic loads: seeded, repeatable, without an allocation per request.

mod common;
mod database;
mod fast13;
mod hotcold;
mod lammps;
mod listed;
mod lsm;
mod macdrp;
mod mqsim_t;
mod sequential;
mod uflip;
mod uniform;
mod zipf;
mod zipf_cdf;
mod zones;

pub use fast13::Load as Fast13Load;

use crate::options::{BoxReader, Target};
use nandscape_core::{Info, ParamError, Params, registry};

/// One generator.
pub struct Generator {
    /// Name, summary, source and parameters.
    pub info: Info,
    pub(crate) build: fn(&Params, Context) -> Result<BoxReader, ParamError>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    pub(crate) target: Target,
    pub(crate) seed: u64,
}

/// Every generator, in the order of the documentation.
pub static GENERATORS: &[Generator] = &[
    uniform::ENTRY,
    zipf::ENTRY,
    zipf_cdf::ENTRY,
    hotcold::ENTRY,
    sequential::ENTRY,
    lammps::ENTRY,
    macdrp::ENTRY,
    mqsim_t::ENTRY,
    uflip::ENTRY,
    database::ENTRY,
    lsm::ENTRY,
    fast13::ENTRY,
];

/// A generator by name, or an error with the names there are.
pub fn find(name: &str) -> Result<&'static Generator, ParamError> {
    registry::find("generator", name, GENERATORS, |generator| &generator.info)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_generator_builds_with_its_defaults() {
        let context = Context { target: Target { capacity_bytes: 1 << 30, ..Target::NONE }, seed: 42 };
        for generator in GENERATORS {
            let mut load = (generator.build)(&Params::defaults(&generator.info), context).unwrap();
            assert!(load.next().is_some(), "{}", generator.info.name);
        }
    }
}
