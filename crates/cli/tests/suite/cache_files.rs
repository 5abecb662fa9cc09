//! Caches over files as a user gets them: what is refused, and that nothing half-made is left.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn run(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nandscape"))
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn done(dir: &Path, args: &[&str]) -> String {
    let output = run(dir, args);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn fails(dir: &Path, args: &[&str], code: i32, wanted: &[&str]) {
    let output = run(dir, args);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {message}");
    for part in wanted {
        assert!(message.contains(part), "{args:?}: '{message}' lacks '{part}'");
    }
}

fn disk(dir: &Path, name: &str, bytes: u64) {
    File::create(dir.join(name)).unwrap().set_len(bytes).unwrap();
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A cache with one volume, and a disk that has none.
fn site() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), &["cache", "create", "fast", "--size", "4MiB"]);
    for name in ["one", "two"] {
        disk(dir.path(), name, 1 << 20);
    }
    done(dir.path(), &["cache", "attach", "fast", "one"]);
    dir
}

#[test]
fn bad_input_is_named_and_changes_nothing() {
    let site = site();
    let dir = site.path();
    disk(dir, "odd", 1000);
    disk(dir, "empty", 0);
    fs::write(dir.join("full"), vec![7; 1 << 20]).unwrap();
    fs::hard_link(dir.join("one"), dir.join("alias")).unwrap();
    let content = |name: &str| fs::read(dir.join(name)).unwrap();
    let (files, before) = (names(dir), ["fast", "one", "one.nandscape-cache", "full"].map(content));
    for (args, code, wanted) in [
        (&["create", "new"][..], 2, &["new", "--size"][..]),
        (&["create", "new", "--size", "0"], 2, &["--size 0", "multiple of 4KiB"]),
        (&["create", "new", "--size", "1EiB"], 2, &["--size 1EiB"]),
        (&["create", "new", "--size", "64KiB"], 1, &["new", "65536", "expected at least"]),
        (&["create", "absent/new", "--size", "1MiB"], 1, &["absent/new", "No such file"]),
        (&["create", ".", "--size", "1MiB"], 1, &["a directory", "expected a file"]),
        (&["create", "/dev/null"], 1, &["/dev/null", "a character device"]),
        (&["create", "empty"], 1, &["empty", "0 bytes"]),
        (&["create", "full"], 1, &["full", "at byte 0", "zeroes", "--force"]),
        (&["create", "one"], 1, &["one.nandscape-cache", "--force"]),
        (&["create", "fast"], 1, &["fast", "1 volumes", "--force"]),
        (&["create", "fast", "--block", "3000"], 2, &["cache.block = '3000'", "power of two"]),
        (&["create", "new", "--size", "1MiB", "--mode", "wb"], 2, &["cache.mode = 'wb'", "write-back"]),
        (&["create", "new", "--size", "1MiB", "--preset", "bcach"], 2, &["'bcach'", "did you mean 'bcache'"]),
        (
            &["create", "new", "--size", "1MiB", "--set", "evict=lru"],
            2,
            &["cache.evict", "did you mean 'eviction'"],
        ),
        (&["create", "new", "--size", "1MiB", "--set", "eviction=LUR"], 2, &["'lur'", "did you mean 'lru'"]),
        (
            &["create", "new", "--size", "1MiB", "--set", "fallow_delay=1s"],
            2,
            &["fallow_delay", "'idle-age'"],
        ),
        (
            &["create", "new", "--size", "1MiB", "--set", "size=1GiB"],
            1,
            &["1048576 bytes", "expected at least"],
        ),
        (&["create", "new", "--size", "1MiB", "--set", "x"], 2, &["--set 'x'", "KEY=VALUE"]),
        (&["create", "new", "--size", "1MiB", "--preset", "rapidcache"], 2, &["ram:SIZE"]),
        (&["attach", "fast", "absent"], 1, &["absent", "No such file"]),
        (&["attach", "fast", "."], 2, &[".", "expected a file or a block device"]),
        (&["attach", "fast", ".", "--name", "x"], 1, &["a directory", "expected a file or a block device"]),
        (&["attach", "fast", "odd"], 1, &["odd", "1000 bytes", "512"]),
        (&["attach", "fast", "empty"], 1, &["empty", "0 bytes"]),
        (&["attach", "fast", "fast"], 1, &["the cache itself"]),
        (&["attach", "fast", "alias", "--force"], 1, &["alias", "the disk of volume one"]),
        (&["attach", "fast", "two", "--name", "one"], 2, &["volume name 'one'"]),
        (&["attach", "fast", "two", "--name", "a/b"], 2, &["volume name 'a/b'", "letters, digits"]),
        (&["attach", "two", "odd"], 1, &["two", "no cache here"]),
        (&["attach", "absent", "two"], 1, &["absent"]),
        (&["detach", "fast", "other"], 2, &["no volume 'other'", "one of one"]),
        (&["detach", "fast", "one", "--disk", "two", "--discard"], 2, &["--discard"]),
        (&["resize", "fast", "other"], 2, &["no volume 'other'"]),
        (&["clean", "fast", "other"], 2, &["no volume 'other'"]),
        (&["clean", "fast", "--disk", "one"], 2, &["--disk one", "NAME=PATH"]),
        (&["clean", "fast", "--disk", "other=two"], 2, &["no volume 'other'"]),
        (&["set", "fast", "mode=x"], 2, &["cache.mode = 'x'"]),
        (&["set", "fast", "metadata=slots"], 2, &["cache.metadata cannot change"]),
        (&["set", "fast", ""], 2, &["'': expected KEY=VALUE"]),
        (&["set", "two", "mode=write-back"], 1, &["two", "no cache here"]),
        (&["salvage", "fast", "one", "--to", "two"], 1, &["two", "exists"]),
        (&["salvage", "fast", "one", "--to", "absent/new"], 1, &["absent/new"]),
        (&["salvage", "fast", "other"], 2, &["no volume 'other'"]),
        (&["status", "two"], 1, &["two", "no cache here"]),
        (&["status", "fast", "other"], 2, &["no volume 'other'"]),
        (&["table", "fast", "--preset", "bcach"], 2, &["did you mean 'bcache'"]),
    ] {
        fails(dir, &[&["cache"], args].concat(), code, wanted);
    }
    for (args, code, wanted) in [
        (&["--cache", "absent"][..], 1, &["absent"][..]),
        (&["--cache", "two"], 1, &["two", "no cache here"]),
        (&["--cache", "fast", "--set", "mode=write-back"], 2, &["nandscape cache set"]),
        (&["--cache", "fast", "--disk", "other=two"], 2, &["no volume 'other'"]),
        (&["--cache", "fast", "--disk", "one=absent"], 1, &["absent"]),
        (&["--cache", "fast", "--cache-preset", "bcache"], 2, &["--cache-preset bcache", "ram:SIZE"]),
        (&["--cache", "ram:x", "--disk", "a=two"], 2, &["ram:x", "ram:256MiB"]),
        (&["--cache", "ram:1MiB"], 2, &["--disk NAME=PATH"]),
        (&["--cache", "ram:1MiB", "--disk", "a/b=two"], 2, &["volume name 'a/b'"]),
        (&["--cache", "ram:1MiB", "--disk", "a=two", "--disk", "a=odd"], 2, &["volume name 'a'"]),
        (&["--cache", "ram:1MiB", "--disk", "a=one"], 1, &["the disk has a cache already", "--trust-disks"]),
        (
            &["--cache", "ram:1MiB", "--disk", "a=two", "--cache-preset", "bcache"],
            2,
            &["mode write-back in memory"],
        ),
        (
            &["--image", "new", "--set", "cache.preset=nandscape"],
            2,
            &["[cache] and [disk] with an image", "serve --cache"],
        ),
    ] {
        fails(dir, &[&["serve", "nbd", "--socket", "s", "--no-control"], args].concat(), code, wanted);
    }
    fails(dir, &["image", "create", "new", "--set", "cache.preset=nandscape"], 2, &["[cache] and [disk]"]);
    assert_eq!(names(dir), files, "something half-made is left");
    assert!(["fast", "one", "one.nandscape-cache", "full"].map(content) == before, "something has changed");
}

#[test]
fn the_disk_of_another_volume_is_never_taken_for_a_volumes_own() {
    let site = site();
    let dir = site.path();
    done(dir, &["cache", "attach", "fast", "two"]);
    let stamps = || ["one", "two"].map(|name| fs::read(dir.join(format!("{name}.nandscape-cache"))).unwrap());
    let before = stamps();
    for args in [
        &["detach", "fast", "one", "--disk", "two"][..],
        &["resize", "fast", "one", "--disk", "two"],
        &["salvage", "fast", "one", "--onto-disk", "--disk", "two"],
    ] {
        fails(dir, &[&["cache"], args].concat(), 1, &["one: not the disk of volume 0", "its stamp names"]);
    }
    fs::copy(dir.join("two"), dir.join("copy")).unwrap();
    fs::copy(dir.join("two.nandscape-cache"), dir.join("copy.nandscape-cache")).unwrap();
    let serve = ["serve", "nbd", "--socket", "s", "--no-control", "--cache", "fast", "--disk", "one=copy"];
    fails(dir, &serve, 1, &["not the disk of volume 0"]);
    fails(dir, &[&serve[..], &["--trust-disks"]].concat(), 1, &["not the disk of volume 0"]);
    assert!(stamps() == before, "a stamp file has changed");
    done(dir, &["cache", "detach", "fast", "one"]);
    assert!(!dir.join("one.nandscape-cache").exists() && dir.join("two.nandscape-cache").exists());
    // A disk that is gone: its stamp file goes with the volume.
    fs::remove_file(dir.join("two")).unwrap();
    done(dir, &["cache", "detach", "fast", "two", "--discard"]);
    assert!(!dir.join("two.nandscape-cache").exists());
}

#[test]
fn a_new_cache_is_called_new_and_a_resized_volume_has_its_new_size() {
    let site = site();
    let dir = site.path();
    let status = |of: &str| -> serde_json::Value {
        serde_json::from_str(&done(dir, &["cache", "status", of, "--json"])).unwrap()
    };
    assert_eq!(status("fast")["recovery"], "new: nothing has been cached yet");
    assert_eq!(status("fast")["volumes"][0]["state"], "same");
    disk(dir, "one", 3 << 20);
    assert!(
        status("fast")["volumes"][0]["state"].as_str().unwrap().starts_with("changed: it has 3145728 bytes")
    );
    done(dir, &["cache", "resize", "fast", "one"]);
    assert_eq!(status("fast")["volumes"][0]["bytes"], 3 << 20);
    assert_eq!(status("fast")["volumes"][0]["state"], "same");
    done(dir, &["cache", "set", "fast", "eviction=arc", "mode=write-through"]);
    assert_eq!(status("fast")["mode"], "write-through");
    let slots = status("fast")["gauges"]["slots"].as_u64().unwrap();
    done(dir, &["cache", "set", "fast", "quota.one=25%", "limit=100b"]);
    assert_eq!(status("fast")["volumes"][0]["quota_blocks"], slots / 4);
    let text = done(dir, &["cache", "status", "fast"]);
    assert!(text.contains(&format!("# quota: {} blocks", slots / 4)), "{text}");
    assert!(text.contains("# limit: 100 blocks"), "{text}");
    let table = done(dir, &["cache", "table", "fast"]);
    assert!(!table.contains("memory_bytes"), "nothing runs that holds any: {table}");
    done(dir, &["cache", "set", "fast", "quota.one=none", "limit=", "eviction="]);
    assert!(status("fast")["volumes"][0].get("quota_blocks").is_none());
    assert!(status("fast").get("limit_blocks").is_none());
}

#[test]
fn flashcache_echoes_what_it_is_made_of_when_it_gets_its_disk() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    disk(dir, "one", 1 << 20);
    done(dir, &["cache", "create", "fast", "--size", "64MiB", "--preset", "flashcache"]);
    let said = stderr(&run(dir, &["cache", "attach", "fast", "one"]));
    for part in ["cachedev one, ssd_devname fast", "cache mode WRITE_BACK block_size 8", "MB main memory"] {
        assert!(said.contains(part), "{said}");
    }
    let blocks = done(dir, &["cache", "table", "fast"]);
    assert!(blocks.contains("total blocks(15872)"), "31 sets of 512 and no part of one: {blocks}");
}

#[test]
fn bounds_of_what_is_held_are_named_where_they_cannot_be() {
    let site = site();
    let before = fs::read(site.path().join("fast")).unwrap();
    for (args, code, wanted) in [
        (
            &["attach", "fast", "two", "--quota", "much"][..],
            2,
            &["cache.quota.two = 'much'", "25%, or none"][..],
        ),
        (&["set", "fast", "quota.one=-1"], 2, &["cache.quota.one = '-1'", "25%, or none"]),
        (&["set", "fast", "quota.other=1b"], 2, &["no volume 'other'"]),
        (&["set", "fast", "limit=x"], 2, &["cache.limit = 'x'", "25%, or none"]),
    ] {
        fails(site.path(), &[&["cache"], args].concat(), code, wanted);
    }
    assert!(fs::read(site.path().join("fast")).unwrap() == before, "something has changed");
    assert!(!site.path().join("two.nandscape-cache").exists());
}

/// The line that `cache table` prints.
fn table_line(dir: &Path, fast: &str) -> String {
    let page = done(dir, &["cache", "table", fast]);
    page.lines().find_map(|line| line.strip_prefix("# table: ")).expect("a line").to_owned()
}

#[test]
fn a_table_line_makes_a_cache_whose_table_is_that_line() {
    let dir = tempfile::tempdir().unwrap();
    let dir = fs::canonicalize(dir.path()).unwrap();
    let dir = dir.as_path();
    disk(dir, "my disk", 1 << 20);
    let line = format!("0 2048 cache {}/my\\ disk fast 0 8 240 16 1", dir.display());
    done(dir, &["cache", "create", "--table", &line, "--size", "4MiB", "--name", "data"]);
    assert_eq!(table_line(dir, "fast"), line);
    let page = done(dir, &["cache", "table", "fast"]);
    assert!(page.contains("0 2048 cache conf: capacity(0M), associativity(16), block size(4K), write-back"));
    // The cache that is there is taken, if the line is its own.
    for rest in ["1", "1 8", "1 8 240 16 1"] {
        let line = format!("0 2048 cache {}/my\\ disk fast {rest}", dir.display());
        let output = run(dir, &["cache", "create", "--table", &line]);
        assert!(output.status.success(), "{rest}: {}", stderr(&output));
        assert!(
            stderr(&output).contains("data: 1 MiB, 0 blocks cached, 0 of them dirty"),
            "{}",
            stderr(&output)
        );
    }
    done(dir, &["cache", "detach", "fast", "data"]);
    // With defaults, whichever design it is.
    fs::rename(dir.join("my disk"), dir.join("disk")).unwrap();
    done(dir, &["cache", "create", "--table", "0 2048 cache disk again 0 8 1024", "--size", "8MiB"]);
    let printed = table_line(dir, "again");
    assert_eq!(printed, format!("0 2048 cache {}/disk again 0 8 1024 1024 0", dir.display()));
    done(dir, &["cache", "detach", "again", "disk"]);
    done(dir, &["cache", "create", "--table", &printed, "--force"]);
    assert_eq!(table_line(dir, "again"), printed);
}

#[test]
fn every_field_of_a_table_line_that_does_not_fit_is_named_and_nothing_changes() {
    let site = site();
    let dir = site.path();
    done(dir, &["cache", "create", "--table", "0 2048 cache two fiu 0 8 64 16 1", "--size", "2MiB"]);
    disk(dir, "free", 1 << 20);
    let content = |name: &str| fs::read(dir.join(name)).unwrap();
    let (files, before) = (names(dir), ["fast", "fiu", "one", "two"].map(content));
    for (line, more, code, wanted) in [
        ("1 2048 cache free new 0", &[][..], 2, &["--table: table field 1 (start) = '1': expected 0"][..]),
        ("0 2047 cache free new 0 8 64 16", &["--size", "2MiB"], 2, &["field 2 (sectors) = '2047'", "2048"]),
        ("0 2048 linear free new", &[], 2, &["field 3 (target)"]),
        (
            "0 2048 cache gone new 0 8 64 16",
            &["--size", "2MiB"],
            1,
            &["field 4 (origin): gone", "No such file"],
        ),
        ("0 2048 cache one new 0 8 64 16", &["--size", "2MiB"], 1, &["one", "--force"]),
        ("0 2048 cache free free 0 8 64 16", &[], 1, &["free"]),
        ("0 2048 cache free .", &[], 1, &["field 5 (cache device): .", "a directory"]),
        ("0 2048 cache free new", &[], 2, &["new is not there", "--size"]),
        ("0 2048 cache free fiu 0 8 64 16", &[], 1, &["fiu", "1 volumes", "--force"]),
        ("0 2048 cache free new yes", &[], 2, &["field 6 (persist) = 'yes'"]),
        ("0 2048 cache free new 0 3", &[], 2, &["field 7 (block size in sectors) = '3'", "power of two"]),
        (
            "0 2048 cache free new 0 8 65536",
            &["--size", "2MiB"],
            1,
            &["field 8 (blocks)", "expected at least"],
        ),
        ("0 2048 cache free new 0 8 64 24", &[], 2, &["field 9 (associativity) = '24'"]),
        ("0 2048 cache free new 0 8 64 16 2", &[], 2, &["field 10 (write-back) = '2'"]),
        (
            "0 2048 cache free new 0 8 64 16 1",
            &["--size", "2MiB", "--set", "ways=4"],
            2,
            &["cache.ways", "table line"],
        ),
        ("0 2048 cache free new", &["--mode", "write-back"], 2, &["--mode", "--table"]),
        ("0 2048 cache two fiu 1", &["--force"], 2, &["persist 1", "--force"]),
        ("0 2047 cache two fiu 1", &[], 2, &["field 2 (sectors) = '2047'"]),
        ("0 2048 cache one fiu 1", &[], 2, &["field 4 (origin) = 'one'", "/two"]),
        ("0 2048 cache one gone 1", &[], 1, &["field 5 (cache device): gone"]),
        ("0 2048 cache one fast 1", &[], 2, &["field 5 (cache device) = 'fast'", "nandscape"]),
        ("0 2048 cache two fiu 1 16", &[], 2, &["field 7 (block size in sectors) = '16': expected 8"]),
        ("0 2048 cache two fiu 1 8 32", &[], 2, &["field 8 (blocks) = '32': expected 64"]),
        ("0 2048 cache two fiu 1 8 64 8", &[], 2, &["field 9 (associativity) = '8': expected 16"]),
        ("0 2048 cache two fiu 1 8 64 16 0", &[], 2, &["field 10 (write-back) = '0': expected 1"]),
    ] {
        fails(dir, &[&["cache", "create", "--table", line], more].concat(), code, wanted);
    }
    fails(dir, &["cache", "create", "fast", "--table", "0 2048 cache free new"], 2, &["--table"]);
    fails(dir, &["cache", "create"], 2, &["<FAST>"]);
    assert_eq!((names(dir), ["fast", "fiu", "one", "two"].map(content)), (files, before));
}

#[test]
fn metadata_on_a_file_of_their_own_name_the_cache() {
    let site = site();
    let dir = site.path();
    fails(dir, &["cache", "create", "meta", "--data", "blocks"], 2, &["blocks is not there", "--size"]);
    fails(dir, &["cache", "create", "meta", "--data", "fast"], 1, &["fast: not empty", "--force"]);
    done(dir, &["cache", "create", "meta", "--data", "blocks", "--size", "4MiB", "--preset", "dm-cache"]);
    done(dir, &["cache", "attach", "meta", "two"]);
    let status = done(dir, &["cache", "status", "meta", "--json"]);
    let settings = serde_json::from_str::<serde_json::Value>(&status).unwrap()["settings"].clone();
    let blocks = dir.join("blocks").display().to_string();
    assert!(settings.as_array().unwrap().contains(&serde_json::json!(["data", blocks])), "{settings}");
    fails(dir, &["cache", "status", "blocks"], 1, &["blocks: has the blocks of a cache"]);
    fs::rename(dir.join("blocks"), dir.join("elsewhere")).unwrap();
    fails(dir, &["cache", "status", "meta"], 1, &["blocks: open: No such file"]);
    std::os::unix::fs::symlink("elsewhere", dir.join("blocks")).unwrap();
    done(dir, &["cache", "detach", "meta", "two"]);
}
