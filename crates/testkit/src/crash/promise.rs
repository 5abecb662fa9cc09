//! What a host may find after a loss of power: of every page one of its versions, from the last durable one
//! on.

use super::subject::Promises;
use crate::shrink::Outcome;
use std::sync::Arc;

/// Never, as the number of an operation.
const NEVER: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Version {
    bytes: Arc<[u8]>,
    /// Operations that were submitted before the request that makes it.
    from: u32,
    /// Operations that were submitted before the host knew that it is durable.
    durable: u32,
}

/// A version of a page that a request made.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    pub page: usize,
    version: usize,
    /// The page was dropped and not written: durable with a flush, not with the answer.
    pub is_drop: bool,
}

impl Made {
    /// The same, of a page that the layer may have dropped instead of writing it.
    pub const fn as_drop(self, is_drop: bool) -> Self {
        Self { is_drop: self.is_drop || is_drop, ..self }
    }
}

/// The versions of every page that a host knows of, oldest first.
#[derive(Clone, Debug)]
pub struct PagePromises {
    pages: Vec<Vec<Version>>,
    zero: Arc<[u8]>,
}

impl PagePromises {
    /// A device on which nothing was ever written.
    pub fn fresh(pages: usize, page_bytes: u32) -> Self {
        let zero: Arc<[u8]> = vec![0; page_bytes as usize].into();
        let version = Version { bytes: Arc::clone(&zero), from: 0, durable: 0 };
        Self { pages: vec![vec![version]; pages], zero }
    }

    /// Number of pages.
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// What a page holds if everything that was asked for is done.
    pub fn latest(&self, page: usize) -> &[u8] {
        &self.pages[page].last().expect("a page has a version").bytes
    }

    /// A request writes a part of a page.
    pub fn write(&mut self, page: usize, start: usize, bytes: &[u8], now: usize) -> Made {
        let mut content = self.latest(page).to_vec();
        content[start..start + bytes.len()].copy_from_slice(bytes);
        self.push(page, content.into(), now, false)
    }

    pub fn drop_page(&mut self, page: usize, now: usize) -> Made {
        let zero = Arc::clone(&self.zero);
        self.push(page, zero, now, true)
    }

    fn push(&mut self, page: usize, bytes: Arc<[u8]>, now: usize, is_drop: bool) -> Made {
        let versions = &mut self.pages[page];
        versions.push(Version { bytes, from: now as u32, durable: NEVER });
        Made { page, version: versions.len() - 1, is_drop }
    }

    /// The request that was to make a version failed, and its page still holds what it held. After a cut the
    /// version may be found all the same.
    pub fn retract(&mut self, made: Made, now: usize) {
        let bytes = Arc::clone(&self.pages[made.page][made.version - 1].bytes);
        self.push(made.page, bytes, now, false);
    }

    /// The host learnt that a version is durable.
    pub fn settle(&mut self, made: Made, now: usize) {
        let version = &mut self.pages[made.page][made.version];
        version.durable = version.durable.min(now as u32);
    }

    /// The versions that a cut before operation `cut` may leave of a page, oldest first.
    fn allowed(&self, page: usize, cut: usize) -> std::ops::Range<usize> {
        let versions = &self.pages[page];
        let cut = cut.min(NEVER as usize - 1) as u32;
        let first = versions.iter().rposition(|version| version.durable <= cut).unwrap_or(0);
        let end = versions.partition_point(|version| version.from <= cut);
        first..end.max(first + 1)
    }

    /// Which version a page holds after a cut before operation `cut`, or what is wrong with it.
    pub fn check(&self, page: usize, cut: usize, found: &[u8]) -> Outcome<Arc<[u8]>> {
        let versions = &self.pages[page];
        let allowed = self.allowed(page, cut);
        if let Some(version) = versions[allowed.clone()].iter().rev().find(|version| *version.bytes == *found)
        {
            return Ok(Arc::clone(&version.bytes));
        }
        let what = if found.iter().all(|byte| *byte == 0) {
            "zeroes".to_owned()
        } else if let Some(old) = versions.iter().position(|version| *version.bytes == *found) {
            format!("version {old}")
        } else {
            "bytes that none of its last versions has".to_owned()
        };
        let last = versions.len() - 1;
        Err(format!(
            "page {page} holds {what}; of versions 0 to {last} those from {} to {} were possible",
            allowed.start,
            allowed.end - 1,
        ))
    }

    /// The host has read a page: it holds this from now on.
    pub fn observe(&mut self, page: usize, bytes: Arc<[u8]>, now: usize) {
        self.pages[page].push(Version { bytes, from: now as u32, durable: now as u32 });
    }
}

impl Promises for PagePromises {
    fn after_cut(&self, cut: usize) -> Self {
        let pages = (0..self.pages.len()).map(|page| {
            let allowed = self.allowed(page, cut);
            // Some that are older, for messages.
            let kept = allowed.start.saturating_sub(3)..allowed.end;
            let versions = kept.clone().zip(&self.pages[page][kept]).map(|(number, version)| Version {
                bytes: Arc::clone(&version.bytes),
                from: 0,
                durable: if number <= allowed.start { 0 } else { NEVER },
            });
            versions.collect()
        });
        Self { pages: pages.collect(), zero: Arc::clone(&self.zero) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_versions_from_the_last_durable_one_on_are_allowed() {
        let mut promises = PagePromises::fresh(1, 4);
        let a = promises.write(0, 0, &[1, 1], 0);
        promises.settle(a, 2);
        let b = promises.write(0, 1, &[2], 2);
        assert_eq!(promises.latest(0), [1, 2, 0, 0]);
        assert!(promises.check(0, 1, &[0; 4]).is_ok(), "not durable yet");
        assert!(promises.check(0, 2, &[0; 4]).unwrap_err().contains("zeroes"));
        assert!(promises.check(0, 2, &[1, 1, 0, 0]).is_ok());
        promises.settle(b, 5);
        assert!(promises.check(0, 5, &[1, 1, 0, 0]).unwrap_err().contains("version 1"));
        assert!(promises.check(0, 5, &[9; 4]).unwrap_err().contains("none of its"));
        let _ = promises.drop_page(0, 6);
        let later = promises.after_cut(6);
        assert!(later.check(0, 0, &[0; 4]).is_ok() && later.check(0, 0, &[1, 2, 0, 0]).is_ok());
        assert!(later.check(0, 0, &[1, 1, 0, 0]).is_err());
    }
}
