//! Virtual time as whoever waits for a device sees it.

use crate::time::SimTime;

/// Stands for the completion of an operation, or of several (see [`crate::FlashState::join`]).
///
/// Opaque to FTLs. [`Token::NONE`], the default, is complete from the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Token(pub u64);

impl Token {
    /// Complete from the beginning; the neutral element of [`crate::FlashState::join`].
    pub const NONE: Self = Self(0);
}

/// A finished [`Clocked::watch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The tag given to `watch`.
    pub tag: u64,
    /// When it completed.
    pub at: SimTime,
}

/// Work that takes virtual time: tokens stand for what was submitted, and complete.
#[auto_impl::auto_impl(Box)]
pub trait Clocked {
    /// When the token completes, where that is known at submission; `None` where only
    /// [`Clocked::advance`] finds out. A time before the submission means at once.
    fn completion(&self, token: Token) -> Option<SimTime>;

    /// Asks for a [`Completion`] with `tag` from [`Clocked::advance`] once `token` completes. One watcher a
    /// token, and only of tokens of which [`Clocked::completion`] gives `None`.
    fn watch(&mut self, token: Token, tag: u64);

    /// Runs events up to and including `until`, and appends what completed of what is watched, in the order
    /// of time.
    fn advance(&mut self, until: SimTime, out: &mut Vec<Completion>);

    /// The time of the next event that `advance` would run; `None` where nothing is outstanding, or where
    /// every completion is known at submission.
    fn next_event(&self) -> Option<SimTime>;

    /// Runs events, one moment after the other, up to and including `until`, and no further than the first at
    /// which anything that is watched completes; appends that. The last moment that was run. The same as
    /// [`Clocked::advance`] to each [`Clocked::next_event`], with the way through the layers taken once.
    fn advance_to_completion(&mut self, until: SimTime, out: &mut Vec<Completion>) -> Option<SimTime> {
        step_to_completion(self, until, out)
    }

    /// From when on nothing that was submitted is still running, as far as it is known now.
    fn idle_from(&self) -> SimTime;
}

/// [`Clocked::advance_to_completion`], moment by moment.
pub fn step_to_completion(
    clock: &mut (impl Clocked + ?Sized),
    until: SimTime,
    out: &mut Vec<Completion>,
) -> Option<SimTime> {
    let (before, mut last) = (out.len(), None);
    while out.len() == before
        && let Some(event) = clock.next_event().filter(|event| *event <= until)
    {
        clock.advance(event, out);
        last = Some(event);
    }
    last
}

/// The body of an `impl Clocked` that leaves everything to another one: `delegate_clock!(self, self.inner)`;
/// or only what is listed: `delegate_clock!(self, self.inner; completion, watch)`.
#[macro_export]
macro_rules! delegate_clock {
    ($this:ident, $inner:expr) => {
        $crate::delegate_clock!(
            $this, $inner; completion, watch, advance, next_event, advance_to_completion, idle_from
        );
    };
    ($this:ident, $inner:expr; $($method:ident),+) => {
        $($crate::delegate_clock!(@$method $this, $inner);)+
    };
    (@completion $this:ident, $inner:expr) => {
        #[inline]
        fn completion(&$this, token: $crate::Token) -> Option<$crate::SimTime> {
            $inner.completion(token)
        }
    };
    (@watch $this:ident, $inner:expr) => {
        fn watch(&mut $this, token: $crate::Token, tag: u64) {
            $inner.watch(token, tag);
        }
    };
    (@advance $this:ident, $inner:expr) => {
        fn advance(&mut $this, until: $crate::SimTime, out: &mut Vec<$crate::Completion>) {
            $inner.advance(until, out);
        }
    };
    (@next_event $this:ident, $inner:expr) => {
        fn next_event(&$this) -> Option<$crate::SimTime> {
            $inner.next_event()
        }
    };
    (@advance_to_completion $this:ident, $inner:expr) => {
        fn advance_to_completion(
            &mut $this,
            until: $crate::SimTime,
            out: &mut Vec<$crate::Completion>,
        ) -> Option<$crate::SimTime> {
            $inner.advance_to_completion(until, out)
        }
    };
    (@idle_from $this:ident, $inner:expr) => {
        fn idle_from(&$this) -> $crate::SimTime {
            $inner.idle_from()
        }
    };
}

/// All but `idle_from` of an `impl Clocked` whose tokens are the times of completion in nanoseconds.
#[macro_export]
macro_rules! tokens_are_times {
    () => {
        #[inline]
        fn completion(&self, token: $crate::Token) -> Option<$crate::SimTime> {
            Some($crate::SimTime(token.0))
        }
        fn watch(&mut self, _: $crate::Token, _: u64) {}
        fn advance(&mut self, _: $crate::SimTime, _: &mut Vec<$crate::Completion>) {}
        fn next_event(&self) -> Option<$crate::SimTime> {
            None
        }
    };
}
