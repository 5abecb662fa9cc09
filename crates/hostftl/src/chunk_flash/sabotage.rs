//! Promises to break, for tests of the tests.

/// What is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// Nothing.
    None,
    /// A start writes nothing behind what cannot be read yet.
    LeaveTailsHidden,
    /// A chunk that closed early counts as programmed up to its write pointer alone.
    ForgetEarlyClose,
}

impl Sabotage {
    /// All but [`Sabotage::None`].
    pub const ALL: [Self; 2] = [Self::LeaveTailsHidden, Self::ForgetEarlyClose];
}
