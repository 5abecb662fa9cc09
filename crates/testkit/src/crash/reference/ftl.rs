//! The reference layer as a host sees it.

use super::{Log, Sabotage};
use nandscape_core::journal::checkpoint;
use nandscape_core::{
    Barrier, Cause, Cost, Deferral, Extent, FlashDevice, FlashLayer, FlashState, Ftl, FtlResult, FtlStats,
    Hint, Issue, Logs, Lpn, Mapping, Ppn, SimTime, Token,
};

nandscape_core::no_state!(impl [D: FlashDevice] Log<D>: "the reference layer");

impl<D: FlashDevice> Ftl for Log<D> {
    fn read(&mut self, extent: Extent, data: Option<&mut [u8]>, at: SimTime) -> FtlResult<Token> {
        self.check_range(extent)?;
        let mut done = Token::NONE;
        let mut page = vec![0; self.page_bytes() as usize];
        let Some(data) = data else { return Ok(done) };
        for span in extent.pages(self.page_bytes()) {
            page.fill(0);
            if let Some(place) = self.map[span.lpn.index()] {
                let read = self.device.read(place.page, 0, Some(&mut page), Issue::new(at, Cause::Host))?;
                done = self.device.join(done, read.done);
            }
            let (start, len) = (span.start as usize, span.len as usize);
            data[span.at as usize..][..len].copy_from_slice(&page[start..start + len]);
        }
        Ok(done)
    }

    fn write(&mut self, extent: Extent, data: Option<&[u8]>, _: Hint, at: SimTime) -> FtlResult<Token> {
        self.check_range(extent)?;
        let data = data.expect("the reference layer stores bytes");
        let mut done = Token::NONE;
        for span in extent.pages(self.page_bytes()) {
            let bytes = &data[span.at as usize..][..span.len as usize];
            let token = self.write_page(span.lpn, span.start, bytes, at)?;
            done = self.device.join(done, token);
        }
        Ok(done)
    }

    fn trim(&mut self, extent: Extent, at: SimTime) -> FtlResult<Token> {
        self.check_range(extent)?;
        let (first, count) = extent.whole_pages(self.page_bytes());
        for lpn in first..first + count {
            self.drop_one(lpn as u32, at)?;
        }
        Ok(Token::NONE)
    }

    fn write_zeroes(&mut self, extent: Extent, at: SimTime) -> FtlResult<Token> {
        self.check_range(extent)?;
        let mut done = Token::NONE;
        for span in extent.pages(self.page_bytes()) {
            if span.is_whole(self.page_bytes()) {
                self.drop_one(span.lpn.0, at)?;
            } else if self.map[span.lpn.index()].is_some() {
                let token = self.write_page(span.lpn, span.start, &vec![0; span.len as usize], at)?;
                done = self.device.join(done, token);
            }
        }
        Ok(done)
    }

    fn flush(&mut self, at: SimTime) -> FtlResult<Token> {
        if self.has_new_drops {
            self.collect(at)?;
            self.write_records(at)?;
        }
        if self.sabotage == Sabotage::NoBarrier {
            return Ok(self.all);
        }
        let barrier = self.device.barrier(Barrier::Durable, at)?;
        Ok(self.device.join(self.all, barrier))
    }

    fn shutdown(&mut self, at: SimTime) -> FtlResult<Token> {
        let flushed = self.flush(at)?;
        let written = checkpoint(&mut self.device, at)?;
        Ok(self.device.join(flushed, written))
    }

    fn idle(&mut self, _: SimTime, _: SimTime) -> FtlResult<()> {
        Ok(())
    }

    fn device_mut(&mut self) -> &mut dyn FlashState {
        &mut self.device
    }
}

impl<D: FlashDevice> FlashLayer for Log<D> {
    fn device(&self) -> &dyn FlashState {
        &self.device
    }
}

impl<D: FlashDevice> Mapping for Log<D> {
    fn logical_pages(&self) -> u64 {
        self.map.len() as u64
    }

    fn page_bytes(&self) -> u32 {
        self.device().geometry().page_bytes
    }

    fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        self.map[lpn.index()].map(|place| place.page)
    }

    fn stats(&self) -> FtlStats {
        FtlStats { live_pages: self.map.iter().flatten().count() as u64, ..self.stats }
    }

    fn reset_stats(&mut self) {
        self.stats = FtlStats::default();
    }

    fn cost(&self) -> Cost {
        Cost { logical_pages: self.map.len() as u64, ..Cost::default() }
    }

    fn check_invariants(&self) {
        for (lpn, place) in self.map.iter().enumerate() {
            if let Some(place) = place {
                assert!(
                    self.device.is_programmed(place.page),
                    "logical page {lpn} is at {place:?}, which is erased"
                );
            }
        }
    }
}

impl<D: FlashDevice> Logs for Log<D> {}

impl<D: FlashDevice> Deferral for Log<D> {}
