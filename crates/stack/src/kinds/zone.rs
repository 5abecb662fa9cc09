//! `[zone]`: the keys of zones.

use super::StackKind;
use nandscape_core::{Info, keys};

keys! { PARAMS:
    pub(crate) ON: Option<String> = choice(&["flash", "vector"]),
        "flash: the device has the zones; vector: the host makes them of chunks: below zone-map by [vector] alone, below dm-zoned by [zone]; flash if absent";
    pub(crate) SIZE: Option<u64> = size(1, 1 << 60),
        "from the first byte of a zone to that of the next; absent: the capacity, rounded up to a power of \
         two";
    pub(crate) CAPACITY: Option<u64> = size(1, 1 << 60), "bytes of a zone that can be written; absent: all of its blocks";
    pub(crate) COUNT: Option<u32> = int(1, 1 << 24), "zones; absent: as many as there is room for";
    pub(crate) CONVENTIONAL: Option<u32> = int(0, 1 << 24),
        "zones at the start that are written anywhere (conventional); they need a page map and blocks of their \
         own; absent: none, below dm-zoned and file systems one of 64, at least 4, and below a cache what its metadata need";
    pub(crate) CONVENTIONAL_OP: f64 = float(0.0, 1000.0) or "0.28",
        "over-provisioning of the blocks of conventional zones, (physical - logical) / logical; there are at \
         least as many as the page map needs";
    pub(crate) MAX_ACTIVE: Option<u32> = int(1, 1 << 24), "most zones that are open or closed; absent: no limit";
    pub(crate) MAX_OPEN: Option<u32> = int(1, 1 << 24), "most zones that are open; absent: max_active";
    pub(crate) DESCRIPTOR_BYTES: u32 = size(0, 16_320) or "0", "bytes of the host's that a zone can keep";
    pub(crate) READS_ACROSS: bool = flag() or "false", "a read may cross the end of a zone";
    pub(crate) ZRWA_SIZE: Option<u64> = size(1, 1 << 40), "random write area of a zone; absent: there are none";
    pub(crate) ZRWA_GRANULARITY: Option<u64> = size(1, 1 << 40),
        "bytes by which the write pointer of a zone with such an area moves; absent: a page";
    pub(crate) ZRWA_COUNT: Option<u32> = int(1, 1 << 24), "most zones with such an area; absent: no limit";
    pub(crate) DIES: Option<u32> = int(1, 1 << 24), "dies that a zone spans; absent: all";
    pub(crate) BLOCKS_PER_DIE: u32 = int(1, 1 << 20) or "1", "blocks of a zone in each of its dies";
    pub(crate) STRIPE: Option<u64> = size(1, 1 << 40),
        "bytes written to a die before the next one's turn comes; absent: a program unit";
    pub(crate) SPARE: Option<u32> = int(1, 1 << 20),
        "blocks of each die that zones do not get, for those that fail and for the metadata log; absent: a \
         fiftieth, but at least 3";
    pub(crate) RESET: String = choice(&["now", "lazy"]) or "now",
        "now: a reset erases the blocks with data of the host; lazy: blocks are erased when they are used again";
    pub(crate) RESET_STRIPE: bool = flag() or "false",
        "a reset of an open or closed zone first fills up the last stripe over all dies";
    pub(crate) FINISH: String = choice(&["pad", "state"]) or "pad",
        "pad: a finish programs the rest of the zone; state: it changes the state alone";
    pub(crate) READ_TIME: Option<u64> = time(), "controller time of a read, one command after the other";
    pub(crate) WRITE_TIME: Option<u64> = time(), "the same of a write";
    pub(crate) APPEND_TIME: Option<u64> = time(), "the same of an append";
    pub(crate) TIME_UNIT: Option<u64> = size(512, 1 << 30),
        "bytes of a write or an append that its time is for, and again for each more; absent: any length";
    pub(crate) MANAGE_TIME: Option<u64> = time(), "the same of a command that changes states or reports them";
    pub(crate) OPEN_TIME: Option<u64> = time(), "more of a command that takes a zone out of the empty state";
    pub(crate) TIME_SPREAD: f64 = float(0.0, 1.0) or "0", "controller times of reads, writes and appends are off by up to this share";
    pub(crate) RESET_TIME: Option<u64> = time(), "from the start of a reset until its erases; other commands go on";
}

/// Keys of `[zone]`.
pub static ZONE: Info = Info {
    name: "zone",
    summary: "zones of the flash, for stacks over zones; other stacks ignore them",
    source: "NVMe ZNS 1.1",
    params: PARAMS,
};

pub(super) static LAYER: Info = Info {
    name: "zone",
    summary: "no translation layer: a table of the blocks of each zone",
    source: "",
    params: &[],
};

pub(crate) const KIND: StackKind = StackKind {
    info: Info {
        name: "zone",
        summary: "a zoned namespace (ZNS): zones that hosts write in order and reset",
        source: "NVMe ZNS 1.1",
        params: &[],
    },
    layer: Some(&LAYER),
    preset: "",
};
