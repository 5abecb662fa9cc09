//! Directives in front of a subsystem: the host's hint becomes a directive, the directive a log of the
//! translation layer.

use super::fdp::MediaBytes;
use super::state::{ControllerId, Directives, Logs};
use super::wire::WriteDirective;
use nandscape_core::namespace::{HostCounts, Payload};
use nandscape_core::{
    Allocation, CacheReport, Command, Cost, Extent, FlashDevice, FtlStats, Hint, KindReport, LogStatus,
    NamespaceError, NamespaceInfo, Op, PlacementReport, SimTime, Subsystem, Token,
};

/// What the hint of a host's write command means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintMeaning {
    /// Nothing: a device without directives. Writes with a forced stream id are normal writes (S0-19).
    Nothing,
    /// A stream id; 0 is no stream.
    Stream,
    /// One more than the index of an entry in the namespace's list of placement identifiers, as Linux numbers
    /// write streams; 0 is no directive. An index beyond the list is sent as an identifier that is not
    /// valid.
    Placement,
}

/// A subsystem whose writes go through [`Directives`].
pub struct DirectedSubsystem {
    inner: Box<dyn Subsystem + Send>,
    directives: Directives,
    controller: ControllerId,
    meaning: HintMeaning,
    /// Pages that garbage collection of each set has moved, as far as it was reported.
    moved: Vec<u64>,
}

/// The logs of a subsystem, for reading.
struct View<'a>(&'a dyn Subsystem);

/// The logs of a subsystem at a moment.
struct ViewAt<'a>(&'a mut dyn Subsystem, SimTime);

fn media_of(inner: &dyn Subsystem, set: u16) -> MediaBytes {
    let device = inner.device(set);
    let geometry = device.geometry();
    let totals = device.medium_totals();
    let page = u64::from(geometry.page_bytes);
    MediaBytes {
        written: totals.programs * page,
        erased: totals.erases * page * u64::from(geometry.pages_per_block),
    }
}

impl Logs for View<'_> {
    fn log_status(&self, set: u16, log: u16) -> LogStatus {
        self.0.log_status(set, log)
    }

    fn renew_log(&mut self, _: u16, _: u16) -> Result<u64, NamespaceError> {
        unreachable!("a view for reading is only lent as such")
    }

    fn media(&self, set: u16) -> MediaBytes {
        media_of(self.0, set)
    }
}

impl Logs for ViewAt<'_> {
    fn log_status(&self, set: u16, log: u16) -> LogStatus {
        self.0.log_status(set, log)
    }

    fn renew_log(&mut self, set: u16, log: u16) -> Result<u64, NamespaceError> {
        self.0.renew_log(set, log, self.1)
    }

    fn media(&self, set: u16) -> MediaBytes {
        media_of(self.0, set)
    }
}

impl DirectedSubsystem {
    /// Puts directives in front of a subsystem. Namespace i of the subsystem must be namespace id i + 1 of
    /// the directives; the writes are those of one controller.
    pub fn new(
        inner: Box<dyn Subsystem + Send>,
        directives: Directives,
        controller: ControllerId,
        meaning: HintMeaning,
    ) -> Self {
        let namespaces = inner.namespaces().len();
        assert_eq!(namespaces, directives.namespaces.iter().flatten().count(), "namespaces of both");
        let moved = vec![0; usize::from(inner.sets())];
        Self { inner, directives, controller, meaning, moved }
    }

    /// The directives.
    pub fn directives(&self) -> &Directives {
        &self.directives
    }

    /// The directives for a command, with the logs below at a moment.
    pub fn command<R>(&mut self, at: SimTime, run: impl FnOnce(&mut Directives, &mut dyn Logs) -> R) -> R {
        run(&mut self.directives, &mut ViewAt(&mut *self.inner, at))
    }

    /// The controller whose writes these are.
    pub fn controller(&self) -> ControllerId {
        self.controller
    }

    fn directive(&self, namespace: u32, hint: Hint) -> WriteDirective {
        match self.meaning {
            HintMeaning::Stream => WriteDirective::stream(hint.0),
            HintMeaning::Placement if hint.0 > 0 => {
                WriteDirective::placement(self.directives.listed_pid(namespace, hint.0 - 1))
            }
            _ => WriteDirective::NONE,
        }
    }

    fn renew(&mut self, namespace: u32, route: super::Route, bytes: u64, at: SimTime) -> super::Route {
        let set = self.inner.namespaces()[namespace as usize].set;
        match self.inner.renew_log(set, route.log, at) {
            Ok(left) => {
                self.directives.left_bytes += left;
                route
            }
            // A write never fails for lack of streams.
            Err(_) => self.directives.give_up(route, bytes),
        }
    }

    /// Tells of pages that garbage collection has moved, where somebody wants to know.
    fn report_moves(&mut self, namespace: u32, at: SimTime) {
        let set = self.inner.namespaces()[namespace as usize].set;
        let moved = self.inner.ftl_stats(set).gc_moved_pages;
        let before = std::mem::replace(&mut self.moved[usize::from(set)], moved);
        if moved > before {
            let page = u64::from(self.inner.device(set).geometry().page_bytes);
            self.directives.media_moved(namespace, (moved - before) * page, at);
        }
    }
}

impl Subsystem for DirectedSubsystem {
    fn namespaces(&self) -> &[NamespaceInfo] {
        self.inner.namespaces()
    }

    fn sets(&self) -> u16 {
        self.inner.sets()
    }

    fn prepare(&self, namespace: u32, op: Op, extent: Extent) {
        self.inner.prepare(namespace, op, extent);
    }

    fn submit(
        &mut self,
        namespace: u32,
        mut command: Command,
        payload: Payload<'_>,
        at: SimTime,
    ) -> Result<Token, NamespaceError> {
        if command.op != Op::Write {
            command.hint = Hint::default();
            return self.inner.submit(namespace, command, payload, at);
        }
        let directive = self.directive(namespace, command.hint);
        let bytes = command.extent.len;
        let mut route = self.directives.route(self.controller, namespace, directive, bytes, at);
        if route.renew {
            route = self.renew(namespace, route, bytes, at);
        }
        command.hint = Hint(route.log);
        let token = self.inner.submit(namespace, command, payload, at);
        if self.directives.wants_moves(namespace) {
            self.report_moves(namespace, at);
        }
        token
    }

    nandscape_core::pass_on_time!(inner);

    fn idle(&mut self, at: SimTime, until: SimTime) -> Result<(), NamespaceError> {
        self.inner.idle(at, until)
    }

    fn shutdown(&mut self, at: SimTime) -> Result<Token, NamespaceError> {
        self.inner.shutdown(at)
    }

    fn read_only(&self, set: u16) -> Option<&'static str> {
        self.inner.read_only(set)
    }

    fn allocation(&self, namespace: u32, extent: Extent) -> Allocation {
        self.inner.allocation(namespace, extent)
    }

    fn host_counts(&self, namespace: u32) -> HostCounts {
        self.inner.host_counts(namespace)
    }

    fn ftl_stats(&self, set: u16) -> FtlStats {
        self.inner.ftl_stats(set)
    }

    fn cost(&self, set: u16) -> Cost {
        self.inner.cost(set)
    }

    fn logs(&self, set: u16) -> u16 {
        // Without directives the host cannot tell logs apart, whatever the layer could do.
        if self.meaning == HintMeaning::Nothing { 1 } else { self.inner.logs(set) }
    }

    fn log_status(&self, set: u16, log: u16) -> LogStatus {
        self.inner.log_status(set, log)
    }

    fn renew_log(&mut self, set: u16, log: u16, at: SimTime) -> Result<u64, NamespaceError> {
        self.inner.renew_log(set, log, at)
    }

    fn cache(&self) -> Option<CacheReport> {
        self.inner.cache()
    }

    fn placement(&self) -> Option<PlacementReport> {
        (self.meaning != HintMeaning::Nothing).then(|| self.directives.report(&View(&*self.inner)))
    }

    fn kinds(&self, namespace: u32) -> Option<KindReport> {
        self.inner.kinds(namespace)
    }

    fn device(&self, set: u16) -> &dyn FlashDevice {
        self.inner.device(set)
    }

    fn reset_counters(&mut self, at: SimTime) {
        self.inner.reset_counters(at);
        self.directives.reset_counts(&View(&*self.inner));
        for (set, moved) in self.moved.iter_mut().enumerate() {
            *moved = self.inner.ftl_stats(set as u16).gc_moved_pages;
        }
    }

    fn check_invariants(&self) {
        self.inner.check_invariants();
        self.directives.check_invariants();
    }
}

impl std::fmt::Debug for DirectedSubsystem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirectedSubsystem")
            .field("namespaces", &self.inner.namespaces())
            .field("directives", &self.directives)
            .field("meaning", &self.meaning)
            .finish_non_exhaustive()
    }
}
