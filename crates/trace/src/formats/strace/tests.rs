//! Lines as strace writes them, and the operations that come out. Operations are written `op file offset len`
//! with zeroes at the end left out.

use super::*;
use crate::{OpenOptions, Target, Workload};
use nandscape_core::IoRecord;
use nandscape_host::fs::{FileOp, FileOpKind};

fn strace(text: &str, call: &str) -> (Result<Vec<Step>, String>, u64) {
    let (_, params) = crate::formats::by_call(call).unwrap();
    let mut calls = Strace::new(first_stamp(text.as_bytes()), &params);
    let mut steps = VecDeque::new();
    for (at, line) in text.lines().enumerate() {
        if let Err(message) = calls.line(line.as_bytes(), at as u64 + 1, &mut steps) {
            return (Err(format!("line {}: {message}", at + 1)), calls.skipped());
        }
    }
    calls.finish(&mut steps);
    (Ok(steps.into()), calls.skipped())
}

fn name(kind: FileOpKind) -> &'static str {
    match kind {
        FileOpKind::Create => "create",
        FileOpKind::Open => "open",
        FileOpKind::Write => "write",
        FileOpKind::Read => "read",
        FileOpKind::Fsync => "fsync",
        FileOpKind::Fdatasync => "fdatasync",
        FileOpKind::SyncRange => "syncrange",
        FileOpKind::Truncate => "trunc",
        FileOpKind::Allocate => "alloc",
        FileOpKind::Punch => "punch",
        FileOpKind::Rename => "rename",
        FileOpKind::Delete => "delete",
        FileOpKind::Hint => "hint",
        FileOpKind::MapWrite => "mmapw",
    }
}

fn shown(step: &Step) -> String {
    let FileOp { kind, file, offset, len, .. } = step.op;
    let name = name(kind);
    let numbers = match (offset, len) {
        (0, 0) => format!("{file}"),
        (offset, 0) => format!("{file} {offset}"),
        (offset, len) => format!("{file} {offset} {len}"),
    };
    format!("{name} {numbers}{}", step.path.as_ref().map(|path| format!(" {path}")).unwrap_or_default())
}

fn operations(text: &str) -> Vec<String> {
    let (steps, skipped) = strace(text, "strace:level=file");
    let mut out: Vec<_> = steps.unwrap_or_else(|error| panic!("{text}: {error}")).iter().map(shown).collect();
    if skipped > 0 {
        out.push(format!("skipped {skipped}"));
    }
    out
}

#[track_caller]
fn check(cases: &[(&str, &[&str])]) {
    for (text, expected) in cases {
        assert_eq!(operations(text), *expected, "{text}");
    }
}

#[test]
fn calls_on_descriptors() {
    const NEW: &str = "openat(AT_FDCWD, \"a\", O_RDWR|O_CREAT|O_EXCL, 0644) = 3\n";
    let cases: [(&str, &[&str]); 27] = [
        ("write(3, \"x\"..., 100) = 60\nwrite(3, \"\", 5) = 5", &["write 1 0 60", "write 1 60 5"]),
        ("write(3, \"a) = -1 \\\" <unfinished ...>\", 24)   = 24 <0.000012>", &["write 1 0 24"]),
        ("writev(3, [{iov_base=\"a,b\", iov_len=3}, {iov_base=\")\", iov_len=1}], 2) = 4", &["write 1 0 4"]),
        ("pwrite64(3, \"\"..., 8, 4096) = 8\nwrite(3, \"\"..., 1) = 1", &["write 1 4096 8", "write 1 0 1"]),
        ("pwritev(3, [{iov_base=\"\"..., iov_len=7}], 1, 9) = 7", &["write 1 9 7"]),
        ("pwritev2(3, [...], 1, -1, RWF_DSYNC) = 7", &["write 1 0 7", "fdatasync 1"]),
        ("pwritev2(3, [...], 1, 10, RWF_SYNC|RWF_HIPRI) = 7", &["write 1 10 7", "fsync 1"]),
        (
            "write(3, \"\"..., 9) = 9\nlseek(3, -4, SEEK_CUR) = 5\nread(3, \"\"..., 10) = 4",
            &["write 1 0 9", "read 1 5 4"],
        ),
        ("_llseek(3, 100, [100], SEEK_SET) = 0\nwrite(3, \"\"..., 9) = 9", &["write 1 100 9"]),
        ("preadv2(3, [...], 1, 4, 0) = 3\npread64(3, \"\"..., 5, 6) = 5", &["read 1 4 3", "read 1 6 5"]),
        ("read(3, \"\", 10) = 0\nwrite(3, \"\", 0) = 0", &[]),
        ("write(3, \"\"..., 9) = -1 ENOSPC (No space left on device)", &[]),
        ("write(3, \"\"..., 9) = ? ERESTARTSYS (To be restarted if SA_RESTART is set)", &[]),
        (
            "ftruncate(3, 500) = 0\nfallocate(3, 0, 0, 900) = 0\nlseek(3, 0, SEEK_END) = 900",
            &["trunc 1 500", "alloc 1 0 900"],
        ),
        ("fallocate(3, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 4096, 8192) = 0", &["punch 1 4096 8192"]),
        ("fallocate(3, FALLOC_FL_ZERO_RANGE, 0, 10) = 0", &["alloc 1 0 10"]),
        ("fallocate(3, FALLOC_FL_COLLAPSE_RANGE, 0, 4096) = 0", &["skipped 1"]),
        ("fsync(3) = 0\nfdatasync(3) = 0", &["fsync 1", "fdatasync 1"]),
        (
            "sync_file_range(3, 8, 9223372036854775807, SYNC_FILE_RANGE_WRITE) = 0\n\
             fallocate(3, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 4096, 9223372036854771711) = 0",
            &["syncrange 1 8", "punch 1 4096 140737488355328"],
        ),
        (
            "sync_file_range(3, 8, 16, SYNC_FILE_RANGE_WAIT_BEFORE) = 0\nsync_file_range(3, 8, 16, SYNC_FILE_RANGE_WRITE) = 0",
            &["syncrange 1 8 16"],
        ),
        (
            "fcntl(3, F_SET_RW_HINT, [RWH_WRITE_LIFE_SHORT]) = 0\nfcntl(3, F_SET_FILE_RW_HINT, [5]) = 0",
            &["hint 1 0 2", "hint 1 0 5"],
        ),
        ("fcntl(3, 0x40c /* F_??? */, 0x7ffc603eb250) = 0", &["skipped 1"]),
        (
            "fcntl(3, F_GETFL) = 0x8002 (flags O_RDWR|O_LARGEFILE)\nfadvise64(3, 0, 0, POSIX_FADV_SEQUENTIAL) = 0",
            &[],
        ),
        (
            "fcntl(3, F_SETFL, O_RDWR|O_APPEND) = 0\nwrite(3, \"\"..., 9) = 9\nlseek(3, 0, SEEK_SET) = 0\nwrite(3, \"\"..., 1) = 1",
            &["write 1 0 9", "write 1 9 1"],
        ),
        (
            "mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_SHARED, 3, 0x1000) = 0x7f0000000000\nmsync(0x7f0000001000, 10, MS_SYNC) = 0\n\
             msync(0x7f0000001000, 10, MS_ASYNC) = 0\nmunmap(0x7f0000000000, 8192) = 0\nmsync(0x7f0000001000, 10, MS_SYNC) = 0",
            &["mmapw 1 4096 8192", "fsync 1"],
        ),
        (
            "mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_PRIVATE, 3, 0) = 0x7f0000000000\nmmap(NULL, 8192, PROT_READ, MAP_SHARED, 3, 0) = 0x7f0000000000\n\
          mmap(NULL, 8, PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS|MAP_HUGETLB|21<<MAP_HUGE_SHIFT, -1, 0) = 0x7f0000000000",
            &[],
        ),
        ("write(9, \"\"..., 5) = 5\nwrite(1, \"\"..., 5) = 5", &["skipped 1"]),
    ];
    for (text, expected) in cases {
        let with_open = [&["create 1 a"], expected].concat();
        assert_eq!(operations(&format!("{NEW}{text}\n")), with_open, "{text}");
    }
}

#[test]
fn copies_are_reads_and_writes() {
    check(&[(
        "openat(AT_FDCWD, \"a\", O_RDONLY) = 3\nopenat(AT_FDCWD, \"b\", O_WRONLY|O_CREAT|O_EXCL, 0644) = 4\n\
             copy_file_range(3, NULL, 4, [100], 4096, 0) = 50\nsendfile(4, 3, NULL, 10) = 10\nsendfile(4, 3, [7] => [9], 2) = 2\n\
             splice(3, [0], 5<pipe:[1]>, NULL, 9, 0) = 9\nsplice(5<pipe:[1]>, NULL, 4, NULL, 9, 0) = 9\n",
        &[
            "create 1 b",
            "open 2 a",
            "read 2 0 50",
            "write 1 100 50",
            "read 2 50 10",
            "write 1 0 10",
            "read 2 7 2",
            "write 1 10 2",
            "read 2 0 9",
            "write 1 12 9",
        ],
    )]);
}

#[test]
fn a_file_is_new_or_was_there() {
    check(&[
        // Asked for in vain before.
        (
            "stat(\"a\", 0x7f) = -1 ENOENT (No such file or directory)\nopen(\"a\", O_RDWR|O_CREAT, 0644) = 3\nread(3, \"\", 9) = 0\n",
            &["create 1 a"],
        ),
        ("creat(\"a\", 0644) = 3\n", &["create 1 a"]),
        // Nothing tells before the first change, or before it is closed.
        (
            "open(\"a\", O_RDWR|O_CREAT, 0644) = 3\nfstat(3, {st_mode=S_IFREG|0644, st_size=0, ...}) = 0\nwrite(3, \"\"..., 4) = 4\n",
            &["create 1 a", "write 1 0 4"],
        ),
        ("open(\"a\", O_RDWR|O_CREAT, 0644) = 3\nclose(3) = 0\n", &["create 1 a"]),
        ("open(\"a\", O_RDWR|O_CREAT, 0644) = 3\n", &["create 1 a"]),
        // A size, or a read.
        (
            "open(\"a\", O_RDWR|O_CREAT|O_APPEND, 0644) = 3\nnewfstatat(3, \"\", {st_mode=S_IFREG|0644, st_size=70, ...}, AT_EMPTY_PATH) = 0\nwrite(3, \"\"..., 4) = 4\n",
            &["open 1 a", "write 1 70 4"],
        ),
        (
            "open(\"a\", O_RDWR|O_CREAT, 0644) = 3\npread64(3, \"\"..., 100, 0) = 16\n",
            &["open 1 a", "read 1 0 16"],
        ),
        (
            "open(\"a\", O_WRONLY) = 3\nlseek(3, 0, SEEK_END) = 30\nwrite(3, \"\"..., 4) = 4\n",
            &["open 1 a", "write 1 30 4"],
        ),
        // Emptied.
        ("open(\"a\", O_WRONLY|O_TRUNC) = 3\n", &["open 1 a", "trunc 1"]),
        (
            "open(\"a\", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 3\nopen(\"a\", O_WRONLY|O_TRUNC) = 4\nwrite(4, \"\"..., 4) = 4\nopen(\"a\", O_WRONLY|O_TRUNC) = 5\n",
            &["create 1 a", "write 1 0 4", "trunc 1"],
        ),
        (
            "openat2(AT_FDCWD, \"a\", {flags=O_RDWR|O_CREAT|O_EXCL, mode=0644, resolve=0}, 24) = 3\nwrite(3, \"\"..., 4) = 4\n",
            &["create 1 a", "write 1 0 4"],
        ),
        ("truncate(\"a\", 9) = 0\n", &["open 1 a", "trunc 1 9"]),
        (
            "mknod(\"a\", S_IFREG|0644) = 0\nmknod(\"b\", S_IFIFO|0644) = 0\nunlink(\"b\") = 0\n",
            &["create 1 a"],
        ),
    ]);
}

#[test]
fn ways_to_open_for_durable_writes() {
    check(&[
        (
            "open(\"a\", O_WRONLY|O_CREAT|O_EXCL|O_DSYNC, 0644) = 3\nwrite(3, \"\"..., 4) = 4\n",
            &["create 1 a", "write 1 0 4", "fdatasync 1"],
        ),
        (
            "open(\"a\", O_WRONLY|O_CREAT|O_EXCL|O_SYNC, 0644) = 3\nwrite(3, \"\"..., 4) = 4\n",
            &["create 1 a", "write 1 0 4", "fsync 1"],
        ),
        (
            "open(\"a\", O_WRONLY|O_CREAT|O_EXCL|O_DIRECT, 0644) = 3\nwrite(3, \"\"..., 512) = 512\n",
            &["create 1 a", "write 1 0 512", "syncrange 1 0 512"],
        ),
        (
            "creat(\"a\", 0644) = 3\ncreat(\"b\", 0644) = 4\nwrite(3, \"\"..., 4) = 4\nwrite(4, \"\"..., 4) = 4\nsync() = 0\nsyncfs(3) = 0\n",
            &["create 1 a", "create 2 b", "write 1 0 4", "write 2 0 4", "syncrange 1", "fsync 2"],
        ),
    ]);
}

#[test]
fn descriptors_are_shared_inherited_and_closed() {
    let new = "7 open(\"a\", O_RDWR|O_CREAT|O_EXCL, 0644) = 3\n7 write(3, \"\"..., 10) = 10\n";
    let cases: [(&str, &[&str]); 13] = [
        (
            "7 dup(3) = 4\n7 close(3) = 0\n7 write(4, \"\"..., 5) = 5\n7 write(3, \"\"..., 5) = -1 EBADF (Bad file descriptor)\n",
            &["write 1 10 5"],
        ),
        (
            "7 dup2(3, 1) = 1\n7 write(1, \"\"..., 5) = 5\n7 write(3, \"\"..., 5) = 5\n",
            &["write 1 10 5", "write 1 15 5"],
        ),
        ("7 fcntl(3, F_DUPFD_CLOEXEC, 10) = 10\n7 write(10, \"\"..., 5) = 5\n", &["write 1 10 5"]),
        // A child has a copy of the table, with the same offset.
        (
            "7 fork() = 8\n8 write(3, \"\"..., 5) = 5\n8 close(3) = 0\n7 write(3, \"\"..., 5) = 5\n8 write(3, \"\"..., 5) = 5\n",
            &["write 1 10 5", "write 1 15 5", "skipped 1"],
        ),
        // Its first lines may come before the end of the call that made it.
        (
            "7 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD <unfinished ...>\n8 write(3, \"\"..., 5) = 5\n\
             7 <... clone resumed>, child_tidptr=0x7f) = 8\n7 write(3, \"\"..., 5) = 5\n",
            &["write 1 10 5", "write 1 15 5"],
        ),
        // A thread has the same table.
        (
            "7 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD, stack=0x7f} => {parent_tid=[8]}, 88) = 8\n8 close(3) = 0\n\
             8 open(\"a\", O_WRONLY) = 3\n7 write(3, \"\"..., 5) = 5\n",
            &["write 1 0 5"],
        ),
        ("7 vfork() = 99 /* 8 in strace's PID NS */\n8 write(3, \"\"..., 5) = 5\n", &["write 1 10 5"]),
        // Programs close what is marked for it.
        (
            "7 fcntl(3, F_SETFD, FD_CLOEXEC) = 0\n7 dup(3) = 5\n7 execve(\"/bin/x\", [\"x\"], 0x7f /* 3 vars */) = 0\n7 write(5, \"\"..., 5) = 5\n\
             7 write(3, \"\"..., 5) = 5\n",
            &["write 1 10 5", "skipped 1"],
        ),
        ("7 close_range(3, 4294967295, 0) = 0\n7 write(3, \"\"..., 5) = 5\n", &["skipped 1"]),
        // A call that others interrupt is on what its descriptor led to when it began.
        (
            "7 clone(flags=CLONE_FILES|CLONE_VM|CLONE_THREAD) = 8\n7 write(3, \"\"..., 5 <unfinished ...>\n8 close(3 <unfinished ...>\n\
             7 <... write resumed>) = 5\n7 open(\"b\", O_WRONLY|O_CREAT|O_EXCL, 0644) = 3\n8 <... close resumed>) = 0\n7 write(3, \"\"..., 6) = 6\n",
            &["write 1 10 5", "create 2 b", "write 2 0 6"],
        ),
        // A thread that runs a program takes the number of its process.
        (
            "7 clone(flags=CLONE_FILES|CLONE_VM|CLONE_THREAD) = 8\n8 execve(\"/bin/x\", [\"x\"], NULL <unfinished ...>\n\
             7 +++ superseded by execve in pid 8 +++\n7 <... execve resumed>) = 0\n7 write(3, \"\"..., 5) = 5\n",
            &["write 1 10 5"],
        ),
        (
            "7 unlink(\"a\") = 0\n7 write(3, \"\"..., 5) = 5\n7 +++ exited with 0 +++\n",
            &["write 1 10 5", "delete 1 0 15"],
        ),
        (
            "7 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=8} ---\n7 exit_group(0) = ?\n7 +++ killed by SIGKILL +++\n",
            &[],
        ),
    ];
    for (text, expected) in cases {
        let whole = [&["create 1 a", "write 1 0 10"], expected].concat();
        assert_eq!(operations(&format!("{new}{text}")), whole, "{text}");
    }
}

#[test]
fn paths_and_links() {
    let new = "creat(\"/d/a\", 0644) = 3\nclose(3) = 0\n";
    let cases: [(&str, &[&str]); 15] = [
        ("unlink(\"/d/a\") = 0\ncreat(\"/d/a\", 0644) = 3\n", &["delete 1", "create 2 /d/a"]),
        ("unlinkat(AT_FDCWD</d>, \"./x/../a\", 0) = 0\n", &["delete 1"]),
        ("rename(\"/d/a\", \"/d/b\") = 0\nunlink(\"/d/b\") = 0\n", &["rename 1 /d/b", "delete 1"]),
        (
            "creat(\"/d/b\", 0644) = 3\nrename(\"/d/a\", \"/d/b\") = 0\nwrite(3, \"\"..., 5) = 5\nclose(3) = 0\n",
            &["create 2 /d/b", "rename 1 /d/b", "write 2 0 5", "delete 2 0 5"],
        ),
        ("rename(\"/d/old\", \"/d/a\") = 0\n", &["delete 1", "open 2 /d/old", "rename 2 /d/a"]),
        (
            "creat(\"/d/b\", 0644) = 3\nrenameat2(AT_FDCWD, \"/d/a\", AT_FDCWD, \"/d/b\", RENAME_EXCHANGE) = 0\nunlink(\"/d/a\") = 0\n",
            &["create 2 /d/b", "rename 1 /d/b", "rename 2 /d/a", "skipped 0"],
        ),
        ("link(\"/d/a\", \"/d/b\") = 0\nunlink(\"/d/a\") = 0\nunlink(\"/d/b\") = 0\n", &["delete 1"]),
        ("rename(\"/d\", \"/e\") = 0\nunlink(\"/e/a\") = 0\n", &["delete 1"]),
        (
            "symlink(\"a\", \"/d/s\") = 0\nunlink(\"/d/s\") = 0\nmkdir(\"/d/n\", 0777) = 0\nrename(\"/d/n\", \"/d/m\") = 0\nrmdir(\"/d/m\") = 0\n",
            &[],
        ),
        ("unlink(\"/d/never\") = 0\n", &["open 2 /d/never", "delete 2"]),
        ("chdir(\"/d\") = 0\nopen(\"a\", O_WRONLY) = 3\nwrite(3, \"\"..., 5) = 5\n", &["write 1 0 5"]),
        ("open(\"/d\", O_RDONLY|O_DIRECTORY) = 4\nfchdir(4) = 0\nunlinkat(4, \"a\", 0) = 0\n", &["delete 1"]),
        (
            "openat(AT_FDCWD</d>, \".\", O_RDWR|O_TMPFILE, 0600) = 4</d/#9>(deleted)\nwrite(4</d/#9>(deleted), \"\"..., 5) = 5\n",
            &["create 2 /d/#9", "write 2 0 5", "delete 2 0 5"],
        ),
        (
            "open(\"/d\", O_RDWR|O_TMPFILE, 0600) = 4\nlinkat(AT_FDCWD, \"/proc/self/fd/4\", AT_FDCWD, \"/d/t\", AT_SYMLINK_FOLLOW) = 0\nunlink(\"/d/t\") = 0\n",
            &["create 2 /d", "delete 2"],
        ),
        // The path beside a descriptor tells where a link in the path led to.
        (
            "openat(AT_FDCWD</d>, \"/link/b\", O_WRONLY|O_CREAT|O_EXCL, 0644) = 4</d/b>\nrename(\"/link/b\", \"/link/c\") = 0\nclose(4</d/c>) = 0\n",
            &["create 2 /d/b", "rename 2 /d/c"],
        ),
    ];
    for (text, expected) in cases {
        let expected: Vec<_> =
            expected.iter().map(|op| if *op == "skipped 0" { "delete 2" } else { op }).collect();
        let whole = [vec!["create 1 /d/a"], expected].concat();
        assert_eq!(operations(&format!("{new}{text}")), whole, "{text}");
    }
}

#[test]
fn paths_beside_descriptors_make_files_known() {
    check(&[
        (
            "write(5</d/a>, \"\"..., 9) = 9\nwrite(5</d/a>, \"\"..., 9) = 9\n",
            &["open 1 /d/a", "write 1 0 9", "write 1 9 9"],
        ),
        (
            "write(5<socket:[12]>, \"\"..., 9) = 9\nwrite(6<TCP:[127.0.0.1:1->127.0.0.1:2]>, \"a>b\", 3) = 3\nwrite(1</dev/pts/0<char 136:0>>, \"\", 1) = 1\n\
             write(7<anon_inode:[eventfd]>, \"\"..., 8) = 8\nwrite(8</memfd:x>(deleted), \"\"..., 8) = 8\nwrite(9<pipe:[3]>, \"\"..., 8) = 8\n",
            &[],
        ),
        // What a descriptor led to was closed by a call that is not there.
        (
            "open(\"/d/a\", O_WRONLY) = 5</d/a>\nwrite(5</d/b -\\76 (c\\\"), d>, \"\"..., 9) = 9\n",
            &["open 1 /d/b -> (c\"), d", "write 1 0 9"],
        ),
        (
            "write(5</d/gone>(deleted), \"\"..., 9) = 9\nclose(5</d/gone>(deleted)) = 0\n",
            &["open 1 /d/gone", "write 1 0 9", "delete 1 0 9"],
        ),
        ("open(\"/d/a\", O_RDONLY) = 4</d/a>\nopen(\"/d\", O_RDONLY) = 5</d>\nfsync(5</d>) = 0\n", &[]),
    ]);
}

#[test]
fn prefixes_of_lines() {
    let body = "write(5</d/a>, \"\"..., 9) = 9";
    for prefix in [
        "",
        "12 ",
        "[pid 12] ",
        "[pid    12] ",
        "12<sh> ",
        "1795737562.604704 ",
        "12 1795737562.604704 ",
        "[pid 12] 1795737562.604704 ",
        "12 1795737562 ",
        "12 1795737562.604704123 ",
        "12   13:05:01 ",
        "13:05:01.123456 ",
        "     0.000012 ",
        "12 13:05:01.123456 (+     0.000012) ",
        "12 1795737562.604704 [00007f1234567890] ",
        "[    1] ",
    ] {
        assert_eq!(operations(&format!("{prefix}{body}\n")), ["open 1 /d/a", "write 1 0 9"], "{prefix}");
    }
    // On a terminal, numbers come with the second process, and remarks of strace in the middle of lines.
    check(&[(
        "creat(\"/d/a\", 0644) = 3\nclone(child_stack=NULL, flags=SIGCHLDstrace: Process 8 attached\n <unfinished ...>\n[pid     8] write(3, \"\"..., 5) = 5\n\
         [pid     7] <... clone resumed>, child_tidptr=0x7f) = 8\n[pid     8] +++ exited with 0 +++\nwrite(3, \"\"..., 6) = 6\n",
        &["create 1 /d/a", "write 1 0 5", "write 1 5 6"],
    )]);
}

#[test]
fn times_are_those_of_the_lines_with_results() {
    let times = |text: &str| -> Vec<u64> {
        strace(text, "strace").0.unwrap().iter().map(|step| step.op.at.as_ns()).collect()
    };
    assert_eq!(
        times(
            "1 1795737562.5 creat(\"a\", 0644) = 3\n1 1795737562.75 write(3, \"\"..., 5 <unfinished ...>\n2 1795737563.0 getpid() = 2\n\
             1 1795737563.5 <... write resumed>) = 5\n"
        ),
        [0, 1_000_000_000]
    );
    assert_eq!(
        times("0.000000 creat(\"a\", 0644) = 3\n0.5 write(3, \"\"..., 5) = 5\n0.25 fsync(3) = 0\n"),
        [0, 500_000_000, 750_000_000]
    );
    assert_eq!(
        times("23:59:59.5 creat(\"a\", 0644) = 3\n00:00:00.5 write(3, \"\"..., 5) = 5\n"),
        [0, 1_000_000_000]
    );
    assert_eq!(times("creat(\"a\", 0644) = 3\nwrite(3, \"\"..., 5) = 5\n"), [0, 0]);
}

#[test]
fn only_files_of_the_recording_count() {
    let text = "creat(\"/usr/a\", 0644) = 3\ncreat(\"/home/a\", 0644) = 4\ncreat(\"/home/me/b\", 0644) = 5\ncreat(\"/homes\", 0644) = 6\n\
                creat(\"/dev/shm/c\", 0644) = 7\ncreat(\"/dev/null\", 0644) = 8\nwrite(8, \"\"..., 5) = 5\nrename(\"/usr/a\", \"/home/new\") = 0\n";
    let shown_with =
        |call: &str| -> Vec<String> { strace(text, call).0.unwrap().iter().map(shown).collect() };
    assert_eq!(shown_with("strace"), ["create 1 /home/a", "create 2 /home/me/b", "create 3 /homes"]);
    assert_eq!(shown_with("strace:dir=/home/"), ["create 1 /home/a", "create 2 /home/me/b"]);
    assert_eq!(shown_with("strace:dir=/home/me:/dev/shm"), ["create 1 /home/me/b", "create 2 /dev/shm/c"]);
    assert_eq!(shown_with("strace:dir=/").len(), 5, "all but /dev, and the rename");
    let relative = "creat(\"a\", 0644) = 3\nwrite(3, \"\"..., 5) = 5\n";
    assert_eq!(strace(relative, "strace:cwd=/x/y,dir=/x").0.unwrap().len(), 2);
    assert_eq!(strace(relative, "strace:cwd=/x/y,dir=/z").0.unwrap().len(), 0);
    // Nobody reads the reads below a page cache.
    let reads = "open(\"/home/a\", O_RDONLY) = 3\nread(3, \"\"..., 5) = 5\n";
    assert_eq!(strace(reads, "strace").0.unwrap().len(), 0);
    assert_eq!(strace(reads, "strace:reads=all").0.unwrap().len(), 2);
}

fn all(call: &str, text: &str) -> Result<Vec<IoRecord>, String> {
    let options = OpenOptions { format: Some(call.to_owned()), ..OpenOptions::default() };
    let workload = Workload::from_bytes("t.strace", text.as_bytes(), &options, Target::NONE);
    workload.and_then(|workload| workload.open()?.collect()).map_err(|error| error.to_string())
}

#[test]
fn a_recorded_program_did_what_it_wrote_down() {
    const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/");
    let golden = |name: &str| std::fs::read_to_string(format!("{GOLDEN}{name}")).unwrap();
    let (steps, skipped) = strace(&golden("python.strace"), "strace:dir=/srv/files");
    let steps = steps.unwrap();
    let done: Vec<_> = steps
        .iter()
        .map(|step| {
            let FileOp { file, offset, len, .. } = step.op;
            format!("{},{file},{offset},{len}", name(step.op.kind))
        })
        .collect();
    assert_eq!(done, golden("python.operations.txt").lines().collect::<Vec<_>>());
    assert_eq!(skipped, 0);
    let paths: Vec<_> = steps.iter().filter_map(|step| step.path.as_deref()?.rsplit('/').next()).collect();
    assert_eq!(paths, ["a", "b.tmp", "b", "c", "b"]);
    assert!(steps.is_sorted_by_key(|step| step.op.at), "times go back");
}

#[test]
fn damaged_lines_are_named() {
    let start = "1 1.5 creat(\"a\", 0644) = 3\n";
    for (line, expected) in [
        ("1 1.6 write(3, \"\"..., 5)", "'': expected = and the result of 'write'"),
        ("1 1.6 write(3, \"\"..., 5", "expected arguments up to a )"),
        ("1 1.6 write(3, \"...", "expected arguments up to a )"),
        ("1 1.6 write(3, \"\"..., 5) = x", "expected = and the result of 'write'"),
        (
            "1 1.6 write(x, \"\"..., 5) = 5",
            "the first argument of 'write' is 'x': expected a file descriptor",
        ),
        (
            "1 1.6 pwrite64(3, \"\"..., 5, y) = 5",
            "the fourth argument of 'pwrite64' is 'y': expected a whole number",
        ),
        ("1 1.6 pwrite64(3, \"\"..., 5) = 5", "'pwrite64' has 3 arguments: expected at least 4"),
        (
            "1 1.6 rename(\"a\", \"b\"...) = 0",
            "the second argument of 'rename' is '\\\"b\\\"...': expected a whole path in quotes",
        ),
        ("1 write(3, \"\"..., 5) = 5", "no time: expected one as in the lines before"),
        ("1 12:00:00 write(3, \"\"..., 5) = 5", "a time of another kind than that of the first line"),
        ("1 25:00:00 write(3, \"\"..., 5) = 5", "time is '25:00:00': expected HH:MM:SS"),
        ("1 1.6 write", "'write': expected a call such as"),
        ("1 1.6", "nothing after process and time"),
        ("hello", "'hello': expected a call such as"),
        ("1 1.6 <... write", "expected <... CALL resumed>"),
        ("1 1.6 pwrite64(3, \"\"..., 5, 18446744073709551615) = 5", "offset 18446744073709551615 + length 5"),
        ("1 1.6 pwrite64(3, \"\"..., 5, 1000000000000000000) = 5", "expected an end below 2^48"),
    ] {
        let error = all("strace", &format!("{start}{line}\n")).unwrap_err();
        assert!(error.starts_with("t.strace: line 2: ") && error.contains(expected), "{line}: {error}");
    }
    // What is not looked at may be cut short, as the last line of a strace that was stopped.
    let fine =
        format!("{start}1 1.6 poll([{{fd=3, = 1\n1 1.7 write(3, \"\"..., 5) = 5\n1 1.8 fsync(3) = 0\n");
    assert_eq!(all("strace:journal=none", &fine).unwrap().len(), 3);
    let stopped = format!("{fine}1 1.9 pwrite64(3, \"\"..., 500, 81");
    assert_eq!(all("strace:journal=none", &stopped), all("strace:journal=none", &fine));
}

#[test]
fn what_strace_does_not_show_is_counted() {
    let text = "io_uring_enter(4, 3, 0, 0, NULL, 8) = 2\nio_submit(0x7f, 1, [{...}]) = 1\n";
    assert_eq!(operations(text), ["skipped 3"]);
    let error = all("strace", text).unwrap_err();
    assert!(
        error.contains("3 requests went through io_uring or io_submit, which strace does not show"),
        "{error}"
    );
}
