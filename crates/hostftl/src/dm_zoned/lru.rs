//! Zones by the time of their last request.

/// A list of zones, least recently used in front; every change takes the same time.
#[derive(Debug)]
pub(super) struct Lru {
    /// By zone, with a head behind the last: the one before and the one behind. A zone that is not in the
    /// list is its own neighbour.
    links: Vec<[u32; 2]>,
    len: u32,
}

impl Lru {
    pub fn new(zones: u32) -> Self {
        Self { links: (0..=zones).map(|zone| [zone; 2]).collect(), len: 0 }
    }

    fn head(&self) -> u32 {
        self.links.len() as u32 - 1
    }

    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Takes a zone out, if it is in.
    pub fn remove(&mut self, zone: u32) {
        let [before, behind] = self.links[zone as usize];
        if before != zone {
            self.links[before as usize][1] = behind;
            self.links[behind as usize][0] = before;
            self.links[zone as usize] = [zone; 2];
            self.len -= 1;
        }
    }

    /// Puts a zone at the end, whether or not it is in.
    pub fn touch(&mut self, zone: u32) {
        self.remove(zone);
        let head = self.head();
        let last = self.links[head as usize][0];
        self.links[zone as usize] = [last, head];
        self.links[last as usize][1] = zone;
        self.links[head as usize][0] = zone;
        self.len += 1;
    }

    /// All of them, least recently used first.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        let head = self.head();
        let next = move |zone: u32| {
            let next = self.links[zone as usize][1];
            (next != head).then_some(next)
        };
        std::iter::successors(next(head), move |zone| next(*zone))
    }

    pub const fn bytes(&self) -> u64 {
        self.links.len() as u64 * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_come_in_the_order_of_their_last_use() {
        let mut lru = Lru::new(5);
        assert_eq!((lru.iter().next(), lru.len()), (None, 0));
        for zone in [3, 1, 4, 1, 0, 3] {
            lru.touch(zone);
        }
        assert_eq!(lru.iter().collect::<Vec<_>>(), [4, 1, 0, 3]);
        lru.remove(1);
        lru.remove(1);
        lru.remove(2);
        assert_eq!((lru.iter().collect::<Vec<_>>(), lru.len()), (vec![4, 0, 3], 3));
    }
}
