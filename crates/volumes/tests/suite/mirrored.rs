//! Caches with several fast files of the same bytes.

use crate::support::{design, submit};
use nandscape_core::command::Payload;
use nandscape_core::{Op, SimTime};
use nandscape_volumes::{CacheFile, Making, MirrorMember, Result, Serving, open_cache};
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use tempfile::TempDir;

const BLOCK: u64 = 4096;

struct Place(TempDir);

impl Place {
    /// A disk of zeroes.
    fn new() -> Self {
        let this = Self(TempDir::new().unwrap());
        fs::write(this.path("disk"), vec![0; 4 << 20]).unwrap();
        this
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn create(&self, names: &[&str], bytes: Option<u64>, replace: bool) -> Result<CacheFile> {
        let mirror: Vec<PathBuf> = names[1..].iter().map(|name| self.path(name)).collect();
        let with = Making { mirror: &mirror, replace, ..Making::default() };
        let design = design(&[("cleaning", "none")]);
        CacheFile::create(&self.path(names[0]), bytes, &design, with).map(|(cache, _)| cache)
    }

    /// With the disk behind it.
    fn cached(names: &[&str]) -> Self {
        let this = Self::new();
        let mut cache = this.create(names, Some(8 << 20), false).unwrap();
        cache.attach(&this.path("disk"), "disk", None, false).unwrap();
        this
    }

    fn serve(&self, name: &str) -> Serving {
        open_cache(&self.path(name), &[], false).unwrap()
    }

    fn refused(&self, name: &str) -> String {
        open_cache(&self.path(name), &[], false).map(drop).unwrap_err().to_string()
    }

    fn replace(&self, by: &str, member: &str, new: &str, force: bool) -> Result<()> {
        let with = Making { replace: force, ..Making::default() };
        CacheFile::replace(&self.path(by), &self.path(member), &self.path(new), with, &mut |_, _| {})
    }

    fn members(&self, by: &str) -> Vec<MirrorMember> {
        CacheFile::open(&self.path(by), true).unwrap().stat().unwrap().mirror
    }
}

fn bytes(block: u64, version: u8) -> Vec<u8> {
    [0x5A, version, block as u8, 0x11].repeat(BLOCK as usize / 4)
}

fn write(serving: &mut Serving, blocks: std::ops::Range<u64>, version: u8) {
    for block in blocks {
        submit(serving, BLOCK, Op::Write, block, Payload::Write(&bytes(block, version))).unwrap();
    }
    submit(serving, BLOCK, Op::Flush, 0, Payload::None).unwrap();
}

fn check(serving: &mut Serving, blocks: std::ops::Range<u64>, version: u8) {
    for block in blocks {
        let mut found = vec![0; BLOCK as usize];
        submit(serving, BLOCK, Op::Read, block, Payload::Read(&mut found)).unwrap();
        assert!(found == bytes(block, version), "block {block}");
    }
}

fn control(serving: &mut Serving) -> &mut dyn nandscape_core::CacheControl {
    serving.subsystem.control().cache.unwrap()
}

fn close(mut serving: Serving) {
    serving.handle.close_next();
    serving.subsystem.shutdown(SimTime(1)).unwrap();
}

#[test]
fn a_cache_outlives_each_of_its_members_in_turn_and_has_all_dirty_blocks_at_the_end() {
    let place = Place::cached(&["a", "b"]);
    let mut serving = place.serve("a");
    write(&mut serving, 0..100, 1);
    // A kill; then one is deleted while it is served.
    drop(serving);
    let mut serving = place.serve("b");
    check(&mut serving, 0..100, 1);
    write(&mut serving, 0..50, 2);
    fs::remove_file(place.path("a")).unwrap();
    close(serving);
    let failed = &place.members("b")[0];
    assert!(
        failed.to_string().contains("a: used no more: ")
            && failed.failed.as_ref().unwrap().contains("deleted"),
        "{failed}"
    );
    assert!(place.refused("a").contains("/a: open: No such file"));
    let mut serving = place.serve("b");
    assert!(serving.notes.iter().any(|note| note.contains("/a: used no more")), "{:?}", serving.notes);
    check(&mut serving, 0..50, 2);
    check(&mut serving, 50..100, 1);
    write(&mut serving, 50..100, 3);
    close(serving);
    place.replace("b", "a", "c", false).unwrap();
    let states: Vec<_> = place.members("c").iter().map(ToString::to_string).collect();
    assert!(states[0].ends_with("/c: current") && states[1].ends_with("/b: current"), "{states:?}");
    // The other one of the first two goes between two servers.
    fs::rename(place.path("b"), place.path("away")).unwrap();
    let why = place.refused("c");
    assert!(
        why.contains("member") && why.contains("/b of its mirror") && why.contains("'nandscape cache fail"),
        "{why}"
    );
    CacheFile::fail(&place.path("c"), &place.path("b")).unwrap();
    let mut serving = place.serve("c");
    check(&mut serving, 0..50, 2);
    check(&mut serving, 50..100, 3);
    write(&mut serving, 0..10, 4);
    close(serving);
    // It comes back with what it had, and does not count.
    fs::rename(place.path("away"), place.path("b")).unwrap();
    let mut serving = place.serve("b");
    check(&mut serving, 0..10, 4);
    close(serving);
    place.replace("c", "b", "b", false).unwrap();
    fs::remove_file(place.path("c")).unwrap();
    CacheFile::fail(&place.path("b"), &place.path("c")).unwrap();
    let mut cache = CacheFile::open(&place.path("b"), false).unwrap();
    cache.clean(None, &[], &mut |_, _| {}).unwrap();
    for block in 0..100 {
        let mut found = vec![0; BLOCK as usize];
        File::open(place.path("disk")).unwrap().read_exact_at(&mut found, block * BLOCK).unwrap();
        assert!(
            found
                == bytes(
                    block,
                    if block < 10 {
                        4
                    } else if block < 50 {
                        2
                    } else {
                        3
                    }
                ),
            "block {block}"
        );
    }
    cache.detach("disk", None, &mut |_, _| {}).unwrap();
}

#[test]
fn a_member_is_replaced_while_the_cache_is_served_and_has_what_was_written_meanwhile() {
    let place = Place::cached(&["a", "b"]);
    let mut serving = place.serve("a");
    write(&mut serving, 0..200, 1);
    control(&mut serving).fail(&place.path("b")).unwrap();
    write(&mut serving, 0..20, 2);
    control(&mut serving).replace(&place.path("b"), &place.path("c"), false).unwrap();
    let twice = control(&mut serving).replace(&place.path("b"), &place.path("d"), false).unwrap_err();
    assert!(twice.contains("/c is not done yet"), "{twice}");
    let mut steps = 0;
    while control(&mut serving).copy_more().unwrap() > 0 {
        steps += 1;
        write(&mut serving, steps * 20..steps * 20 + 20, 2);
    }
    assert!(steps >= 6, "{steps}");
    write(&mut serving, 180..200, 3);
    // A kill, and the only member that was there all the time is gone.
    drop(serving);
    fs::remove_file(place.path("a")).unwrap();
    CacheFile::fail(&place.path("c"), &place.path("a")).unwrap();
    let mut serving = place.serve("c");
    check(&mut serving, 0..20 + steps * 20, 2);
    check(&mut serving, 20 + steps * 20..180, 1);
    check(&mut serving, 180..200, 3);
}

#[test]
fn a_new_member_that_fails_is_none_and_the_old_ones_go_on() {
    let place = Place::cached(&["a", "b"]);
    let mut serving = place.serve("a");
    write(&mut serving, 0..100, 1);
    control(&mut serving).replace(&place.path("b"), &place.path("c"), false).unwrap();
    control(&mut serving).copy_more().unwrap();
    File::options().write(true).open(place.path("c")).unwrap().set_len(4096).unwrap();
    let mut found = Ok(1);
    while found.as_ref().is_ok_and(|left| *left > 0) {
        found = control(&mut serving).copy_more();
    }
    let error = found.unwrap_err();
    assert!(error.contains("/c: ") && error.contains("bytes, expected 8388608"), "{error}");
    assert!(!place.path("c").exists(), "what was made for it goes");
    write(&mut serving, 0..10, 2);
    close(serving);
    let states: Vec<_> = place.members("b").iter().map(ToString::to_string).collect();
    assert!(states.iter().all(|state| state.ends_with(": current")), "{states:?}");
    check(&mut place.serve("b"), 0..10, 2);
}

#[test]
fn members_are_checked_when_they_are_made_found_and_replaced() {
    let place = Place::cached(&["a", "b", "c"]);
    let error = |done: Result<()>| done.unwrap_err().to_string();
    assert!(error(place.create(&["x", "y"], None, false).map(drop)).contains("/x: open: No such file"));
    fs::write(place.path("used"), vec![1; 4 << 20]).unwrap();
    let used = error(place.create(&["x", "used"], Some(4 << 20), false).map(drop));
    assert!(used.contains("/used: not empty"), "{used}");
    assert!(!place.path("x").exists(), "what cannot be made leaves no file");
    assert!(
        error(place.create(&["x", "x"], Some(4 << 20), false).map(drop))
            .contains("in use by another process")
    );
    assert!(error(place.create(&["x", "used"], Some(8 << 20), true).map(drop)).contains("/used"));
    assert!(error(place.create(&["b", "x"], Some(8 << 20), false).map(drop)).contains("/b: not empty"));
    assert!(
        error(place.replace("a", "used", "x", false))
            .contains("/used: no member of the mirror: expected one of ")
    );
    assert!(
        error(place.replace("a", "b", "used", false))
            .contains("/used: 4194304 bytes: expected 8388608 or more")
    );
    assert!(error(place.replace("a", "b", "c", false)).contains("in use by another process"));
    fs::write(place.path("used"), vec![1; 8 << 20]).unwrap();
    assert!(error(place.replace("a", "b", "used", false)).contains("/used: not empty"));
    let mut cache = CacheFile::open(&place.path("a"), false).unwrap();
    let own = cache.attach(&place.path("c"), "c", None, false).unwrap_err().to_string();
    assert!(own.contains("the cache itself"), "{own}");
    drop(cache);
    for member in ["b", "c"] {
        CacheFile::fail(&place.path("a"), &place.path(member)).unwrap();
    }
    assert!(
        error(CacheFile::fail(&place.path("a"), &place.path("a")))
            .contains("/a: the only member that is left")
    );
    assert!(error(place.replace("a", "a", "x", false)).contains("/a: the only member that is left"));
    place.replace("a", "b", "used", true).unwrap();
    // A member that is cut short between two servers is none, nor is an older copy.
    let whole = fs::read(place.path("used")).unwrap();
    File::options().write(true).open(place.path("used")).unwrap().set_len(2 << 20).unwrap();
    let short = place.refused("a");
    assert!(
        short.contains("/used of its mirror: ") && short.contains("2097152 bytes: expected 8388608"),
        "{short}"
    );
    fs::write(place.path("used"), whole).unwrap();
    fs::copy(place.path("used"), place.path("old")).unwrap();
    let mut serving = place.serve("a");
    write(&mut serving, 0..100, 1);
    close(serving);
    let mut serving = place.serve("a");
    write(&mut serving, 0..100, 2);
    close(serving);
    fs::rename(place.path("old"), place.path("used")).unwrap();
    let old = place.refused("a");
    assert!(old.contains("/used of its mirror: an older copy: expected it"), "{old}");
    let plain = Place::new();
    plain.create(&["one"], Some(4 << 20), false).unwrap();
    assert!(
        error(plain.replace("one", "one", "x", false))
            .contains("no mirror: expected a cache that was made with --mirror")
    );
}

#[test]
fn two_members_that_were_each_used_alone_are_not_taken_for_the_same_cache() {
    let place = Place::cached(&["a", "b"]);
    let away = |name: &str| fs::rename(place.path(name), place.path("away")).unwrap();
    let back = |name: &str| fs::rename(place.path("away"), place.path(name)).unwrap();
    let mut serving = place.serve("a");
    write(&mut serving, 0..10, 1);
    close(serving);
    away("b");
    CacheFile::fail(&place.path("a"), &place.path("b")).unwrap();
    let mut serving = place.serve("a");
    write(&mut serving, 0..10, 2);
    close(serving);
    fs::rename(place.path("a"), place.path("newer")).unwrap();
    back("b");
    CacheFile::fail(&place.path("b"), &place.path("a")).unwrap();
    let older = place.refused("b");
    assert!(older.contains("was used without its cache"), "{older}");
    fs::rename(place.path("newer"), place.path("a")).unwrap();
    check(&mut place.serve("a"), 0..10, 2);
}
