//! Blocks of all volumes in one space of 40 bits, so that a key in a slot takes five bytes.

use nandscape_policies::BlockKey;

/// Blocks that there can be, and in how many steps the volumes get them: of 4 KiB, 4 PiB in steps of 1 TiB.
pub const SPACE: u64 = SPACES * STEP;
pub const SPACES: u64 = 1 << 12;
pub const STEP: u64 = 1 << STEP_BITS;
const STEP_BITS: u32 = 28;

/// Which volume has which steps. A volume need not have neighbouring ones.
#[derive(Default)]
pub struct Spaces {
    /// Of each step, the key of its first block; `None` where no volume has it.
    steps: Vec<Option<BlockKey>>,
    /// Of each volume, its steps in order.
    volumes: Vec<Vec<u16>>,
}

impl Spaces {
    /// Gives a volume as many steps as it needs for its blocks, in place of those it had. `None`, and nothing
    /// done, if there are not as many.
    pub fn assign(&mut self, volume: u16, blocks: u64) -> Option<()> {
        let is_free = |step: &Option<BlockKey>| step.is_none_or(|first| first.volume() == volume);
        let taken = self.steps.iter().filter(|step| !is_free(step)).count() as u64;
        if blocks.div_ceil(STEP) > SPACES - taken {
            return None;
        }
        self.release(volume);
        let mut own = Vec::new();
        for index in 0..blocks.div_ceil(STEP) {
            let step = self.steps.iter().position(Option::is_none).unwrap_or(self.steps.len());
            if step == self.steps.len() {
                self.steps.push(None);
            }
            assert!((step as u64) < SPACES, "step {step} of {SPACES} for block {index} of volume {volume}");
            self.steps[step] = Some(BlockKey::new(volume, index << STEP_BITS));
            own.push(step as u16);
        }
        self.volumes[usize::from(volume)] = own;
        Some(())
    }

    /// Takes back the steps of a volume.
    pub fn release(&mut self, volume: u16) {
        let volume = usize::from(volume);
        if self.volumes.len() <= volume {
            self.volumes.resize(volume + 1, Vec::new());
        }
        for step in std::mem::take(&mut self.volumes[volume]) {
            let first = self.steps[usize::from(step)].take();
            let owner = first.map(BlockKey::volume);
            assert_eq!(owner.map(usize::from), Some(volume), "the volume that has step {step}");
        }
    }

    /// A key as a number below [`SPACE`]. The volume has such a block.
    #[inline]
    pub fn packed(&self, key: BlockKey) -> u64 {
        let step = self.volumes[usize::from(key.volume())][(key.block() >> STEP_BITS) as usize];
        u64::from(step) << STEP_BITS | key.block() & (STEP - 1)
    }

    /// The key of a number; of one that is no block's, any.
    #[inline]
    pub fn key(&self, packed: u64) -> BlockKey {
        let first = self.steps.get((packed >> STEP_BITS) as usize).copied().flatten();
        BlockKey(first.unwrap_or(BlockKey(0)).0 | packed & (STEP - 1))
    }

    pub fn memory_bytes(&self) -> u64 {
        let of_volumes: usize = self.volumes.iter().map(|own| own.capacity() * size_of::<u16>()).sum();
        let lists = self.volumes.capacity() * size_of::<Vec<u16>>();
        (self.steps.capacity() * size_of::<Option<BlockKey>>() + lists + of_volumes) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_large_volumes_come_back_and_given_up_space_is_used_again() {
        let mut spaces = Spaces::default();
        spaces.assign(0, 3 * STEP).expect("there is room");
        spaces.assign(1, 1).expect("there is room");
        spaces.release(0);
        spaces.assign(2, 4 * STEP + 1).expect("there is room");
        spaces.assign(0, STEP).expect("there is room");
        for key in [(2, 0), (2, STEP - 1), (2, STEP), (2, 4 * STEP), (1, 0), (0, STEP - 1)] {
            let key = BlockKey::new(key.0, key.1);
            assert!(spaces.packed(key) < SPACE);
            assert_eq!(spaces.key(spaces.packed(key)), key);
        }
        assert_eq!(spaces.assign(3, (SPACES - 7) * STEP + 1), None, "7 steps are taken");
        spaces.assign(3, (SPACES - 7) * STEP).expect("all that is left");
        let last = BlockKey::new(3, (SPACES - 7) * STEP - 1);
        assert_eq!(spaces.key(spaces.packed(last)), last);
        spaces.assign(3, (SPACES - 7) * STEP).expect("its own are free for it");
    }
}
