//! Lists over slots: flat arrays of links, so that a policy holds no pointers and allocates nothing after it
//! was made.

use super::table::Table;

pub(crate) const NIL: u32 = u32::MAX;

/// The neighbours of every slot, which is in one list at most.
pub(crate) type Links = Table<Link>;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    older: u32,
    younger: u32,
}

impl Links {
    pub(crate) fn new(slots: u32) -> Self {
        Self::of(Link { older: NIL, younger: NIL }, slots)
    }

    /// The neighbour that came later.
    #[inline]
    pub(crate) fn younger(&self, slot: u32) -> u32 {
        self[slot as usize].younger
    }

    /// The neighbour that came earlier.
    #[inline]
    pub(crate) fn older(&self, slot: u32) -> u32 {
        self[slot as usize].older
    }
}

/// Slots in order of age.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    young: u32,
    old: u32,
    len: u32,
}

impl List {
    pub(crate) const fn new() -> Self {
        Self { young: NIL, old: NIL, len: 0 }
    }

    pub(crate) const fn len(&self) -> u32 {
        self.len
    }

    /// The oldest, or [`NIL`].
    pub(crate) const fn oldest(&self) -> u32 {
        self.old
    }

    /// The youngest, or [`NIL`].
    pub(crate) const fn youngest(&self) -> u32 {
        self.young
    }

    #[inline]
    pub(crate) fn push_young(&mut self, links: &mut Links, slot: u32) {
        links[slot as usize] = Link { older: self.young, younger: NIL };
        if self.young == NIL {
            self.old = slot;
        } else {
            links[self.young as usize].younger = slot;
        }
        self.young = slot;
        self.len += 1;
    }

    #[inline]
    pub(crate) fn unlink(&mut self, links: &mut Links, slot: u32) {
        let Link { older, younger } = links[slot as usize];
        self.join(links, older, younger);
        self.len -= 1;
    }

    #[inline]
    fn join(&mut self, links: &mut Links, older: u32, younger: u32) {
        if older == NIL {
            self.old = younger;
        } else {
            links[older as usize].younger = younger;
        }
        if younger == NIL {
            self.young = older;
        } else {
            links[younger as usize].older = older;
        }
    }

    #[inline]
    pub(crate) fn make_youngest(&mut self, links: &mut Links, slot: u32) {
        if self.young != slot {
            self.unlink(links, slot);
            self.push_young(links, slot);
        }
    }

    pub(crate) fn relabel(&mut self, links: &mut Links, from: u32, to: u32) {
        let Link { older, younger } = links[from as usize];
        links[to as usize] = Link { older, younger };
        if older == NIL {
            self.old = to;
        } else {
            links[older as usize].younger = to;
        }
        if younger == NIL {
            self.young = to;
        } else {
            links[younger as usize].older = to;
        }
    }

    /// The oldest that may leave.
    #[inline]
    pub(crate) fn first(&self, links: &Links, mut may: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut slot = self.old;
        while slot != NIL && !may(slot) {
            slot = links.younger(slot);
        }
        (slot != NIL).then_some(slot)
    }

    /// The youngest that may leave.
    #[inline]
    pub(crate) fn last(&self, links: &Links, mut may: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut slot = self.young;
        while slot != NIL && !may(slot) {
            slot = links.older(slot);
        }
        (slot != NIL).then_some(slot)
    }

    /// Visits all, the oldest first, until `each` says `false`; whether it did not.
    pub(crate) fn visit(&self, links: &Links, each: &mut dyn FnMut(u32) -> bool) -> bool {
        self.first(links, |slot| !each(slot)).is_none()
    }

    /// Takes out the oldest that may leave.
    #[inline]
    pub(crate) fn take_first(&mut self, links: &mut Links, may: impl FnMut(u32) -> bool) -> Option<u32> {
        let slot = self.first(links, may)?;
        self.unlink(links, slot);
        Some(slot)
    }
}
