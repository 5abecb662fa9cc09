//! Device descriptions that ship with nandscape. A preset is an ordinary configuration file.

use nandscape_core::Info;

/// A shipped configuration.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Name, summary and source.
    pub info: Info,
    /// The file.
    pub toml: &'static str,
}

const fn preset(
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    toml: &'static str,
) -> Preset {
    Preset { info: Info { name, summary, source, params: &[] }, toml }
}

/// Every preset.
pub static PRESETS: &[Preset] = &[
    preset(
        "generic-tlc",
        "128 GiB TLC drive, 8 channels x 4 dies x 2 planes, 16 KiB pages, parallel timing",
        "typical data-sheet values",
        include_str!("../presets/generic-tlc.toml"),
    ),
    preset(
        "dc-tlc-28op",
        "1 TiB datacentre TLC drive, 28 % over-provisioning: 4 KiB mapping units in 16 KiB pages, suspension, protected write buffer",
        "typical data-sheet values; see the file",
        include_str!("../presets/dc-tlc-28op.toml"),
    ),
    preset(
        "dc-tlc-7op",
        "the same with 7 % over-provisioning",
        "typical data-sheet values; see the file",
        include_str!("../presets/dc-tlc-7op.toml"),
    ),
    preset(
        "client-tlc",
        "1 TB client TLC drive on 4 channels: SLC cache, volatile write buffer, so that flushes cost; no power-loss protection",
        "typical data-sheet values, rates of the WD Blue SN550; see the file",
        include_str!("../presets/client-tlc.toml"),
    ),
    preset(
        "thesis",
        "512 MiB open-channel SSD, one page operation at a time, depth 1",
        "[thesis table 3.1], [thesis table 4.1]",
        include_str!("../presets/thesis.toml"),
    ),
    preset(
        "thesis-parallel",
        "the same 512 MiB device with its 32 dies in parallel, depth 32",
        "[thesis table 4.1]; the buses are ours",
        include_str!("../presets/thesis-parallel.toml"),
    ),
    preset(
        "mqsim-g1",
        "128 GiB device of the MQSim comparison: static allocation, read-first scheduler",
        "MQSim (FAST 2018), shipped configuration",
        include_str!("../presets/mqsim-g1.toml"),
    ),
    preset(
        "pblaze5-916",
        "3.2 TB enterprise TLC drive, 16 channels x 8 dies, suspension, write buffer: the NVM sets experiment",
        "[sets-article layouts], [sets-article test 1]; fitted, see the file",
        include_str!("../presets/pblaze5-916.toml"),
    ),
    preset(
        "pm963-480g",
        "480 GB TLC drive, 8 channels x 4 dies, stripes of 1.1 GB (the multi-stream papers)",
        "[streams-article 3.1]; data sheet",
        include_str!("../presets/pm963-480g.toml"),
    ),
    preset(
        "pm963-1920g",
        "1920 GB TLC drive, 8 channels x 8 dies (the multi-stream article)",
        "[streams-article 3.1]; data sheet",
        include_str!("../presets/pm963-1920g.toml"),
    ),
    preset(
        "article-ssd",
        "64 GiB drive of 2 channels x 4 dies whose raw rates are near those of the SSD of the article on disk caches",
        "[cache-article introduction]; fitted, see the file",
        include_str!("../presets/article-ssd.toml"),
    ),
    preset(
        "zn540",
        "ZN540 zoned drive: 904 zones of 1077 MiB, 14 active, fitted to raw measurements",
        "[ZN540-CLUSTER23], [ZN540-SYSTOR24]; fitted, see the file",
        include_str!("../presets/zn540.toml"),
    ),
    preset(
        "zns-atc21",
        "2 TiB zoned drive: 1771 zones of 1077 MiB, 14 active, on the flash of zn540",
        "[ATC21 table 3], [ATC21 fig 1]; the rest from zn540",
        include_str!("../presets/zns-atc21.toml"),
    ),
    preset(
        "zns-atc21-block-7op",
        "block drive on the same flash, 1.92 TB with 7 % over-provisioning",
        "[ATC21 table 3]; see the file",
        include_str!("../presets/zns-atc21-block-7op.toml"),
    ),
    preset(
        "zns-atc21-block-28op",
        "the same, 1.60 TB with 28 % over-provisioning",
        "[ATC21 table 3]; see the file",
        include_str!("../presets/zns-atc21-block-28op.toml"),
    ),
    preset(
        "zns-atc21-streams",
        "the block drive with 7 % over-provisioning and 14 streams",
        "[ATC21 fig 10]; the number of streams is ours",
        include_str!("../presets/zns-atc21-streams.toml"),
    ),
    preset(
        "oftl-fast13",
        "16 GiB of flash with blocks of 64 pages of 4 KiB, one page operation at a time: the measurements of OFTL",
        "Lu, Shu and Zheng, FAST 2013; times calibrated to one cell of [OFTL table 3], see the file",
        include_str!("../presets/oftl-fast13.toml"),
    ),
];
