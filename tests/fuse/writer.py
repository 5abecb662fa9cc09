#!/usr/bin/env python3
"""A program that changes files and logs what has been promised to it, and the check of what is left of them
after a power cut.

    writer.py DIRECTORY LOG SEED      until the first error, which is how it learns that the power is gone

Before each change a line says what is about to happen, after the fsync that completes it another says that it
is done, and when; the log lies on another file system. So at most one change of a writer is in doubt, and those
that were answered after the cut, since a file system may answer an fsync while its device goes. Files are made of
units of 1 KiB, each of which says in its bytes which change wrote it.
"""

import hashlib
import json
import os
import random
import sys
import time

UNIT = 1024
FILES = 20
PUNCH_HOLE = 3  # with FALLOC_FL_KEEP_SIZE


def unit(seed, name, change, index):
    """The bytes of a unit as a change wrote them. Change 0 is a hole."""
    if change == 0:
        return bytes(UNIT)
    key = f"{seed}/{name}/{change}/{index}".encode()
    return hashlib.blake2b(key).digest() * (UNIT // 64)


def units(seed, name, change, first, count):
    """Several of them."""
    return b"".join(unit(seed, name, change, index) for index in range(first, first + count))


class Writer:
    """One change after another, until an error."""

    def __init__(self, root, log, seed):
        self.root, self.seed, self.dice = root, seed, random.Random(seed)
        self.log = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        self.directory = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        self.sizes = {}
        self.change = 0

    def note(self, **line):
        os.write(self.log, (json.dumps(line) + "\n").encode())

    def path(self, name):
        return os.path.join(self.root, name)

    def make(self, path, name, count):
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        try:
            os.write(descriptor, units(self.seed, name, self.change, 0, count))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def create(self):
        name = f"f{self.change}"
        count = self.dice.choice([1, 3, 4, 17, 64, 300, 1000])
        self.note(begin="create", change=self.change, name=name, count=count)
        self.make(self.path(name), name, count)
        os.fsync(self.directory)
        self.sizes[name] = count

    def replace(self):
        name, count = self.some(), self.dice.choice([2, 8, 33, 200])
        self.note(begin="replace", change=self.change, name=name, count=count)
        self.make(self.path("new"), name, count)
        os.rename(self.path("new"), self.path(name))
        os.fsync(self.directory)
        self.sizes[name] = count

    def delete(self):
        name = self.some()
        self.note(begin="delete", change=self.change, name=name)
        os.unlink(self.path(name))
        os.fsync(self.directory)
        del self.sizes[name]

    def overwrite(self):
        name = self.some()
        first = self.dice.randrange(self.sizes[name])
        count = self.dice.randint(1, min(120, self.sizes[name] - first))
        self.write("overwrite", name, first, count)

    def append(self):
        name = self.some()
        count = self.dice.choice([1, 4, 30])
        self.write("append", name, self.sizes[name], count)
        self.sizes[name] += count

    def write(self, begin, name, first, count):
        self.note(begin=begin, change=self.change, name=name, first=first, count=count)
        how = self.dice.randrange(3)
        descriptor = os.open(self.path(name), os.O_WRONLY | (os.O_DSYNC if how == 0 else 0))
        try:
            data = units(self.seed, name, self.change, first, count)
            written = os.pwrite(descriptor, data, first * UNIT)
            if written != len(data):
                raise OSError(f"wrote {written} of {len(data)}")
            if how:
                (os.fsync if how == 1 else os.fdatasync)(descriptor)
        finally:
            os.close(descriptor)

    def punch(self):
        import ctypes

        name = self.some()
        first = self.dice.randrange(self.sizes[name])
        count = self.dice.randint(1, self.sizes[name] - first)
        self.note(begin="punch", change=self.change, name=name, first=first, count=count)
        libc = ctypes.CDLL(None, use_errno=True)
        libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
        descriptor = os.open(self.path(name), os.O_WRONLY)
        try:
            if libc.fallocate(descriptor, PUNCH_HOLE, first * UNIT, count * UNIT) != 0:
                raise OSError(ctypes.get_errno(), "fallocate")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def some(self):
        return self.dice.choice(sorted(self.sizes))

    def step(self, action=None):
        """One change, made durable; any if none is named."""
        self.change += 1
        (action or self.any())()
        self.note(done=self.change, at=time.monotonic())

    def any(self):
        if len(self.sizes) < 3:
            return self.create
        if len(self.sizes) >= FILES:
            return self.delete
        actions = [self.create, self.replace, self.delete, self.overwrite, self.append, self.punch]
        return self.dice.choices(actions, [3, 2, 1, 5, 3, 1])[0]


def settle(files, entry):
    """A change is done."""
    name, change, what = entry["name"], entry["change"], entry["begin"]
    if what in ("create", "replace"):
        files[name] = [change] * entry["count"]
    elif what == "delete":
        del files[name]
    else:
        file, first, count = files[name], entry["first"], entry["count"]
        file[first : first + count] = [0 if what == "punch" else change] * count


class Promised:
    """What a log promises: files as lists of changes, one a unit, and the changes that are in doubt. With the
    moment of the `cut` (time.monotonic), those answered after it are in doubt as well."""

    def __init__(self, log, seed, cut=None):
        self.seed, self.files, self.done = seed, {}, 0
        self.doubts, self.late = [], 0
        self.replaced, self.notes = [], []
        with open(log, "rb") as lines:
            for line in lines:
                entry = json.loads(line)
                if "begin" in entry:
                    self.doubts.append(entry)
                elif cut is not None and entry["at"] > cut:
                    self.late += 1
                else:
                    begun = self.doubts.pop()
                    settle(self.files, begun)
                    self.done += 1
                    if begun["begin"] == "replace":
                        self.replaced.append(begun)

    def states(self):
        """What the files may be: all changes in doubt before one are made, and that one is under way."""
        files = {name: list(changes) for name, changes in self.files.items()}
        for doubt in self.doubts or [{"begin": None, "name": None}]:
            yield {name: list(changes) for name, changes in files.items()}, doubt
            if doubt["begin"]:
                settle(files, doubt)

    def wrong(self, root, old_name_may_stay=False):
        """What is not as promised; an empty list is what one hopes for. `old_name_may_stay` admits a file that
        was renamed to be there under its old name too, whole, as btrfs has left one on a drive without fault."""
        found = set(os.listdir(root))
        states = list(self.states())
        faults = []
        for name in sorted(found.union(*(files for files, _ in states))):
            wrong = [self.wrong_file(root, name, name in found, *state) for state in states]
            if all(wrong):
                if name == "new" and old_name_may_stay and self.was_renamed(root):
                    self.notes.append(f"{root}/new is there, although it was renamed and the directory synced: a fault of the file system")
                else:
                    faults.append(f"{name}{' or '.join(dict.fromkeys(wrong))}")
        return faults

    def wrong_file(self, root, name, is_found, files, doubt):
        """What is wrong with a file in one of the states."""
        is_doubted = name == doubt["name"]
        if not is_found:
            return None if name not in files or (is_doubted and doubt["begin"] == "delete") else " is missing"
        if name == "new" and doubt["begin"] == "replace":
            return None
        if name not in files and not (is_doubted and doubt["begin"] == "create"):
            return " is there, although its removal was synced or it was never made"
        with open(os.path.join(root, name), "rb") as file:
            fault = self.wrong_bytes(files.get(name, []), name, file.read(), doubt if is_doubted else None)
        return fault and f": {fault}"

    def was_renamed(self, root):
        """Whether "new" holds the bytes of a replacement that was done."""
        with open(os.path.join(root, "new"), "rb") as file:
            data = file.read()
        return any(data == units(self.seed, entry["name"], entry["change"], 0, entry["count"]) for entry in self.replaced)

    def wrong_bytes(self, changes, name, data, doubt):
        """What is wrong in the bytes of a file."""
        old = [{change} for change in changes]
        if doubt is None or doubt["begin"] == "delete":
            return self.compare(name, data, old, len(old))
        change, what = doubt["change"], doubt["begin"]
        if what == "replace":
            fault = self.compare(name, data, old, len(old))
            new = [{change}] * doubt["count"]
            return fault and self.compare(name, data, new, len(new)) and f"neither the old file ({fault}) nor the new one"
        if what == "create":
            return self.compare(name, data, [{change, 0}] * doubt["count"], 0)
        first, count = doubt["first"], doubt["count"]
        allowed = list(old) + [{0, change}] * max(0, first + count - len(old))
        for index in range(first, min(first + count, len(old))):
            allowed[index] = old[index] | {0 if what == "punch" else change}
        return self.compare(name, data, allowed, len(old))

    def compare(self, name, data, allowed, at_least):
        """Compares units with the changes that may have written them; units from `at_least` on may be
        missing."""
        have = len(data) / UNIT
        if not at_least <= have <= len(allowed):
            return f"is {len(data)} bytes long, expected {at_least * UNIT} to {len(allowed) * UNIT}"
        for index in range(-(-len(data) // UNIT)):
            piece = data[index * UNIT : (index + 1) * UNIT]
            if not any(piece == unit(self.seed, name, change, index)[: len(piece)] for change in allowed[index]):
                return f"unit {index} was not written by change {' or '.join(map(str, sorted(allowed[index])))}"
        return None


if __name__ == "__main__":
    writer = Writer(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    try:
        while True:
            writer.step()
    except OSError as error:
        print(f"after {writer.change} changes: {error}", file=sys.stderr)
