//! What files are charged with, and whether their users may have more.

use super::attributes::Attributes;
use super::quotas::{Quota, Quotas};
use super::tree::Tree;
use super::{Calls, ObjectFs};
use crate::client::Failed;
use nandscape_core::{Extent, ObjectCommand, ObjectId, Reply};
use std::collections::BTreeMap;

impl ObjectFs {
    /// Limits what the files of users may take from now on. Gives notes on what they have.
    pub fn limit(&self, quotas: &BTreeMap<u32, Quota>) -> Result<Vec<String>, Failed> {
        let (mut tree, mut calls) = (self.lock(), self.calls());
        tree.quotas = Quotas::new(quotas);
        let owners = tree.nodes.iter().map(|(ino, node)| (*ino, node.attributes.uid));
        let limited: Vec<_> = owners.filter(|(_, uid)| quotas.contains_key(uid)).collect();
        for (ino, uid) in limited {
            let (status, _) = calls.status(ino)?;
            tree.quotas.charge(ino, uid, status.allocated);
        }
        Ok(tree.quotas.notes())
    }

    /// Whether what a file may take is limited.
    pub(super) fn is_limited(tree: &Tree, ino: u64) -> bool {
        tree.nodes.get(&ino).is_some_and(|node| tree.quotas.limits(node.attributes.uid))
    }
}

impl Calls<'_> {
    /// What a file takes has changed, or its owner. Where that cannot be told it stays charged as it was.
    pub fn recharge(&mut self, tree: &mut Tree, ino: u64) {
        let Some(node) = tree.nodes.get(&ino) else { return };
        let uid = node.attributes.uid;
        if !ObjectFs::is_limited(tree, ino) {
            tree.quotas.forget(ino);
        } else if let Ok((status, _)) = self.status(ino) {
            tree.quotas.charge(ino, uid, status.allocated);
        }
    }

    /// Whether the owner of a file may have it write an extent. Pages that have something in them already
    /// cost nothing more.
    pub fn check_write(&mut self, tree: &Tree, ino: u64, extent: Extent) -> Result<(), Failed> {
        let uid = tree.get(ino)?.attributes.uid;
        let page = u64::from(self.client.engine.namespaces()[self.client.namespace as usize].page_bytes);
        let first = extent.offset / page * page;
        let end = extent.end().next_multiple_of(page);
        if tree.quotas.check(uid, end - first, 0).is_ok() {
            return Ok(());
        }
        let (mut at, mut new) = (first, 0);
        while at < end {
            let extent = Extent::new(at, end - at);
            match self.plain(ObjectCommand::Allocation { object: ObjectId(ino), extent })? {
                Reply::Allocation(found) => {
                    // Nothing is known behind the end of the object.
                    let known = (at + found.bytes).next_multiple_of(page).min(end);
                    let next = if found.bytes == 0 { end } else { known };
                    new += if found.is_mapped { 0 } else { next - at };
                    at = next;
                }
                other => panic!("a question for what object {ino} has is answered with {other:?}"),
            }
        }
        tree.quotas.check(uid, new, 0)
    }

    /// Whether the owner that attributes name may have a file that somebody else has.
    pub fn check_owner(&mut self, tree: &Tree, ino: u64, attributes: &Attributes) -> Result<(), Failed> {
        if tree.get(ino)?.attributes.uid == attributes.uid || !tree.quotas.limits(attributes.uid) {
            return Ok(());
        }
        let allocated = self.status(ino)?.0.allocated;
        tree.quotas.check(attributes.uid, allocated, 1)
    }
}
