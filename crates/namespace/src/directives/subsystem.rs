//! Directives in front of a subsystem: a hint becomes a directive, and the directive a log of the layer.

use super::fdp::MediaBytes;
use super::state::{ControllerId, Directives, Logs};
use super::wire::WriteDirective;
use nandscape_core::command::Payload;
use nandscape_core::{
    Clocked, Command, Control, Hint, Inspect, Layered, LogStatus, NamespaceResult, Op, PlacementReport,
    PlacementReports, SimTime, Submitted, Subsystem, state,
};

/// What the hint of a host's write command means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintMeaning {
    /// Nothing: a device without directives. Writes with a forced stream id are normal writes.
    Nothing,
    /// A stream id; 0 is no stream.
    Stream,
    /// One more than an index in the namespace's list of placement identifiers, as Linux numbers write
    /// streams; 0 is no directive. An index beyond the list is sent as an invalid identifier.
    Placement,
}

/// A subsystem whose writes go through [`Directives`].
pub struct DirectedSubsystem {
    inner: Box<dyn Subsystem + Send>,
    directives: Directives,
    /// The controller whose writes these are.
    pub(crate) controller: ControllerId,
    meaning: HintMeaning,
    /// Pages that garbage collection of each set has moved, as far as it was reported.
    moved: Vec<u64>,
}

state!(impl [] DirectedSubsystem { saved: inner, directives; tables: moved; fixed: controller, meaning; });

/// The logs of a subsystem, for reading.
struct View<'a>(&'a dyn Subsystem);

/// The logs of a subsystem at a moment.
struct ViewAt<'a>(&'a mut dyn Subsystem, SimTime);

fn media_of(inner: &dyn Subsystem, set: u16) -> MediaBytes {
    let device = inner.inspect().device(set);
    let geometry = device.geometry();
    let totals = device.tally().totals;
    let page = u64::from(geometry.page_bytes);
    MediaBytes {
        written: totals.programs * page,
        erased: totals.erases * page * u64::from(geometry.pages_per_block),
    }
}

fn renew_log(inner: &mut dyn Subsystem, set: u16, log: u16, at: SimTime) -> NamespaceResult<u64> {
    let logs = inner.control().nvme.and_then(|nvme| nvme.logs());
    logs.expect("directives stand in front of flash").renew_log(set, log, at)
}

impl Logs for View<'_> {
    fn log_status(&self, set: u16, log: u16) -> LogStatus {
        self.0.inspect().layer(set).log_status(log)
    }

    fn renew_log(&mut self, _: u16, _: u16) -> NamespaceResult<u64> {
        unreachable!("a view for reading is only lent as such")
    }

    fn media(&self, set: u16) -> MediaBytes {
        media_of(self.0, set)
    }
}

impl Logs for ViewAt<'_> {
    fn log_status(&self, set: u16, log: u16) -> LogStatus {
        self.0.inspect().layer(set).log_status(log)
    }

    fn renew_log(&mut self, set: u16, log: u16) -> NamespaceResult<u64> {
        renew_log(self.0, set, log, self.1)
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
        let moved = vec![0; usize::from(inner.inspect().sets())];
        Self { inner, directives, controller, meaning, moved }
    }

    /// The directives for a command, with the logs below at a moment.
    pub fn command<R>(&mut self, at: SimTime, run: impl FnOnce(&mut Directives, &mut dyn Logs) -> R) -> R {
        run(&mut self.directives, &mut ViewAt(&mut *self.inner, at))
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
        match renew_log(&mut *self.inner, set, route.log, at) {
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
        let moved = self.inner.inspect().layer(set).stats().gc_moved_pages;
        let before = std::mem::replace(&mut self.moved[usize::from(set)], moved);
        if moved > before {
            let page = u64::from(self.inner.inspect().device(set).geometry().page_bytes);
            self.directives.media_moved(namespace, (moved - before) * page, at);
        }
    }
}

impl Layered for DirectedSubsystem {
    fn below(&self) -> &dyn Subsystem {
        &*self.inner
    }

    fn below_mut(&mut self) -> &mut dyn Subsystem {
        &mut *self.inner
    }

    fn submit(&mut self, namespace: u32, command: Command, payload: Payload<'_>, at: SimTime) -> Submitted {
        let Command::Block(mut command) = command else {
            return self.inner.submit(namespace, command, payload, at);
        };
        if command.op != Op::Write {
            command.hint = Hint::default();
            return self.inner.submit(namespace, command.into(), payload, at);
        }
        let directive = self.directive(namespace, command.hint);
        let bytes = command.extent.len;
        let mut route = self.directives.route(self.controller, namespace, directive, bytes, at);
        if route.renew {
            route = self.renew(namespace, route, bytes, at);
        }
        command.hint = Hint(route.log);
        let answer = self.inner.submit(namespace, command.into(), payload, at);
        if self.directives.wants_moves(namespace) {
            self.report_moves(namespace, at);
        }
        answer
    }

    fn inspect(&self) -> Inspect<'_> {
        let below = self.inner.inspect();
        let is_directed = self.meaning != HintMeaning::Nothing;
        // Without directives the host cannot tell logs apart, whatever the layer could do.
        Inspect { has_logs: is_directed, placement: if is_directed { Some(self) } else { None }, ..below }
    }

    fn control(&mut self) -> Control<'_> {
        // A file system of the host above has the device for itself.
        if self.inner.control().issue.is_some() {
            return self.inner.control();
        }
        // Of a cache there is none below.
        Control { nvme: Some(self), ..Control::default() }
    }

    fn counters_were_reset(&mut self) {
        self.directives.reset_counts(&View(&*self.inner));
        for (set, moved) in self.moved.iter_mut().enumerate() {
            *moved = self.inner.inspect().layer(set as u16).stats().gc_moved_pages;
        }
    }

    fn check_own_invariants(&self) {
        self.directives.check_invariants();
    }
}

impl Clocked for DirectedSubsystem {
    nandscape_core::delegate_clock!(self, self.inner);
}

impl PlacementReports for DirectedSubsystem {
    fn placement(&self) -> PlacementReport {
        self.directives.report(&View(&*self.inner))
    }
}
