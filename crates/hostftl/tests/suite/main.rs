//! Tests of the layers of the host.

mod chunk_flash;
mod chunk_zones;
mod closed_forms;
mod crash;
mod dm_zoned;
mod f2fs;
mod latency;
mod limits;
mod pblk;
mod random;
mod support;
mod zone_files;
