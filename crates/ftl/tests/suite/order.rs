//! What the thesis strategies say about the order of operations, seen by a scheduler with endless parallelism
//! that honours nothing but issue times and `after`: a copy is programmed after its own read, a block is
//! erased after the reads of its live pages, and a request completes with the last operation done for it.

use nandscape_core::rng::{below, seeded};
use nandscape_core::{
    BlockId, Capabilities, Clocked, Completion, Extent, Ftl, Geometry, Hint, Params, SimTime, Token, Way,
};
use nandscape_ftl::{Journal, JournalOptions};
use nandscape_media::{BadBlocks, Nand, NandOptions, Scheduler, Timed, TimedOp, Timing};
use std::sync::{Arc, Mutex};

const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 2,
    planes_per_die: 1,
    blocks_per_plane: 8,
    pages_per_block: 4,
    page_bytes: 1024,
    sector_bytes: 512,
    oob_bytes: 16,
};

/// An operation as it was submitted; its token is its place in the log plus 1.
#[derive(Clone, Copy)]
struct Logged {
    /// `None` for a join.
    op: Option<TimedOp>,
    after: Token,
    done_ns: u64,
}

#[derive(Default)]
struct Log(Vec<Logged>);

impl Log {
    fn done_ns(&self, token: Token) -> u64 {
        if token == Token::NONE { 0 } else { self.0[token.0 as usize - 1].done_ns }
    }

    fn add(&mut self, logged: Logged) -> Token {
        self.0.push(logged);
        Token(self.0.len() as u64)
    }
}

struct Endless(Arc<Mutex<Log>>);

impl Clocked for Endless {
    fn completion(&self, token: Token) -> Option<SimTime> {
        Some(SimTime(self.0.lock().unwrap().done_ns(token)))
    }

    fn watch(&mut self, _: Token, _: u64) {}

    fn advance(&mut self, _: SimTime, _: &mut Vec<Completion>) {}

    fn next_event(&self) -> Option<SimTime> {
        None
    }

    fn idle_from(&self) -> SimTime {
        SimTime::ZERO
    }
}

nandscape_core::no_state!(impl [] Endless: "a scheduler of a test");

impl Scheduler for Endless {
    fn new(_: &Geometry, _: &Timing) -> Self {
        Self(Arc::default())
    }

    fn submit(&mut self, op: TimedOp, at: SimTime, after: Token) -> Token {
        let mut log = self.0.lock().unwrap();
        let latency = match op {
            TimedOp::Read { .. } => 10,
            TimedOp::Program { .. } => 100,
            TimedOp::Erase { .. } => 1000,
        };
        let done_ns = at.0.max(log.done_ns(after)) + latency;
        log.add(Logged { op: Some(op), after, done_ns })
    }

    fn pass(&mut self, _: Way, _: u32, _: SimTime, after: Token) -> Token {
        after
    }

    fn join(&mut self, a: Token, b: Token) -> Token {
        let mut log = self.0.lock().unwrap();
        let done_ns = log.done_ns(a).max(log.done_ns(b));
        log.add(Logged { op: None, after: Token::NONE, done_ns })
    }

    fn reset(&mut self, _: SimTime) {}
}

/// Checks the operations of one request that was issued at `at` and completes with `token`.
fn check_request(name: &str, log: &Log, from: usize, at: u64, token: Token) {
    let ops = || log.0[from..].iter().filter_map(|logged| Some((logged.op?, logged.after, logged.done_ns)));
    let last = ops().map(|(.., done)| done).max().unwrap_or(0);
    assert_eq!(
        log.done_ns(token).max(at),
        last.max(at),
        "{name}: the request completes with its last operation"
    );
    let block_of = |op: TimedOp| GEOMETRY.block_of(op.page());
    let mut reads: Vec<(BlockId, u64)> = Vec::new();
    let mut unmatched = 0i64;
    for (op, after, done) in ops() {
        match op {
            TimedOp::Read { .. } => {
                reads.push((block_of(op), done));
                unmatched += 1;
            }
            TimedOp::Erase { .. } => {
                // The superblock strategies erase only what has no live page; that such an erase does not
                // overtake an earlier read of its block is every scheduler's promise.
                if !name.starts_with("pm-") {
                    continue;
                }
                let needed =
                    reads.iter().filter(|(block, _)| *block == block_of(op)).map(|(_, done)| *done).max();
                assert!(
                    needed.unwrap_or(0) <= log.done_ns(after).max(at),
                    "{name}: {op:?} may run before the reads of its block are done"
                );
            }
            TimedOp::Program { .. } if after != Token::NONE => {
                let source = log.0[after.0 as usize - 1].op;
                assert!(
                    matches!(source, Some(TimedOp::Read { .. })),
                    "{name}: {op:?} follows {source:?}, not its read"
                );
                unmatched -= 1;
            }
            TimedOp::Program { .. } => {}
        }
    }
    assert_eq!(unmatched, 0, "{name}: every read of a write request feeds one program");
}

/// Where copies come first: a block is erased after the copies of what it held.
fn check_copies(name: &str, log: &Log, from: usize) {
    let mut copied = 0;
    for logged in &log.0[from..] {
        match logged.op {
            Some(TimedOp::Program { .. }) if logged.after != Token::NONE => {
                if matches!(log.0[logged.after.0 as usize - 1].op, Some(TimedOp::Read { .. })) {
                    copied = copied.max(logged.done_ns);
                }
            }
            Some(op @ TimedOp::Erase { .. }) => {
                assert!(
                    log.done_ns(logged.after) >= copied,
                    "{name}: {op:?} may run before the copies are done"
                );
                copied = 0;
            }
            _ => {}
        }
    }
}

#[test]
fn copies_come_before_erases_where_that_is_asked_for() {
    for name in ["pm-gcl", "pm-gcc"] {
        let (mut ftl, log) = layer(name, "copy-first");
        let mut rng = seeded(3);
        let mut now = 0;
        for _ in 0..2000 {
            let pages = 1 + below(&mut rng, 6);
            let first = below(&mut rng, ftl.logical_pages() - pages);
            let from = log.lock().unwrap().0.len();
            let extent = Extent::new(first * 1024, pages * 1024);
            let token = ftl.write(extent, None, Hint::default(), SimTime(now)).unwrap();
            let log = log.lock().unwrap();
            check_copies(name, &log, from);
            now = now.max(log.done_ns(token));
        }
        assert!(ftl.device().tally().totals.erases > 100, "{name} collected");
    }
}

#[test]
fn nothing_waits_for_what_was_before_time_started_anew() {
    for name in ["pm-gcl", "pm-gcc", "sbm-gcl", "hsbm-gcl"] {
        for order in ["copy-first", "erase-first"] {
            let (ftl, log) = layer_with(name, &[("gc_order", order), ("background_gc", "true")]);
            check_new_time(&format!("{name} {order}"), ftl, &log);
        }
    }
    // Where power may be lost, a page map keeps track of its last erases.
    let entry = nandscape_ftl::find("page-map").unwrap();
    let typed = [("op".to_owned(), "0.7".to_owned())].into();
    let (device, log) = device(true);
    let journal = Journal::open(device, JournalOptions::default()).unwrap();
    let params = Params::check(entry.info, "ftl.", &typed).unwrap();
    check_new_time("page-map", (entry.build)(Box::new(journal), &params).unwrap(), &log);
}

/// Writes that come after time has started anew take no notice of those before.
fn check_new_time(name: &str, mut ftl: Box<dyn Ftl + Send>, log: &Mutex<Log>) {
    let mut rng = seeded(3);
    let mut write = |ftl: &mut dyn Ftl, at: u64| {
        let extent = Extent::new(below(&mut rng, ftl.logical_pages() / 2) * 1024, 1024);
        let token = ftl.write(extent, Some(&[1; 1024]), Hint::default(), SimTime(at)).unwrap();
        log.lock().unwrap().done_ns(token)
    };
    let mut before = 0;
    for _ in 0..2000 {
        before = write(&mut *ftl, before);
        ftl.idle(SimTime(before), SimTime(before + 1)).unwrap();
    }
    assert!(ftl.device().tally().totals.erases > 100, "{name} collected");
    ftl.reset_stats();
    ftl.device_mut().reset_time(SimTime::ZERO);
    let after = (0..20).fold(0, |now, _| write(&mut *ftl, now));
    assert!(after < before / 10, "{name}: {after} of {before}");
}

/// Where copies come first, one superblock stays erased though the power goes: what was taken because idle
/// time erased another waits for that erase.
#[test]
fn a_superblock_waits_for_the_erase_in_idle_time_that_allowed_it_to_be_taken() {
    for name in ["sbm-gcl", "hsbm-gcl"] {
        for (order, must_wait) in [("copy-first", true), ("erase-first", false)] {
            let (mut ftl, log) = layer_with(name, &[("gc_order", order), ("background_gc", "true")]);
            let write = |ftl: &mut dyn Ftl, logical: u64, at| {
                let extent = Extent::new(logical * 4 * 1024, 4 * 1024);
                let token = ftl.write(extent, None, Hint::default(), SimTime(at)).unwrap();
                log.lock().unwrap().done_ns(token)
            };
            let erases = |ftl: &dyn Ftl| ftl.device().tally().totals.erases;
            let mut now = 0;
            let mut turns = (0..4).cycle();
            // Until the next one would collect.
            for _ in 0..if must_wait { 31 } else { 32 } {
                now = write(&mut *ftl, turns.next().unwrap(), now);
            }
            assert_eq!(erases(&*ftl), 0, "{name} {order}");
            ftl.idle(SimTime(now), SimTime(now + 1)).unwrap();
            assert_eq!(erases(&*ftl), 1, "{name} {order}: one step begins in a nanosecond");
            let done = write(&mut *ftl, turns.next().unwrap(), now + 1);
            assert_eq!(erases(&*ftl), 1, "{name} {order}: a superblock was erased");
            let erased = now + 1000;
            assert_eq!(done >= erased + 100, must_wait, "{name} {order}: {done} after {erased}");
        }
    }
}

fn layer(name: &str, order: &str) -> (Box<dyn Ftl + Send>, Arc<Mutex<Log>>) {
    layer_with(name, &[("gc_order", order)])
}

fn layer_with(name: &str, typed: &[(&str, &str)]) -> (Box<dyn Ftl + Send>, Arc<Mutex<Log>>) {
    let entry = nandscape_ftl::find(name).unwrap();
    let (device, log) = device(false);
    let typed = typed.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let params = Params::check(entry.info, "ftl.", &typed).unwrap();
    ((entry.build)(Box::new(device), &params).unwrap(), log)
}

fn device(stores_data: bool) -> (Timed<Nand, Endless>, Arc<Mutex<Log>>) {
    let capabilities = Capabilities { out_of_order_program: true, stores_data, ..Capabilities::default() };
    let options = NandOptions { capabilities, bad_blocks: BadBlocks::None, ..NandOptions::default() };
    let log: Arc<Mutex<Log>> = Arc::default();
    (Timed::new(Nand::new(GEOMETRY, &options).unwrap(), Endless(log.clone())), log)
}

fn check(name: &str) {
    let (mut ftl, log) = layer(name, "erase-first");
    let mut rng = seeded(3);
    let capacity = ftl.logical_pages() * 1024 * 7 / 10;
    let mut now = 0;
    for _ in 0..2000 {
        let len = 1 + below(&mut rng, 6000);
        let offset = below(&mut rng, capacity - len);
        let from = log.lock().unwrap().0.len();
        let token = ftl.write(Extent::new(offset, len), None, Hint::default(), SimTime(now)).unwrap();
        let log = log.lock().unwrap();
        check_request(name, &log, from, now, token);
        now = now.max(log.done_ns(token));
    }
    assert!(ftl.device().tally().totals.erases > 100, "{name} collected");
}

#[test]
fn pm_gcl_orders_its_operations() {
    check("pm-gcl");
}

#[test]
fn pm_gcc_orders_its_operations() {
    check("pm-gcc");
}

#[test]
fn sbm_gcl_orders_its_operations() {
    check("sbm-gcl");
}

#[test]
fn hsbm_gcl_orders_its_operations() {
    check("hsbm-gcl");
}
