//! A cache as replay and servers see it: each volume is a namespace.

use super::timeline::FAST;
use super::{Cache, CacheError, Result};
use nandscape_core::Op;
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::{
    Allocation, Answer, CacheReport, CacheReports, Clocked, Command, Completion, Control, Extent,
    HostReports, Inspect, NamespaceError, NamespaceInfo, NamespaceResult, SimTime, Submitted, Subsystem,
    Token,
};
use nandscape_policies::eviction::Eviction;

impl<E: Eviction> Cache<E> {
    fn refusal(&self, extent: Extent, error: CacheError) -> NamespaceError {
        error.refusal(extent, |volume| self.infos[usize::from(volume)].name.clone())
    }

    /// What is told of an error that no command asked for.
    fn failure(&self, error: CacheError) -> NamespaceError {
        self.refusal(Extent::new(0, 0), error)
    }

    /// Starts what is due until `until`, and what follows from it.
    fn run_until(&mut self, until: SimTime) -> Result<()> {
        self.pass(until, true)
    }

    /// Gives idle time to the stores, from when nothing is under way any more.
    fn pass_idle(&mut self, at: SimTime, until: SimTime) -> Result<()> {
        self.run_until(at)?;
        self.clean_while_idle();
        self.run_until(until)?;
        let from = self.timeline.idle_from().max(at);
        if from >= until {
            return Ok(());
        }
        for (number, side) in self.timeline.sides_mut().iter_mut().enumerate() {
            side.store.idle(from, until).map_err(|error| CacheError::of_side(number as u16, error))?;
        }
        Ok(())
    }
}

nandscape_core::no_state!(impl [E: Eviction] Cache<E>: "a cache");

/// Sets are those of the fast store, if it is flash; a cache over a RAM disk has none.
impl<E: Eviction> Subsystem for Cache<E> {
    fn namespaces(&self) -> &[NamespaceInfo] {
        &self.infos
    }

    fn prepare(&self, namespace: u32, op: Op, extent: Extent) {
        if let Some(place) = self.directory.look_ahead(namespace as u16, op, extent) {
            self.timeline.side(FAST).store.prepare(Op::Read, place);
        }
    }

    fn submit(&mut self, namespace: u32, command: Command, payload: Payload<'_>, at: SimTime) -> Submitted {
        let command = command.into_block()?;
        let done = Self::submit(self, namespace as u16, command, payload, at);
        done.map(Answer::from).map_err(|error| self.refusal(command.extent, error))
    }

    fn join(&mut self, a: Token, b: Token) -> Token {
        self.timeline.join_tokens(a, b)
    }

    fn idle(&mut self, at: SimTime, until: SimTime) -> NamespaceResult<()> {
        self.pass_idle(at, until).map_err(|error| self.failure(error))
    }

    fn shutdown(&mut self, at: SimTime) -> NamespaceResult<Token> {
        let done = self.close(at).map_err(|error| self.failure(error))?;
        Ok(Token(done.0))
    }

    /// What is not cached is as the disk has it.
    fn allocation(&self, namespace: u32, extent: Extent) -> Allocation {
        let disk = &self.timeline.side(namespace as u16 + 1).store;
        self.directory.allocated(namespace as u16, extent, |extent| disk.allocation(extent))
    }

    fn inspect(&self) -> Inspect<'_> {
        let flash = self.timeline.side(FAST).store.flash().map(Subsystem::inspect).unwrap_or_default();
        Inspect { hosts: Some(self), placement: None, kinds: None, cache: Some(self), ..flash }
    }

    fn control(&mut self) -> Control<'_> {
        Control::default()
    }

    /// What is cached stays so.
    fn reset_counters(&mut self, at: SimTime) {
        if let Err(error) = self.commit_open() {
            self.keep_error(error);
        }
        self.timeline.drain();
        if let Err(error) = self.settle_fills() {
            self.keep_error(error);
        }
        self.timeline.reset(at);
        self.meter.reset();
        self.directory.reset_moves();
        for volume in &mut self.volumes {
            volume.host = HostCounts::default();
        }
        self.durability.forget_times();
    }

    fn check_invariants(&self) {
        Self::check_invariants(self);
        if let Some(flash) = self.timeline.side(FAST).store.flash() {
            flash.check_invariants();
        }
    }
}

impl<E: Eviction> HostReports for Cache<E> {
    fn host_counts(&self, namespace: u32) -> HostCounts {
        Self::host_counts(self, namespace as u16)
    }
}

impl<E: Eviction> CacheReports for Cache<E> {
    fn cache(&self) -> CacheReport {
        self.report()
    }
}

impl<E: Eviction> Clocked for Cache<E> {
    fn completion(&self, token: Token) -> Option<SimTime> {
        self.timeline.completion(token)
    }

    fn watch(&mut self, token: Token, tag: u64) {
        self.timeline.report(token, tag);
    }

    fn advance(&mut self, until: SimTime, out: &mut Vec<Completion>) {
        if let Err(error) = self.run_until(until) {
            self.keep_error(error);
        }
        self.timeline.take_reports(until, out);
    }

    fn next_event(&self) -> Option<SimTime> {
        let step = self.timeline.next_event();
        match self.writeback.again() {
            SimTime::MAX => step,
            again => Some(step.map_or(again, |step| step.min(again))),
        }
    }

    fn idle_from(&self) -> SimTime {
        self.timeline.idle_from()
    }
}
