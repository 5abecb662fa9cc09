#!/usr/bin/env python3
"""A naive model of the four thesis strategies, for comparison with the real ones.

It follows chapter 3 of the thesis (docs/sources.md) word by word, with plain lists and full scans; where that
leaves a choice, a comment says which reading is taken. It shares no code, no data structure and no shortcut
with the translation layers it checks. It is slow on purpose. No dependencies.

Run on its own it prints the counters of one replay:

    thesis_oracle.py TRACE.csv --ftl hsbm-gcl [--device channels=8 dies_per_channel=4 ...] [--set logs=4 ...]
"""

import argparse
import csv
import json
import sys

READ_NS, PROGRAM_NS, ERASE_NS = 101_000, 116_000, 434_000

THESIS = {
    "channels": 8,
    "dies_per_channel": 4,
    "planes_per_die": 1,
    "blocks_per_plane": 16,
    "pages_per_block": 32,
    "page": 32768,
}


class DeviceFull(Exception):
    """A request that cannot be placed."""


class OutOfRange(Exception):
    """A request beyond the logical capacity."""


class Flash:
    """Units of blocks of pages. A page is None (erased) or the logical page whose data it was programmed
    with."""

    def __init__(self, device, bad=()):
        self.units = device["channels"] * device["dies_per_channel"]
        self.blocks = device["planes_per_die"] * device["blocks_per_plane"]
        self.pages = device["pages_per_block"]
        self.page_bytes = device["page"]
        self.cells = [[[None] * self.pages for _ in range(self.blocks)] for _ in range(self.units)]
        self.erase_counts = [[0] * self.blocks for _ in range(self.units)]
        self.bad = {divmod(number, self.blocks) for number in bad}
        self.counts = {}

    def _count(self, cause, what):
        self.counts[cause, what] = self.counts.get((cause, what), 0) + 1

    def read(self, where, cause):
        unit, block, page = where
        assert self.cells[unit][block][page] is not None, f"read of erased {where}"
        self._count(cause, "reads")

    def program(self, where, lpn, cause):
        unit, block, page = where
        assert (unit, block) not in self.bad, f"program of bad {where}"
        assert self.cells[unit][block][page] is None, f"program of programmed {where}"
        self.cells[unit][block][page] = lpn
        self._count(cause, "programs")

    def erase(self, unit, block, cause):
        assert (unit, block) not in self.bad, f"erase of bad {unit, block}"
        self.cells[unit][block] = [None] * self.pages
        self.erase_counts[unit][block] += 1
        self._count(cause, "erases")

    def is_programmed(self, where):
        unit, block, page = where
        return self.cells[unit][block][page] is not None

    def total(self, what):
        return sum(number for (_, kind), number in self.counts.items() if kind == what)

    def time_ns(self):
        return (
            self.total("reads") * READ_NS + self.total("programs") * PROGRAM_NS + self.total("erases") * ERASE_NS
        )


class Strategy:
    """What all four share: requests, host counters, map counters."""

    def __init__(self, flash, options):
        self.flash = flash
        self.options = options
        self.rmw = options.get("rmw", "true") == "true"
        self.host = {"reads": 0, "writes": 0, "trims": 0, "flushes": 0, "read_pages": 0, "write_pages": 0}
        self.host.update(read_bytes=0, write_bytes=0)
        self.map_updates = self.map_bytes = self.log_table_updates = 0
        self.gc_runs = self.gc_moved = 0
        self.merge_switch = self.merge_full = self.merge_evicted = self.in_place = 0
        self.capacity_pages = 0

    def touched(self, offset, length):
        """(logical page, wholly covered) for each page a request touches."""
        size = self.flash.page_bytes
        result = []
        page = offset // size
        while page * size < offset + length:
            low = max(offset, page * size)
            high = min(offset + length, (page + 1) * size)
            result.append((page, high - low == size))
            page += 1
        return result

    def request(self, op, offset, length):
        if offset + length > self.capacity_pages * self.flash.page_bytes and op != "F":
            raise OutOfRange(f"{offset}+{length}")
        pages = self.touched(offset, length) if length else []
        if op == "R":
            self.host["reads"] += 1
            self.host["read_bytes"] += length
            self.host["read_pages"] += len(pages)
            for lpn, _ in pages:
                where = self.find(lpn)
                if where is not None:  # a page without data costs nothing
                    self.flash.read(where, "host")
        elif op == "W":
            self.host["writes"] += 1
            self.host["write_bytes"] += length
            self.host["write_pages"] += len(pages)
            if pages:
                self.write(pages)
        elif op in "DZ":  # not in the thesis: drops the pages that it wholly covers
            self.host["trims"] += 1
            for lpn, whole in pages:
                if whole:
                    self.drop(lpn)
        elif op == "F":
            self.host["flushes"] += 1
        else:
            raise ValueError(op)

    def rmw_read(self, lpn, whole):
        """A partly written page costs one more read if it is mapped."""
        where = self.find(lpn)
        if not whole and self.rmw and where is not None:
            self.flash.read(where, "host")

    def live_pages(self):
        return sum(self.find(lpn) is not None for lpn in range(self.capacity_pages))

    def counters(self):
        causes = {}
        for cause in ("host", "gc", "merge", "meta", "wear"):
            causes[cause] = {w: self.flash.counts.get((cause, w), 0) for w in ("programs", "reads", "erases")}
        return {
            "host": self.host,
            "flash": {
                "programs": self.flash.total("programs"),
                "reads": self.flash.total("reads"),
                "erases": self.flash.total("erases"),
                "by_cause": causes,
            },
            "map": {
                "table_bytes": self.table_bytes(),
                "updates": self.map_updates,
                "update_bytes": self.map_bytes,
                "log_table_updates": self.log_table_updates,
            },
            "gc": {"runs": self.gc_runs, "moved_pages": self.gc_moved},
            "merges": {
                "switch": self.merge_switch,
                "full": self.merge_full,
                "evicted": self.merge_evicted,
                "in_place": self.in_place,
            },
            "wear": {"per_block": [count for unit in self.flash.erase_counts for count in unit]},
            "time": {"simulated_ns": self.flash.time_ns()},
            "live_pages": self.live_pages(),
        }


class PageMapped(Strategy):
    """vpg2ppg and ppg2vpg."""

    def __init__(self, flash, options):
        super().__init__(flash, options)
        self.v2p = {}
        self.p2v = {}
        good = flash.units * flash.blocks - len(flash.bad)
        self.capacity_pages = good * flash.pages

    def table_bytes(self):
        return 8 * self.capacity_pages

    def find(self, lpn):
        return self.v2p.get(lpn)

    def drop(self, lpn):
        where = self.v2p.pop(lpn, None)
        if where is not None:
            del self.p2v[where]

    def map(self, lpn, where):
        self.drop(lpn)
        self.v2p[lpn] = where
        self.p2v[where] = lpn
        self.map_updates += 1
        self.map_bytes += 8


class PmGcl(PageMapped):
    def __init__(self, flash, options):
        super().__init__(flash, options)
        self.empty = [[b for b in range(flash.blocks) if (u, b) not in flash.bad] for u in range(flash.units)]
        self.active = [None] * flash.units  # [block, next page]
        self.full = [[] for _ in range(flash.units)]
        self.rotor = 0

    def free(self):
        pages = 0
        for unit in range(self.flash.units):
            pages += len(self.empty[unit]) * self.flash.pages
            if self.active[unit]:
                pages += self.flash.pages - self.active[unit][1]
        return pages

    def walk(self):
        return [(self.rotor + i) % self.flash.units for i in range(self.flash.units)]

    def place(self, lpn, cause):
        for unit in self.walk():
            if self.active[unit] is None and self.empty[unit]:
                self.active[unit] = [self.empty[unit].pop(0), 0]
            if self.active[unit] is None:
                continue
            self.rotor = (unit + 1) % self.flash.units
            block, page = self.active[unit]
            self.flash.program((unit, block, page), lpn, cause)
            self.map(lpn, (unit, block, page))
            if page + 1 == self.flash.pages:
                self.full[unit].append(block)
                self.active[unit] = None
            else:
                self.active[unit] = [block, page + 1]
            return
        raise AssertionError("no free page")

    def live_in(self, unit, block):
        return [p for p in range(self.flash.pages) if (unit, block, p) in self.p2v]

    def collect(self):
        best = None
        for unit in self.walk():
            for block in self.full[unit]:
                live = len(self.live_in(unit, block))
                if best is None or live < best[0]:
                    best = (live, unit, block)
        if best is None or best[0] == self.flash.pages:  # the best block has nothing to reclaim
            raise DeviceFull("no block with an invalid page")
        _, unit, block = best
        self.rotor = (unit + 1) % self.flash.units  # shared with allocation
        buffered = []
        for page in self.live_in(unit, block):
            self.flash.read((unit, block, page), "gc")
            buffered.append(self.p2v[unit, block, page])
        for lpn in buffered:
            self.drop(lpn)
        self.full[unit].remove(block)
        self.flash.erase(unit, block, "gc")
        self.empty[unit].append(block)
        self.gc_runs += 1
        for lpn in buffered:
            self.place(lpn, "gc")
            self.gc_moved += 1

    def write(self, pages):
        while self.free() < len(pages):  # before the request; old versions still count as live
            self.collect()
        for lpn, whole in pages:
            self.rmw_read(lpn, whole)
            self.place(lpn, "host")


class PmGcc(PageMapped):
    def __init__(self, flash, options):
        super().__init__(flash, options)
        # Every good page in the order unit, page, block.
        self.order = [
            (unit, block, page)
            for block in range(flash.blocks)
            for page in range(flash.pages)
            for unit in range(flash.units)
            if (unit, block) not in flash.bad
        ]
        self.end = 0

    def place(self, lpn, cause):
        where = self.order[self.end]
        self.end += 1
        self.flash.program(where, lpn, cause)
        self.map(lpn, where)

    def collect(self):  # a block of each unit at a time; blocks never written are not erased
        self.gc_runs += 1
        self.end = 0
        for block in range(self.flash.blocks):
            buffered = []
            for page in range(self.flash.pages):
                for unit in range(self.flash.units):
                    lpn = self.p2v.get((unit, block, page))
                    if lpn is not None:
                        self.flash.read((unit, block, page), "gc")
                        buffered.append(lpn)
            for lpn in buffered:
                self.drop(lpn)
            for unit in range(self.flash.units):
                if any(cell is not None for cell in self.flash.cells[unit][block]):
                    self.flash.erase(unit, block, "gc")
            for lpn in buffered:
                self.place(lpn, "gc")
                self.gc_moved += 1

    def write(self, pages):
        if len(self.order) - self.end < len(pages):
            self.collect()
            if len(self.order) - self.end < len(pages):
                raise DeviceFull("device full")
        for lpn, whole in pages:
            self.rmw_read(lpn, whole)
            self.place(lpn, "host")


class Superblocked(Strategy):
    """Superblocks are (outer_pu, outer_blk); their pages are numbered inner_pu, page, inner_blk from low to
    high."""

    def __init__(self, flash, options):
        super().__init__(flash, options)
        self.pn = int(options.get("pn", 1))
        self.bn = int(options.get("bn", 1))
        assert flash.units % self.pn == 0 and flash.blocks % self.bn == 0
        self.groups = flash.units // self.pn
        self.size = self.pn * self.bn * flash.pages
        self.empty = [[] for _ in range(self.groups)]
        for group in range(self.groups):
            for outer in range(flash.blocks // self.bn):
                if not any(where in flash.bad for where in self.blocks_of((group, outer))):
                    self.empty[group].append((group, outer))
        self.used = [[] for _ in range(self.groups)]
        self.rotor = 0
        self.live = set()  # (superblock, page)
        self.data = {}  # logical superblock: superblock
        good = sum(len(queue) for queue in self.empty)
        self.superblocks = good
        self.capacity_pages = good * self.size

    def blocks_of(self, superblock):
        group, outer = superblock
        return [(group * self.pn + i, outer * self.bn + k) for k in range(self.bn) for i in range(self.pn)]

    def where(self, superblock, index):
        group, outer = superblock
        inner_pu = index % self.pn
        page = index // self.pn % self.flash.pages
        inner_blk = index // self.pn // self.flash.pages
        return (group * self.pn + inner_pu, outer * self.bn + inner_blk, page)

    def has_live(self, superblock):
        return any((superblock, index) in self.live for index in range(self.size))

    def walk(self):
        return [(self.rotor + i) % self.groups for i in range(self.groups)]

    def take_empty(self):
        for group in self.walk():
            if self.empty[group]:
                superblock = self.empty[group].pop(0)
                self.used[group].append(superblock)
                self.rotor = (group + 1) % self.groups
                return superblock
        return None

    def collect(self):  # the first superblock without live pages, in the order of the queues
        for group in self.walk():
            for superblock in self.used[group]:
                if not self.has_live(superblock):
                    self.used[group].remove(superblock)
                    for unit, block in self.blocks_of(superblock):
                        self.flash.erase(unit, block, "gc")
                    self.empty[group].append(superblock)
                    self.rotor = (group + 1) % self.groups
                    self.gc_runs += 1
                    return True
        return False

    def allocate(self):  # one victim at a time, only when nothing is empty
        superblock = self.take_empty()
        if superblock is None and self.collect():
            superblock = self.take_empty()
        return superblock

    def forget(self, superblock):
        for index in range(self.size):
            self.live.discard((superblock, index))

    def map_data(self, logical, superblock):
        self.data[logical] = superblock
        self.map_updates += 1
        self.map_bytes += 8


class SbmGcl(Superblocked):
    def table_bytes(self):
        return 8 * self.superblocks

    def find(self, lpn):
        logical, index = divmod(lpn, self.size)
        superblock = self.data.get(logical)
        if superblock is None or (superblock, index) not in self.live:
            return None
        return self.where(superblock, index)

    def drop(self, lpn):
        logical, index = divmod(lpn, self.size)
        superblock = self.data.get(logical)
        if superblock is not None:
            self.live.discard((superblock, index))
            if not self.has_live(superblock):
                del self.data[logical]

    def write(self, pages):
        by_superblock = {}
        for lpn, whole in pages:
            by_superblock.setdefault(lpn // self.size, []).append((lpn, whole))
        for logical, part in by_superblock.items():
            self.write_part(logical, part)

    def put(self, superblock, lpn, cause):
        index = lpn % self.size
        self.flash.program(self.where(superblock, index), lpn, cause)
        self.live.add((superblock, index))

    def write_part(self, logical, part):
        old = self.data.get(logical)
        if old is None:
            new = self.allocate()
            if new is None:
                raise DeviceFull("no superblock")
            for lpn, _ in part:
                self.put(new, lpn, "host")
            self.map_data(logical, new)
            return
        if not any(self.flash.is_programmed(self.where(old, lpn % self.size)) for lpn, _ in part):
            for lpn, _ in part:
                self.put(old, lpn, "host")
            return
        # Remapped once, however many of the request's pages are already programmed.
        requested = {lpn % self.size for lpn, _ in part}
        others = [i for i in range(self.size) if (old, i) in self.live and i not in requested]
        if self.options.get("full", "gc-first") == "gc-first":
            new = self.allocate()
        else:
            new = self.take_empty()
        for lpn, whole in part:
            self.rmw_read(lpn, whole)
        for index in others:
            self.flash.read(self.where(old, index), "merge")
        if new is None:  # rewritten in place, without a map update
            self.in_place += 1
            for unit, block in self.blocks_of(old):
                self.flash.erase(unit, block, "merge")
            new = old
        else:
            self.map_data(logical, new)
        self.forget(old)
        for lpn, _ in part:
            self.put(new, lpn, "host")
        for index in others:
            self.put(new, logical * self.size + index, "merge")


class HsbmGcl(Superblocked):
    def __init__(self, flash, options):
        super().__init__(flash, options)
        self.slots = int(options.get("logs", 8))
        self.logs = {}  # logical superblock: {"superblock", "next", "map": {index: page of the log}}
        self.queue = []  # logical superblocks with a log, next victim first

    def table_bytes(self):
        return 8 * self.superblocks + self.slots * (16 + 2 * self.size)

    def newest(self, logical, index):
        log = self.logs.get(logical)
        if log and index in log["map"]:
            return self.where(log["superblock"], log["map"][index])
        data = self.data.get(logical)
        if data is not None and (data, index) in self.live:
            return self.where(data, index)
        return None

    def find(self, lpn):
        return self.newest(*divmod(lpn, self.size))

    def drop(self, lpn):
        logical, index = divmod(lpn, self.size)
        log = self.logs.get(logical)
        if log and index in log["map"]:
            self.live.discard((log["superblock"], log["map"].pop(index)))
            if not log["map"]:
                self.close(logical)
        data = self.data.get(logical)
        if data is not None:
            self.live.discard((data, index))
            if not self.has_live(data):
                del self.data[logical]

    def close(self, logical):
        del self.logs[logical]
        self.queue.remove(logical)

    def need(self):
        superblock = self.allocate()
        if superblock is None:  # nothing limits the space beforehand
            raise DeviceFull("no superblock for log or merge")
        return superblock

    def is_identity(self, logical):  # strict: all pages present and in place
        pages = self.logs[logical]["map"]
        if any(index != page for index, page in pages.items()):
            return False
        if self.options.get("identity", "strict") == "strict":
            return len(pages) == self.size
        data = self.data.get(logical)
        return all(i in pages or data is None or (data, i) not in self.live for i in range(self.size))

    def merge(self, logical):
        log = self.logs[logical]
        data = self.data.get(logical)
        if self.is_identity(logical):
            self.merge_switch += 1
            target = log["superblock"]
        else:
            target = self.need()
            self.merge_full += 1
            for index in range(self.size):
                source = self.newest(logical, index)
                if source is not None:
                    self.flash.read(source, "merge")
                    self.flash.program(self.where(target, index), logical * self.size + index, "merge")
                    self.live.add((target, index))
            self.forget(log["superblock"])
        if data is not None:  # invalid only from here on
            self.forget(data)
        self.close(logical)
        self.map_data(logical, target)

    def write(self, pages):
        for lpn, whole in pages:
            logical, index = divmod(lpn, self.size)
            if logical in self.logs and self.logs[logical]["next"] == self.size:  # merged when a page is needed, not when it fills
                self.merge(logical)
            elif logical not in self.logs and len(self.logs) == self.slots:  # the oldest log goes
                self.merge(self.queue[0])
                self.merge_evicted += 1
            if logical not in self.logs:  # also for the first write of a superblock
                superblock = self.need()
                self.logs[logical] = {"superblock": superblock, "next": 0, "map": {}}
                self.queue.append(logical)
                self.log_table_updates += 1
            log = self.logs[logical]
            self.rmw_read(lpn, whole)
            page = log["next"]
            log["next"] += 1
            self.flash.program(self.where(log["superblock"], page), lpn, "host")
            if index in log["map"]:
                self.live.discard((log["superblock"], log["map"][index]))
            log["map"][index] = page
            self.live.add((log["superblock"], page))
            self.map_updates += 1
            self.map_bytes += 2
            if self.options.get("log_victim", "fifo") == "lru":
                self.queue.remove(logical)
                self.queue.append(logical)


STRATEGIES = {"pm-gcl": PmGcl, "pm-gcc": PmGcc, "sbm-gcl": SbmGcl, "hsbm-gcl": HsbmGcl}


def replay(trace, ftl, device=None, options=None, bad=()):
    """Counters of a replay of (op, offset, length) records, up to its end or the first request that fails."""
    strategy = STRATEGIES[ftl](Flash(device or THESIS, bad), options or {})
    error = None
    for number, (op, offset, length) in enumerate(trace, 1):
        try:
            strategy.request(op, offset, length)
        except (DeviceFull, OutOfRange) as failure:
            error = {"request": number, "kind": type(failure).__name__, "message": str(failure)}
            break
    return {**strategy.counters(), "error": error}


def read_csv(path):
    with open(path, newline="") as file:
        rows = csv.reader(file)
        next(rows)
        return [(op, int(offset), int(length)) for _, op, offset, length in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace")
    parser.add_argument("--ftl", required=True, choices=STRATEGIES)
    parser.add_argument("--device", nargs="*", default=[], metavar="KEY=VALUE")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE")
    args = parser.parse_args()
    device = dict(THESIS)
    device.update((key, int(value)) for key, value in (pair.split("=") for pair in args.device))
    options = dict(pair.split("=") for pair in args.set)
    json.dump(replay(read_csv(args.trace), args.ftl, device, options), sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
