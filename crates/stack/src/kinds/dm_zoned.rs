//! A block device that the host makes of zones, some of them conventional.

use super::StackKind;
use nandscape_core::Info;
use nandscape_hostftl::dm_zoned;

pub(crate) const KIND: StackKind = StackKind {
    info: Info {
        name: "dm-zoned",
        summary: "a block device over zones, some conventional: the host's own mapping of whole zones",
        source: "Linux device mapper, dm-zoned",
        params: &[],
    },
    layer: Some(&dm_zoned::INFO),
    preset: "",
};
