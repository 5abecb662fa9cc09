//! Writes of the host to zones: runs of whole pages at a time, and what is held until it fills a page.
#![expect(clippy::inline_always, reason = "measured: the path of every page")]

use super::body::{Body, Done};
use super::tag::{ZoneOob, ZoneTag};
use nandscape_core::{BlockId, FlashDevice, FlashError, Issue, Lpn, Ppn, Stripe, Token, Way};

impl<O: ZoneOob, D: FlashDevice<O>> Body<D, O> {
    /// Data of the host for logical blocks of a zone, `first` counted in the zone, behind all that it has
    /// or, with a random write area, in it. What fills pages is programmed, the rest is held.
    #[inline(always)]
    pub fn write(
        &mut self,
        zone: u32,
        (first, blocks): (u64, u64),
        is_random: bool,
        data: Option<&[u8]>,
        issue: Issue,
    ) -> Done {
        let ((index, before), (pages, rest)) =
            (self.blocks_by_page.split(first), self.blocks_by_page.split(blocks));
        if before > 0 || rest > 0 || is_random || !self.contents[zone as usize].holds_nothing() {
            return self.write_parts(zone, (first, blocks), is_random, data, issue);
        }
        debug_assert_eq!(index as u32, self.programmed(zone));
        if pages > 1 {
            return self.write_run(zone, pages as u32, data, issue);
        }
        self.program_next(zone, None, (self.page_bytes, 0), data, issue)
    }

    /// Programs the next pages of a zone, all of them data of the host.
    #[inline(never)]
    fn write_run(&mut self, zone: u32, pages: u32, data: Option<&[u8]>, issue: Issue) -> Done {
        let mut done = Token::NONE;
        let page_bytes = self.page_bytes as usize;
        let mut written = 0;
        while written < pages {
            let ready = if self.is_plain() { self.bound_ahead(zone).min(pages - written) } else { 0 };
            let rest = data.map(|data| &data[written as usize * page_bytes..]);
            if ready == 0 {
                let part = rest.map(|data| &data[..page_bytes]);
                let programmed = self.program_next(zone, None, (self.page_bytes, 0), part, issue)?;
                done = self.device.join(done, programmed);
                written += 1;
                continue;
            }
            let (programmed, count) = self.program_bound(zone, ready, rest, issue)?;
            done = self.device.join(done, programmed);
            written += count;
        }
        Ok(done)
    }

    /// Programs the next pages of a zone whose blocks are there, and which come after nothing. Fewer than
    /// those asked for if a program failed: gives how many.
    #[inline(always)]
    fn program_bound(
        &mut self,
        zone: u32,
        pages: u32,
        data: Option<&[u8]>,
        issue: Issue,
    ) -> Done<(Token, u32)> {
        let first = self.programmed(zone);
        let (dies, stripe) = (self.striping.dies(), self.striping.stripe_pages());
        let (page_bytes, seq) = (self.page_bytes as usize, self.next_seq);
        let number = self.page_number(zone, first).0;
        let (mut done, mut count) = (Token::NONE, 0);
        let mut failed = None;
        while count < pages && failed.is_none() {
            let spot = self.striping.spot(first + count);
            let (within, left) = (spot.page % stripe, pages - count);
            let (blocks, each) = if within == 0 && left >= stripe {
                ((dies - spot.die).min(left / stripe), stripe)
            } else {
                (1, left.min(stripe - within))
            };
            let place = self.place(zone, spot);
            let blocks = &self.bound[place..place + blocks as usize];
            debug_assert!(!blocks.contains(&BlockId::NONE));
            let numbers = number + count..number + count + blocks.len() as u32 * each;
            self.oobs.clear();
            self.oobs.extend(numbers.map(|page| O::of(ZoneTag { page: Lpn(page), copied: 0, seq })));
            let rest = data.map(|data| &data[count as usize * page_bytes..]);
            let stripe = Stripe { blocks, first: spot.page, each };
            let striped = self.device.program_stripe(stripe, &self.oobs, rest, issue);
            done = self.device.join(done, striped.done);
            count += striped.pages;
            failed = striped.failed;
        }
        let content = &mut self.contents[zone as usize];
        (content.programmed, content.host_pages) = (first + count, first + count);
        content.next = Ppn::NONE;
        match failed {
            None => {}
            Some(FlashError::ProgramFailed { .. }) => {
                let part = data.map(|data| &data[count as usize * page_bytes..][..page_bytes]);
                let programmed =
                    self.program_elsewhere(zone, first + count, (self.page_bytes, part), issue)?;
                done = self.device.join(done, programmed);
                count += 1;
                let content = &mut self.contents[zone as usize];
                (content.programmed, content.host_pages) = (first + count, first + count);
            }
            Some(error) => return Err(error.into()),
        }
        Ok((done, count))
    }

    /// Whether programs of the host come after nothing and are not kept track of.
    fn is_plain(&self) -> bool {
        self.started == Token::NONE && !self.rules.is_volatile
    }

    /// Pages of a zone behind those that are programmed whose blocks are all there: none in the first row of
    /// a block, where blocks are taken, else those up to the end of the blocks.
    fn bound_ahead(&self, zone: u32) -> u32 {
        let index = self.programmed(zone);
        let row = self.striping.row_pages();
        let all = self.striping.dies() * self.pages_per_block;
        let inside = index % all;
        if inside < row { 0 } else { (all - inside).min(self.zone_pages - index) }
    }

    /// The same for any blocks.
    #[inline(never)]
    fn write_parts(
        &mut self,
        zone: u32,
        (first, blocks): (u64, u64),
        is_random: bool,
        data: Option<&[u8]>,
        issue: Issue,
    ) -> Done {
        let page = u64::from(self.page_bytes);
        let block = u64::from(self.block_bytes);
        let (mut byte, end) = (first * block, (first + blocks) * block);
        let start = byte;
        let mut done = Token::NONE;
        let mut passed = 0;
        while byte < end {
            let (index, within) = self.by_page.split(byte);
            let index = index as u32;
            let len = (page - within).min(end - byte) as u32;
            let at_data = (byte - start) as usize;
            let part = data.map(|data| &data[at_data..at_data + len as usize]);
            byte += u64::from(len);
            if u64::from(len) == page && !is_random && self.contents[zone as usize].holds_nothing() {
                debug_assert_eq!(index, self.programmed(zone));
                let programmed = self.program_next(zone, None, (len, 0), part, issue)?;
                done = self.device.join(done, programmed);
                continue;
            }
            let ahead = index - self.programmed(zone);
            let blocks = ((within / block) as u32, len / self.block_bytes);
            let kept = self.stores_data.then_some(self.page_bytes);
            let block_bytes = self.block_bytes;
            self.held_mut(zone).put(ahead, blocks, block_bytes, kept, part);
            // A write to a whole page of sequential data ends at its last block.
            if !is_random && within + u64::from(len) == page {
                let programmed = self.program_held(zone, len, issue)?;
                done = self.device.join(done, programmed);
            } else {
                passed += len;
            }
        }
        if passed > 0 {
            let after = self.device.join(issue.after, done);
            done = self.device.pass(Way::In, passed, issue.at, after);
        }
        Ok(done)
    }

    /// Programs the first held page of a zone, of which `transfer` bytes come with this command; a page that
    /// is not held is programmed as zeroes.
    pub fn program_held(&mut self, zone: u32, transfer: u32, issue: Issue) -> Done {
        let page = self.contents[zone as usize].held.as_mut().and_then(|held| held.pop());
        let zeroes = (page.is_none() && self.stores_data).then(|| vec![0; self.page_bytes as usize]);
        let data = page.as_ref().and_then(|page| page.data.as_deref()).or(zeroes.as_deref());
        let held = self.page_bytes - transfer;
        let done = match self.program_next(zone, None, (transfer, held), data, issue) {
            Ok(done) => done,
            Err(fault) => {
                // It can still be read, and a flush logs it.
                if let Some(page) = page {
                    self.held_mut(zone).put_back(page);
                }
                return Err(fault);
            }
        };
        if page.is_some_and(|page| page.present != 0) {
            let content = &mut self.contents[zone as usize];
            content.host_pages = content.programmed;
        }
        Ok(done)
    }
}
