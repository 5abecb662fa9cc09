//! The state of a stack, saved and loaded by one function for each structure, so that what is written and
//! what is read cannot differ.
//!
//! A structure lists its fields with [`state!`](crate::state!), which takes the structure apart: a field that
//! is not listed does not compile. Loading works in place, on a stack that was built from the same
//! configuration: what the configuration fixes (sizes, rules) is neither written nor changed, and a table
//! whose length it fixes must have that length. Every structure begins with a mark made of its name and its
//! fields, so that the state of a program with other structures is refused and not misread.
//!
//! Numbers are little-endian. A `usize` is stored in 8 bytes, an enumeration in one.

use crate::addr::{BlockId, Lpn, Ppn};
use crate::clock::Token;
use crate::rng::Xoshiro256PlusPlus;
use crate::time::SimTime;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::{Arc, Mutex};

/// A state that cannot be saved, or not be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum StateError {
    #[error("{what} cannot be saved yet")]
    Unsupported { what: &'static str },
    #[error("{what}: a state is saved only while nothing is outstanding")]
    Busy { what: &'static str },
    #[error("byte {offset}: {found}: expected {expected}")]
    Wrong { offset: u64, found: String, expected: String },
    #[error("it was saved with {key} = {saved}: expected {key} = {present}, as in this run")]
    Configuration { key: String, saved: String, present: String },
    /// The file could not be read or written.
    #[error("{0}")]
    File(String),
}

/// Of a structure: saved, loaded, or why not.
pub type StateResult = Result<(), StateError>;

/// Takes the bytes of a state that is saved.
pub trait Sink {
    /// Appends bytes.
    fn put(&mut self, bytes: &[u8]) -> StateResult;
}

/// Gives the bytes of a state that is loaded. They are as they were saved: whoever implements this checks
/// that before it gives any.
pub trait Source {
    /// The next bytes, as many as there is room for.
    fn take(&mut self, bytes: &mut [u8]) -> StateResult;

    /// Place of the next byte, for messages.
    fn offset(&self) -> u64;

    /// An upper bound of the bytes that are left.
    fn left(&self) -> u64;
}

/// Where a state goes to or comes from.
pub enum Archive<'a> {
    /// It is saved there.
    Save(&'a mut dyn Sink),
    /// It is loaded from there.
    Load(&'a mut dyn Source),
}

/// Bytes that tables of numbers are written in at a time.
const BULK: usize = 16 << 10;
/// Elements that a list is stored in at a time: it grows by no more before they have been read.
const GROWTH: usize = 4096;

impl Archive<'_> {
    /// Saves bytes, or fills them.
    pub fn bytes(&mut self, bytes: &mut [u8]) -> StateResult {
        match self {
            Self::Save(sink) => sink.put(bytes),
            Self::Load(source) => source.take(bytes),
        }
    }

    /// A number.
    pub fn plain<T: Plain>(&mut self, value: &mut T) -> StateResult {
        let mut bytes = [0; 16];
        let bytes = &mut bytes[..T::BYTES];
        value.encode(bytes);
        self.bytes(bytes)?;
        *value = T::decode(bytes);
        Ok(())
    }

    /// Numbers, many at a time.
    pub fn plains<T: Plain>(&mut self, values: &mut [T]) -> StateResult {
        let mut buffer = [0; BULK];
        for part in values.chunks_mut(BULK / T::BYTES) {
            let bytes = &mut buffer[..part.len() * T::BYTES];
            match self {
                Self::Save(sink) => {
                    for (bytes, value) in bytes.chunks_exact_mut(T::BYTES).zip(part) {
                        value.encode(bytes);
                    }
                    sink.put(bytes)?;
                }
                Self::Load(source) => {
                    source.take(bytes)?;
                    for (bytes, value) in bytes.chunks_exact(T::BYTES).zip(part) {
                        *value = T::decode(bytes);
                    }
                }
            }
        }
        Ok(())
    }

    /// The length of a list; one that is loaded is not longer than what is left can hold.
    pub fn length(&mut self, length: usize) -> Result<usize, StateError> {
        let mut stored = length as u64;
        self.plain(&mut stored)?;
        if let Self::Load(source) = self
            && stored > source.left()
        {
            let expected = format!("at most {}, the bytes that are left", source.left());
            return Err(self.wrong(format!("a list of {stored}"), expected));
        }
        Ok(stored as usize)
    }

    /// A table whose length the configuration fixes.
    pub fn table<T: State>(&mut self, table: &mut [T]) -> StateResult {
        let stored = self.length(table.len())?;
        if stored != table.len() {
            let expected = format!("{}, as the configuration makes it", table.len());
            return Err(self.wrong(format!("a table of {stored}"), expected));
        }
        T::states(table, self)
    }

    /// A part that the configuration makes or leaves out.
    pub fn part<T: State>(&mut self, part: &mut Option<T>) -> StateResult {
        let mut is_there = part.is_some();
        is_there.state(self)?;
        match part {
            Some(part) if is_there => part.state(self),
            None if !is_there => Ok(()),
            part => {
                let words = |is_there| if is_there { "a part that is there" } else { "no such part" };
                let expected = format!("{}, as the configuration makes it", words(part.is_some()));
                Err(self.wrong(words(is_there).to_owned(), expected))
            }
        }
    }

    /// The mark of a structure.
    pub fn mark(&mut self, mark: u32, what: &'static str) -> StateResult {
        let mut stored = mark;
        self.plain(&mut stored)?;
        if stored == mark {
            return Ok(());
        }
        let expected = format!("{mark:08x}, where {what} begins");
        Err(self.wrong(format!("the mark {stored:08x}"), expected))
    }

    /// What is read makes no sense.
    pub fn wrong(&self, found: String, expected: String) -> StateError {
        let offset = if let Self::Load(source) = self { source.offset() } else { 0 };
        StateError::Wrong { offset, found, expected }
    }
}

/// Something that can be saved and loaded.
pub trait State {
    /// Saves this, or makes this what was saved. After an error it may be anything and is of no use.
    fn state(&mut self, archive: &mut Archive<'_>) -> StateResult;

    /// The same of several, one after the other.
    fn states(all: &mut [Self], archive: &mut Archive<'_>) -> StateResult
    where
        Self: Sized,
    {
        all.iter_mut().try_for_each(|one| one.state(archive))
    }
}

/// Implements [`State`](crate::state::State) for something that is no more than what it holds.
#[macro_export]
macro_rules! state_of_inner {
    (impl [$($generics:tt)*] $type:ty: |$this:ident| $inner:expr) => {
        impl<$($generics)*> $crate::state::State for $type {
            fn state(
                &mut self,
                archive: &mut $crate::state::Archive<'_>,
            ) -> $crate::state::StateResult {
                let $this = self;
                $inner.state(archive)
            }
        }
    };
}

/// A number of a fixed width.
pub trait Plain: Copy {
    /// Its bytes, at most 16.
    const BYTES: usize;

    /// Stores it.
    fn encode(self, bytes: &mut [u8]);

    /// The number that was stored.
    fn decode(bytes: &[u8]) -> Self;
}

macro_rules! plain {
    ($($number:ty),+) => { $(
        impl Plain for $number {
            const BYTES: usize = size_of::<$number>();

            #[inline]
            fn encode(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn decode(bytes: &[u8]) -> Self {
                let mut own = [0; size_of::<$number>()];
                own.copy_from_slice(bytes);
                Self::from_le_bytes(own)
            }
        }
    )+ };
    (new $($type:ident($number:ty)),+) => { $(
        impl Plain for $type {
            const BYTES: usize = size_of::<$number>();

            #[inline]
            fn encode(self, bytes: &mut [u8]) {
                self.0.encode(bytes);
            }

            #[inline]
            fn decode(bytes: &[u8]) -> Self {
                Self(<$number>::decode(bytes))
            }
        }
    )+ };
}

macro_rules! numbers {
    ($($number:ty),+) => { $(
        impl State for $number {
            fn state(&mut self, archive: &mut Archive<'_>) -> StateResult {
                archive.plain(self)
            }

            fn states(all: &mut [Self], archive: &mut Archive<'_>) -> StateResult {
                archive.plains(all)
            }
        }
    )+ };
}

plain!(u8, u16, u32, u64, u128, i64, f64);
plain!(new Lpn(u32), Ppn(u32), BlockId(u32), Token(u64), SimTime(u64));
numbers!(u8, u16, u32, u64, u128, i64, f64, Lpn, Ppn, BlockId, Token, SimTime);

impl State for usize {
    fn state(&mut self, archive: &mut Archive<'_>) -> StateResult {
        let mut stored = *self as u64;
        archive.plain(&mut stored)?;
        *self = stored as Self;
        Ok(())
    }
}

impl State for bool {
    fn state(&mut self, archive: &mut Archive<'_>) -> StateResult {
        let mut stored = u8::from(*self);
        archive.plain(&mut stored)?;
        match stored {
            0 | 1 => *self = stored == 1,
            other => return Err(archive.wrong(other.to_string(), "0 or 1".to_owned())),
        }
        Ok(())
    }
}

impl State for () {
    fn state(&mut self, _: &mut Archive<'_>) -> StateResult {
        Ok(())
    }
}

impl<A: State, B: State> State for (A, B) {
    fn state(&mut self, archive: &mut Archive<'_>) -> StateResult {
        self.0.state(archive)?;
        self.1.state(archive)
    }
}

impl<T: State, const N: usize> State for [T; N] {
    fn state(&mut self, archive: &mut Archive<'_>) -> StateResult {
        T::states(self, archive)
    }
}

state_of_inner!(impl [T: State + ?Sized] Box<T>: |this| **this);

/// By its owner alone: what else shares it leaves it out.
impl<T: State + ?Sized> State for Arc<Mutex<T>> {
    fn state(&mut self, archive: &mut Archive<'_>) -> StateResult {
        self.lock().expect("nobody panicked while holding it").state(archive)
    }
}

state_of_inner!(impl [T: State] Reverse<T>: |this| this.0);

impl<T: State + Default> State for Option<T> {
    fn state(&mut self, archive: &mut Archive<'_>) -> StateResult {
        let mut is_some = self.is_some();
        is_some.state(archive)?;
        if is_some {
            self.get_or_insert_default().state(archive)?;
        } else {
            *self = None;
        }
        Ok(())
    }
}

/// Why a device takes no writes any more. One that has come to that is of no use for what is saved.
impl State for Option<&'static str> {
    fn state(&mut self, _: &mut Archive<'_>) -> StateResult {
        match self {
            None => Ok(()),
            Some(_) => Err(StateError::Unsupported { what: "a device that has become read-only" }),
        }
    }
}

impl<T: State + Default> State for Vec<T> {
    fn state(&mut self, archive: &mut Archive<'_>) -> StateResult {
        let length = archive.length(self.len())?;
        if matches!(archive, Archive::Save(_)) {
            return self.chunks_mut(GROWTH).try_for_each(|part| T::states(part, archive));
        }
        self.clear();
        // What is not there is not allocated either, whatever the length says.
        while self.len() < length {
            let read = self.len();
            self.resize_with(length.min(read + GROWTH), T::default);
            T::states(&mut self[read..], archive)?;
        }
        Ok(())
    }
}

impl<T: State + Default> State for VecDeque<T> {
    fn state(&mut self, archive: &mut Archive<'_>) -> StateResult {
        let mut list: Vec<T> = self.drain(..).collect();
        let stored = list.state(archive);
        self.extend(list);
        stored
    }
}

/// As it lies in memory: a heap that is built from the list of another one keeps its order.
impl<T: State + Default + Ord> State for BinaryHeap<T> {
    fn state(&mut self, archive: &mut Archive<'_>) -> StateResult {
        let mut list = std::mem::take(self).into_vec();
        let stored = list.state(archive);
        *self = list.into();
        stored
    }
}

impl<K: State + Default + Ord, V: State + Default> State for BTreeMap<K, V> {
    fn state(&mut self, archive: &mut Archive<'_>) -> StateResult {
        let mut list: Vec<(K, V)> = std::mem::take(self).into_iter().collect();
        let stored = list.state(archive);
        self.extend(list);
        stored
    }
}

state_of_inner!(impl [] Xoshiro256PlusPlus: |this| this.words_mut());

/// The mark of a structure, from its name and its fields.
pub const fn mark_of(text: &str) -> u32 {
    let bytes = text.as_bytes();
    let (mut hash, mut at) = (0x811c_9dc5_u32, 0);
    while at < bytes.len() {
        // Without spaces, which a compiler may put elsewhere.
        if bytes[at] != b' ' {
            hash = (hash ^ bytes[at] as u32).wrapping_mul(0x0100_0193);
        }
        at += 1;
    }
    hash
}

/// Implements [`State`](crate::state::State) for a structure by the list of its fields, each under what is
/// done with it:
///
/// * `saved`: whatever it holds;
/// * `tables`: elements, as many as the configuration makes;
/// * `parts`: an `Option` that is there, or is not, by configuration;
/// * `fixed`: nothing, since the configuration gives it, or nothing is kept in it between two requests.
///
/// ```ignore
/// state!(impl [] Greedy { saved: buckets, lowest; fixed: pages_per_block; });
/// ```
#[macro_export]
macro_rules! state {
    (impl [] $type:ty {}) => {
        impl $crate::state::State for $type {
            fn state(
                &mut self,
                archive: &mut $crate::state::Archive<'_>,
            ) -> $crate::state::StateResult {
                let Self {} = self;
                archive.mark(const { $crate::state::mark_of(stringify!($type)) }, stringify!($type))
            }
        }
    };
    (impl [$($generics:tt)*] $type:ty { $($how:ident: $($field:ident),+;)+ }) => {
        impl<$($generics)*> $crate::state::State for $type {
            fn state(
                &mut self,
                archive: &mut $crate::state::Archive<'_>,
            ) -> $crate::state::StateResult {
                Self::states(std::slice::from_mut(self), archive)
            }

            fn states(
                all: &mut [Self],
                archive: &mut $crate::state::Archive<'_>,
            ) -> $crate::state::StateResult {
                const NAMES: &str = concat!(stringify!($type), $($(" ", stringify!($field)),+),+);
                archive.mark(const { $crate::state::mark_of(NAMES) }, stringify!($type))?;
                for one in all {
                    let Self { $($($field),+),+ } = one;
                    $($($crate::state!(@$how archive, $field);)+)+
                }
                Ok(())
            }
        }
    };
    (@saved $archive:ident, $field:ident) => { $crate::state::State::state($field, $archive)? };
    (@tables $archive:ident, $field:ident) => { $archive.table(&mut $field[..])? };
    (@parts $archive:ident, $field:ident) => { $archive.part($field)? };
    (@fixed $archive:ident, $field:ident) => {{ let _ = $field; }};
}

/// Implements [`State`](crate::state::State) for an enumeration without values.
#[macro_export]
macro_rules! state_of_enum {
    ($type:ty: $($variant:ident),+) => {
        impl $crate::state::State for $type {
            fn state(
                &mut self,
                archive: &mut $crate::state::Archive<'_>,
            ) -> $crate::state::StateResult {
                const ALL: &[$type] = &[$(<$type>::$variant),+];
                match self { $(Self::$variant)|+ => {} }
                let mut index = ALL.iter().position(|one| one == self).map_or(u8::MAX, |at| at as u8);
                archive.plain(&mut index)?;
                let Some(loaded) = ALL.get(usize::from(index)) else {
                    return Err(archive.wrong(index.to_string(), format!("less than {}", ALL.len())));
                };
                *self = *loaded;
                Ok(())
            }
        }
    };
}

/// Implements [`State`](crate::state::State) for something that cannot be saved yet, with what messages call
/// it.
#[macro_export]
macro_rules! no_state {
    (impl [$($generics:tt)*] $type:ty: $what:literal) => {
        impl<$($generics)*> $crate::state::State for $type {
            fn state(&mut self, _: &mut $crate::state::Archive<'_>) -> $crate::state::StateResult {
                Err($crate::state::StateError::Unsupported { what: $what })
            }
        }
    };
}

#[cfg(test)]
mod tests;
