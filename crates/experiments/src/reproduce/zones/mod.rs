//! Zoned drives: the raw measurements of a ZN540, and what the size of zones does.

mod atc21;
mod driver;
mod files;
mod zn540;
mod zone_size;

pub(super) use atc21::{OVERWRITE, READS, TARGETS};
pub(super) use files::{
    FILES, Point as FilesPoint, STREAMS as FILES_STREAMS, TABLES as FILES_TABLES, TAILS as FILES_TAILS,
    WAF as FILES_WAF,
};
pub(super) use zn540::ZN540;
pub(super) use zone_size::ZONE_SIZE;

/// Within a share of the published figure: a tenth, a seventh and so on.
fn band(published: f64, share: f64) -> std::ops::RangeInclusive<f64> {
    published * (1.0 - share)..=published * (1.0 + share)
}
