//! What several of the layers of the thesis are built from: the page table, superblock bookkeeping, log
//! blocks, candidate trees.

pub(crate) mod adopt;
pub(crate) mod background;
pub(crate) mod base;
pub(crate) mod candidates;
pub(crate) mod layer;
pub(crate) mod logs;
pub(crate) mod order;
pub(crate) mod page_table;
pub(crate) mod ring_set;
pub(crate) mod superblocks;
