//! Stream resources by last write: a doubly linked list through an array, so that each step is constant.

pub(super) const NONE: u16 = u16::MAX;

#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    older: u16,
    newer: u16,
}

nandscape_core::state!(impl [] Link { saved: older, newer; });

impl Link {
    pub const FREE: Self = Self { older: NONE, newer: NONE };
}

/// A list of resources, from the one whose last write is longest ago to the one written last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recency {
    oldest: u16,
    pub newest: u16,
}

nandscape_core::state!(impl [] Recency { saved: oldest, newest; });

impl Recency {
    pub const EMPTY: Self = Self { oldest: NONE, newest: NONE };

    pub fn oldest(self) -> Option<u16> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    pub fn push(&mut self, links: &mut [Link], slot: u16) {
        links[usize::from(slot)] = Link { older: self.newest, newer: NONE };
        match self.newest {
            NONE => self.oldest = slot,
            newest => links[usize::from(newest)].newer = slot,
        }
        self.newest = slot;
    }

    pub fn remove(&mut self, links: &mut [Link], slot: u16) {
        let Link { older, newer } = std::mem::replace(&mut links[usize::from(slot)], Link::FREE);
        match older {
            NONE => self.oldest = newer,
            older => links[usize::from(older)].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => links[usize::from(newer)].older = older,
        }
    }

    pub fn iter<'a>(&self, links: &'a [Link]) -> impl Iterator<Item = u16> + 'a {
        let mut at = self.oldest;
        std::iter::from_fn(move || {
            let slot = (at != NONE).then_some(at)?;
            at = links[usize::from(slot)].newer;
            Some(slot)
        })
    }
}
