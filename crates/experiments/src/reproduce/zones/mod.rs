//! Zoned drives: the raw measurements of a ZN540, and what the size of zones does.

mod driver;
mod zn540;
mod zone_size;

pub(super) use zn540::ZN540;
pub(super) use zone_size::ZONE_SIZE;
