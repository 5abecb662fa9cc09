//! A strategy of the thesis as a translation layer: everything in which the strategies do not differ.

use crate::parts::base::Base;
use nandscape_core::{
    Barrier, Clocked, Cost, Deferral, Extent, FlashDevice, FlashLayer, FlashState, Ftl, FtlResult, FtlStats,
    Hint, Logs, Lpn, Mapping, Ppn, SimTime, State, Token, state_of_inner,
};

/// Where pages lie and how room is made: what a strategy decides by itself.
pub(crate) trait Strategy: State {
    type Device: FlashDevice;

    fn base(&self) -> &Base<Self::Device>;

    fn base_mut(&mut self) -> &mut Base<Self::Device>;

    /// Where a logical page of the device is, if it is mapped.
    fn find(&self, lpn: Lpn) -> Option<Ppn>;

    /// Writes an extent inside the capacity, page by page. A request that meets a full device may have
    /// written the pages before the one that found no room.
    fn write_pages(&mut self, extent: Extent, data: Option<&[u8]>, at: SimTime) -> FtlResult<Token>;

    /// Unmaps a logical page, if it is mapped.
    fn unmap(&mut self, lpn: Lpn);

    /// Makes everything written so far durable.
    fn make_durable(&mut self, at: SimTime) -> FtlResult<Token> {
        Ok(self.base_mut().device.barrier(Barrier::Durable, at)?)
    }

    /// One step of background collection, begun at `at`, towards so many erased pages; `None` if no step is
    /// worth it.
    fn step_in_background(&mut self, wanted_pages: u64, at: SimTime) -> FtlResult<Option<Token>>;

    /// Time starts anew: nothing waits any more for what was submitted so far.
    fn forget_tokens(&mut self);

    /// What [`Mapping::cost`] reports.
    fn costs(&self) -> Cost;

    /// Panics unless the strategy's tables agree with each other and with the device.
    fn check(&self);
}

/// A strategy that serves requests.
pub(crate) struct Layer<S>(pub(crate) S);

state_of_inner!(impl [S: Strategy] Layer<S>: |this| this.0);

impl<S: Strategy> Layer<S> {
    /// Does steps from `at` on, each begun where the one before it ended, and none at `until` or later. With
    /// a scheduler that does not know ends at submission, one step a call.
    fn work_in_background(&mut self, wanted_pages: u64, at: SimTime, until: SimTime) -> FtlResult<()> {
        let mut now = at.max(self.0.base().device.idle_from());
        while now < until {
            let Some(done) = self.0.step_in_background(wanted_pages, now)? else { break };
            let Some(end) = self.0.base().device.completion(done) else { break };
            now = now.max(end);
        }
        Ok(())
    }
}

impl<S: Strategy> Ftl for Layer<S> {
    fn read(&mut self, extent: Extent, mut data: Option<&mut [u8]>, at: SimTime) -> FtlResult<Token> {
        self.0.base().check(extent)?;
        let mut done = Token::NONE;
        for span in self.0.base().spans(extent) {
            let page = self.0.find(span.lpn);
            let base = self.0.base_mut();
            let read = base.read_span(page, &span, data.as_deref_mut(), at)?;
            done = base.device.join(done, read);
        }
        Ok(done)
    }

    fn write(&mut self, extent: Extent, data: Option<&[u8]>, _hint: Hint, at: SimTime) -> FtlResult<Token> {
        self.0.base().check(extent)?;
        self.0.base().check_writable()?;
        let written = self.0.write_pages(extent, data, at);
        self.0.base_mut().note(written)
    }

    fn trim(&mut self, extent: Extent, at: SimTime) -> FtlResult<Token> {
        let base = self.0.base();
        base.check(extent)?;
        base.check_writable()?;
        let pages = base.whole_pages(extent);
        if base.device.journal().is_some() {
            let mapped: Vec<Lpn> = pages.clone().filter(|lpn| self.0.find(*lpn).is_some()).collect();
            let dropped = self.0.base_mut().drop_runs(&mapped, at);
            self.0.base_mut().note(dropped)?;
        }
        pages.for_each(|lpn| self.0.unmap(lpn));
        Ok(Token::NONE)
    }

    fn write_zeroes(&mut self, extent: Extent, at: SimTime) -> FtlResult<Token> {
        self.0.base().check(extent)?;
        self.0.base().check_writable()?;
        let mut done = Token::NONE;
        for end in self.0.base().ragged_ends(extent) {
            if self.0.find(self.0.base().lpn_of(end)).is_some() {
                let written = self.write(end, None, Hint::default(), at)?;
                done = self.0.base_mut().device.join(done, written);
            }
        }
        self.trim(extent, at)?;
        Ok(done)
    }

    fn flush(&mut self, at: SimTime) -> FtlResult<Token> {
        let flushed = self.0.make_durable(at);
        self.0.base_mut().note(flushed)
    }

    fn idle(&mut self, at: SimTime, until: SimTime) -> FtlResult<()> {
        match self.0.base().background_pages {
            Some(wanted) if self.0.base().read_only.is_none() => {
                let worked = self.work_in_background(wanted, at, until);
                self.0.base_mut().note(worked)
            }
            _ => Ok(()),
        }
    }

    fn device_mut(&mut self) -> &mut dyn FlashState {
        &mut self.0.base_mut().device
    }
}

impl<S: Strategy> FlashLayer for Layer<S> {
    fn read_only(&self) -> Option<&'static str> {
        self.0.base().read_only
    }

    fn device(&self) -> &dyn FlashState {
        &self.0.base().device
    }
}

impl<S: Strategy> Mapping for Layer<S> {
    fn logical_pages(&self) -> u64 {
        self.0.base().logical_pages
    }

    fn page_bytes(&self) -> u32 {
        self.0.base().geometry.page_bytes
    }

    fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        if u64::from(lpn.0) < self.logical_pages() { self.0.find(lpn) } else { None }
    }

    fn stats(&self) -> FtlStats {
        self.0.base().stats
    }

    fn reset_stats(&mut self) {
        let stats = &mut self.0.base_mut().stats;
        *stats = FtlStats { live_pages: stats.live_pages, ..FtlStats::default() };
        self.0.forget_tokens();
    }

    fn cost(&self) -> Cost {
        self.0.costs()
    }

    fn check_invariants(&self) {
        self.0.check();
    }
}

impl<S: Strategy> Logs for Layer<S> {}

impl<S: Strategy> Deferral for Layer<S> {}
