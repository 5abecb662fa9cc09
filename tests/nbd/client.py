"""An NBD client in Python, and the books of one that knows what it was promised. Imported, not run.

* `Client`: the protocol with simple replies; requests and replies apart, so that several can be under way.
* `Model`: what each page may hold after a loss of power.
* `Load`: requests at random, until the server has gone.
"""

import socket
import struct

PAGE = 4096
READ, WRITE, DISC, FLUSH, TRIM, ZEROES = 0, 1, 2, 3, 4, 6
FUA = 1
ZERO = bytes(PAGE)


class Wrong(Exception):
    """The server did what it must not."""


class Client:
    """One connection to an export on a unix socket."""

    def __init__(self, path, name=""):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(30)
        self.socket.connect(str(path))
        self.take(18)
        # Fixed newstyle without padding; EXPORT_NAME.
        self.socket.sendall(struct.pack(">I", 3))
        self.socket.sendall(struct.pack(">QII", 0x49484156454F5054, 1, len(name)) + name.encode())
        self.size, _ = struct.unpack(">QH", self.take(10))
        self.cookie = 0

    def take(self, count):
        """So many bytes."""
        data = bytearray()
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                raise ConnectionError("the server has gone")
            data += piece
        return bytes(data)

    def send(self, kind, offset, length, data=b"", flags=0):
        """A request, whose reply is taken later."""
        self.cookie += 1
        self.socket.sendall(struct.pack(">IHHQQI", 0x25609513, flags, kind, self.cookie, offset, length) + data)
        return self.cookie

    def reply(self):
        """The next reply, which must be one of success. The data of a read follow."""
        magic, error, cookie = struct.unpack(">IIQ", self.take(16))
        if magic != 0x67446698:
            raise Wrong(f"reply begins with {magic:#x}")
        if error:
            raise Wrong(f"request {cookie} was answered with error {error}")
        return cookie

    def read(self, offset, length):
        """Reads and waits."""
        self.send(READ, offset, length)
        self.reply()
        return self.take(length)

    def write(self, offset, data, flags=0):
        """Writes and waits."""
        self.send(WRITE, offset, len(data), data, flags)
        self.reply()

    def flush(self):
        """Flushes and waits."""
        self.send(FLUSH, 0, 0)
        self.reply()

    def close(self):
        """Says goodbye."""
        self.send(DISC, 0, 0)
        self.socket.close()


def content(page, version):
    """A page that says which it is and when it was written."""
    return struct.pack(">QQ", page, version) * (PAGE // 16)


class Model:
    """For each page the states it may have, the one that is certain first."""

    def __init__(self):
        self.states = {}
        self.version = 0

    def may(self, page):
        """Those states."""
        return self.states.setdefault(page, [ZERO])

    def settle(self, page):
        """The last state is certain now."""
        self.states[page] = self.may(page)[-1:]

    def compare(self, client, pages, what):
        """Reads the first so many pages, whose states then are certain. Any other than those that may be is
        an error."""
        step = 256
        for first in range(0, pages, step):
            count = min(step, pages - first)
            data = client.read(first * PAGE, count * PAGE)
            for page in range(first, first + count):
                found = data[(page - first) * PAGE : (page - first + 1) * PAGE]
                allowed = self.may(page)
                if found not in allowed:
                    shown = [struct.unpack(">QQ", state[:16]) for state in allowed]
                    whole = found == found[:16] * (PAGE // 16)
                    got = f"{struct.unpack('>QQ', found[:16])} (whole: {whole})"
                    raise Wrong(f"{what}: page {page} holds {got}, expected one of {shown[-20:]}")
                self.states[page] = [found]


class Load:
    """Sends batches of requests and keeps the books, until the server has gone. What else went wrong is in
    `wrong`."""

    def __init__(self, client, model, rng, pages):
        self.client, self.model, self.rng, self.pages = client, model, rng, pages
        self.requests = self.flushes = 0
        self.wrong = None

    def one(self):
        """Sends a request; gives its pages and flags, or nothing if a flush is to come."""
        rng, model = self.rng, self.model
        draw = rng.random()
        if draw < 0.06:
            return None
        count = rng.choice([1, 1, 1, 2, 5])
        first = rng.randrange(self.pages - count)
        pages = range(first, first + count)
        flags = FUA if rng.random() < 0.05 else 0
        if draw < 0.12:
            for page in pages:
                model.may(page).append(ZERO)
            self.client.send(rng.choice([TRIM, ZEROES]), first * PAGE, count * PAGE, flags=flags)
        else:
            data = b""
            for page in pages:
                model.version += 1
                data += content(page, model.version)
                model.may(page).append(data[-PAGE:])
            self.client.send(WRITE, first * PAGE, len(data), data, flags)
        return (pages, flags)

    def batch(self):
        """Some requests and their replies, and perhaps a flush when all of them are answered, so that it
        covers them."""
        sent = []
        flush = False
        for _ in range(self.rng.randrange(1, 24)):
            entry = self.one()
            if entry is None:
                flush = True
                break
            sent.append(entry)
        last = {}
        for pages, flags in sent:
            self.client.reply()
            self.requests += 1
            last.update((page, flags) for page in pages)
        # The last state of a page is certain only if the last request to it was forced.
        for page, flags in last.items():
            if flags & FUA:
                self.model.settle(page)
        if flush:
            self.client.flush()
            self.flushes += 1
            for page in list(self.model.states):
                self.model.settle(page)

    def run(self):
        """Batches until the connection ends."""
        try:
            while True:
                self.batch()
        except TimeoutError:
            self.wrong = "the server does not answer"
        except (ConnectionError, OSError):
            pass
        except Wrong as wrong:
            self.wrong = str(wrong)
