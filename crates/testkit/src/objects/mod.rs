//! Stores of objects: random commands against plain objects in memory, and losses of power.

pub mod crash;
pub mod load;
pub mod random;
