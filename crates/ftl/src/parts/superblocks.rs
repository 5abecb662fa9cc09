//! Superblocks as the superblock strategies manage them: one queue of erased and one of used superblocks per
//! super-unit, a rotor shared by allocation and collection, and which of their pages are live
//! 3.2.3.1).
//!
//! Where copies come first, one superblock stays erased in whatever state a loss of power leaves: the last
//! one is only taken once another was erased, and what is programmed to it follows that erase. So there is
//! always a target for what [`super::adopt`] has to put together.
//!
//! Invariants: a superblock is erased, used, or retired; `live[s]` is the number of set bits of row `s`; the
//! candidates are the used superblocks that have lost their last live page.

use crate::error::FtlBuildError;
use crate::parts::base::{Base, Target};
use crate::parts::candidates::Candidates;
use crate::parts::order::{self, Order};
use crate::parts::ring_set::RingSet;
use nandscape_core::{
    BlockId, Cause, FlashDevice, FlashError, FtlError, FtlResult, Info, Issue, Lpn, Params, Ppn, SimTime,
    SuperblockLayout, Token, keys, state,
};
use std::collections::{BTreeMap, VecDeque};

pub(crate) const NONE: u32 = u32::MAX;

/// Bytes of one superblock-map entry in the thesis's cost model.
pub(crate) const MODEL_ENTRY_BYTES: u64 = 8;

keys! {
    pub(crate) PN: u32 = int(1, 1 << 24) or "1", "parallel units a superblock spans; divides channels x LUNs";
    pub(crate) BN: u32 = int(1, 1 << 24) or "1",
        "blocks a superblock has in each of its units; divides the blocks of a unit";
    pub(crate) RESERVE: Option<u32> = int(1, 1 << 24),
        "superblocks held back from the capacity under copy-first; unset: 2, a target and one for a loss of \
         power in the middle of it, and what the logs take, and a fiftieth, at least 1, for superblocks that \
         fail";
}

/// Bits in rows that start on a word.
#[derive(Clone, Debug)]
struct BitRows {
    words: Vec<u64>,
    per_row: usize,
}

state!(impl [] BitRows { tables: words; fixed: per_row; });

impl BitRows {
    fn new(rows: u32, columns: u32) -> Self {
        let per_row = columns.div_ceil(64) as usize;
        Self { words: vec![0; rows as usize * per_row], per_row }
    }

    const fn place(&self, row: u32, column: u32) -> (usize, u64) {
        (row as usize * self.per_row + (column / 64) as usize, 1 << (column % 64))
    }

    fn get(&self, row: u32, column: u32) -> bool {
        let (word, bit) = self.place(row, column);
        self.words[word] & bit != 0
    }

    fn row(&self, row: u32) -> &[u64] {
        &self.words[row as usize * self.per_row..][..self.per_row]
    }

    fn count(&self, row: u32) -> u32 {
        self.row(row).iter().map(|word| word.count_ones()).sum()
    }

    fn row_mut(&mut self, row: u32) -> &mut [u64] {
        &mut self.words[row as usize * self.per_row..][..self.per_row]
    }
}

/// The least reserve of `total` superblocks with so many logs: a target, one that stays erased, and the logs
/// that may stand beside data superblocks (no more of them than there are logical superblocks).
const fn least_reserve(total: u32, logs: u32) -> u32 {
    let rest = total.saturating_sub(2);
    if rest / 2 <= logs { total - rest / 2 } else { 2 + logs }
}

pub(crate) struct Superblocks {
    pub(crate) layout: SuperblockLayout,
    pub(crate) pages: u32,
    /// Logical superblocks: as many as there are superblocks without a bad block, less the reserve.
    pub(crate) logical: u32,
    empties: u32,
    empty: Vec<VecDeque<u32>>,
    /// Super-units with an erased superblock.
    open: RingSet,
    /// Used superblocks without live pages. Their weight is always 0: the first met is taken.
    dead: Candidates,
    position: Vec<u64>,
    taken: u64,
    live_bits: BitRows,
    live: Vec<u32>,
    /// The thesis's `next_ch_lun_i`, counted in super-units.
    rotor: u32,
    /// Nothing is programmed to a superblock before this: the erase that allowed it to be taken.
    gate: Vec<Token>,
    /// Completes when the erases of idle time have: each may be what allows another to be taken.
    idle_erases: Token,
    /// Superblocks in which a program failed, with the block; given up once nothing in them is live.
    failed: Vec<(u32, BlockId)>,
    /// Targets in which a program failed, until what was copied to them has been copied elsewhere.
    abandoned: Vec<u32>,
    /// Pages that no superblock can be mapped for any more, on a device that has become read-only.
    pub(crate) stranded: BTreeMap<Lpn, Ppn>,
}

state!(impl [] Superblocks {
    saved: empties, open, dead, taken, live_bits, rotor, idle_erases, failed, abandoned, stranded;
    tables: empty, position, live, gate;
    fixed: layout, pages, logical;
});

impl Superblocks {
    /// Time starts anew: nothing waits any more for an erase so far.
    pub(crate) fn open_gates(&mut self) {
        self.gate.fill(Token::NONE);
        self.idle_erases = Token::NONE;
    }

    /// Erased superblocks can be taken; used ones wait for [`super::adopt`]. Those with a bad block are
    /// retired from the beginning, and `base`'s capacity shrinks to the others, less the reserve where
    /// copies come first. `logs` superblocks may be taken beside mapped ones.
    pub(crate) fn new<D: FlashDevice>(
        base: &mut Base<D>,
        info: &Info,
        params: &Params,
        logs: u32,
    ) -> Result<Self, FtlBuildError> {
        if !base.device.capabilities().out_of_order_program {
            let reason = "pages of a superblock are programmed in any order, which device.out_of_order_program = true allows";
            return Err(FtlBuildError::Device { ftl: info.name, reason: reason.to_owned() });
        }
        let layout = SuperblockLayout::new(base.geometry, params.get(PN), params.get(BN))?;
        let (groups, per_group) = (layout.superunits(), layout.superblocks_per_superunit());
        let mut pool = Self {
            layout,
            pages: layout.pages_per_superblock(),
            logical: 0,
            empties: 0,
            empty: vec![VecDeque::with_capacity(per_group as usize); groups as usize],
            open: RingSet::new(groups),
            dead: Candidates::new(groups, per_group),
            position: vec![0; layout.superblocks() as usize],
            taken: 0,
            live_bits: BitRows::new(layout.superblocks(), layout.pages_per_superblock()),
            live: vec![0; layout.superblocks() as usize],
            rotor: 0,
            gate: vec![Token::NONE; layout.superblocks() as usize],
            idle_erases: Token::NONE,
            failed: Vec::new(),
            abandoned: Vec::new(),
            stranded: BTreeMap::new(),
        };
        let mut nominal = 0;
        for superblock in 0..layout.superblocks() {
            nominal += u32::from(layout.blocks(superblock).all(|block| base.is_nominal(block)));
            let is_erased = |block| !base.device.is_bad(block) && base.device.write_pointer(block) == 0;
            if layout.blocks(superblock).all(is_erased) {
                pool.add_empty(superblock);
            }
        }
        pool.logical = match base.order {
            Order::EraseFirst => nominal,
            Order::CopyFirst => {
                base.count_grown_bad();
                nominal - order::reserve(params, least_reserve(nominal, logs), nominal, "superblocks")?
            }
        };
        base.logical_pages = u64::from(pool.logical) * u64::from(pool.pages);
        base.good_blocks = u64::from(nominal) * u64::from(layout.blocks_per_superblock());
        Ok(pool)
    }

    fn group_of(&self, superblock: u32) -> u32 {
        superblock / self.layout.superblocks_per_superunit()
    }

    fn turn_rotor(&mut self, group: u32) {
        self.rotor = if group + 1 == self.layout.superunits() { 0 } else { group + 1 };
    }

    fn add_empty(&mut self, superblock: u32) {
        let group = self.group_of(superblock);
        assert_eq!(self.live_pages(superblock), 0, "live pages of erased superblock {superblock}");
        self.empty[group as usize].push_back(superblock);
        self.empties += 1;
        self.open.insert(group);
    }

    pub(crate) fn free_pages(&self) -> u64 {
        self.empty.iter().map(|queue| queue.len() as u64).sum::<u64>() * u64::from(self.pages)
    }

    /// The logical superblock of a page, and the page's number in it.
    #[inline]
    pub(crate) const fn split(&self, lpn: Lpn) -> (u32, u32) {
        (lpn.0 / self.pages, lpn.0 % self.pages)
    }

    #[inline]
    pub(crate) fn page(&self, superblock: u32, index: u32) -> Ppn {
        self.layout.page(superblock, index)
    }

    #[inline]
    pub(crate) fn is_live(&self, superblock: u32, index: u32) -> bool {
        self.live_bits.get(superblock, index)
    }

    pub(crate) fn live_pages(&self, superblock: u32) -> u32 {
        self.live[superblock as usize]
    }

    /// The first live page at or after `index`.
    pub(crate) fn next_live(&self, superblock: u32, index: u32) -> Option<u32> {
        let words = self.live_bits.row(superblock);
        let mut word = (index / 64) as usize;
        let mut bits = words.get(word)? & (u64::MAX << (index % 64));
        while bits == 0 {
            word += 1;
            bits = *words.get(word)?;
        }
        Some(word as u32 * 64 + bits.trailing_zeros())
    }

    #[inline]
    pub(crate) fn set_live(&mut self, superblock: u32, index: u32) {
        assert!(index < self.pages, "page {index} of superblock {superblock} of {}", self.pages);
        let (word, bit) = self.live_bits.place(superblock, index);
        if self.live_bits.words[word] & bit == 0 {
            self.live_bits.words[word] |= bit;
            self.live[superblock as usize] += 1;
        }
    }

    /// The page has lost its data. A superblock that loses its last live page can be collected.
    #[inline]
    pub(crate) fn set_dead(&mut self, superblock: u32, index: u32) {
        let (word, bit) = self.live_bits.place(superblock, index);
        let is_live = self.live_bits.words[word] & bit != 0;
        assert!(is_live, "page {index} of superblock {superblock} dies twice");
        self.live_bits.words[word] &= !bit;
        self.live[superblock as usize] -= 1;
        self.note_if_dead(superblock);
    }

    /// A used superblock without live pages is a candidate.
    fn note_if_dead(&mut self, superblock: u32) {
        let live = self.live_pages(superblock);
        debug_assert_eq!(self.live_bits.count(superblock), live, "live pages of superblock {superblock}");
        if live == 0 && !self.dead.contains(superblock) {
            self.dead.insert(superblock, 0, self.position[superblock as usize]);
        }
    }

    /// All pages of a used superblock have lost their data.
    pub(crate) fn drop_all(&mut self, superblock: u32) {
        self.clear(superblock);
        self.note_if_dead(superblock);
    }

    fn clear(&mut self, superblock: u32) {
        let live = self.live_pages(superblock);
        debug_assert_eq!(self.live_bits.count(superblock), live, "live pages of superblock {superblock}");
        self.live_bits.row_mut(superblock).fill(0);
        self.live[superblock as usize] = 0;
    }

    /// An erased superblock from the rotor on, without collecting.
    pub(crate) fn take_empty(&mut self) -> Option<u32> {
        let group = self.open.first_from(self.rotor)?;
        let queue = &mut self.empty[group as usize];
        let superblock = queue.pop_front()?;
        assert!(!self.dead.contains(superblock), "superblock {superblock} is erased and a candidate");
        self.empties -= 1;
        if queue.is_empty() {
            self.open.remove(group);
        }
        self.position[superblock as usize] = self.taken;
        self.taken += 1;
        self.turn_rotor(group);
        Some(superblock)
    }

    /// An erased superblock; collects one if there is none, or, where copies come first, if it would be the
    /// last. `None` if there is nothing to collect either. The token covers the collection.
    pub(crate) fn allocate<D: FlashDevice>(
        &mut self,
        base: &mut Base<D>,
        at: SimTime,
    ) -> FtlResult<(Option<u32>, Token)> {
        self.allocate_but(Self::kept(base), base, at)
    }

    /// How many superblocks stay erased.
    fn kept<D: FlashDevice>(base: &Base<D>) -> u32 {
        u32::from(base.order == Order::CopyFirst)
    }

    /// Erased superblocks that can be taken without collecting.
    pub(crate) fn takeable<D: FlashDevice>(&self, base: &Base<D>) -> u32 {
        self.empties.saturating_sub(Self::kept(base))
    }

    /// One step of background collection: erases a superblock without live pages, while fewer are erased than
    /// are wanted.
    pub(crate) fn collect_in_background<D: FlashDevice>(
        &mut self,
        base: &mut Base<D>,
        wanted_pages: u64,
        at: SimTime,
    ) -> FtlResult<Option<Token>> {
        if u64::from(self.takeable(base)) * u64::from(self.pages) >= wanted_pages {
            return Ok(None);
        }
        let Some((victim, _)) = self.dead.first_from(self.rotor) else { return Ok(None) };
        let erased = self.collect(base, victim, at)?;
        assert!(!self.dead.contains(victim), "superblock {victim} was collected and is a candidate");
        self.idle_erases = base.both(self.idle_erases, erased);
        Ok(Some(erased))
    }

    /// As [`Self::allocate`], leaving `keep` erased ones.
    pub(crate) fn allocate_but<D: FlashDevice>(
        &mut self,
        keep: u32,
        base: &mut Base<D>,
        at: SimTime,
    ) -> FtlResult<(Option<u32>, Token)> {
        let mut done = Token::NONE;
        loop {
            if self.empties > keep
                && let Some(superblock) = self.take_empty()
            {
                assert!(self.empties >= keep, "superblock {superblock} leaves {} erased ones", self.empties);
                if base.order == Order::CopyFirst {
                    self.gate[superblock as usize] = base.both(done, self.idle_erases);
                }
                return Ok((Some(superblock), done));
            }
            let Some((victim, _)) = self.dead.first_from(self.rotor) else {
                return Ok((None, done));
            };
            let erased = self.collect(base, victim, at)?;
            done = base.device.join(done, erased);
        }
    }

    /// Erases a superblock without live pages. One whose erase fails for good is retired.
    fn collect<D: FlashDevice>(&mut self, base: &mut Base<D>, victim: u32, at: SimTime) -> FtlResult<Token> {
        let live = self.live_pages(victim);
        assert_eq!(live, 0, "live pages of superblock {victim}, which is to be erased");
        let mut done = Token::NONE;
        let mut is_lost = self.layout.blocks(victim).any(|block| base.device.is_bad(block));
        if let Some(place) = self.failed.iter().position(|(failed, _)| *failed == victim && !is_lost) {
            let (_, block) = self.failed.remove(place);
            base.give_up(block);
            is_lost = true;
        }
        for block in self.layout.blocks(victim) {
            if is_lost {
                break;
            }
            match base.erase(block, Issue::new(at, Cause::Gc))? {
                Some(erased) => done = base.device.join(done, erased),
                None => is_lost = true,
            }
        }
        self.dead.remove(victim);
        if is_lost {
            return Ok(done);
        }
        self.turn_rotor(self.group_of(victim));
        self.add_empty(victim);
        base.stats.gc_runs += 1;
        Ok(done)
    }

    /// Where a page is that no superblock is mapped for.
    pub(crate) fn stranded(&self, lpn: Lpn) -> Option<Ppn> {
        if self.stranded.is_empty() { None } else { self.stranded.get(&lpn).copied() }
    }

    /// Blocks that a collection never takes because they are kept erased.
    pub(crate) fn reserve_blocks<D: FlashDevice>(&self, base: &Base<D>) -> u64 {
        match base.order {
            Order::EraseFirst => 0,
            Order::CopyFirst => u64::from(self.layout.blocks_per_superblock()),
        }
    }

    #[inline]
    pub(crate) fn target(&self, superblock: u32, index: u32, stream: u16) -> Target {
        Target { page: self.page(superblock, index), stream, after: self.gate[superblock as usize] }
    }

    /// Gives up a target in which a program failed. It may hold newest data until that is written elsewhere.
    pub(crate) fn abandon(&mut self, superblock: u32) {
        self.clear(superblock);
        self.abandoned.push(superblock);
    }

    /// A new superblock that could not be filled holds nothing that is mapped.
    pub(crate) fn keep_or_drop(&mut self, target: u32, written: &FtlResult<Token>) {
        match written {
            Ok(_) => {}
            Err(FtlError::Flash(FlashError::ProgramFailed { .. })) => self.abandon(target),
            Err(_) => self.drop_all(target),
        }
    }

    /// What was abandoned holds nothing newest any more.
    pub(crate) fn release_abandoned(&mut self) {
        while let Some(superblock) = self.abandoned.pop() {
            self.drop_all(superblock);
        }
    }

    /// A program failed in a superblock: it is not to be written any more.
    pub(crate) fn note_failure<D: FlashDevice>(&mut self, base: &mut Base<D>, page: Ppn) {
        let (superblock, _) = self.layout.locate(page);
        if !self.has_failed(superblock) {
            let block = base.geometry.block_of(page);
            debug_assert!(self.layout.blocks(superblock).any(|own| own == block), "{page:?} of {superblock}");
            self.failed.push((superblock, block));
            base.count_failure();
        }
    }

    pub(crate) fn has_failed(&self, superblock: u32) -> bool {
        self.failed.iter().any(|(failed, _)| *failed == superblock)
    }

    /// Takes over a used superblock, its live pages set: a place in its queue, or among the candidates.
    pub(crate) fn take_over(&mut self, superblock: u32) {
        assert!(!self.dead.contains(superblock), "superblock {superblock} is taken over twice");
        self.position[superblock as usize] = self.taken;
        self.taken += 1;
        self.note_if_dead(superblock);
    }

    /// Panics unless the mapped superblocks are those with live pages, once each; gives their pages.
    pub(crate) fn check_mapped<'a>(&self, mapped: impl Iterator<Item = &'a u32>) -> u64 {
        let mut holders = vec![false; self.layout.superblocks() as usize];
        for superblock in mapped.filter(|superblock| **superblock != NONE) {
            let holder = &mut holders[*superblock as usize];
            assert!(!std::mem::replace(holder, true), "superblock {superblock} is mapped twice");
        }
        for (superblock, is_mapped) in (0..).zip(holders) {
            let count = self.live_pages(superblock);
            assert_eq!(is_mapped, count > 0, "superblock {superblock} has {count} live pages");
            assert!(!is_mapped || !self.dead.contains(superblock), "superblock {superblock} mapped and dead");
        }
        self.live.iter().copied().map(u64::from).sum()
    }

    /// Panics unless the counts, bits and queues agree with each other and with the device.
    pub(crate) fn check<D: FlashDevice>(&self, base: &Base<D>) {
        for (group, queue) in self.empty.iter().enumerate() {
            assert_eq!(self.open.contains(group as u32), !queue.is_empty(), "super-unit {group}");
            for superblock in queue {
                assert!(!self.dead.contains(*superblock), "superblock {superblock} erased and used");
                assert_eq!(
                    self.live[*superblock as usize], 0,
                    "live pages of erased superblock {superblock}"
                );
                for block in self.layout.blocks(*superblock) {
                    assert_eq!(base.device.write_pointer(block), 0, "{block:?} of an erased superblock");
                }
            }
        }
        for superblock in 0..self.layout.superblocks() {
            let set = self.live_bits.count(superblock);
            assert_eq!(set, self.live[superblock as usize], "live pages of superblock {superblock}");
            assert!(
                !self.dead.contains(superblock) || set == 0,
                "candidate {superblock} has {set} live pages"
            );
            let live = (0..self.pages).filter(|index| self.is_live(superblock, *index));
            for index in live {
                let page = self.page(superblock, index);
                assert!(base.device.is_programmed(page), "live page {page:?} is erased");
            }
        }
    }

    /// Bytes of queues, bits and counts.
    pub(crate) fn dram_bytes(&self) -> u64 {
        8 * self.live_bits.words.len() as u64 + 4 * self.live.len() as u64
    }
}
