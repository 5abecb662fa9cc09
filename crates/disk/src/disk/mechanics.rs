//! Where sectors lie and how long arm, platter and heads take: all arithmetic of the disk model.

pub const SECTOR_BYTES: u64 = 512;

/// What a disk is made of. Rates are of the medium, in bytes per second; times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Build {
    pub capacity_bytes: u64,
    pub rpm: u32,
    /// Surfaces with a head each.
    pub heads: u32,
    /// Zones of equal capacity; each has one number of sectors on its tracks.
    pub zones: u32,
    /// Rate of the outermost zone, where the disk begins.
    pub outer_bytes_per_s: u64,
    pub inner_bytes_per_s: u64,
    pub seek_next_ns: u64,
    /// Seek over a third of the cylinders, which data sheets call average.
    pub seek_third_ns: u64,
    /// Seek over all cylinders.
    pub seek_full_ns: u64,
    /// Change to another head of the same cylinder.
    pub head_switch_ns: u64,
}

/// A zone: tracks with the same number of sectors.
#[derive(Clone, Copy, Debug)]
struct Zone {
    first_sector: u64,
    first_cylinder: u64,
    sectors_per_track: u64,
}

/// A place under a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Counted from outside.
    pub cylinder: u64,
    pub head: u32,
    sector: u64,
    sectors_per_track: u64,
}

/// The disk's arithmetic.
#[derive(Clone, Debug)]
pub struct Mechanics {
    build: Build,
    zones: Vec<Zone>,
    /// Cylinders that hold data.
    pub cylinders: u64,
    /// Time of one revolution.
    pub turn_ns: u64,
}

impl Mechanics {
    /// Divides a disk into zones and cylinders. Panics if a number is 0, the inner rate exceeds the outer
    /// one, or seeks do not grow with the distance.
    pub fn new(build: Build) -> Self {
        let Build { rpm, heads, zones, outer_bytes_per_s: outer, inner_bytes_per_s: inner, .. } = build;
        assert!(rpm > 0 && heads > 0 && zones > 0 && inner > 0, "a disk needs more than nothing: {build:?}");
        assert!(inner <= outer, "the inner rate is above the outer one: {build:?}");
        assert!(
            build.seek_next_ns <= build.seek_third_ns && build.seek_third_ns <= build.seek_full_ns,
            "a longer seek is shorter: {build:?}"
        );
        let turn_ns = 60_000_000_000 / u64::from(rpm);
        let sectors = build.capacity_bytes / SECTOR_BYTES;
        let mut list = Vec::new();
        let (mut first_sector, mut first_cylinder) = (0, 0);
        for zone in 0..u64::from(zones) {
            let fall = (outer - inner) * zone / (u64::from(zones) - 1).max(1);
            let bytes_per_turn = u128::from(outer - fall) * u128::from(turn_ns) / 1_000_000_000;
            let sectors_per_track = (bytes_per_turn as u64 / SECTOR_BYTES).max(1);
            list.push(Zone { first_sector, first_cylinder, sectors_per_track });
            let cylinder_sectors = sectors_per_track * u64::from(heads);
            let until = sectors * (zone + 1) / u64::from(zones);
            let cylinders = until.saturating_sub(first_sector).div_ceil(cylinder_sectors);
            first_sector += cylinders * cylinder_sectors;
            first_cylinder += cylinders;
        }
        Self { build, zones: list, cylinders: first_cylinder.max(1), turn_ns }
    }

    /// Time of a seek over so many cylinders: `a + b sqrt(d)` up to a third of the disk, `c + e d` beyond, as
    /// Ruemmler and Wilkes found (IEEE Computer 27(3), 1994), through the three times of the data sheet.
    pub fn seek_ns(&self, cylinders: u64) -> u64 {
        if cylinders == 0 {
            return 0;
        }
        let (next, third) = (self.build.seek_next_ns as f64, self.build.seek_third_ns as f64);
        // Seeks are linear from a third of the cylinders on.
        let bend = (self.cylinders as f64 / 3.0).max(2.0);
        let distance = cylinders as f64;
        if distance <= bend {
            let slope = (third - next) / (bend.sqrt() - 1.0).max(f64::MIN_POSITIVE);
            return (next + slope * (distance.sqrt() - 1.0)).round() as u64;
        }
        let slope = (self.build.seek_full_ns as f64 - third) / (self.cylinders as f64 - 1.0 - bend).max(1.0);
        (third + slope * (distance - bend)).round() as u64
    }

    pub fn place(&self, sector: u64) -> Place {
        let at = self.zones.partition_point(|zone| zone.first_sector <= sector) - 1;
        // Zones that hold nothing begin where the next one does.
        let zone = &self.zones[at];
        let track = (sector - zone.first_sector) / zone.sectors_per_track;
        Place {
            cylinder: zone.first_cylinder + track / u64::from(self.build.heads),
            head: (track % u64::from(self.build.heads)) as u32,
            sector: (sector - zone.first_sector) % zone.sectors_per_track,
            sectors_per_track: zone.sectors_per_track,
        }
    }

    /// The angle where a sector of a track begins, as time since the index; `sector` may be past the last.
    ///
    /// Tracks are shifted by the time of the switch between them, so that reading on costs no revolution.
    fn angle_ns(&self, place: Place, sector: u64) -> u64 {
        let switches = u128::from(place.cylinder) * u128::from(self.build.heads - 1) + u128::from(place.head);
        let skew = switches * u128::from(self.build.head_switch_ns)
            + u128::from(place.cylinder) * u128::from(self.build.seek_next_ns);
        let within = u128::from(sector) * u128::from(self.turn_ns) / u128::from(place.sectors_per_track);
        ((skew + within) % u128::from(self.turn_ns)) as u64
    }

    /// The time from `now_ns` until an angle passes under the heads.
    const fn wait_ns(&self, now_ns: u64, angle_ns: u64) -> u64 {
        (angle_ns + self.turn_ns - now_ns % self.turn_ns) % self.turn_ns
    }

    /// Time over `count` sectors of one track.
    fn over_ns(&self, place: Place, count: u64) -> u64 {
        let (turn, sectors) = (u128::from(self.turn_ns), u128::from(place.sectors_per_track));
        let at = |sector: u64| (u128::from(sector) * turn / sectors) as u64;
        at(place.sector + count) - at(place.sector)
    }

    /// The time before the first sector of an access: arm and heads, then rotation.
    pub fn position(&self, from: (u64, u32), sector: u64, now_ns: u64) -> (u64, u64) {
        let place = self.place(sector);
        let seek_ns = if from.0 != place.cylinder {
            self.seek_ns(from.0.abs_diff(place.cylinder))
        } else if from.1 != place.head {
            self.build.head_switch_ns
        } else {
            0
        };
        (seek_ns, self.wait_ns(now_ns + seek_ns, self.angle_ns(place, place.sector)))
    }

    /// When `count` sectors have passed that begin under the head at `now_ns`, and the last track of them.
    pub fn stream(&self, sector: u64, count: u64, now_ns: u64) -> (u64, Place) {
        let (mut at, mut left, mut now_ns) = (sector, count, now_ns);
        loop {
            let place = self.place(at);
            let here = left.min(place.sectors_per_track - place.sector);
            now_ns += self.over_ns(place, here);
            (at, left) = (at + here, left - here);
            if left == 0 {
                return (now_ns, place);
            }
            let next = (place.cylinder, place.head);
            let (switch_ns, wait_ns) = self.position(next, at, now_ns);
            now_ns += switch_ns + wait_ns;
        }
    }

    /// How many of `count` sectors have passed by `until_ns`, of those that begin under the head at `now_ns`.
    pub fn passed(&self, sector: u64, count: u64, now_ns: u64, until_ns: u64) -> u64 {
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = (low + high).div_ceil(2);
            if self.stream(sector, middle, now_ns).0 <= until_ns {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        low
    }
}
