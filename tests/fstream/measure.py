#!/usr/bin/env python3
"""Streams by what a file system keeps in a block, measured on a real ext4 (docs/streams-live.md).

Serves a device over FUSE with a loop device on it, runs loads on ext4 there while every write is recorded
with the kind of its blocks, and replays each recording in virtual time with one log and with streams: the
same writes in the same order each time, so the write amplification is exact. Needs root, /dev/fuse, loop
devices, e2fsprogs; PostgreSQL and db_bench besides for the loads pgbench and rocksdb.

    tests/fstream/measure.py --binary target/release/nandscape [--loads files,pgbench,...] [--keep DIR]
    tests/fstream/measure.py --binary ... --loads amplification      metadata by kind on ext2, ext3 and ext4
    tests/fstream/measure.py --binary ... --loads paced      files, transactions and operations a second at
    the pace of the model, with the WAF of the same seconds
    tests/fstream/measure.py --binary ... --quick                    a short run that checks, but measures
    nothing

Each load ends with a check of the classifier: the last write to every block of journal, inode table,
directory, bitmap and descriptors, as `fs classify` finds them afterwards, must have been recorded with that
kind.
"""

import argparse
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PAGE = 4096
MIB = 1 << 20
# Of the served device; the file system leaves the last MiB, where marks are written.
DEVICE_MIB = 384
KINDS = ["file-data", "journal", "inode-table", "directory", "block-bitmap", "inode-bitmap", "group-descriptors",
         "superblock"]
# Name, streams of the device, keys of the host.
MAPPINGS = [
    ("one log", 0, []),
    ("journal apart", 1, ["host.policy=names", "host.rules=@journal"]),
    ("metadata apart", 1, ["host.policy=names", "host.rules=@journal,@inode,@directory,@misc"]),
    ("journal, other metadata", 2, ["host.policy=names", "host.rules=@journal;@inode,@directory,@misc"]),
    ("four classes", 4, ["host.policy=write-hint", "host.metadata=prototype"]),
    ("AutoStream (SFR)", 4, ["host.policy=autostream-sfr", "host.base=10"]),
]


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def geometry(mebibytes, op, unit_pages):
    """Keys of a device with erase units of so many pages, and so much space above its logical capacity."""
    blocks = int(mebibytes * MIB // PAGE // unit_pages * (1 + op))
    return ["device.channels=1", "device.dies_per_channel=1", "device.planes_per_die=1",
            f"device.blocks_per_plane={blocks}", f"device.pages_per_block={unit_pages}",
            f"device.page={PAGE}", "device.endurance=endless", f"ftl.capacity={mebibytes * MIB}"]


def settings(keys):
    """Keys as options of the command."""
    return [word for key in keys for word in ("--set", key)]


class Served:
    """A served device with a loop device over it."""

    def __init__(self, arguments, scratch, name, mebibytes, options):
        self.arguments, self.mebibytes = arguments, mebibytes
        mount = os.path.join(scratch, f"{name}.fuse")
        self.mountpoint = os.path.join(scratch, f"{name}.mnt")
        os.makedirs(self.mountpoint, exist_ok=True)
        command = [arguments.binary, "serve", "fuse", "--mount", mount, "--loop", "--json",
                   "--set", "fs.classify=ext4", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        # The document is printed once everything is ready; it ends with the only line that is a bracket.
        text = ""
        for line in self.process.stdout:
            text += line
            if line.rstrip() == "]":
                break
        if self.process.poll() is not None or not text:
            raise SystemExit(f"{' '.join(command)}: did not start")
        self.device = json.loads(text)[0]["loop"]
        self.mounted = False

    @classmethod
    def recording(cls, arguments, scratch, name, mebibytes):
        """One that writes a recording with kinds."""
        trace = os.path.join(arguments.keep or scratch, f"{name}.csv")
        if os.path.exists(trace):
            os.unlink(trace)
        # Twice the space of the replayed devices: the recording needs the writes, not the collection.
        keys = [*geometry(mebibytes, 1, 64), "ftl.streams=4", f"fs.record={trace}"]
        served = cls(arguments, scratch, name, mebibytes, settings(keys))
        served.trace = trace
        return served

    def make(self, kind, options=(), mount=()):
        """A new file system, mounted."""
        blocks = (self.mebibytes - 1) * MIB // PAGE
        # Without lazy initialisation, so that nothing is written later that is not the load's.
        lazy = "lazy_itable_init=0,lazy_journal_init=0" if kind != "ext2" else "lazy_itable_init=0"
        run("mke2fs", "-q", "-F", "-t", kind, "-b", PAGE, "-m", "0", "-E", lazy, *options, self.device, blocks)
        self.mount(kind, mount)

    def mount(self, kind, options):
        run("mount", "-t", kind, *(["-o", ",".join(options)] if options else []), self.device, self.mountpoint)
        self.mounted = True

    def unmount(self):
        if self.mounted:
            run("umount", self.mountpoint)
            self.mounted = False

    def mark(self):
        """Writes where no file system is: the recording then shows where it happened."""
        subprocess.run(["sync", "-f", self.mountpoint], check=False)
        at = (self.mebibytes * MIB - PAGE)
        out = os.open(self.device, os.O_WRONLY | os.O_DIRECT)
        try:
            import mmap
            with mmap.mmap(-1, PAGE) as page:
                page.write(b"mark" * (PAGE // 4))
                os.pwrite(out, page, at)
        finally:
            os.close(out)

    def classify(self):
        return json.loads(run(self.arguments.binary, "fs", "classify", "--json", self.device))

    def stop(self):
        self.unmount()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=120)
        if self.process.returncode != 0:
            raise SystemExit(f"the server ended with status {self.process.returncode}")

    def give_up(self):
        if self.process.poll() is None:
            subprocess.run(["umount", self.mountpoint], capture_output=True, check=False)
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.process.kill()


def occupancy(path):
    facts = os.statvfs(path)
    return 1 - facts.f_bavail / facts.f_blocks


def fill(served, share, size):
    """Files that stay, until the file system is so full."""
    folder = os.path.join(served.mountpoint, "cold")
    os.mkdir(folder)
    number = 0
    facts = os.statvfs(served.mountpoint)
    count = max(0, int((share - occupancy(served.mountpoint)) * facts.f_blocks * facts.f_frsize)) // size
    for number in range(count):
        if number % 500 == 0:
            os.mkdir(f"{folder}/{number // 500}")
        with open(f"{folder}/{number // 500}/{number}", "wb") as out:
            out.write(os.urandom(size))
    os.sync()


def written_pages(device):
    """4 KiB blocks written to a block device so far."""
    with open(f"/sys/block/{os.path.basename(device)}/stat", encoding="ascii") as text:
        return int(text.read().split()[6]) * 512 // PAGE


class Load:
    """What all loads have; those with a server of their own start and end it."""

    def start(self):
        pass

    def stop(self):
        pass

    def abandon(self):
        """After a failure, so that nothing holds the file system."""


class Files(Load):
    """Small files made, written, synced and deleted again in many directories, which come and go too."""

    def __init__(self, served, live, seed):
        self.served, self.random, self.live, self.files, self.folders, self.next = served, random.Random(seed), live, [], [], 0

    def folder(self):
        if len(self.folders) < 200 or self.random.random() < 0.01:
            path = os.path.join(self.served.mountpoint, f"hot-{self.next}")
            os.mkdir(path)
            self.folders.append(path)
        return self.random.choice(self.folders)

    def step(self):
        self.next += 1
        path = f"{self.folder()}/{self.next}"
        with open(path, "wb", buffering=0) as out:
            out.write(os.urandom(self.random.randrange(512, 16384)))
            os.fsync(out.fileno())
        self.files.append(path)
        while len(self.files) > self.live:
            at = self.random.randrange(len(self.files))
            self.files[at], self.files[-1] = self.files[-1], self.files[at]
            os.unlink(self.files.pop())
            if len(self.folders) > 210:
                victim = self.folders[0]
                for path in [p for p in self.files if p.startswith(victim + "/")]:
                    os.unlink(path)
                self.files = [p for p in self.files if not p.startswith(victim + "/")]
                os.rmdir(victim)
                del self.folders[0]

    def run(self, pages):
        end = written_pages(self.served.device) + pages
        steps = 0
        while written_pages(self.served.device) < end:
            for _ in range(20):
                self.step()
            steps += 20
        return f"{steps} files"

    def run_for(self, seconds):
        end, steps = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            self.step()
            steps += 1
        return steps


class Rocks(Load):
    """Overwrites of a database of RocksDB by db_bench, beside as much data that stays."""

    def __init__(self, served, mebibytes):
        # A fifth of the space: what compaction has not deleted yet takes as much again and more.
        self.served, self.keys = served, int(mebibytes * MIB * 0.2 / 416)
        fill(served, 0.35, 1 << 20)
        self.folder = os.path.join(served.mountpoint, "rocks")
        self.bench("fillseq", "--use_existing_db=0")

    def bench(self, name, *options):
        return run("db_bench", f"--db={self.folder}", f"--benchmarks={name}", f"--num={self.keys}", "--value_size=400",
                   "--compression_type=none", "--write_buffer_size=2097152", "--target_file_size_base=2097152",
                   "--max_bytes_for_level_base=8388608", "--max_background_jobs=2", *options)

    def overwrite(self, seconds):
        out = self.bench("overwrite", "--use_existing_db=1", f"--duration={seconds}", "--threads=1")
        line = next(line for line in out.splitlines() if line.startswith("overwrite"))
        return float(line.split(";")[0].split("ops/sec")[0].split()[-1]) * seconds

    def run(self, pages):
        end, done = written_pages(self.served.device) + pages, 0
        while written_pages(self.served.device) < end:
            done += self.overwrite(5)
        return f"{done:.0f} operations"

    def run_for(self, seconds):
        return self.overwrite(seconds)


class Pgbench(Load):
    """PostgreSQL's TPC-B-like load."""

    def __init__(self, served, scale):
        self.served = served
        self.bin = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        self.data = os.path.join(served.mountpoint, "pg")
        self.socket = os.path.dirname(served.mountpoint)
        os.mkdir(self.data)
        shutil.chown(self.data, "postgres")
        os.chmod(self.socket, 0o777)
        self.sql("initdb", "-D", self.data, "--wal-segsize=1", "-A", "trust", "--no-sync")
        with open(f"{self.data}/postgresql.conf", "a", encoding="ascii") as out:
            out.write("shared_buffers = 16MB\nmin_wal_size = 8MB\nmax_wal_size = 48MB\ncheckpoint_timeout = 30s\n"
                      "listen_addresses = ''\nautovacuum_naptime = 10s\n")
        self.start()
        self.sql("pgbench", "-h", self.socket, "-i", "-q", "-s", str(scale), "postgres")

    def as_postgres(self, tool, *arguments):
        return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", f"{self.bin}/{tool}", *arguments]

    def sql(self, tool, *arguments):
        return run(*self.as_postgres(tool, *arguments), cwd="/")

    def run(self, pages):
        end = written_pages(self.served.device) + pages
        transactions = 0
        while written_pages(self.served.device) < end:
            transactions += self.run_for(4)
        return f"{transactions} transactions"

    def run_for(self, seconds):
        out = self.sql("pgbench", "-h", self.socket, "-n", "-c", "4", "-T", str(seconds), "postgres")
        done = next(line for line in out.splitlines() if "actually processed" in line)
        return int(done.split(":")[1].split("/")[0])

    def start(self):
        self.sql("pg_ctl", "-D", self.data, "-w", "-l", f"{self.data}/log", "-o", f"-k {self.socket}", "start")

    def stop(self):
        self.sql("pg_ctl", "-D", self.data, "-m", "fast", "-w", "stop")

    def abandon(self):
        command = self.as_postgres("pg_ctl", "-D", self.data, "-m", "immediate", "stop")
        subprocess.run(command, check=False, capture_output=True, cwd="/")


def records(trace):
    with open(trace, encoding="ascii") as lines:
        next(lines)
        for line in lines:
            _, op, offset, length, kind = line.rstrip("\n").split(",")
            yield op, int(offset), int(length), kind


def marks_of(trace, mebibytes):
    at = mebibytes * MIB - PAGE
    return [n for n, (op, offset, length, _) in enumerate(records(trace)) if (op, offset, length) == ("W", at, PAGE)]


def check_classifier(trace, result):
    """Blocks whose last write was recorded as another kind than the file system has there."""
    names = {"journal", "inode-table", "directory", "block-bitmap", "inode-bitmap", "group-descriptors", "superblock"}
    last = {}
    for op, offset, length, kind in records(trace):
        if op == "W":
            for block in range(offset // PAGE, -(-(offset + length) // PAGE)):
                last[block] = kind
        elif op in "DZ":
            for block in range(-(-offset // PAGE), (offset + length) // PAGE):
                last.pop(block, None)
    checked, wrong, spoilt = 0, {}, {}
    for entry in result["runs"]:
        for block in range(entry["block"], entry["block"] + entry["count"]):
            if entry["kind"] in names and block in last:
                checked += 1
                if last[block] != entry["kind"]:
                    wrong.setdefault((entry["kind"], last[block]), []).append(block)
            elif entry["kind"] == "data" and last.get(block, "file-data") != "file-data":
                spoilt.setdefault(last[block], []).append(block)
    return checked, wrong, spoilt


def shares(trace, first, last):
    """Bytes of each kind between two records."""
    counts = dict.fromkeys(KINDS, 0)
    for number, (op, _, length, kind) in enumerate(records(trace)):
        if op == "W" and first < number < last:
            counts[kind] += length
    return counts


def lifetimes(trace, first, last):
    """For people: after how many MiB of writes blocks of each kind were written again, in the counted
    part."""
    written, clock, lives = {}, 0, {kind: [] for kind in KINDS}
    for number, (op, offset, length, kind) in enumerate(records(trace)):
        if number >= last:
            break
        if op != "W":
            continue
        for block in range(offset // PAGE, -(-(offset + length) // PAGE)):
            if number > first and block in written:
                lives[kind].append(clock - written[block])
            written[block] = clock
            clock += 1

    def middle(values):
        values.sort()
        at = [values[len(values) * share // 10] * PAGE / MIB for share in (1, 5, 9)]
        return "rewritten after {:.1f}, {:.1f}, {:.1f} MiB in the 10th, 50th, 90th percentile".format(*at)

    return {kind: middle(values) if values else "never rewritten" for kind, values in lives.items()}


def replay(arguments, trace, mebibytes, streams, keys, limit, op):
    command = [arguments.binary, "replay", trace, "--json", "--depth", "32", "--limit", str(limit)]
    command += settings([*geometry(mebibytes, op, arguments.unit_pages), f"ftl.streams={streams}", *keys])
    result = json.loads(run(*command))
    return result["flash"]["programs"], result["host"]["write_pages"]


def amplification(arguments, trace, mebibytes, streams, keys, first, last, op):
    """Pages programmed over pages written between two records, the device being in the state that everything
    before has made."""
    before = replay(arguments, trace, mebibytes, streams, keys, first, op)
    after = replay(arguments, trace, mebibytes, streams, keys, last, op)
    return (after[0] - before[0]) / (after[1] - before[1])


LOADS = {
    # name: (kind, mke2fs options, mount options)
    "files": ("ext4", [], ["nodiscard"]),
    "files-discard": ("ext4", [], ["discard"]),
    "files-journal": ("ext4", [], ["nodiscard", "data=journal"]),
    "pgbench": ("ext4", [], ["nodiscard"]),
    "pgbench-discard": ("ext4", [], ["discard"]),
    "rocksdb": ("ext4", [], ["nodiscard"]),
}


def missing(name):
    """The program that a load needs and that is absent, if one is."""
    if name.startswith("pgbench") and not glob.glob("/usr/lib/postgresql/*/bin/initdb"):
        return "PostgreSQL (package postgresql)"
    return "db_bench (package rocksdb-tools)" if name == "rocksdb" and not shutil.which("db_bench") else None


def begin(name, arguments, served):
    """A new file system, filled, with a load that is ready to run on it."""
    mebibytes = served.mebibytes
    kind, options, mount = LOADS[name]
    # Inodes for small files, and a journal that does not take a fifth of so small a device.
    served.make(kind, ["-N", str(mebibytes * 128), "-J", f"size={max(4, mebibytes // 24)}", *options], mount)
    if name == "rocksdb":
        return Rocks(served, mebibytes)
    if name.startswith("files"):
        load = Files(served, live=mebibytes * 10, seed=1)
        fill(served, 0.55, 12 << 10)
        while len(load.files) < load.live - 1:
            load.step()
    else:
        load = Pgbench(served, scale=1 if arguments.quick else 8)
    fill_more(served)
    return load


def record(name, arguments, scratch, mebibytes):
    """Runs a load on a served device; the recording, what was done, and what the classifier had wrong."""
    pages = mebibytes * MIB // PAGE
    pages = pages // 4 if arguments.quick else arguments.capacities * pages
    served = Served.recording(arguments, scratch, name, mebibytes)
    act = Load()
    try:
        act = begin(name, arguments, served)
        served.mark()
        done = act.run(pages)
        served.mark()
        done = act.run(pages)
        served.mark()
        full = occupancy(served.mountpoint)
        act.stop()
        act = Load()
        served.unmount()
        result = served.classify()
        served.stop()
    finally:
        act.abandon()
        served.give_up()
    checked, wrong, spoilt = check_classifier(served.trace, result)
    count = sum(map(len, wrong.values()))
    stale = sum(map(len, spoilt.values()))
    print(f"{name}: classifier: {checked} blocks of metadata whose last write was recorded, {count} with another kind", wrong or "")
    print(f"{name}: classifier: {stale} blocks of data whose last write was recorded as metadata",
          {k: len(v) for k, v in spoilt.items()} or "")
    if checked < 100 or count > checked * 0.01:
        raise SystemExit(f"{name}: the classifier is wrong")
    print(f"{name}: {done}, file system {full:.0%} full")
    return served.trace


def load(name, arguments, scratch):
    mebibytes = 64 if arguments.quick else DEVICE_MIB
    if arguments.reuse:
        trace = os.path.join(arguments.keep, f"{name}.csv")
    else:
        trace = record(name, arguments, scratch, mebibytes)
    marks = marks_of(trace, mebibytes)
    assert len(marks) == 3, f"{name}: {len(marks)} marks in the recording"
    lives = lifetimes(trace, marks[1], marks[2])
    counts = shares(trace, marks[1], marks[2])
    total = sum(counts.values())
    print(f"{name}: {total / MIB:.0f} MiB counted:", ", ".join(
        f"{kind} {bytes / total:.1%} ({lives[kind]})" for kind, bytes in counts.items() if bytes))
    for title, streams, keys in MAPPINGS:
        cells = [amplification(arguments, trace, mebibytes, streams, keys, marks[1] + 1, marks[2], op)
                 for op in arguments.op]
        print(f"| {title} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |", flush=True)
    if not arguments.keep:
        os.unlink(trace)


def fill_more(served):
    """Data that stays, up to nine tenths."""
    room = int((0.9 - occupancy(served.mountpoint)) * os.statvfs(served.mountpoint).f_blocks) * PAGE
    with open(os.path.join(served.mountpoint, "ballast"), "wb") as out:
        for _ in range(max(0, room) // MIB):
            out.write(os.urandom(MIB))
    os.sync()


def updates(folder, synced, seed, count):
    """Small updates, appends and new files, as in the SYNC and ASYNC modes of [OFTL table 3]. Gives the
    bytes that programs wrote."""
    chance = random.Random(seed)
    total = 0
    flags = os.O_WRONLY | os.O_CREAT | (os.O_SYNC if synced else 0)
    for number in range(count):
        fresh = chance.random() < 0.2
        name = f"{folder}/{chance.randrange(16)}/{'new' if fresh else 'old'}{number if fresh else chance.randrange(300)}"
        os.makedirs(os.path.dirname(name), exist_ok=True)
        out = os.open(name, flags, 0o644)
        size = chance.randrange(200, 4000)
        where = 0 if fresh else chance.randrange(64 << 10)
        total += os.pwrite(out, os.urandom(size), where)
        os.close(out)
        if chance.random() < 0.1 and fresh:
            os.unlink(name)
    os.sync()
    return total


def metadata(arguments, scratch):
    """[OFTL fig 7]: bytes of each kind over the bytes that programs wrote."""
    mebibytes = 128
    count = 400 if arguments.quick else 6000
    served = Served.recording(arguments, scratch, "amplification", mebibytes)
    cases, written = [], []
    try:
        for kind in ["ext2", "ext3", "ext4"]:
            for mode in ["mount -o sync", "O_SYNC", "async"]:
                served.make(kind, mount=["sync"] if mode == "mount -o sync" else [])
                served.mark()
                written.append(updates(served.mountpoint, mode == "O_SYNC", 7, count))
                served.mark()
                served.unmount()
                cases.append(f"{kind}, {mode}")
        served.stop()
    finally:
        served.give_up()
    marks = marks_of(served.trace, mebibytes)
    assert len(marks) == 2 * len(cases), f"{len(marks)} marks in the recording"
    columns = ["journal", "inode-table", "bitmaps", "directory", "descriptors, superblock", "file-data", "all"]
    print("| file system | " + " | ".join(columns) + " |")
    print("|---|" + "---:|" * len(columns))
    for number, case in enumerate(cases):
        counts = shares(served.trace, marks[2 * number], marks[2 * number + 1])
        counts["bitmaps"] = counts["block-bitmap"] + counts["inode-bitmap"]
        counts["descriptors, superblock"] = counts["group-descriptors"] + counts["superblock"]
        counts["all"] = sum(counts[kind] for kind in KINDS)
        print(f"| {case} | " + " | ".join(f"{counts[c] / written[number]:.4f}" for c in columns) + " |")


# What is measured, and the unit of it.
PACED = {"files": "files", "files-journal": "files", "pgbench": "transactions", "rocksdb": "operations"}
# Name, streams of the device, who chooses them.
LIVE = [("one log", 0, ["fs.streams=none"]), ("journal apart", 1, ["fs.streams=journal=1"]),
        ("journal, other metadata", 2, ["fs.streams=journal=1,superblock=2,group-descriptors=2,block-bitmap=2,"
         "inode-bitmap=2,inode-table=2,directory=2"]), ("four classes", 4, ["fs.streams=prototype"]),
        ("AutoStream (SFR)", 4, ["fs.streams=none", "host.policy=autostream-sfr", "host.base=10"])]


def paced_run(name, arguments, scratch, streams, mapping):
    """Events a second at the model's pace, and programs over host pages of the same seconds."""
    # RocksDB keeps what it has compacted for a while, which a smaller one has no room for.
    mebibytes = 128 if arguments.quick and name != "rocksdb" else DEVICE_MIB
    pages = mebibytes * MIB // PAGE
    seconds = 5 if arguments.quick else arguments.seconds
    # In memory, so that the time of a flush is the model's.
    image = os.path.join("/dev/shm", f"nandscape-fstream-{os.getpid()}.nand")
    # A die of fast flash: its programs take 16 MB/s at most, far less than a loop device over FUSE does.
    keys = [*geometry(mebibytes, arguments.op[0], arguments.unit_pages), f"ftl.streams={streams}", *mapping,
            "device.timing.program=250us", "device.timing.read=50us", "device.timing.erase=3ms"]
    options = ["--image", image, *settings(keys)]
    served = Served(arguments, scratch, f"paced-{name}", mebibytes, options)
    act = Load()
    try:
        act = begin(name, arguments, served)
        act.run(pages // 4 if arguments.quick else arguments.capacities * pages)
        act.stop()
        served.unmount()
        served.stop()
        served = Served(arguments, scratch, f"paced-{name}", mebibytes, ["--pace", *options])
        kind, _, mount = LOADS[name]
        served.mount(kind, mount)
        act.served = served
        act.start()
        run(arguments.binary, "control", "--quiet", "reset")
        done = act.run_for(seconds)
        counts = json.loads(run(arguments.binary, "stat", "--json"))
        act.stop()
        act = Load()
        served.unmount()
        served.stop()
    finally:
        act.abandon()
        served.give_up()
        if os.path.exists(image):
            os.unlink(image)
    return done / seconds, counts


def paced(arguments, scratch, names):
    """Live loads with each mapping, at the pace of the model."""
    for name in names:
        if missing(name):
            print(f"SKIP: {missing(name)} is absent: {name} was not measured")
            continue
        first = None
        for title, streams, mapping in LIVE:
            rate, counts = paced_run(name, arguments, scratch, streams, mapping)
            first = first or rate
            pace = counts["pace"]
            print(f"| {name} | {title} | {rate:.1f} {PACED[name]}/s | {rate / first - 1:+.1%} | {counts['waf']:.3f} |"
                  f" {pace['late'] / pace['answers']:.1%} late |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="target/release/nandscape")
    parser.add_argument("--loads", default="files,files-discard,files-journal,pgbench,pgbench-discard,amplification")
    parser.add_argument("--keep", help="folder in which the recordings stay")
    parser.add_argument("--seconds", type=int, default=60, help="length of a paced run")
    parser.add_argument("--op", type=lambda text: [float(x) for x in text.split(",")], default=[0.07, 0.28],
                        help="over-provisioning of the replayed devices")
    parser.add_argument("--capacities", type=int, default=4,
                        help="writes to settle, and again to be counted, in capacities of the device")
    parser.add_argument("--unit-pages", type=int, default=64, help="pages of 4 KiB in an erase unit of the replayed devices")
    parser.add_argument("--reuse", action="store_true", help="replay the recordings in the folder of --keep again")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    if arguments.reuse and not arguments.keep:
        parser.error("--reuse: expected --keep FOLDER beside it")
    arguments.binary = os.path.abspath(arguments.binary)
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse") or not os.path.exists("/dev/loop-control"):
        print("SKIP: not root, or no /dev/fuse or loop devices: ext4 on a served device was not measured")
        return
    if not shutil.which("mke2fs"):
        print("SKIP: mke2fs (package e2fsprogs) is absent: ext4 on a served device was not measured")
        return
    with tempfile.TemporaryDirectory(prefix="nandscape-fstream-") as scratch:
        for name in arguments.loads.split(","):
            if name == "amplification":
                metadata(arguments, scratch)
            elif name == "paced":
                paced(arguments, scratch, PACED)
            elif name in [f"paced-{load}" for load in PACED]:
                paced(arguments, scratch, [name.removeprefix("paced-")])
            elif name not in LOADS:
                raise SystemExit(f"--loads {name}: expected some of {', '.join(LOADS)}, amplification, paced, paced-files ...")
            elif missing(name):
                print(f"SKIP: {missing(name)} is absent: {name} was not measured")
            else:
                load(name, arguments, scratch)


main()
