//! Zoned drives: the raw measurements of a ZN540.

mod driver;
mod zn540;

pub(super) use zn540::ZN540;
