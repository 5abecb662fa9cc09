"""Loads of `baselines` as lists of operations on files, and their replay by system calls.

An operation is `(verb, file, offset, length)` with a number for the file. Verbs are create, write, read, truncate (to the offset),
punch, fsync, sync (every file), close (fsync and close) and delete.
"""

import collections
import csv
import ctypes
import io
import os
import pathlib
import random
import subprocess
import tempfile

from harness import Failed, check, run

PAGE = 4096


class Table2(collections.namedtuple("Table2", "writes kib flushes unaligned overwrites")):
    """A load of [OFTL table 2]: writes, their KiB, flushes, share of unaligned writes. Not published: the share of overwrites."""


TABLE_2 = {
    "iPhoto": Table2(496542, 6651962, 37054, 0.512, 0.2),
    "iPages": Table2(75661, 183728, 565, 0.996, 0.2),
    "LASR-1": Table2(32249, 42600, 1714, 0.933, 0.2),
    "LASR-2": Table2(111531, 216114, 14998, 0.990, 0.2),
    "LASR-3": Table2(21956, 24426, 3056, 0.961, 0.2),
    "TPC-C": Table2(26144, 219689, 489, 0.071, 0.8),
}


class Load:
    """A load: its name, the divisor of its size, its operations, and where the bytes of a write come from."""

    def __init__(self, name, operations, scale=1, sources=None, overwrites=None):
        self.name, self.operations, self.scale, self.sources, self.overwrites = name, operations, scale, sources, overwrites
        # Bytes that no compression makes smaller. The same in every run.
        self.noise = b"" if sources else random.Random(1).randbytes(8 << 20)

    def bytes_of(self, index, operation):
        """What a write writes."""
        _, file, offset, length = operation
        if self.sources:
            with open(self.sources[file], "rb", buffering=0) as source:
                source.seek(offset)
                return source.read(length)
        at = index * 7919 * 64 % (len(self.noise) // 2)
        data = self.noise[at : at + length]
        while len(data) < length:
            data += self.noise[: length - len(data)]
        return data

    def facts(self):
        """Counts of the load, in the terms of [OFTL table 2]."""
        writes = [operation for operation in self.operations if operation[0] == "write"]
        size = sum(operation[3] for operation in writes)
        unaligned = sum(1 for operation in writes if operation[2] % PAGE or operation[3] % PAGE)
        flushes = sum(1 for operation in self.operations if operation[0] in ("close", "fsync", "sync"))
        files = len({operation[1] for operation in writes})
        return {"writes": len(writes), "bytes": size, "flushes": flushes, "unaligned": unaligned / max(len(writes), 1), "files": files, "scale": self.scale,
                "overwrites": self.overwrites}


def generated(binary, name, scale, overwrites=None, files=None):
    """A load with the statistics of [OFTL table 2], 1/`scale` of its writes and flushes, as the generator `fast13` makes it."""
    table = TABLE_2[name]
    share = table.overwrites if overwrites is None else overwrites
    keys = [f"load={name.lower()}", f"scale=1/{scale}", f"overwrites={share}", "seed=1", *([f"files={files}"] if files else [])]
    with tempfile.TemporaryDirectory() as work:
        path = pathlib.Path(work) / "load.csv"
        run(binary, "trace", "convert", f"fast13:{','.join(keys)}", "--capacity", 0, "--output", path)
        load = recorded(path)
    return Load(name, load.operations, scale, overwrites=share)


# Operations of the native CSV on objects, and of recordings of file operations. Other ones are left out.
OBJECT_VERBS = {"c": "create", "w": "write", "r": "read", "t": "truncate", "p": "punch", "f": "close", "d": "delete"}
FILE_VERBS = {"create": "create", "write": "write", "mmapw": "write", "read": "read", "trunc": "truncate", "punch": "punch", "fsync": "fsync",
              "fdatasync": "fsync", "syncrange": "fsync", "delete": "delete"}


def recorded(path):
    """A recording of operations on objects (`ts_us,op,offset,len,volume`) or on files (`ts_us,op,pid,file,offset,len`); `.zst` is unpacked."""
    if path.suffix == ".zst":
        done = subprocess.run(["zstd", "-dcq", path], capture_output=True, check=False)
        check(done.returncode == 0, f"{path}: {done.stderr.decode(errors='replace')}")
        text = done.stdout.decode()
    else:
        text = path.read_text(encoding="utf-8")
    rows = csv.DictReader(io.StringIO(text))
    fields = set(rows.fieldnames or ())
    is_files = "file" in fields
    check({"op", "offset", "len"} <= fields and (is_files or "volume" in fields), f"{path}: expected the columns op, offset, len and volume or file")
    verbs, operations = FILE_VERBS if is_files else OBJECT_VERBS, []
    for number, row in enumerate(rows, 2):
        try:
            verb, file, offset, length = verbs.get(row["op"]), int(row["file" if is_files else "volume"]), int(row["offset"]), int(row["len"])
        except (TypeError, ValueError):
            raise Failed(f"{path}, line {number}: expected numbers in file, offset and len") from None
        if verb == "close" and length:
            verb = "sync"
        if verb is not None:
            operations.append((verb, file, offset, length))
    return Load(path.name.split(".")[0], operations)


def copied(folder):
    """The files of a directory: each is created, written in pieces of 64 KiB, and closed."""
    operations, sources = [], {}
    for file, path in enumerate(sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()), 1):
        sources[file], size = path, path.stat().st_size
        operations.append(("create", file, 0, 0))
        operations += [("write", file, at, min(64 << 10, size - at)) for at in range(0, size, 64 << 10)]
        operations.append(("close", file, 0, 0))
    check(operations, f"{folder}: no files")
    return Load(folder.resolve().name, operations, sources=sources)


def named(binary, word, scale, overwrites=None, files=None):
    """The load of a name of [OFTL table 2], of a recording, or of a directory. `NAME=RECORDING` has the name: it stands beside the published
    figures of NAME."""
    if word in TABLE_2:
        return generated(binary, word, scale, overwrites, files)
    name, _, rest = word.partition("=")
    path = pathlib.Path(rest if name in TABLE_2 else word)
    check(path.exists(), f"{word}: expected {', '.join(TABLE_2)}, a recording or a directory")
    load = copied(path) if path.is_dir() else recorded(path)
    if name in TABLE_2:
        load.name, load.scale = name, max(round(TABLE_2[name].writes / max(load.facts()["writes"], 1)), 1)
    return load


def punch(descriptor, offset, length):
    """Deallocates a range and keeps the size."""
    status = ctypes.CDLL(None, use_errno=True).fallocate(descriptor, 3, ctypes.c_int64(offset), ctypes.c_int64(length))
    check(status == 0, f"fallocate: {os.strerror(ctypes.get_errno())}")


class Files:
    """The files of a replay. At most 200 are open, the ones used last."""

    def __init__(self, root, flags):
        self.root, self.flags, self.open = root, os.O_RDWR | os.O_CREAT | flags, collections.OrderedDict()

    def path(self, file):
        """Where a file is."""
        return self.root / f"f{file}"

    def descriptor(self, file):
        """Opens a file unless it is open."""
        if file not in self.open:
            if len(self.open) == 200:
                os.close(self.open.popitem(last=False)[1])
            self.open[file] = os.open(self.path(file), self.flags, 0o644)
        self.open.move_to_end(file)
        return self.open[file]

    def close(self, file):
        """Closes a file if it is open."""
        if file in self.open:
            os.close(self.open.pop(file))

    def close_all(self):
        """Closes every file."""
        for file in list(self.open):
            self.close(file)


def replay(load, root, is_synced):
    """Does the operations by system calls. With `is_synced` the files are opened with O_SYNC."""
    files = Files(root, os.O_SYNC if is_synced else 0)
    try:
        for index, operation in enumerate(load.operations):
            verb, file, offset, length = operation
            if verb == "delete":
                files.close(file)
                files.path(file).unlink(missing_ok=True)
                continue
            descriptor = files.descriptor(file)
            if verb == "write":
                data = load.bytes_of(index, operation)
                check(os.pwrite(descriptor, data, offset) == len(data), f"operation {index}: a short write")
            elif verb == "read":
                os.pread(descriptor, length, offset)
            elif verb == "truncate":
                os.ftruncate(descriptor, offset)
            elif verb == "punch":
                punch(descriptor, offset, length)
            elif verb == "fsync":
                os.fsync(descriptor)
            elif verb == "sync":
                for each in files.open.values():
                    os.fsync(each)
            elif verb == "close":
                os.fsync(descriptor)
                files.close(file)
    finally:
        files.close_all()


def compare(load, root):
    """Reads every file and compares it with what was written; gives how many there are."""
    touched = collections.defaultdict(list)
    for index, operation in enumerate(load.operations):
        if operation[0] in ("create", "write", "truncate", "punch", "delete"):
            touched[operation[1]].append((index, operation))
    count = 0
    for file, changes in touched.items():
        wanted = bytearray()
        exists = True
        for index, operation in changes:
            verb, _, offset, length = operation
            exists = verb != "delete"
            if verb == "delete":
                wanted = bytearray()
            elif verb == "write":
                wanted += bytes(max(offset - len(wanted), 0))
                wanted[offset : offset + length] = load.bytes_of(index, operation)
            elif verb == "truncate":
                del wanted[offset:]
                wanted += bytes(offset - len(wanted))
            elif verb == "punch":
                room = max(min(length, len(wanted) - offset), 0)
                wanted[offset : offset + room] = bytes(room)
        path = root / f"f{file}"
        check(path.exists() == exists, f"{path}: {'missing' if exists else 'not deleted'}")
        if exists:
            count += 1
            found = path.read_bytes()
            if found != wanted:
                at = next((at for at, (one, other) in enumerate(zip(found, wanted)) if one != other), min(len(found), len(wanted)))
                raise Failed(f"{path}: {len(found)} bytes, {len(wanted)} were written; they differ at byte {at}")
    return count
