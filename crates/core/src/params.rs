//! Keys with the type of their value, and checked sets of values that they are asked for.
//!
//! [`keys!`](crate::keys) declares the keys of a table. Each is a constant, and the only way to a value in
//! [`Params`], where values are kept parsed.

use crate::registry::{Info, Param, ParamError, ParamKind};
use crate::units;
use std::collections::BTreeMap;
use std::marker::PhantomData;

/// A parameter and the type of its value: `Key<u32>` where it has a default, `Key<Option<u32>>` where it may be
/// absent. Text is lent: a `Key<String>` gives `&str`.
#[derive(Debug)]
pub struct Key<T> {
    /// What registries say about it.
    pub param: Param,
    value: PhantomData<fn() -> T>,
}

impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Key<T> {}

impl<T> From<Key<T>> for Param {
    fn from(key: Key<T>) -> Self {
        key.param
    }
}

/// A value that was checked, and its text.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    text: String,
    value: Value,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    /// A whole number, a size, a count or a time.
    Whole(u64),
    Real(f64),
    Bool(bool),
    /// One of the words of a choice.
    Word(&'static str),
    /// Nothing but its text.
    Text,
}

/// A type of values that are there.
pub trait Scalar: 'static {
    /// What is parsed of them, which decides how their keys can be made.
    type Parsed;
    /// What is given of them.
    type Out<'a>;
    /// Largest whole number.
    const MAX: u64 = u64::MAX;

    /// The value.
    fn read(given: &Given) -> Self::Out<'_>;
}

/// An enum whose variants are typed as words; [`words!`](crate::words) implements it.
pub trait Word: Copy + 'static {
    /// Every variant and its word.
    const WORDS: &'static [(&'static str, Self)];
    /// The words.
    const NAMES: &'static [&'static str];
}

macro_rules! whole {
    ($($number:ty),*) => {$(
        impl Scalar for $number {
            type Parsed = u64;
            type Out<'a> = Self;
            const MAX: u64 = <$number>::MAX as u64;

            fn read(given: &Given) -> Self {
                let Value::Whole(number) = given.value else { unreachable!("the key is of a whole number") };
                Self::try_from(number).expect("the range of the key fits its type")
            }
        }
    )*};
}

whole!(u8, u16, u32, u64);

impl Scalar for f64 {
    type Parsed = Self;
    type Out<'a> = Self;

    fn read(given: &Given) -> Self {
        let Value::Real(number) = given.value else { unreachable!("the key is of a number") };
        number
    }
}

impl Scalar for bool {
    type Parsed = Self;
    type Out<'a> = Self;

    fn read(given: &Given) -> Self {
        given.value == Value::Bool(true)
    }
}

impl Scalar for &'static str {
    type Parsed = Self;
    type Out<'a> = Self;

    fn read(given: &Given) -> Self {
        let Value::Word(word) = given.value else { unreachable!("the key is of a choice") };
        word
    }
}

impl<W: Word> Scalar for W {
    type Parsed = Self;
    type Out<'a> = Self;

    fn read(given: &Given) -> Self {
        let word = W::WORDS.iter().find(|(word, _)| *word == given.text);
        word.expect("the key is of these words").1
    }
}

impl Scalar for String {
    type Parsed = Self;
    type Out<'a> = &'a str;

    fn read(given: &Given) -> &str {
        &given.text
    }
}

/// A type of values, or of values that may be absent.
pub trait Typed {
    /// The type of those that are there.
    type Scalar: Scalar;
    /// What is given of them.
    type Out<'a>;
    /// Whether they may be absent.
    const MAY_BE_ABSENT: bool;

    /// The value, if it has to be there or is.
    fn read(given: Option<&Given>) -> Option<Self::Out<'_>>;
}

impl<S: Scalar> Typed for S {
    type Scalar = S;
    type Out<'a> = S::Out<'a>;
    const MAY_BE_ABSENT: bool = false;

    fn read(given: Option<&Given>) -> Option<S::Out<'_>> {
        given.map(S::read)
    }
}

impl<S: Scalar> Typed for Option<S> {
    type Scalar = S;
    type Out<'a> = Option<S::Out<'a>>;
    const MAY_BE_ABSENT: bool = true;

    fn read(given: Option<&Given>) -> Option<Option<S::Out<'_>>> {
        Some(given.map(S::read))
    }
}

/// The number of a name and kind (FNV-1a).
const fn id_of(name: &str, kind: u8) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ kind as u64;
    let mut at = 0;
    while at < name.len() {
        hash = (hash ^ name.as_bytes()[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash
}

/// The bytes of a name in lower case.
#[doc(hidden)]
pub const fn lower<const LEN: usize>(name: &str) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    bytes.copy_from_slice(name.as_bytes());
    bytes.make_ascii_lowercase();
    bytes
}

/// The name that [`lower`] made.
#[doc(hidden)]
pub const fn name_of(bytes: &'static [u8]) -> &'static str {
    match str::from_utf8(bytes) {
        Ok(name) => name,
        Err(_) => panic!("an identifier is UTF-8"),
    }
}

/// Keys by the type of their values, without a default and a summary.
impl<T: Typed> Key<T> {
    const fn of(name: &'static str, kind: ParamKind) -> Self {
        let of_kind = match kind {
            ParamKind::Int { .. } => 0,
            ParamKind::Float { .. } => 1,
            ParamKind::Share => 2,
            ParamKind::Bool => 3,
            ParamKind::Size { .. } => 4,
            ParamKind::Count => 5,
            ParamKind::Time => 6,
            ParamKind::Choice { .. } => 7,
            ParamKind::Text => 8,
        };
        let param = Param { name, summary: "", kind, default: "", id: id_of(name, of_kind) };
        Self { param, value: PhantomData }
    }

    /// The same with a default, as it would be typed.
    #[must_use]
    pub const fn or(mut self, default: &'static str) -> Self {
        self.param.default = default;
        self
    }

    /// The same with its line, which has the unit.
    #[must_use]
    pub const fn means(mut self, summary: &'static str) -> Self {
        let is_absent = self.param.default.is_empty();
        assert!(is_absent == T::MAY_BE_ABSENT, "a key has a default, or its value is an Option");
        self.param.summary = summary;
        self
    }
}

impl<T: Typed<Scalar: Scalar<Parsed = u64>>> Key<T> {
    const fn whole(name: &'static str, kind: ParamKind, max: u64) -> Self {
        assert!(max <= T::Scalar::MAX, "the range of a key fits its type");
        Self::of(name, kind)
    }

    /// A whole number.
    pub const fn int(name: &'static str, min: u64, max: u64) -> Self {
        Self::whole(name, ParamKind::Int { min, max }, max)
    }

    /// A size from `min` to `max` bytes.
    pub const fn size(name: &'static str, min: u64, max: u64) -> Self {
        Self::whole(name, ParamKind::Size { min, max }, max)
    }

    /// A count.
    pub const fn count(name: &'static str) -> Self {
        Self::whole(name, ParamKind::Count, u64::MAX)
    }

    /// A time in nanoseconds.
    pub const fn time(name: &'static str) -> Self {
        Self::whole(name, ParamKind::Time, u64::MAX)
    }
}

impl<T: Typed<Scalar = f64>> Key<T> {
    /// A number.
    pub const fn float(name: &'static str, min: f64, max: f64) -> Self {
        Self::of(name, ParamKind::Float { min, max })
    }

    /// A share from 0 to 1.
    pub const fn share(name: &'static str) -> Self {
        Self::of(name, ParamKind::Share)
    }
}

impl<T: Typed<Scalar = bool>> Key<T> {
    /// `true` or `false`.
    pub const fn flag(name: &'static str) -> Self {
        Self::of(name, ParamKind::Bool)
    }
}

impl<T: Typed<Scalar = &'static str>> Key<T> {
    /// One of these words.
    pub const fn choice(name: &'static str, of: &'static [&'static str]) -> Self {
        Self::of(name, ParamKind::Choice { of })
    }
}

impl<W: Word, T: Typed<Scalar = W>> Key<T> {
    /// One of the words of an enum.
    pub const fn word(name: &'static str) -> Self {
        Self::of(name, ParamKind::Choice { of: W::NAMES })
    }
}

impl<T: Typed<Scalar = String>> Key<T> {
    /// Text that its reader checks.
    pub const fn text(name: &'static str) -> Self {
        Self::of(name, ParamKind::Text)
    }
}

/// Declares the keys of a table, and the table under the name that stands first. An entry is a constant, whose
/// name in lower case is the key; the type of its value; which kind of [`Key`] it is, with its range; its
/// default, unless it may be absent; and its summary. A name alone is a key that is declared elsewhere. Without
/// the name that stands first there are keys and no table.
///
/// ```
/// use nandscape_core::{Info, Params, keys};
///
/// keys! { PARAMS:
///     WINDOW: u32 = int(1, 64) or "8", "blocks that are looked at";
///     LIMIT: Option<u64> = size(1, 1 << 40), "bytes at most; absent: no limit";
/// }
/// const INFO: Info = Info { name: "sample", summary: "", source: "", params: PARAMS };
///
/// let params = Params::defaults(&INFO);
/// assert_eq!(params.get(WINDOW), 8);
/// assert_eq!(params.get(LIMIT), None);
/// ```
#[macro_export]
macro_rules! keys {
    ($(#[$meta:meta])* $vis:vis $table:ident:
     $($key_vis:vis $key:ident
       $(: $type:ty = $kind:ident($($range:expr),*) $(or $default:literal)?, $summary:literal)?;)*) => {
        $crate::keys! {
            $($($key_vis $key: $type = $kind($($range),*) $(or $default)?, $summary;)?)*
        }

        $(#[$meta])*
        $vis const $table: &[$crate::Param] = &[$($key.param),*];
    };
    ($($key_vis:vis $key:ident: $type:ty = $kind:ident($($range:expr),*) $(or $default:literal)?,
       $summary:literal;)*) => {
        $(
            #[doc = $summary]
            $key_vis const $key: $crate::Key<$type> = {
                const NAME: &[u8] = &$crate::params::lower::<{ stringify!($key).len() }>(stringify!($key));
                $crate::Key::$kind($crate::params::name_of(NAME), $($range),*)$(.or($default))?.means($summary)
            };
        )*
    };
}

/// Words for the variants of an enum, so that it can be the type of a [`Key::word`].
#[macro_export]
macro_rules! words {
    ($name:ident: $($variant:ident = $word:literal),* $(,)?) => {
        impl $crate::Word for $name {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$variant)),*];
            const NAMES: &'static [&'static str] = &[$($word),*];
        }
    };
}

/// A checked set of parameters: every key is known, every value in range, defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    prefix: String,
    table: &'static [Param],
    /// In the order of the table; `None` where there is no value.
    values: Vec<Option<Given>>,
}

impl Params {
    /// Checks what was typed (`key -> text`) against the parameters of a variant. `prefix` is the table the
    /// keys stand in (`"ftl."`), for error messages.
    pub fn check(info: &Info, prefix: &str, typed: &BTreeMap<String, String>) -> Result<Self, ParamError> {
        if let Some(key) = typed.keys().find(|key| !info.has(key)) {
            return Err(ParamError::UnknownKey {
                key: format!("{prefix}{key}"),
                owner: info.name.to_owned(),
                known: info.known(),
            });
        }
        let value = |param: &Param| {
            let text = match typed.get(param.name) {
                None if param.default.is_empty() => return Ok(None),
                None => param.default,
                Some(text) => text,
            };
            let value = parse(param.kind, text).ok_or_else(|| ParamError::BadValue {
                key: format!("{prefix}{}", param.name),
                value: text.to_owned(),
                expected: param.kind.to_string(),
            })?;
            Ok(Some(Given { text: text.to_owned(), value }))
        };
        let values = info.params.iter().map(value).collect::<Result<_, _>>()?;
        Ok(Self { prefix: prefix.to_owned(), table: info.params, values })
    }

    /// The defaults of a variant.
    pub fn defaults(info: &Info) -> Self {
        Self::check(info, "", &BTreeMap::new()).expect("a registry's defaults are valid")
    }

    /// The value of a key of this table.
    ///
    /// # Panics
    ///
    /// The table has no such key.
    pub fn get<T: Typed>(&self, key: Key<T>) -> T::Out<'_> {
        self.find(key).unwrap_or_else(|| panic!("no key '{}' in this table", key.param.name))
    }

    /// The value of a key that only some tables have; `None` in the others.
    pub fn find<T: Typed>(&self, key: Key<T>) -> Option<T::Out<'_>> {
        T::read(self.values[self.place(&key.param)?].as_ref())
    }

    /// Whether everything is as by default.
    pub fn is_default(&self) -> bool {
        self.table.iter().all(|param| param.default == self.text(*param))
    }

    /// The text of a key's value, as it was typed; empty if there is none.
    pub fn text(&self, key: impl Into<Param>) -> &str {
        let given = self.place(&key.into()).and_then(|place| self.values[place].as_ref());
        given.map_or("", |given| &given.text)
    }

    fn place(&self, param: &Param) -> Option<usize> {
        self.table.iter().position(|own| own.id == param.id)
    }

    /// Every parameter that has a value, with its text, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Param, &str)> {
        let mut given: Vec<_> = self.in_order().collect();
        given.sort_unstable_by_key(|(param, _)| param.name);
        given.into_iter()
    }

    /// The same in the order of the table.
    pub fn in_order(&self) -> impl Iterator<Item = (&'static Param, &str)> {
        self.table.iter().zip(&self.values).filter_map(|(param, given)| Some((param, &*given.as_ref()?.text)))
    }

    /// An error about one of these parameters, for checks that need more than the range.
    pub fn error(&self, key: impl Into<Param>, expected: impl Into<String>) -> ParamError {
        let param = key.into();
        ParamError::BadValue {
            key: format!("{}{}", self.prefix, param.name),
            value: self.text(param).to_owned(),
            expected: expected.into(),
        }
    }
}

/// The value of a text that is one of this kind and in range.
fn parse(kind: ParamKind, text: &str) -> Option<Value> {
    match kind {
        ParamKind::Int { min, max } => whole(text.parse().ok(), min, max),
        ParamKind::Size { min, max } => whole(units::parse_size(text).ok(), min, max),
        ParamKind::Count => units::parse_count(text).ok().map(Value::Whole),
        ParamKind::Time => units::parse_time_ns(text).ok().map(Value::Whole),
        ParamKind::Float { min, max } => {
            text.parse().ok().filter(|number| (min..=max).contains(number)).map(Value::Real)
        }
        ParamKind::Share => units::parse_share(text).ok().map(Value::Real),
        ParamKind::Bool => text.parse().ok().map(Value::Bool),
        ParamKind::Choice { of } => of.iter().find(|word| **word == text).map(|word| Value::Word(word)),
        ParamKind::Text => Some(Value::Text),
    }
}

fn whole(number: Option<u64>, min: u64, max: u64) -> Option<Value> {
    number.filter(|number| (min..=max).contains(number)).map(Value::Whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Letter {
        A,
        B,
    }

    words!(Letter: A = "a", B = "b");

    keys! { PARAMS:
        OP: f64 = float(0.0, 10.0) or "0.28", "";
        KIND: Letter = word() or "a", "";
        LIMIT: Option<u64> = size(1, 1 << 40), "";
        FILE: Option<String> = text(), "";
    }
    keys! { OTHERS:
        OTHER: u32 = int(0, 1) or "1", "";
    }

    const INFO: Info = Info { name: "sample", summary: "", source: "", params: PARAMS };

    fn check(pairs: &[(&str, &str)]) -> Result<Params, ParamError> {
        let typed = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Params::check(&INFO, "ftl.", &typed)
    }

    #[test]
    fn defaults_fill_in_and_absent_stays_absent() {
        let params = Params::defaults(&INFO);
        assert!((params.get(OP) - 0.28).abs() < 1e-12);
        assert_eq!(params.get(KIND), Letter::A);
        assert_eq!((params.get(LIMIT), params.get(FILE)), (None, None));
        assert_eq!(params.iter().map(|(param, _)| param.name).collect::<Vec<_>>(), ["kind", "op"]);
    }

    #[test]
    fn values_are_parsed_and_keep_their_text() {
        let params = check(&[("limit", "1KiB"), ("kind", "b"), ("file", "")]).unwrap();
        assert_eq!((params.get(LIMIT), params.text(LIMIT)), (Some(1024), "1KiB"));
        assert_eq!((params.get(KIND), params.get(FILE)), (Letter::B, Some("")));
    }

    #[test]
    fn a_key_of_another_table_or_another_kind_is_not_found() {
        let params = check(&[("limit", "1KiB")]).unwrap();
        let other_kind: Key<Option<u32>> = Key::int("limit", 0, 1);
        assert_eq!((OTHERS.len(), params.find(OTHER), params.find(other_kind)), (1, None, None));
        assert!(std::panic::catch_unwind(|| params.get(OTHER)).is_err());
    }

    #[test]
    fn errors_name_key_value_and_expectation() {
        let error = |key, value| check(&[(key, value)]).unwrap_err().to_string();
        assert_eq!(error("op", "-1"), "ftl.op = '-1': expected a number from 0 to 10");
        let unknown = error("opp", "1");
        assert!(
            unknown.contains("unknown key 'ftl.opp' for sample; known keys: op, kind, limit"),
            "{unknown}"
        );
        assert!(unknown.ends_with("; did you mean 'op'?"), "{unknown}");
        assert!(check(&[("op", "nan")]).is_err());
        assert!(check(&[("kind", "c")]).is_err());
        assert_eq!(check(&[]).unwrap().error(OP, "more").to_string(), "ftl.op = '0.28': expected more");
    }
}
