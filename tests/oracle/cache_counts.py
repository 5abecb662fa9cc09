#!/usr/bin/env python3
"""Hits and misses of eviction policies, by textbook programs that share nothing with ours, on a small trace
made here.

    cache_counts.py --make FILE           writes the trace (CSV, .gz), the same every time
    cache_counts.py --print FILE          misses of every policy and size, as rows for
    crates/policies/tests/suite/counts.rs
    cache_counts.py --binary B FILE       compares them with 'nandscape cache simulate'

The definitions are the published ones: Corbato's CLOCK with one bit; SIEVE (NSDI '24); S3-FIFO (SOSP '23)
with a small queue of a tenth, names for nine tenths, two hits to leave the small queue and a counter up to
three; ARC (FAST '03, figure 4); Belady's MIN.
"""

import argparse
import gzip
import json
import subprocess
import sys
from collections import OrderedDict, deque

BLOCK = 4096
SIZES = [1, 7, 50, 200, 1000, 3000]


class Draws:
    """SplitMix64."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & (2**64 - 1)
        x = self.state
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & (2**64 - 1)
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB & (2**64 - 1)
        return x ^ (x >> 31)

    def below(self, n):
        return self.next() % n


def make(path):
    """Phases of a disk's day: a few popular places, a scan, a loop larger than most caches, a new hot set.
    Many requests are not aligned."""
    draws = Draws(2026)
    lines = ["ts_us,op,offset,len"]

    def add(op, offset, length):
        lines.append(f"{len(lines) * 100},{op},{offset},{length}")

    for phase in range(3):
        base = phase * 900 * BLOCK
        for i in range(2200):
            kind = draws.below(10)
            if kind < 6:
                # The smaller of several draws: popular places at the front.
                place = min(draws.below(2500) for _ in range(4))
                offset = base + place * BLOCK + draws.below(8) * 512
                add("W" if draws.below(5) < 2 else "R", offset, 512 * (1 + draws.below(40)))
            elif kind < 8:
                offset = (6000 + phase * 1500 + (i * 3) % 1400) * BLOCK
                add("R", offset, 2 * BLOCK)
            else:
                offset = (12000 + (i % 320) * 5) * BLOCK
                add("W", offset, 5 * BLOCK - 512)
    text = ("\n".join(lines) + "\n").encode()
    with open(path, "wb") as file, gzip.GzipFile(fileobj=file, mode="wb", mtime=0, filename="") as packed:
        packed.write(text)


def blocks(path):
    out = []
    with gzip.open(path, "rt") as file:
        next(file)
        for line in file:
            _, op, offset, length = line.strip().split(",")
            first, last = int(offset) // BLOCK, (int(offset) + int(length) - 1) // BLOCK
            out.extend((op == "W", block) for block in range(first, last + 1))
    return out


# Each takes the blocks and a size, and says for every request whether it misses.


def fifo(stream, size):
    queue, cached = deque(), set()
    for block in stream:
        yield block not in cached
        if block not in cached:
            if len(queue) == size:
                cached.remove(queue.popleft())
            queue.append(block)
            cached.add(block)


def lru(stream, size):
    order = OrderedDict()
    for block in stream:
        yield block not in order
        if block in order:
            order.move_to_end(block)
            continue
        if len(order) == size:
            order.popitem(last=False)
        order[block] = True


def clock(stream, size):
    queue, bit = deque(), {}
    for block in stream:
        yield block not in bit
        if block in bit:
            bit[block] = True
            continue
        if len(queue) == size:
            while bit[queue[0]]:
                bit[queue[0]] = False
                queue.rotate(-1)
            del bit[queue.popleft()]
        queue.append(block)
        bit[block] = False


def sieve(stream, size):
    # Index 0 is the oldest; the hand is the block it points to.
    queue, bit, hand = [], {}, None
    for block in stream:
        yield block not in bit
        if block in bit:
            bit[block] = True
            continue
        if len(queue) == size:
            at = queue.index(hand) if hand is not None else 0
            while bit[queue[at]]:
                bit[queue[at]] = False
                at = (at + 1) % len(queue)
            del bit[queue.pop(at)]
            hand = queue[at] if at < len(queue) else None
        queue.append(block)
        bit[block] = False


def s3_fifo(stream, size):
    small, main, names = deque(), deque(), deque()
    small_max, names_max = size // 10, size * 9 // 10
    main_max = size - small_max
    count, remembered = {}, set()

    def drop_name(block):
        remembered.discard(block)
        names.remove(block)

    def evict():
        if len(main) > main_max or not small:
            while True:
                block = main.popleft()
                if count[block] == 0:
                    del count[block]
                    return
                count[block] = min(count[block], 3) - 1
                main.append(block)
        while small:
            block = small.popleft()
            if count[block] >= 2:
                count[block] = 0
                main.append(block)
                continue
            del count[block]
            if names_max and block not in remembered:
                if len(names) == names_max:
                    remembered.discard(names.popleft())
                names.append(block)
                remembered.add(block)
            return

    for block in stream:
        yield block not in count
        if block in count:
            count[block] += 1
            continue
        is_known = block in remembered
        if is_known:
            drop_name(block)
        while len(small) + len(main) >= size:
            evict()
        (main if is_known else small).append(block)
        count[block] = 0


def arc(stream, size):
    once, often, gone_once, gone_often = (OrderedDict() for _ in range(4))
    target = 0.0

    def replace(block):
        if once and (len(once) > target or (block in gone_often and len(once) == target)):
            gone_once[once.popitem(last=False)[0]] = True
        elif often:
            gone_often[often.popitem(last=False)[0]] = True
        else:
            gone_once[once.popitem(last=False)[0]] = True

    for block in stream:
        yield not (block in once or block in often)
        if block in once:
            del once[block]
            often[block] = True
        elif block in often:
            often.move_to_end(block)
        elif block in gone_once:
            target = min(size, target + max(len(gone_often) / len(gone_once), 1))
            replace(block)
            del gone_once[block]
            often[block] = True
        elif block in gone_often:
            target = max(0, target - max(len(gone_once) / len(gone_often), 1))
            replace(block)
            del gone_often[block]
            often[block] = True
        else:
            if len(once) + len(gone_once) == size:
                if len(once) < size:
                    gone_once.popitem(last=False)
                    replace(block)
                else:
                    once.popitem(last=False)
            elif len(once) + len(gone_once) + len(often) + len(gone_often) >= size:
                if len(once) + len(gone_once) + len(often) + len(gone_often) == 2 * size:
                    gone_often.popitem(last=False)
                if len(once) + len(often) == size:
                    replace(block)
            once[block] = True


def belady(stream, size):
    later, next_use = {}, [0] * len(stream)
    for at in range(len(stream) - 1, -1, -1):
        next_use[at] = later.get(stream[at], len(stream))
        later[stream[at]] = at
    cached = {}
    for at, block in enumerate(stream):
        yield block not in cached
        if block not in cached and len(cached) == size:
            del cached[max(cached, key=cached.get)]
        cached[block] = next_use[at]


POLICIES = {"fifo": fifo, "lru": lru, "clock": clock, "sieve": sieve, "s3-fifo": s3_fifo, "arc": arc, "belady": belady}


def count(trace, size, policy):
    """Misses of reads, and of writes."""
    missed = list(POLICIES[policy]([block for _, block in trace], size))
    writes = sum(1 for (is_write, _), miss in zip(trace, missed) if miss and is_write)
    return sum(missed) - writes, writes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--print", action="store_true")
    parser.add_argument("--binary")
    parser.add_argument("file")
    args = parser.parse_args()
    if args.make:
        make(args.file)
        return
    trace = blocks(args.file)
    if args.print:
        writes = sum(is_write for is_write, _ in trace)
        print(f"// {len(trace)} requests, {writes} of them writes, for {len({b for _, b in trace})} blocks.")
        for size in SIZES:
            print(f"({size}, {[sum(count(trace, size, policy)) for policy in POLICIES]}),")
        return
    command = [args.binary, "cache", "simulate", args.file, "--eviction", ",".join(POLICIES), "--json"]
    command += ["--size", ",".join(f"{size}b" for size in SIZES)]
    rows = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    wrong = 0
    for row in rows:
        expected = count(trace, row["size_blocks"], row["eviction"])
        got = (row["read_misses"], row["write_misses"])
        if got != expected or row["hits"] + row["misses"] != len(trace):
            wrong += 1
            print(f"{row['eviction']}, {row['size_blocks']} blocks: {got}, expected {expected}")
    print(f"{len(rows)} simulations of {len(trace)} requests: {wrong} differ")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
