//! Whether pointers, owners and bits agree.

use super::F2fs;
use super::sections::{NODE, NONE, Owner};

impl F2fs {
    /// Panics with the values unless all invariants hold.
    pub(super) fn check(&self) {
        self.sections.check();
        let mut found = 0;
        let mut nodes = 0;
        let mut dirty = 0;
        for file in self.nodes.files().into_iter().chain([super::nodes::DIRECTORY]) {
            let mut blocks = 0;
            for (index, number) in &self.nodes.file(file).nodes {
                let node = self.nodes.node(*number);
                assert_eq!((node.file, node.index), (file, *index), "node {number}");
                (nodes, dirty) = (nodes + 1, dirty + u64::from(node.is_dirty));
                let is_listed =
                    self.nodes.file(file).dirty.contains(number) && self.nodes.dirty_files.contains(&file);
                assert!(!node.is_dirty || is_listed, "node {number} changed and is in no list");
                assert!(node.is_dirty || node.place != NONE, "node {number} is nowhere");
                if node.place != NONE {
                    self.check_owner(node.place, Owner { node: *number, slot: NODE });
                    found += 1;
                }
                let used = (0..).zip(&node.pointers).filter(|(_, place)| **place != NONE);
                for (slot, place) in used {
                    self.check_owner(*place, Owner { node: *number, slot });
                    blocks += 1;
                }
            }
            found += blocks;
            assert_eq!(blocks, self.nodes.file(file).blocks, "blocks of file {file}");
            let tail = self.nodes.file(file).tail;
            assert_eq!(tail.is_some(), self.nodes.tails.contains(&file), "tail of file {file}");
        }
        assert_eq!(found, self.sections.live, "blocks that are pointed to");
        assert_eq!((nodes, dirty), (self.nodes.count, self.nodes.dirty), "nodes, and those that changed");
    }

    fn check_owner(&self, place: u32, owner: Owner) {
        assert!(self.sections.is_valid(place), "block {place} of {owner:?} is not in use");
        assert_eq!(self.sections.owners[place as usize], owner, "owner of block {place}");
    }
}
