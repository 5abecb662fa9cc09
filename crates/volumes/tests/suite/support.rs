//! What tests of this crate share.

use nandscape_cache::compose::{Design, Typed};

/// A design from keys and values; a key with an empty value is left out.
pub fn design(keys: &[(&str, &str)]) -> Design {
    let keys = keys.iter().filter(|(_, value)| !value.is_empty());
    let typed: Typed = keys.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Design::parse("cache.", &typed).unwrap()
}
