//! Which of the queued requests a disk does next.

use super::mechanics::Mechanics;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As they came.
    Fifo,
    /// By cylinder, upwards, then from the lowest again (C-LOOK).
    Elevator,
    /// The one whose first sector is under its head soonest: shortest positioning time first.
    #[default]
    Shortest,
}

/// A request that could be next: its first sector, and its number in the order of coming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub sector: u64,
    pub number: u64,
}

impl Order {
    /// Index of the next one, with arm and head at `from`. `None` if there is none.
    pub fn pick(
        self,
        mechanics: &Mechanics,
        from: (u64, u32),
        now_ns: u64,
        candidates: impl Iterator<Item = Candidate>,
    ) -> Option<usize> {
        let indexed = candidates.enumerate();
        let best = match self {
            Self::Fifo => indexed.min_by_key(|(_, candidate)| candidate.number),
            Self::Elevator => indexed.min_by_key(|(_, candidate)| {
                let cylinder = mechanics.place(candidate.sector).cylinder;
                (cylinder < from.0, candidate.sector, candidate.number)
            }),
            Self::Shortest => indexed.min_by_key(|(_, candidate)| {
                let (seek_ns, rotation_ns) = mechanics.position(from, candidate.sector, now_ns);
                (seek_ns + rotation_ns, candidate.number)
            }),
        };
        best.map(|(index, _)| index)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::BUILD;
    use super::*;

    #[test]
    fn each_order_takes_its_own() {
        let mechanics = Mechanics::new(BUILD);
        let sectors = [900_000_u64, 10, 500_000, 1_500_000];
        let number = [2, 1, 3, 0];
        let pick = |order: Order, from: u64| {
            let from = (mechanics.place(from).cylinder, 0);
            let candidates =
                sectors.iter().zip(number).map(|(sector, number)| Candidate { sector: *sector, number });
            order.pick(&mechanics, from, 0, candidates)
        };
        assert_eq!(pick(Order::Fifo, 600_000), Some(3));
        assert_eq!(pick(Order::Elevator, 600_000), Some(0), "the next above");
        assert_eq!(pick(Order::Elevator, 1_800_000), Some(1), "from the lowest again");
        assert_eq!(pick(Order::Shortest, 0), Some(1), "under the head at once");
        assert_eq!(Order::Shortest.pick(&mechanics, (0, 0), 0, std::iter::empty()), None);
    }
}
