//! A small device and a store on it.

use nandscape_core::{Capabilities, Geometry, Params, Subsystem as _};
use nandscape_media::{Nand, NandOptions};
use nandscape_object::Oftl;
use nandscape_object::oftl::{INFO, ObjectOob, Sabotage};
use nandscape_testkit::crash::CrashDevice;
use nandscape_testkit::objects::crash::ObjectLayer;
use std::collections::BTreeMap;

pub type Store = Oftl<CrashDevice<ObjectOob>>;

/// Two dies of 48 blocks of 8 pages.
pub const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 1,
    planes_per_die: 1,
    blocks_per_plane: 48,
    pages_per_block: 8,
    page_bytes: 512,
    sector_bytes: 512,
    oob_bytes: 64,
};

pub struct Objects;

impl ObjectLayer for Objects {
    type Oob = ObjectOob;
    type Layer = Store;
    const UNIT: usize = 512;
    const IS_ATOMIC: bool = true;
    const RESERVES: bool = true;
    const SLACK: u64 = 8 * 512;
}

pub fn nand() -> Nand<ObjectOob> {
    let capabilities = Capabilities { stores_data: true, ..Capabilities::default() };
    let options = NandOptions { capabilities, ..NandOptions::default() };
    Nand::with_oob(GEOMETRY.checked().unwrap(), &options).unwrap()
}

pub fn params(pairs: &[(&str, &str)]) -> Params {
    let typed: BTreeMap<_, _> =
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Params::check(&INFO, "ftl.", &typed).unwrap()
}

/// A store that flushes large objects in steps.
pub fn open_in_steps(
    device: CrashDevice<ObjectOob>,
    params: &Params,
    sabotage: Sabotage,
) -> Result<Store, String> {
    let mut store = open(device, params, sabotage)?;
    store.control().chores.expect("it can leave work for later").postpone();
    Ok(store)
}

pub fn open(device: CrashDevice<ObjectOob>, params: &Params, sabotage: Sabotage) -> Result<Store, String> {
    Oftl::with_sabotage(device, params, sabotage).map_err(|error| error.to_string())
}
