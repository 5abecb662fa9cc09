//! Rules that are broken on purpose, to see whether tests notice.

/// What the file system does wrong.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sabotage {
    /// Nothing.
    #[default]
    None,
    /// All blocks go to one log.
    OneLog,
    /// Cleaning takes any section, whatever is valid in it.
    AnyVictim,
}
