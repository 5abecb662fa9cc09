//! The log-block table of the hybrid strategy: which logical superblocks have a log, and where in it each
//! page is ([thesis 3.2.4.1]).
//!
//! Invariant: `find(l) == Some(s)` exactly when slot `s` is open for `l`; open slots are in `order`.

use crate::parts::candidates::Candidates;
use crate::parts::superblocks::NONE;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Log {
    pub(crate) logical: u32,
    pub(crate) superblock: u32,
    pub(crate) next: u32,
}

/// The table, with room for a fixed number of logs.
pub(crate) struct LogTable {
    logs: Vec<Log>,
    /// In-block page maps, one after the other: page of the log by page of the superblock, or `NONE`.
    maps: Vec<u32>,
    pages: u32,
    slot_of: Vec<u32>,
    free: Vec<u32>,
    /// Open slots, the next to be evicted first.
    order: Candidates,
    touched: u64,
}

nandscape_core::state!(impl [] LogTable {
    saved: free, order, touched;
    tables: logs, maps, slot_of;
    fixed: pages;
});

nandscape_core::state!(impl [] Log { saved: logical, superblock, next; });

impl LogTable {
    pub(crate) fn new(slots: u32, superblocks: u32, pages: u32) -> Self {
        Self {
            logs: vec![Log { logical: NONE, superblock: NONE, next: 0 }; slots as usize],
            maps: vec![NONE; slots as usize * pages as usize],
            pages,
            slot_of: vec![NONE; superblocks as usize],
            free: (0..slots).rev().collect(),
            order: Candidates::new(1, slots),
            touched: 0,
        }
    }

    #[inline]
    pub(crate) fn find(&self, logical: u32) -> Option<u32> {
        let slot = self.slot_of[logical as usize];
        (slot != NONE).then_some(slot)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    pub(crate) fn free_slots(&self) -> u32 {
        self.free.len() as u32
    }

    /// The entry to evict next: the oldest, or with [`Self::touch`] on writes the least recently written.
    pub(crate) fn victim(&self) -> Option<u32> {
        self.order.first_from(0).map(|(slot, _)| slot)
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> Log {
        self.logs[slot as usize]
    }

    #[inline]
    pub(crate) fn page(&self, slot: u32, index: u32) -> Option<u32> {
        let page = self.maps[(slot * self.pages + index) as usize];
        (page != NONE).then_some(page)
    }

    /// Opens a log in a free slot; there must be one.
    pub(crate) fn open(&mut self, logical: u32, superblock: u32) -> u32 {
        let slot = self.free.pop().expect("a free slot");
        self.logs[slot as usize] = Log { logical, superblock, next: 0 };
        let other = std::mem::replace(&mut self.slot_of[logical as usize], slot);
        assert_eq!(other, NONE, "the log of superblock {logical}, which gets slot {slot}");
        self.order.insert(slot, 0, self.touched);
        self.touched += 1;
        slot
    }

    /// Opens a log that was found on flash, to be written on from page `next`.
    pub(crate) fn reopen(&mut self, logical: u32, superblock: u32, next: u32) -> u32 {
        let slot = self.open(logical, superblock);
        assert!(next <= self.pages, "log {superblock} of {logical} goes on at {next} of {}", self.pages);
        self.logs[slot as usize].next = next;
        slot
    }

    /// Records that page `page` of a log that was found holds `index`.
    pub(crate) fn set(&mut self, slot: u32, index: u32, page: u32) {
        let log = self.get(slot);
        assert!(index < self.pages && page < log.next, "page {page} of {log:?} holds {index}");
        self.maps[(slot * self.pages + index) as usize] = page;
    }

    /// Nothing more is written to the log.
    pub(crate) fn end(&mut self, slot: u32) {
        let log = self.get(slot);
        assert_eq!(self.find(log.logical), Some(slot), "the slot of {log:?}, which is ended");
        self.logs[slot as usize].next = self.pages;
    }

    /// Closes a log and forgets its page map.
    pub(crate) fn close(&mut self, slot: u32) {
        let log = self.get(slot);
        assert_eq!(self.find(log.logical), Some(slot), "the slot of {log:?}, which is closed");
        self.slot_of[log.logical as usize] = NONE;
        self.maps[(slot * self.pages) as usize..][..self.pages as usize].fill(NONE);
        self.order.remove(slot);
        self.free.push(slot);
    }

    /// Records that the log's next page holds `index`; gives the page that held it before.
    #[inline]
    pub(crate) fn append(&mut self, slot: u32, index: u32) -> Option<u32> {
        let log = &mut self.logs[slot as usize];
        let page = log.next;
        assert!(page < self.pages && index < self.pages, "{index} goes to {log:?} of {} pages", self.pages);
        log.next += 1;
        let old = std::mem::replace(&mut self.maps[(slot * self.pages + index) as usize], page);
        (old != NONE).then_some(old)
    }

    /// Forgets where `index` is; gives the page that held it.
    pub(crate) fn forget(&mut self, slot: u32, index: u32) -> Option<u32> {
        let old = std::mem::replace(&mut self.maps[(slot * self.pages + index) as usize], NONE);
        (old != NONE).then_some(old)
    }

    /// Makes the entry the last to be evicted.
    pub(crate) fn touch(&mut self, slot: u32) {
        self.order.remove(slot);
        self.order.insert(slot, 0, self.touched);
        self.touched += 1;
    }

    pub(crate) fn open_slots(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.logs.len() as u32).filter(|slot| self.order.contains(*slot))
    }

    /// Panics unless slots, lookups and the free list agree.
    pub(crate) fn check(&self) {
        let open = self.open_slots().count();
        assert_eq!(open + self.free.len(), self.logs.len(), "open and free slots");
        for slot in self.open_slots() {
            assert_eq!(self.find(self.get(slot).logical), Some(slot), "lookup of slot {slot}");
        }
        let found = self.slot_of.iter().filter(|slot| **slot != NONE).count();
        assert_eq!(found, open, "lookups and open slots");
    }

    pub(crate) fn dram_bytes(&self) -> u64 {
        4 * (self.maps.len() + self.slot_of.len() + 3 * self.logs.len()) as u64
    }
}
