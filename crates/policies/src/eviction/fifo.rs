//! First in, first out.

use super::by_age::{ByAge, Leaves, Order};
use nandscape_core::Info;

/// The block that came first leaves first.
pub type Fifo = ByAge<FirstIn>;

/// Its order.
#[derive(Clone, Debug)]
pub enum FirstIn {}

impl Order for FirstIn {
    const INFO: Info = Info {
        name: "fifo",
        summary: "the block that came first leaves first; hits count for nothing",
        source: "FlashCache's default, EnhanceIO, RapidDisk",
        params: &[],
    };
    const HITS_RENEW: bool = false;
    const LEAVES: Leaves = Leaves::Oldest;
}
