//! Options of `zonemode`, and those of the random numbers that only jobs with zones draw.

use super::{Given, Read, Set, read};
use crate::job::{MAX_OPEN_ZONES, RandomGenerator, ZoneMode};
use crate::values::{Expected, flag, integer, real};

/// No zone is larger.
const MAX_ZONE: u64 = 1 << 40;

/// In the order of fio's documentation.
pub(super) static OPTIONS: &[Read] = &[
    read("zonemode", |job, _, v| {
        job.zoning.mode =
            v.choose(&[("none", ZoneMode::None), ("strided", ZoneMode::Strided), ("zbd", ZoneMode::Zbd)])?;
        Ok(())
    }),
    read("zonesize", |job, _, v| {
        job.zoning.size = bytes(v)?;
        Ok(())
    }),
    read("zonecapacity", |job, _, v| {
        job.zoning.capacity = bytes(v)?;
        Ok(())
    }),
    read("zonerange", |job, _, v| {
        job.zoning.range = bytes(v)?;
        Ok(())
    }),
    read("zoneskip", |job, _, v| {
        job.zoning.skip = super::parts::amount(v.text()?, v.base)
            .ok()
            .filter(|skip| match skip {
                crate::Amount::Bytes(bytes) => *bytes <= MAX_ZONE,
                other => !matches!(other, crate::Amount::Percent(_)),
            })
            .ok_or_else(|| "a size such as 1m, or zones such as 4z".to_owned())?;
        Ok(())
    }),
    ("read_beyond_wp", Set::Flag(|job| &mut job.zoning.reads_beyond)),
    read("max_open_zones", |job, _, v| {
        job.zoning.max_open = v.count32(0..=MAX_OPEN_ZONES)?;
        Ok(())
    }),
    read("job_max_open_zones", |job, _, v| {
        job.zoning.job_max_open = v.count32(0..=MAX_OPEN_ZONES)?;
        Ok(())
    }),
    ("ignore_zone_limits", Set::Flag(|job| &mut job.zoning.ignores_limits)),
    read("zone_reset_threshold", |job, _, v| {
        job.zoning.reset_threshold = share(v)?;
        Ok(())
    }),
    read("zone_reset_frequency", |job, _, v| {
        job.zoning.reset_frequency = share(v)?;
        Ok(())
    }),
    read("random_generator", |job, _, v| {
        job.random.generator = v.choose(&[
            ("tausworthe", RandomGenerator::Tausworthe),
            ("lfsr", RandomGenerator::Lfsr),
            ("tausworthe64", RandomGenerator::Tausworthe64),
        ])?;
        Ok(())
    }),
    read("randrepeat", |job, _, v| {
        job.random.is_unrepeatable = !flag(v.text)?;
        Ok(())
    }),
    ("allrandrepeat", Set::Flag(|job| &mut job.random.repeats_all)),
];

/// Whether an option changes nothing in a job that sees no zones.
pub(crate) fn matters_only_with_zones(key: &str) -> Option<&'static str> {
    OPTIONS.iter().map(|(name, _)| *name).find(|name| *name == key && *name != "zonemode")
}

fn bytes(v: Given<'_>) -> Result<u64, Expected> {
    integer(v.text()?, v.base)
        .ok()
        .filter(|bytes| *bytes <= MAX_ZONE)
        .ok_or_else(|| "a size up to 1t such as 128m".to_owned())
}

fn share(v: Given<'_>) -> Result<f64, Expected> {
    real(v.text()?)
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "a number from 0 to 1 such as 0.5".to_owned())
}
