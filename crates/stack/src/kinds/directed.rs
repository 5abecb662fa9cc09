//! Block devices with directives: the host says which data goes together.

use super::StackKind;
use nandscape_core::Info;

/// Linux used four streams, one for each lifetime hint; the others are for policies that use more.
pub(crate) const STREAMS: StackKind = StackKind {
    info: Info {
        name: "streams",
        summary: "a block device with eight NVMe streams, which the host chooses by write hints as Linux did",
        source: "NVMe base specification 2.2, section 8.1.8; Linux 4.13 to 5.17",
        params: &[],
    },
    layer: None,
    preset: "[ftl]\nstreams = 8\n[directives]\nkind = \"streams\"\n[host]\npolicy = \"write-hint\"\n",
};

/// As many reclaim unit handles as drives have.
pub(crate) const FDP: StackKind = StackKind {
    info: Info {
        name: "fdp",
        summary: "a block device with flexible data placement: eight handles, chosen by write hints",
        source: "NVMe base specification 2.2, section 8.1.10 (TP4146)",
        params: &[],
    },
    layer: None,
    preset: "[ftl]\nstreams = 8\n[directives]\nkind = \"fdp\"\n[host]\npolicy = \"write-hint\"\n",
};
