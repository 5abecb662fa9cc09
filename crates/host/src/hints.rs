//! Lifetimes of data as programs give them, and the streams that Linux makes of them.

/// Lifetime of written data as Linux has it [streams-article 2.2].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum WriteHint {
    /// Nothing was said.
    #[default]
    NotSet = 0,
    /// Said: nothing is known.
    None = 1,
    /// Short-lived.
    Short = 2,
    /// Between short and long.
    Medium = 3,
    /// Long-lived.
    Long = 4,
    /// As good as never rewritten.
    Extreme = 5,
}

impl WriteHint {
    /// Every hint, in the order of the numbers.
    pub const ALL: [Self; 6] =
        [Self::NotSet, Self::None, Self::Short, Self::Medium, Self::Long, Self::Extreme];

    /// The hint of a number.
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// The stream that the Linux driver sends: the hint less one, if above `None` [streams-article 2.7].
    pub const fn stream(self) -> Option<u16> {
        match self {
            Self::NotSet | Self::None => None,
            set => Some(set as u16 - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_sends_the_hint_less_one() {
        assert_eq!(WriteHint::ALL.map(WriteHint::stream), [None, None, Some(1), Some(2), Some(3), Some(4)]);
        assert_eq!(WriteHint::from_number(6), None);
    }
}
