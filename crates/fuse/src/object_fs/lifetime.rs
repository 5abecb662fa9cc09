//! Which files live alike: those whose names do.

use nandscape_core::Hint;

/// The first class of ours; Linux's own are below.
const FIRST: u16 = Hint::EXTREME.0 + 1;
/// Classes that the store tells apart, with Linux's.
const CLASSES: u16 = 63;

/// The lifetime class of a file: that of its extension, or of the letters that its name begins with where
/// the extension is a number or there is none. A store that learns lifetimes learns one for each.
pub fn class_of(name: &[u8]) -> Hint {
    let extension = name.iter().rposition(|byte| *byte == b'.').map(|dot| &name[dot + 1..]);
    let is_word = |word: &&[u8]| (1..=8).contains(&word.len()) && word.iter().all(u8::is_ascii_alphabetic);
    let key = extension.filter(is_word).unwrap_or_else(|| {
        let letters = name.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        &name[..letters]
    });
    // FNV-1a.
    let hash = key.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Hint(FIRST + (hash % u64::from(CLASSES - FIRST)) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_numbers_have_one_class() {
        let class = |name: &str| class_of(name.as_bytes());
        assert_eq!(class("000012.sst"), class("734421.sst"));
        assert_eq!(class("MANIFEST-000005"), class("MANIFEST-000017"));
        assert_eq!(class("LOG"), class("LOG.old.1732545942"));
        let kinds = ["000012.sst", "000013.log", "MANIFEST-000005", "LOG"].map(class);
        let all: std::collections::BTreeSet<u16> = kinds.iter().map(|hint| hint.0).collect();
        assert_eq!(all.len(), kinds.len(), "{kinds:?}");
        assert!(all.iter().all(|class| (FIRST..CLASSES).contains(class)));
        assert_eq!(class(""), class("17"));
    }
}
