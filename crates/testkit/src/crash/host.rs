//! The host of a translation layer.

use super::Buffer;
use super::device::Handle;
use super::load::{self, Act, Step};
use super::promise::{Made, PagePromises};
use super::subject::{Site, Subject, Sure};
use crate::shrink::Outcome;
use nandscape_core::{
    BlockState, Extent, FlashError, Ftl, FtlError, FtlResult, Hint, Lpn, MapJournal, Oob, Ppn, SimTime, Token,
};
use nandscape_media::Medium as _;

/// What a layer is to the harness.
pub type Layer = Box<dyn Ftl + Send>;

/// A host that reads, writes and drops pages of a translation layer.
pub struct Host {
    ftl: Layer,
    handle: Handle,
    /// Answers promise as much as over this.
    buffer: Buffer,
    may_end_read_only: bool,
    page_bytes: u32,
    now: SimTime,
    promises: PagePromises,
    /// Requests that are not answered, with the versions they make.
    under_way: Vec<(Token, Vec<Made>)>,
    /// Versions that were answered and are not durable yet.
    answered: Vec<Made>,
    sure: Sure,
    page: Vec<u8>,
}

impl Subject for Host {
    type Oob = Oob;
    type Layer = Layer;
    type Step = Step;
    type Promises = PagePromises;

    fn new(ftl: Layer, site: Site, promises: Option<PagePromises>) -> Self {
        let Site { handle, buffer, may_end_read_only } = site;
        let page_bytes = ftl.device().geometry().page_bytes;
        let pages = ftl.logical_pages() as usize;
        let promises = promises.unwrap_or_else(|| PagePromises::fresh(pages, page_bytes));
        let page = vec![0; page_bytes as usize];
        Self {
            ftl,
            handle,
            buffer,
            may_end_read_only,
            page_bytes,
            now: SimTime::ZERO,
            promises,
            under_way: Vec::new(),
            answered: Vec::new(),
            sure: Sure::new(),
            page,
        }
    }

    fn steps(seed: u64, count: usize, page_bytes: u32) -> Vec<Step> {
        load::steps(seed, count, page_bytes)
    }

    fn fill(&self, seed: u64) -> Vec<Step> {
        load::fill(seed, self.page_bytes, self.promises.len())
    }

    fn observe(&mut self, cut: usize) -> Outcome {
        let pages = self.ftl.logical_pages() as usize;
        if pages != self.promises.len() {
            return Err(format!("the layer has {pages} pages, and had {}", self.promises.len()));
        }
        let now = self.handle.recorded();
        for page in 0..pages {
            self.read_page(page)?;
            let known = self.promises.check(page, cut, &self.page);
            let known = known.map_err(|error| format!("{error}; {}", self.copies(page)))?;
            self.promises.observe(page, known, now);
        }
        Ok(())
    }

    fn verify(&mut self) -> Outcome {
        for page in 0..self.promises.len() {
            self.read_page(page)?;
            self.compare(page)?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Outcome {
        if step.waits {
            self.wait_for_all();
        }
        let extent = step.extent(self.capacity());
        let at = self.now;
        let now = self.handle.recorded();
        let page_bytes = self.page_bytes;
        let result = match step.act {
            Act::Read => {
                for span in extent.pages(page_bytes) {
                    self.read_page(span.lpn.index())?;
                    self.compare(span.lpn.index())?;
                }
                return Ok(());
            }
            Act::Write { is_fua } => {
                let data = step.bytes(extent);
                let hint = Hint(step.hint.min(self.ftl.logs() - 1));
                let result = self.ftl.write(extent, Some(&data), hint, at);
                let made = extent.pages(page_bytes).map(|span| {
                    let bytes = &data[span.at as usize..][..span.len as usize];
                    self.promises.write(span.lpn.index(), span.start as usize, bytes, now)
                });
                let made = made.collect();
                let issued = self.issued(result, made, step.overlaps && !is_fua);
                issued.and_then(|()| if is_fua { self.flush() } else { Ok(()) })
            }
            Act::Trim => {
                let result = self.ftl.trim(extent, at);
                let (first, count) = extent.whole_pages(page_bytes);
                let pages = first as usize..(first + count) as usize;
                let made = pages.map(|page| self.promises.drop_page(page, now)).collect();
                self.issued(result, made, step.overlaps)
            }
            Act::WriteZeroes => {
                let result = self.ftl.write_zeroes(extent, at);
                let made = extent.pages(page_bytes).map(|span| {
                    let zeroes = vec![0; span.len as usize];
                    let is_zero = self.promises.latest(span.lpn.index()).iter().all(|byte| *byte == 0);
                    let made = self.promises.write(span.lpn.index(), span.start as usize, &zeroes, now);
                    // A layer may drop a page that is zeroed whole, and leave one alone that it holds for
                    // dropped.
                    made.as_drop(is_zero || span.is_whole(page_bytes))
                });
                let made = made.collect();
                self.issued(result, made, step.overlaps)
            }
            Act::Flush => self.flush(),
            Act::Idle => {
                let until = at + 40;
                self.now = until;
                self.ftl.idle(at, until).or_else(|error| self.allow(&error))
            }
        };
        result.map_err(|error| format!("{step:?}: {error}"))
    }

    fn check_invariants(&self) {
        self.ftl.check_invariants();
    }

    fn check_clean_start(&self) -> Outcome {
        let report = self.ftl.device().journal().map(MapJournal::recovery);
        if report.is_some_and(|report| !report.was_clean) {
            return Err(format!("not clean after a clean shutdown: {report:?}"));
        }
        Ok(())
    }

    fn is_read_only(&self) -> bool {
        self.ftl.read_only().is_some()
    }

    fn shutdown(&mut self) -> Outcome<bool> {
        self.wait_for_all();
        let covered = std::mem::take(&mut self.answered);
        let result = self.ftl.shutdown(self.now);
        self.flushed(result, covered).map_err(|error| format!("shutdown: {error}"))
    }

    fn promises(&self) -> &PagePromises {
        &self.promises
    }

    fn into_promises(self) -> (PagePromises, Sure) {
        (self.promises, self.sure)
    }
}
impl Host {
    /// Bytes of the device.
    fn capacity(&self) -> u64 {
        self.promises.len() as u64 * u64::from(self.page_bytes)
    }

    /// Where the flash holds data of a page, for messages.
    fn copies(&self, page: usize) -> String {
        let mut nand = self.handle.nand();
        let place = self.ftl.lookup(Lpn(page as u32));
        let pages = (0..nand.geometry().pages()).map(Ppn);
        let copies = pages.filter_map(|at| {
            let oob = nand.read(at, None).ok().filter(|oob| oob.lpn.index() == page)?;
            Some(format!("{} (sequence {})", at.0, oob.seq))
        });
        let copies: Vec<String> = copies.collect();
        let place = place.map_or_else(|| "nowhere".to_owned(), |place| format!("at {}", place.0));
        format!("the layer has it {place}, the flash at {}", copies.join(", "))
    }

    fn compare(&self, page: usize) -> Outcome {
        if self.page == self.promises.latest(page) {
            return Ok(());
        }
        Err(format!("page {page} does not hold what was written last, without a cut in between"))
    }

    fn read_page(&mut self, page: usize) -> Outcome {
        let extent = Extent::new(page as u64 * u64::from(self.page_bytes), u64::from(self.page_bytes));
        self.page.fill(0xA5);
        let result = self.ftl.read(extent, Some(&mut self.page), self.now);
        result.map_err(|error| format!("read of page {page}: {error}"))?;
        Ok(())
    }

    /// A request was issued that makes these versions, or was refused.
    fn issued(&mut self, result: FtlResult<Token>, made: Vec<Made>, overlaps: bool) -> Outcome {
        match result {
            Ok(token) if overlaps => self.under_way.push((token, made)),
            Ok(token) => self.wait_for(token, made),
            Err(error) => {
                self.allow(&error)?;
                // Each page holds what it held or what it was to hold.
                for made in made {
                    self.read_page(made.page)?;
                    if self.page != self.promises.latest(made.page) {
                        let now = self.handle.recorded();
                        self.promises.retract(made, now);
                        self.compare(made.page)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Blocks that fail may leave a device that can be read only, and stays so.
    fn allow(&self, error: &FtlError) -> Outcome {
        let is_allowed = match error {
            FtlError::ReadOnly { .. } => self.ftl.read_only().is_some(),
            FtlError::Flash(FlashError::ReadOnly { .. }) => true,
            _ => false,
        };
        if is_allowed && self.may_end_read_only { Ok(()) } else { Err(error.to_string()) }
    }

    /// Whatever was answered before is durable once a flush is.
    fn flush(&mut self) -> Outcome {
        let covered = std::mem::take(&mut self.answered);
        let result = self.ftl.flush(self.now);
        self.flushed(result, covered).map(|_| ())
    }

    fn flushed(&mut self, result: FtlResult<Token>, covered: Vec<Made>) -> Outcome<bool> {
        let token = match result {
            Ok(token) => token,
            Err(error) => return self.allow(&error).map(|()| false),
        };
        self.wait_for(token, Vec::new());
        let now = self.handle.recorded();
        for made in covered {
            self.promises.settle(made, now);
        }
        Ok(true)
    }

    fn wait_for_all(&mut self) {
        for (token, made) in std::mem::take(&mut self.under_way) {
            self.wait_for(token, made);
        }
    }

    /// The host sees a request answered.
    fn wait_for(&mut self, token: Token, made: Vec<Made>) {
        let now = self.handle.recorded();
        let set = self.handle.set_of(token);
        self.sure.push((now, set));
        if let Some(at) = self.ftl.device().completion(token) {
            self.now = self.now.max(at);
        }
        for made in made {
            if self.buffer != Buffer::Volatile && !made.is_drop {
                self.promises.settle(made, now);
            }
            self.answered.push(made);
        }
    }
}
