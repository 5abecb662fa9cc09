//! Two pools of streams: the kernel's file system has M of N, programs the rest [streams-article 4.2.4].
//!
//! File data and metadata never share a stream, nor an erase block of a device that keeps streams apart. The
//! kernel's pool folds the four classes of metadata in the order journal, inodes, directories, the rest; the
//! users' pool folds the levels of hints, data without a hint being the longest-lived.

use super::{PolicyEntry, StreamPolicy, WriteFacts, shared};
use nandscape_core::{Info, keys};

keys! { PARAMS:
    KERNEL: Option<u16> = int(1, 65_535), "M: streams of the kernel; absent: half of them";
}

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    info: Info {
        name: "split-pools",
        summary: "the kernel has the first M streams for metadata, programs the rest; the two never mix",
        source: "[streams-article 4.2.4]",
        params: PARAMS,
    },
    needs_future: false,
    build: |params, setup| {
        let kernel = params.get(KERNEL).unwrap_or(setup.streams / 2);
        if setup.streams > 1 && kernel >= setup.streams {
            let expected =
                format!("fewer than the {} streams of the device, so that programs have some", setup.streams);
            return Err(params.error(KERNEL, expected));
        }
        // One stream cannot be split: metadata has it, data has none, which keeps both apart all the same.
        let kernel = if setup.streams == 1 { 1 } else { kernel };
        Ok(Box::new(SplitPools { kernel, user: setup.streams - kernel.min(setup.streams) }))
    },
};

#[derive(Debug)]
struct SplitPools {
    kernel: u16,
    user: u16,
}

impl StreamPolicy for SplitPools {
    fn assign(&mut self, write: &WriteFacts<'_>) -> u16 {
        if let Some(class) = write.origin.kind.metadata_class() {
            return shared::fold(class as u16 + 1, 4, self.kernel);
        }
        let level = shared::level(write).unwrap_or(shared::LEVELS);
        match self.user {
            0 => 0,
            user => self.kernel + shared::fold(level, shared::LEVELS, user),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{build, facts, try_build};
    use super::*;
    use nandscape_core::{BlockKind, Origin};
    use std::collections::BTreeSet;

    #[test]
    fn file_data_and_metadata_never_have_the_same_id() {
        for streams in 0..20 {
            let kernels = (1..streams).map(|kernel| Some(kernel.to_string())).chain([None]);
            for kernel in kernels {
                let typed: Vec<_> = kernel.iter().map(|kernel| ("kernel", kernel.as_str())).collect();
                let mut policy = build("split-pools", &typed, streams);
                let mut ids = |is_metadata: bool| {
                    let mut ids = BTreeSet::new();
                    for kind in BlockKind::ALL.into_iter().filter(|kind| kind.is_metadata() == is_metadata) {
                        for hint in 0..6 {
                            let origin = Origin { kind, ..Origin::default() };
                            ids.insert(policy.assign(&WriteFacts { hint, origin, ..facts(0) }));
                        }
                    }
                    ids
                };
                let (data, metadata) = (ids(false), ids(true));
                assert!(streams == 0 || data.is_disjoint(&metadata), "{streams}: {data:?} {metadata:?}");
                assert!(data.union(&metadata).all(|id| *id <= streams));
                if streams > 1 {
                    assert!(!data.contains(&0) && !metadata.contains(&0), "{streams}: {data:?} {metadata:?}");
                }
            }
        }
    }

    #[test]
    fn a_kernel_that_takes_everything_is_refused() {
        let error = try_build("split-pools", &[("kernel", "4")], 4).err().unwrap().to_string();
        assert!(error.contains("kernel = '4'") && error.contains("fewer than the 4 streams"), "{error}");
    }
}
