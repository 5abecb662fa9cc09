//! Parts of a cache.

use super::Design;
use nandscape_core::{ParamError, units};

impl Design {
    /// Slots of a share such as `64MiB`, `10000b` or `25%`, of a cache with so many slots; `None`: as many as
    /// there are. The key is named in the error, behind `cache.`.
    pub fn slots(&self, key: &str, text: &str, all: u32) -> Result<Option<u32>, ParamError> {
        let text = text.trim();
        let expected = "a size such as 64MiB, blocks such as 10000b, a share such as 25%, or none";
        let wrong = || ParamError::bad(format!("cache.{key}"), text, expected);
        if text == "none" {
            return Ok(None);
        }
        let blocks = if let Some(share) = units::share_for_size(text) {
            (f64::from(all) * share.map_err(|_| wrong())?) as u64
        } else if let Some(count) = text.strip_suffix('b').and_then(|count| count.trim().parse().ok()) {
            count
        } else {
            units::parse_size(text).map_err(|_| wrong())? / u64::from(self.block_bytes)
        };
        Ok(Some(u32::try_from(blocks).unwrap_or(u32::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_bytes_blocks_and_parts_of_the_cache() {
        let design = Design::parse("", &crate::compose::Typed::new()).unwrap();
        for (text, expected) in [
            ("1MiB", Some(256)),
            ("70b", Some(70)),
            ("25%", Some(250)),
            ("0.25", Some(250)),
            ("0b", Some(0)),
            ("none", None),
            ("1000TiB", Some(u32::MAX)),
        ] {
            assert_eq!(design.slots("limit", text, 1000).unwrap(), expected, "{text}");
        }
        for text in ["", "x", "101%", "1.5", "-1b", "25 %%"] {
            let error = design.slots("limit", text, 1000).unwrap_err().to_string();
            assert!(error.contains("cache.limit") && error.contains("25%, or none"), "{text}: {error}");
        }
    }
}
