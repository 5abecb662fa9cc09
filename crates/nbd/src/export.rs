//! What a client can choose.

use crate::limits::MAX_REQUEST_BYTES;
use crate::wire::flag;
use nandscape_core::NamespaceInfo;
use nandscape_engine::control;
use std::sync::{Arc, Mutex, MutexGuard};

/// A namespace as clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Name that clients ask for.
    pub name: String,
    /// A line for people.
    pub description: String,
    /// Index of the namespace in the engine.
    pub namespace: u32,
    /// Size in bytes.
    pub size: u64,
    /// Length of requests that the device does without reading around them.
    pub preferred_block: u32,
    /// Writes are refused.
    pub is_read_only: bool,
}

impl Export {
    /// A namespace of the engine under its own name.
    pub fn new(namespace: u32, info: &NamespaceInfo) -> Self {
        let page = info.page_bytes.next_power_of_two();
        Self {
            name: info.name.clone(),
            description: format!("emulated flash, pages of {} bytes, NVM set {}", info.page_bytes, info.set),
            namespace,
            size: info.capacity_bytes,
            preferred_block: page.clamp(4096, MAX_REQUEST_BYTES),
            is_read_only: false,
        }
    }

    /// The transmission flags, of which one depends on structured replies.
    pub(crate) const fn flags(&self, is_structured: bool) -> u16 {
        let common = flag::HAS_FLAGS | flag::SEND_FLUSH | flag::SEND_CACHE | flag::CAN_MULTI_CONN;
        let chunks = if is_structured { flag::SEND_DF } else { 0 };
        let writes = if self.is_read_only {
            flag::READ_ONLY
        } else {
            flag::SEND_FUA | flag::SEND_TRIM | flag::SEND_WRITE_ZEROES | flag::SEND_FAST_ZERO
        };
        common | chunks | writes
    }
}

/// What clients can choose now, and how many have chosen each.
#[derive(Debug)]
pub struct Exports {
    all: Mutex<Vec<(Export, usize)>>,
    adds_read_only: bool,
}

impl Exports {
    pub(crate) fn new(exports: Vec<Export>, adds_read_only: bool) -> Self {
        let all = Mutex::new(exports.into_iter().map(|export| (export, 0)).collect());
        Self { all, adds_read_only }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Export, usize)>> {
        self.all.lock().expect("nobody panicked with the exports in hand")
    }

    /// As they are now.
    pub(crate) fn all(&self) -> Arc<[Export]> {
        self.lock().iter().map(|(export, _)| export.clone()).collect()
    }

    /// A client has chosen this one, until what is given is dropped. `None` if it has gone meanwhile.
    pub(crate) fn enter<'a>(&'a self, export: &'a Export) -> Option<Chosen<'a>> {
        let mut all = self.lock();
        all.iter_mut().find(|(other, _)| other == export)?.1 += 1;
        Some(Chosen { exports: self, export })
    }
}

impl control::Exports for Exports {
    fn add(&self, namespace: u32, info: &NamespaceInfo) {
        let (description, is_read_only) = ("cached volume".to_owned(), self.adds_read_only);
        self.lock().push((Export { description, is_read_only, ..Export::new(namespace, info) }, 0));
    }

    fn remove(&self, namespace: u32) -> Result<(), usize> {
        let mut all = self.lock();
        let is_it = |export: &Export| export.namespace == namespace;
        let clients = all.iter().filter(|(export, _)| is_it(export)).map(|(_, clients)| clients).sum();
        if clients > 0 {
            return Err(clients);
        }
        all.retain(|(export, _)| !is_it(export));
        Ok(())
    }
}

/// A client of an export.
#[derive(Debug)]
pub(crate) struct Chosen<'a> {
    exports: &'a Exports,
    export: &'a Export,
}

impl Drop for Chosen<'_> {
    fn drop(&mut self) {
        let mut all = self.exports.lock();
        if let Some((_, clients)) = all.iter_mut().find(|(other, _)| other == self.export) {
            *clients -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_engine::control::Exports as _;

    #[test]
    fn an_export_with_clients_stays_and_one_that_has_gone_is_not_entered() {
        let info = |name: &str| NamespaceInfo {
            name: name.to_owned(),
            capacity_bytes: 1 << 20,
            page_bytes: 4096,
            set: 0,
            endurance_group: 0,
            zones: None,
            objects: false,
        };
        let exports = Exports::new(Vec::new(), true);
        exports.add(0, &info("a"));
        exports.add(1, &info("b"));
        let all = exports.all();
        assert!(all.iter().all(|export| export.is_read_only));
        let (one, two) = (exports.enter(&all[0]).unwrap(), exports.enter(&all[0]).unwrap());
        assert_eq!((exports.remove(0), exports.remove(1)), (Err(2), Ok(())));
        drop(one);
        assert_eq!(exports.remove(0), Err(1));
        drop(two);
        assert_eq!(exports.remove(0), Ok(()));
        assert!(exports.all().is_empty() && exports.enter(&all[0]).is_none());
    }
}
