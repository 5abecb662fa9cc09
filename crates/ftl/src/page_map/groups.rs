//! Reclaim groups: parts of the device that host writes are directed to by their log. Each is a collection
//! domain with dies of its own.
//!
//! The logical capacity is that of the device, so a host may direct more to a group than its share. A group
//! takes its share and half of its spare space; what goes beyond is written to the group that holds least,
//! by the same stream. Together the shares hold the capacity, so there is always a group with room.

use super::config::Config;
use super::domain::Domain;
use nandscape_core::{Divider, Ppn, state};

/// What each reclaim group holds.
#[derive(Debug)]
pub(super) struct Groups {
    /// Divides the number of a log by those of a group.
    logs: Divider,
    /// Divides the number of a page by those of a group.
    pages: Divider,
    /// Pages of the host in each.
    live: Vec<u64>,
    /// Bytes written to each log of the host that went to another group.
    spilled: Vec<u64>,
}

state!(impl [] Groups { tables: live, spilled; fixed: logs, pages; });

impl Groups {
    /// Of an empty device.
    pub fn new(config: &Config, domains: &[Domain]) -> Self {
        let pages = domains[0].blocks * domains[0].pages_per_block;
        Self {
            logs: Divider::new(config.persistent.len() as u32),
            pages: Divider::new(pages),
            live: vec![0; domains.len()],
            spilled: vec![0; config.host_logs()],
        }
    }

    /// The group of a log of the host, and its number there.
    #[inline]
    pub const fn of_log(&self, log: usize) -> (usize, usize) {
        let (group, log) = self.logs.split(log as u32);
        (group as usize, log as usize)
    }

    /// The group that a page lies in.
    #[inline]
    const fn of(&self, page: Ppn) -> usize {
        self.pages.quotient(page.0) as usize
    }

    /// Where a page goes that the host writes to a log: the group, and the log's number there. `old` is where
    /// it is now, and `most` tells how many pages a group takes.
    pub fn choose(
        &mut self,
        log: usize,
        old: Ppn,
        bytes: u64,
        most: impl Fn(usize) -> u64,
    ) -> (usize, usize) {
        let (group, own) = self.of_log(log);
        assert!(group < self.live.len(), "log {log} of group {group}, of {}", self.live.len());
        let stays = old.is_some() && self.of(old) == group;
        if self.live[group] < most(group) + u64::from(stays) {
            return (group, own);
        }
        self.spilled[log] += bytes;
        let emptiest = (0..self.live.len()).min_by_key(|group| self.live[*group]);
        (emptiest.expect("there are groups"), own)
    }

    /// A page that lay at `old`, if anywhere, lies in a group now. Gives the group it lay in.
    #[inline]
    pub fn moved(&mut self, old: Ppn, to: usize) -> usize {
        let from = if old.is_some() { self.dropped(old) } else { to };
        self.live[to] += 1;
        assert!(self.live[to] <= self.pages.divisor().into(), "group {to} holds {} pages", self.live[to]);
        from
    }

    /// The host's page at this place is no more. Gives the group it lay in.
    pub fn dropped(&mut self, page: Ppn) -> usize {
        let group = self.of(page);
        assert!(self.live[group] > 0, "group {group} loses {page:?}, and holds nothing");
        self.live[group] -= 1;
        group
    }

    /// The host has a page here.
    pub fn added(&mut self, page: Ppn) {
        let group = self.of(page);
        self.live[group] += 1;
        assert!(self.live[group] <= self.pages.divisor().into(), "group {group}: {:?}", self.live);
    }

    /// Bytes written to a log that went to another group, since the last reset.
    pub fn spilled(&self, log: usize) -> u64 {
        self.spilled[log]
    }

    /// What was counted starts anew.
    pub fn reset_counts(&mut self) {
        self.spilled.fill(0);
    }

    /// Checks the counts against the pages of the map; panics with the values.
    pub fn check(&self, mapped: impl Iterator<Item = Ppn>) {
        let mut live = vec![0; self.live.len()];
        mapped.for_each(|page| live[self.of(page)] += 1);
        assert_eq!(self.live, live, "pages of each group");
    }
}
