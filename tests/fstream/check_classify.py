#!/usr/bin/env python3
"""Compares `nandscape fs classify` with what dumpe2fs and debugfs say, on every block of several images.

The images are made by mke2fs from a small tree and need no root. Usage:

    check_classify.py --binary target/debug/nandscape [--keep DIR] [--device PATH]

With --device only that image or device is compared.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

IMAGES = [
    # name, mke2fs arguments, MiB
    ("ext4", ["-t", "ext4", "-b", "4096", "-O", "quota"], 96),
    ("ext3-1k", ["-t", "ext3", "-b", "1024", "-J", "size=4"], 96),
    ("ext4-odd", ["-t", "ext4", "-b", "1024", "-g", "4096", "-N", "6000", "-E", "lazy_itable_init=0",
                  "-O", "meta_bg,^resize_inode,^flex_bg,inline_data,mmp,64bit,ea_inode,fast_commit"], 64),
    ("ext2-2k", ["-t", "ext2", "-b", "2048", "-O", "sparse_super2,^resize_inode,^ext_attr"], 96),
    ("ext2-every-super", ["-t", "ext2", "-b", "1024", "-O", "^sparse_super,^resize_inode"], 48),
    ("ext4-clusters", ["-t", "ext4", "-b", "4096", "-C", "16384", "-O", "bigalloc,orphan_file"], 128),
]


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def make_tree(root):
    """Many directories, a big one, files with holes (extent trees, indirect blocks), links."""
    for number in range(120):
        path = os.path.join(root, f"d{number % 10}", f"sub{number}", "deep")
        os.makedirs(path)
        with open(os.path.join(path, "file"), "wb") as out:
            out.write(bytes([number]) * (number * 97 % 9000))
    big = os.path.join(root, "big")
    os.mkdir(big)
    for number in range(1500):
        name = f"a-name-that-takes-room-in-the-directory-{number:06}"
        with open(os.path.join(big, name), "wb") as out:
            out.write(b"x" * (number % 3))
    with open(os.path.join(root, "holes"), "wb") as out:
        # Every second 4 KiB block: an extent each, so that the tree is more than one level high.
        for number in range(1600):
            out.seek(number * 8192)
            out.write(b"hole" * 1024)
    with open(os.path.join(root, "far"), "wb") as out:
        # Direct, single, double and triple indirect blocks of 1 and 2 KiB.
        for at in [0, 11 << 10, 13 << 10, 200 << 10, 300 << 10, 900 << 10, 40 << 20, 70 << 20, 600 << 20]:
            out.seek(at)
            out.write(b"far" * 700)
    os.symlink("short", os.path.join(root, "link-short"))
    os.symlink("long/" * 40, os.path.join(root, "link-long"))
    os.mkfifo(os.path.join(root, "fifo"))


def make_image(path, arguments, mebibytes, tree, scratch):
    with open(path, "wb") as out:
        out.truncate(mebibytes << 20)
    run("mke2fs", "-q", "-F", "-d", tree, *arguments, path)
    if "^ext_attr" not in " ".join(arguments):
        value = os.path.join(scratch, "value")
        with open(value, "wb") as out:
            out.write(b"v" * 700)
        commands = "".join(f"ea_set -f {value} /d{n}/sub{n}/deep/file user.large\n" for n in range(4))
        # Deleted again: their blocks are free.
        commands += "".join(f"rm /d{n}/sub{n}/deep/file\n" for n in range(4, 8))
        debugfs(path, commands, write=True)


def debugfs(image, commands, write=False):
    with tempfile.NamedTemporaryFile("w", suffix=".debugfs") as script:
        script.write(commands)
        script.flush()
        options = ["-w"] if write else []
        return run("debugfs", *options, "-f", script.name, image)


def spans(text):
    """Block ranges such as `5, 7-9`."""
    for part in re.findall(r"(\d+)(?:-(\d+))?", text):
        first = int(part[0])
        yield first, int(part[1] or first)


class Truth:
    def __init__(self, image):
        text = run("dumpe2fs", image)
        self.header = dict(re.findall(r"^([A-Z][\w ()]+?):\s+(.*)$", text, re.M))
        self.blocks = int(self.header["Block count"])
        self.kinds = [None] * self.blocks
        if int(self.header["Block size"]) == 1024:
            self.kinds[0] = "boot"
        self.free = set()
        self.layout(text)
        self.inodes(image)
        for block in range(self.blocks):
            if self.kinds[block] is None:
                # The rest of a cluster belongs to the file that has its beginning.
                used = "data" if "bigalloc" in text else "unknown"
                self.kinds[block] = "free" if block in self.free else used

    def put(self, first, last, kind):
        for block in range(first, last + 1):
            if self.kinds[block] is None:
                self.kinds[block] = kind

    def layout(self, text):
        names = [
            (r"(?:Primary|Backup) superblock at ([\d-]+)", "superblock"),
            (r"Group descriptors? at ([\d-]+)", "group-descriptors"),
            (r"Reserved GDT blocks at ([\d-]+)", "reserved-descriptors"),
            (r"Block bitmap at ([\d-]+)", "block-bitmap"),
            (r"Inode bitmap at ([\d-]+)", "inode-bitmap"),
            (r"Inode table at ([\d-]+)", "inode-table"),
        ]
        for pattern, kind in names:
            for found in re.findall(pattern, text):
                for first, last in spans(found):
                    self.put(first, last, kind)
        # Ranges of free clusters end with the first block of the last cluster.
        tail = int(self.header.get("Cluster size", "0")) // int(self.header["Block size"]) or 1
        for found in re.findall(r"^  Free blocks: (.*)$", text, re.M):
            for first, last in spans(found):
                self.free.update(range(first, last + tail))
        if "MMP block number" in self.header:
            block = int(self.header["MMP block number"])
            self.put(block, block, "mmp")

    def inodes(self, image):
        count = int(self.header["Inode count"])
        out = debugfs(image, "".join(f"stat <{n}>\n" for n in range(1, count + 1)))
        special = {"8": "journal"}
        for key, kind in [
            ("Journal inode", "journal"),
            ("User quota inode", "quota"),
            ("Group quota inode", "quota"),
            ("Project quota inode", "quota"),
            ("Orphan file inode", "orphan-file"),
        ]:
            if key in self.header:
                special[self.header[key].strip()] = kind
        for text in re.split(r"^debugfs: stat <", out, flags=re.M)[1:]:
            self.inode(text, special)

    def inode(self, text, special):
        number = text[: text.index(">")]
        links = re.search(r"Links: (\d+)", text)
        if not links or int(links.group(1)) == 0:
            return
        flags = int(re.search(r"Flags: (0x[0-9a-f]+)", text).group(1), 16)
        is_directory = "Type: directory" in text
        kind = special.get(number)
        if kind is None:
            kind = "xattr" if flags & 0x200000 else "directory" if is_directory else "data"
        xattr = int(re.search(r"File ACL: (\d+)", text).group(1))
        if xattr:
            self.put(xattr, xattr, "xattr")
        lists = re.split(r"^(?:EXTENTS|BLOCKS):\n", text, flags=re.M)
        if len(lists) < 2:
            return
        for name, first, last in re.findall(r"\(([^)]*)\):(\d+)(?:-(\d+))?", lists[1].replace("\n", "")):
            last = last or first
            if re.match(r"(ETB\d|IND|DIND|TIND)", name):
                self.put(int(first), int(last), "mapping")
            else:
                self.put(int(first), int(last), kind)


def compare(name, image, binary):
    result = json.loads(run(binary, "fs", "classify", "--json", image))
    ours = [None] * result["blocks"]
    next_block = 0
    for entry in result["runs"]:
        assert entry["block"] == next_block, f"{name}: runs leave a gap at block {next_block}"
        next_block += entry["count"]
        ours[entry["block"] : next_block] = [entry["kind"]] * entry["count"]
    truth = Truth(image)
    wrong = [block for block in range(max(len(ours), truth.blocks))
             if block >= len(ours) or block >= truth.blocks or ours[block] != truth.kinds[block]]
    for block in wrong[:20]:
        theirs = truth.kinds[block] if block < truth.blocks else None
        print(f"{name}: block {block}: {theirs} by dumpe2fs and debugfs, {ours[block]} by fs classify")
    counts = {}
    for kind in truth.kinds:
        counts[kind] = counts.get(kind, 0) + 1
    verdict = f"{len(wrong)} blocks differ" if wrong else "every block agrees"
    print(f"{name}: {truth.blocks} blocks, {verdict}:", ", ".join(f"{k} {v}" for k, v in sorted(counts.items())))
    return not wrong, set(counts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default="target/debug/nandscape")
    parser.add_argument("--keep", help="folder in which the images stay")
    parser.add_argument("--device")
    arguments = parser.parse_args()
    for tool in ["mke2fs", "debugfs", "dumpe2fs"]:
        if not shutil.which(tool):
            print(f"SKIP: {tool} (package e2fsprogs) is absent: the map of a file system was not compared with it")
            return
    if arguments.device:
        sys.exit(0 if compare(arguments.device, arguments.device, arguments.binary)[0] else 1)
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.keep or scratch
        tree = os.path.join(scratch, "tree")
        os.mkdir(tree)
        make_tree(tree)
        passed, seen = True, set()
        for name, options, mebibytes in IMAGES:
            image = os.path.join(folder, f"{name}.img")
            make_image(image, options, mebibytes, tree, scratch)
            agrees, kinds = compare(name, image, arguments.binary)
            passed, seen = passed and agrees, seen | kinds
    expected = {"boot", "superblock", "group-descriptors", "reserved-descriptors", "block-bitmap", "inode-bitmap",
                "inode-table", "directory", "journal", "mapping", "xattr", "quota", "orphan-file", "mmp", "data", "free"}
    if expected - seen:
        sys.exit(f"the images have no block of kind {', '.join(sorted(expected - seen))}: the comparison says nothing of it")
    sys.exit(0 if passed else 1)


main()
