//! Typed keys, and checked parameter sets.
//!
//! [`keys!`](crate::keys) declares the keys of a table as constants. [`Params`] parses every value once, and
//! returns it for its key.

use crate::registry::{Info, Param, ParamError, ParamKind};
use crate::units;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::marker::PhantomData;

/// A parameter with the Rust type of its value: a `Key<u32>` has a default, a `Key<Option<u32>>` may be
/// absent. The value of a `Key<String>` (text, or a choice) is borrowed as `&str`.
#[derive(Debug)]
pub struct Key<T> {
    /// Name, summary, kind and default.
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

/// A checked value.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    text: String,
    number: Number,
}

/// The parsed form of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    /// Not a number.
    None,
    /// A whole number, a size in bytes, a count or a time in nanoseconds.
    Whole(u64),
    /// A number or a share.
    Real(f64),
}

/// The kinds of parameters ([`ParamKind`]) that a type can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// `Int`, `Size`, `Count` and `Time`.
    Whole,
    /// `Float` and `Share`.
    Real,
    /// `Bool`.
    Bool,
    /// `Choice` and `Text`.
    Text,
}

/// The type of a value that is present.
pub trait Scalar: 'static {
    /// What [`Params::get`] returns.
    type Out<'a>;
    /// Kinds of parameters that it can hold.
    const CLASS: Class;
    /// Largest whole number that it can hold.
    const MAX: u64 = u64::MAX;
    /// Accepted words, if it is an enum.
    const NAMES: &'static [&'static str] = &[];

    /// Reads a value of a key of this type.
    fn read(given: &Given) -> Self::Out<'_>;
}

macro_rules! scalars {
    ($($type:ty: $class:ident, $max:expr, |$given:ident| $read:expr;)*) => {$(
        impl Scalar for $type {
            type Out<'a> = Self;
            const CLASS: Class = Class::$class;
            const MAX: u64 = $max;

            fn read($given: &Given) -> Self {
                $read
            }
        }
    )*};
}

scalars! {
    u8: Whole, u8::MAX as u64, |given| given.whole() as Self;
    u16: Whole, u16::MAX as u64, |given| given.whole() as Self;
    u32: Whole, u32::MAX as u64, |given| given.whole() as Self;
    u64: Whole, u64::MAX, |given| given.whole();
    f64: Real, 0, |given| given.real();
    bool: Bool, 0, |given| given.text == "true";
}

impl Scalar for String {
    type Out<'a> = &'a str;
    const CLASS: Class = Class::Text;

    fn read(given: &Given) -> &str {
        &given.text
    }
}

/// An enum whose variants are typed as words; [`words!`](crate::words) implements it.
pub trait Word: Copy + 'static {
    /// The words of all variants.
    const NAMES: &'static [&'static str];

    /// The variant of a word.
    fn of_word(word: &str) -> Option<Self>;
}

impl<W: Word> Scalar for W {
    type Out<'a> = Self;
    const CLASS: Class = Class::Text;
    const NAMES: &'static [&'static str] = W::NAMES;

    fn read(given: &Given) -> Self {
        Self::of_word(&given.text).expect("a key of these words was checked")
    }
}

impl Given {
    fn whole(&self) -> u64 {
        let Number::Whole(number) = self.number else { unreachable!("the key is of a whole number") };
        number
    }

    fn real(&self) -> f64 {
        let Number::Real(number) = self.number else { unreachable!("the key is of a number") };
        number
    }
}

/// The type of a key: a scalar, or an `Option` of one if the value may be absent.
pub trait Typed {
    /// The type of a present value.
    type Scalar: Scalar;
    /// What [`Params::get`] returns.
    type Out<'a>;
    /// Whether the value may be absent.
    const MAY_BE_ABSENT: bool;

    /// Reads the value; `None` if a required value is missing.
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

/// The bytes of a name in lower case.
#[doc(hidden)]
pub const fn lower<const LEN: usize>(name: &str) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    bytes.copy_from_slice(name.as_bytes());
    bytes.make_ascii_lowercase();
    bytes
}

impl<T: Typed> Key<T> {
    /// Accepted words, if the type is an enum.
    pub const NAMES: &'static [&'static str] = T::Scalar::NAMES;

    /// A key from its parts; [`keys!`](crate::keys) is easier to read. An empty default means none.
    ///
    /// # Panics
    ///
    /// If the type cannot hold the range, if an optional value has a default or a required one has none, or
    /// if the name is not UTF-8. A constant then does not compile.
    pub const fn new(
        name: &'static [u8],
        kind: ParamKind,
        default: &'static str,
        summary: &'static str,
    ) -> Self {
        let (class, max) = match kind {
            ParamKind::Int { max, .. } | ParamKind::Size { max, .. } => (Class::Whole, max),
            ParamKind::Count | ParamKind::Time => (Class::Whole, u64::MAX),
            ParamKind::Float { .. } | ParamKind::Share => (Class::Real, 0),
            ParamKind::Bool => (Class::Bool, 0),
            ParamKind::Choice { .. } | ParamKind::Text => (Class::Text, 0),
        };
        assert!(
            class as u8 == T::Scalar::CLASS as u8 && max <= T::Scalar::MAX,
            "the type cannot hold the value"
        );
        assert!(default.is_empty() == T::MAY_BE_ABSENT, "a key has a default, or its value is an Option");
        // FNV-1a.
        let mut id = 0xcbf2_9ce4_8422_2325 ^ class as u64 ^ T::Scalar::MAX;
        let mut at = 0;
        while at < name.len() {
            id = (id ^ name[at] as u64).wrapping_mul(0x0100_0000_01b3);
            at += 1;
        }
        let Ok(name) = str::from_utf8(name) else { panic!("a name is UTF-8") };
        Self { param: Param { name, summary, kind, default, id }, value: PhantomData }
    }
}

/// Declares keys as constants, and a table of them under the first name. The key is the name of the constant
/// in lower case. An entry states the type of the value, the kind of the parameter with its range
/// ([`ParamKind`](crate::ParamKind)), the default, which optional values do not have, and the summary. A bare
/// name adds a key that is declared elsewhere. Without the name of a table, only keys are declared.
///
/// ```rust,ignore
/// keys! { PARAMS:
///     WINDOW: u32 = int(1, 64) or "8", "blocks that are looked at";
///     LIMIT: Option<u64> = size(1, 1 << 40), "bytes at most; absent: no limit";
/// }
/// let window: u32 = params.get(WINDOW);
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
            $key_vis const $key: $crate::Key<$type> = $crate::Key::new(
                &$crate::params::lower::<{ stringify!($key).len() }>(stringify!($key)),
                $crate::keys!(@$kind $type, $($range),*),
                concat!("" $(, $default)?),
                $summary,
            );
        )*
    };
    (@int $type:ty, $min:expr, $max:expr) => { $crate::ParamKind::Int { min: $min, max: $max } };
    (@size $type:ty, $min:expr, $max:expr) => { $crate::ParamKind::Size { min: $min, max: $max } };
    (@float $type:ty, $min:expr, $max:expr) => { $crate::ParamKind::Float { min: $min, max: $max } };
    (@count $type:ty,) => { $crate::ParamKind::Count };
    (@time $type:ty,) => { $crate::ParamKind::Time };
    (@share $type:ty,) => { $crate::ParamKind::Share };
    (@flag $type:ty,) => { $crate::ParamKind::Bool };
    (@text $type:ty,) => { $crate::ParamKind::Text };
    (@choice $type:ty, $words:expr) => { $crate::ParamKind::Choice { of: $words } };
    // One of the words of an enum.
    (@word $type:ty,) => { $crate::ParamKind::Choice { of: $crate::Key::<$type>::NAMES } };
}

/// Assigns words to the variants of an enum, in the order of declaration, so that the enum can be the type of
/// a key. With `pub`, the enum also gets `ALL` and `name`.
#[macro_export]
macro_rules! words {
    (pub $name:ident: $($variant:ident = $word:literal),* $(,)?) => {
        $crate::words!($name: $($variant = $word),*);

        impl $name {
            /// Every variant, in the order of their numbers.
            pub const ALL: [Self; [$($word),*].len()] = [$(Self::$variant),*];

            /// The word for it, in configurations and results.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),*
                }
            }
        }
    };
    ($name:ident: $($variant:ident = $word:literal),* $(,)?) => {
        impl $crate::Word for $name {
            const NAMES: &'static [&'static str] = &[$($word),*];

            fn of_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }
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
            let wrong = || ParamError::bad(format!("{prefix}{}", param.name), text, param.kind.to_string());
            let text = as_listed(param.kind, text);
            let number = parse(param.kind, &text).ok_or_else(wrong)?;
            Ok(Some(Given { text: text.into_owned(), number }))
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
        ParamError::bad(format!("{}{}", self.prefix, param.name), self.text(param), expected)
    }
}

/// One spelling of a value, so that the same configuration has the same text: a word as in its list, whatever
/// its case; a percentage as a number.
fn as_listed(kind: ParamKind, text: &str) -> Cow<'_, str> {
    let listed = match kind {
        ParamKind::Choice { of } => {
            of.iter().find(|word| word.eq_ignore_ascii_case(text)).map(|word| (*word).into())
        }
        ParamKind::Float { .. } => {
            let percent = text.strip_suffix('%').and_then(|percent| percent.trim().parse::<f64>().ok());
            percent.map(|percent| (percent / 100.0).to_string().into())
        }
        _ => None,
    };
    listed.unwrap_or(text.into())
}

fn parse(kind: ParamKind, text: &str) -> Option<Number> {
    let is_text = match kind {
        ParamKind::Int { min, max } => return whole(text.parse().ok(), min, max),
        ParamKind::Size { min, max } => return whole(units::parse_size(text).ok(), min, max),
        ParamKind::Count => return units::parse_count(text).ok().map(Number::Whole),
        ParamKind::Time => return units::parse_time_ns(text).ok().map(Number::Whole),
        ParamKind::Float { min, max } => {
            let number = text.parse().ok().filter(|number| (min..=max).contains(number));
            return number.map(Number::Real);
        }
        ParamKind::Share => return units::parse_share(text).ok().map(Number::Real),
        ParamKind::Bool => matches!(text, "true" | "false"),
        ParamKind::Choice { of } => of.contains(&text),
        ParamKind::Text => true,
    };
    is_text.then_some(Number::None)
}

fn whole(number: Option<u64>, min: u64, max: u64) -> Option<Number> {
    number.filter(|number| (min..=max).contains(number)).map(Number::Whole)
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
        OP: f64 = float(0.0, 10.0) or "0.28", "share";
        KIND: Letter = word() or "a", "letter";
        LIMIT: Option<u64> = size(1, 1 << 40), "bytes";
        FILE: Option<String> = text(), "path";
    }
    keys! { OTHERS:
        OTHER: u32 = int(0, 1) or "1", "number";
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
    fn words_in_any_case_and_percentages_have_one_text() {
        let params = check(&[("kind", "B"), ("op", "7%")]).unwrap();
        assert_eq!((params.get(KIND), params.text(KIND), params.text(OP)), (Letter::B, "b", "0.07"));
        assert!((params.get(OP) - 0.07).abs() < 1e-12);
        assert_eq!(
            check(&[("op", "x%")]).unwrap_err().to_string(),
            "ftl.op = 'x%': expected a number from 0 to 10"
        );
    }

    #[test]
    fn a_key_of_another_table_or_another_kind_is_not_found() {
        let params = check(&[("limit", "1KiB")]).unwrap();
        let other_kind: Key<Option<f64>> = Key::new(b"limit", ParamKind::Share, "", "");
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
