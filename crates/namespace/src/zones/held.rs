//! The pages of a zone: how many have been programmed, and those behind them that are in the controller.

use nandscape_core::Ppn;

/// Logical blocks of a page that are in the controller, a bit each, and their bytes where they are kept.
#[derive(Clone, Debug)]
pub(super) struct HeldPage {
    pub present: u128,
    pub data: Option<Box<[u8]>>,
    /// Not in the metadata log as it is now.
    pub is_dirty: bool,
}

/// The pages of a zone from the first that is not programmed on.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    pages: std::collections::VecDeque<HeldPage>,
}

/// The pages of a zone.
#[derive(Clone, Debug)]
pub(super) struct Content {
    /// Pages on flash, and those of them from the first to the last with data of the host.
    pub programmed: u32,
    pub host_pages: u32,
    /// The flash page of the next page, which is worked out while the one before is programmed; none if it
    /// needs a block, or has to be looked up.
    pub next: Ppn,
    /// Blocks in each of its dies.
    pub slots: u32,
    pub held: Option<Box<Held>>,
}

impl Content {
    /// Of a zone with so many blocks in each die that was not written.
    pub const fn empty(slots: u32) -> Self {
        Self { programmed: 0, host_pages: 0, next: Ppn::NONE, slots, held: None }
    }

    /// Whether the controller holds no page.
    #[inline]
    pub fn holds_nothing(&self) -> bool {
        self.held.as_ref().is_none_or(|held| held.pages() == 0)
    }
}

/// `count` low bits from `first` on.
pub(super) const fn bits(first: u32, count: u32) -> u128 {
    (if count >= 128 { u128::MAX } else { (1 << count) - 1 }) << first
}

impl Held {
    /// The page so many behind the first that is not programmed.
    pub fn get(&self, ahead: u32) -> Option<&HeldPage> {
        self.pages.get(ahead as usize)
    }

    /// The last page with a logical block, and one behind its last block.
    pub fn last(&self) -> Option<(u32, u32)> {
        let pages = self.pages.iter().enumerate().rev();
        let mut ends = pages.map(|(ahead, page)| (ahead as u32, u128::BITS - page.present.leading_zeros()));
        ends.find(|(_, end)| *end > 0)
    }

    /// Pages that a device needs memory for.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut HeldPage)> {
        (0..).zip(&mut self.pages)
    }

    /// Takes logical blocks of a page, `first` counted in the page, of `block` bytes each.
    pub fn put(
        &mut self,
        ahead: u32,
        (first, count): (u32, u32),
        block: u32,
        page_bytes: Option<u32>,
        data: Option<&[u8]>,
    ) {
        while self.pages.len() <= ahead as usize {
            let data = page_bytes.map(|bytes| vec![0; bytes as usize].into_boxed_slice());
            self.pages.push_back(HeldPage { present: 0, data, is_dirty: true });
        }
        let page = &mut self.pages[ahead as usize];
        page.present |= bits(first, count);
        page.is_dirty = true;
        if let Some(kept) = &mut page.data {
            let range = (first * block) as usize..((first + count) * block) as usize;
            match data {
                Some(data) => kept[range].copy_from_slice(data),
                None => kept[range].fill(0),
            }
        }
    }

    /// Holds these pages, by their distance from the first that is not programmed.
    pub fn set(&mut self, pages: std::collections::BTreeMap<u32, HeldPage>, page_bytes: u32) {
        for (ahead, page) in pages {
            while self.pages.len() < ahead as usize {
                let data = Some(vec![0; page_bytes as usize].into_boxed_slice());
                self.pages.push_back(HeldPage { present: 0, data, is_dirty: false });
            }
            self.pages.push_back(page);
        }
    }

    /// The first page leaves, to be programmed.
    pub fn pop(&mut self) -> Option<HeldPage> {
        self.pages.pop_front()
    }

    /// The first page comes back, since it could not be programmed.
    pub fn put_back(&mut self, page: HeldPage) {
        self.pages.push_front(page);
    }
}
