//! Which dies belong to which set.

use nandscape_core::{Geometry, UnitId};

/// A division of dies that cannot be. The message says what was expected; who typed the value names the key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LayoutError(String);

/// The dies of each set, numbered as in [`Geometry::unit`]. No die is in two sets; dies may be in none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetLayout {
    sets: Vec<Vec<UnitId>>,
}

impl SetLayout {
    /// One set of all dies [sets-article layouts].
    pub fn traditional(geometry: &Geometry) -> Self {
        Self { sets: vec![(0..geometry.units()).map(UnitId).collect()] }
    }

    /// Sets of whole channels [sets-article layouts]: neighbouring channels stay together.
    pub fn vertical(geometry: &Geometry, count: u32) -> Result<Self, LayoutError> {
        if count == 0 || !geometry.channels.is_multiple_of(count) {
            return Err(LayoutError(format!(
                "a divisor of the {} channels, since vertical sets are made of whole channels",
                geometry.channels
            )));
        }
        let channels = geometry.channels / count;
        Ok(Self::by(geometry, count, |unit| geometry.channel_of(unit) / channels))
    }

    /// Sets of some dies of every channel [sets-article layouts]: neighbours of a channel stay together.
    pub fn horizontal(geometry: &Geometry, count: u32) -> Result<Self, LayoutError> {
        if count == 0 || !geometry.dies_per_channel.is_multiple_of(count) {
            return Err(LayoutError(format!(
                "a divisor of the {} dies of a channel, since horizontal sets take as many dies of every channel",
                geometry.dies_per_channel
            )));
        }
        let dies = geometry.dies_per_channel / count;
        Ok(Self::by(geometry, count, |unit| geometry.lun_of(unit) / dies))
    }

    fn by(geometry: &Geometry, count: u32, set_of: impl Fn(UnitId) -> u32) -> Self {
        let all = || (0..geometry.units()).map(UnitId);
        Self { sets: (0..count).map(|set| all().filter(|unit| set_of(*unit) == set).collect()).collect() }
    }

    /// Any division: dies separated by `,`, ranges with `-`, sets separated by `;`, such as `0-3,8;4-7`.
    pub fn parse(geometry: &Geometry, text: &str) -> Result<Self, LayoutError> {
        let units = geometry.units();
        let mut owner: Vec<Option<usize>> = vec![None; units as usize];
        let mut sets = Vec::new();
        for (set, list) in text.split(';').enumerate() {
            let mut dies = Vec::new();
            for item in list.split(',').map(str::trim) {
                let (first, last) = item.split_once('-').unwrap_or((item, item));
                let number = |text: &str| text.trim().parse::<u32>().ok().filter(|die| *die < units);
                let (Some(first), Some(last)) = (number(first), number(last)) else {
                    return Err(LayoutError(format!(
                        "dies from 0 to {} such as 0-3,8 with ';' between sets; '{item}' is none",
                        units - 1
                    )));
                };
                if first > last {
                    return Err(LayoutError(format!("ranges from low to high; '{item}' is none")));
                }
                for die in first..=last {
                    if let Some(other) = owner[die as usize].replace(set) {
                        return Err(LayoutError(format!(
                            "each die in one set; die {die} is in set {other} and set {set}"
                        )));
                    }
                    dies.push(UnitId(die));
                }
            }
            sets.push(dies);
        }
        Ok(Self { sets })
    }

    /// The dies of each set.
    pub fn sets(&self) -> &[Vec<UnitId>] {
        &self.sets
    }

    /// Whether this is the whole device in one set, in the device's own order.
    pub fn is_whole(&self, geometry: &Geometry) -> bool {
        *self == Self::traditional(geometry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry() -> Geometry {
        Geometry {
            channels: 4,
            dies_per_channel: 2,
            planes_per_die: 1,
            blocks_per_plane: 8,
            pages_per_block: 4,
            page_bytes: 4096,
            sector_bytes: 4096,
            oob_bytes: 0,
        }
    }

    fn dies(layout: &SetLayout) -> Vec<Vec<u32>> {
        layout.sets().iter().map(|set| set.iter().map(|unit| unit.0).collect()).collect()
    }

    #[test]
    fn vertical_sets_are_whole_channels_and_horizontal_sets_touch_every_channel() {
        let g = geometry();
        let vertical = SetLayout::vertical(&g, 2).unwrap();
        assert_eq!(dies(&vertical), [[0, 1, 4, 5], [2, 3, 6, 7]]);
        let horizontal = SetLayout::horizontal(&g, 2).unwrap();
        assert_eq!(dies(&horizontal), [[0, 1, 2, 3], [4, 5, 6, 7]]);
        for set in horizontal.sets() {
            let channels: Vec<u32> = set.iter().map(|unit| g.channel_of(*unit)).collect();
            assert_eq!(channels, [0, 1, 2, 3]);
        }
        assert!(SetLayout::traditional(&g).is_whole(&g) && !horizontal.is_whole(&g));
    }

    #[test]
    fn every_division_gives_each_die_at_most_once() {
        let g = geometry();
        for layout in [
            SetLayout::traditional(&g),
            SetLayout::vertical(&g, 4).unwrap(),
            SetLayout::horizontal(&g, 2).unwrap(),
            SetLayout::parse(&g, "7,0-2; 5").unwrap(),
        ] {
            let mut all: Vec<u32> = dies(&layout).concat();
            let given = all.len();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), given);
        }
        assert_eq!(dies(&SetLayout::parse(&g, "7,0-2; 5").unwrap()), [vec![7, 0, 1, 2], vec![5]]);
    }

    #[test]
    fn impossible_divisions_say_what_was_expected() {
        let g = geometry();
        let text = |result: Result<SetLayout, LayoutError>| result.unwrap_err().to_string();
        assert!(text(SetLayout::vertical(&g, 3)).contains("divisor of the 4 channels"));
        assert!(text(SetLayout::horizontal(&g, 4)).contains("divisor of the 2 dies"));
        assert!(text(SetLayout::parse(&g, "0-8")).contains("'0-8'"));
        assert!(text(SetLayout::parse(&g, "0;;1")).contains("''"));
        assert!(text(SetLayout::parse(&g, "3-1")).contains("low to high"));
        assert!(text(SetLayout::parse(&g, "0-3;2")).contains("die 2 is in set 0 and set 1"));
    }
}
