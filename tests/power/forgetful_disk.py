"""A disk that forgets everything unsynced: from the record of a run, the files that survive a cut after any of its operations.

A disk promises to keep the bytes of a file after a sync of the file, and its name after a sync of the folder. Of the rest, any part
may survive: so the survivors of one cut are many, and KINDS names the ones that are tried.

Two disks differ in what a sync keeps. `strict` is POSIX: nothing but the file, or the folder. `ext4` keeps all earlier changes of names
too, when it syncs a folder, or a file that is new or has another size. What ext4 does by itself every 5 s is left out.
"""

import ctypes
import itertools
import json
import os
import pathlib
import random
import signal
import stat
import subprocess
import tempfile

SECTOR = 512
ROOT = 1
# Of what was not synced survive: nothing; bytes without names; names without bytes; names and sizes, with zeros for bytes; a part of each.
KINDS = ("min", "data", "meta", "zeros", "random")
PR_SET_PDEATHSIG = 1


class Disk:
    """A recording disk that is mounted; gone with the block. The record stays until the object goes."""

    def __init__(self, program):
        self.program = program

    def __enter__(self):
        self.place = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.place.name, "disk")
        self.folder.mkdir()
        self.record = pathlib.Path(self.place.name, "record")
        libc = ctypes.CDLL(None)
        self.process = subprocess.Popen([self.program, self.folder, self.record], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
        if self.process.stdout.readline() != "mounted\n":
            error = self.process.stderr.read()
            self.__exit__()
            raise OSError(error)
        self.notes = os.open(self.folder / ".note", os.O_WRONLY)
        return self

    def note(self, **facts):
        """Adds this to the record: it is true of all that comes later."""
        os.write(self.notes, json.dumps(facts).encode())

    def settle(self):
        """All that is there is durable from now on."""
        os.write(self.notes, b"settle")

    def leave_room(self, count):
        os.write(self.notes, f"room {count}".encode())

    def operations(self):
        return list(read_record(self.record))

    def __exit__(self, *_):
        if hasattr(self, "notes"):
            os.close(self.notes)
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()
        self.place.cleanup()


def read_record(path):
    with open(path, "rb") as file:
        for line in file:
            operation = json.loads(line)
            if operation[0] == "write":
                operation[3] = file.read(operation[3])
            yield operation


class File:
    def __init__(self, mode):
        self.mode = mode
        self.now, self.durable = bytearray(), b""
        self.unsynced = set()  # sectors
        self.is_new = True

    def touch(self, begin, end):
        self.unsynced.update(range(begin // SECTOR, -(-end // SECTOR)))

    def resize(self, size):
        old = len(self.now)
        self.touch(min(size, old), max(size, old))
        if size < old:
            del self.now[size:]
        else:
            self.now.extend(bytes(size - old))

    def write(self, begin, data):
        if begin > len(self.now):
            self.resize(begin)
        self.now[begin:begin + len(data)] = data
        self.touch(begin, begin + len(data))

    def sync(self):
        self.durable = bytes(self.now)
        self.unsynced.clear()

    def survivor(self, kind, chance):
        if kind == "random":
            kind = chance.choice(("min", "all", "zeros", "torn"))
        if kind in ("min", "meta") or (not self.unsynced and len(self.now) == len(self.durable)):
            return self.durable
        if kind in ("data", "all"):
            return bytes(self.now)
        size = len(chance.choice((self.now, self.durable))) if kind == "torn" else len(self.now)
        left = bytearray(self.durable[:size].ljust(size, b"\0"))
        for sector in sorted(self.unsynced):
            begin, end = sector * SECTOR, min((sector + 1) * SECTOR, size)
            if begin >= size or (kind == "torn" and chance.random() < 0.5):
                continue
            if kind == "zeros":  # of new bytes: a sector that is written again is old or new
                begin = min(max(begin, len(self.durable)), end)
                left[begin:end] = bytes(end - begin)
            else:
                left[begin:end] = self.now[begin:end].ljust(end - begin, b"\0")
        return bytes(left)


class ForgetfulDisk:
    """What a disk holds, and what of it a cut leaves, after the operations that it was given."""

    def __init__(self, rule="strict", ignores_syncs=False):
        self.rule, self.ignores_syncs = rule, ignores_syncs
        self.files = {}
        self.modes = {ROOT: stat.S_IFDIR | 0o755}
        self.now = {ROOT: {}}  # folder → name → inode
        self.durable = {ROOT: {}}
        self.unsynced = []  # changes of names, oldest first; each a list of (folder, name, inode or None)
        self.notes = []

    def apply(self, operation):
        word, *facts = operation
        getattr(self, "on_" + word)(*facts)

    def settle(self):
        """All is durable, as after a long time."""
        self.commit(self.unsynced)
        for file in self.files.values():
            file.sync()
            file.is_new = False

    def on_note(self, text):
        if text == "settle":
            self.settle()
        elif text.startswith("{"):
            self.notes.append(json.loads(text))

    def on_make(self, parent, inode, mode, name):
        self.modes[inode] = mode
        if stat.S_ISDIR(mode):
            self.now[inode], self.durable[inode] = {}, {}
        else:
            self.files[inode] = File(mode)
        self.change((parent, name, inode))

    def on_remove(self, parent, name):
        self.change((parent, name, None))

    def on_rename(self, parent, to, name, new_name):
        self.change((parent, name, None), (to, new_name, self.now[parent][name]))

    def on_mode(self, inode, mode):
        self.modes[inode] = mode

    def on_size(self, inode, size):
        self.files[inode].resize(size)

    def on_write(self, inode, begin, data):
        self.files[inode].write(begin, data)

    def on_sync(self, inode, only_bytes=False):
        if self.ignores_syncs or inode not in self.files:
            return
        file = self.files[inode]
        if self.rule == "ext4" and not (only_bytes and len(file.now) == len(file.durable) and not file.is_new):
            self.commit(self.unsynced)
            file.is_new = False
        file.sync()

    def on_datasync(self, inode):
        self.on_sync(inode, only_bytes=True)

    def on_syncdir(self, inode):
        if self.ignores_syncs:
            return
        if self.rule == "ext4":
            self.commit(self.unsynced)
            return
        # A rename takes along what made the names that it moves, in whichever folder.
        chosen, needed = [], set()
        for change in reversed(self.unsynced):
            if any(folder == inode or (folder, name) in needed for folder, name, _ in change):
                chosen.append(change)
                needed.update((folder, name) for folder, name, _ in change)
        self.commit(chosen[::-1])

    def change(self, *entries):
        put(self.now, entries)
        self.unsynced.append(entries)

    def commit(self, changes):
        for change in changes:
            put(self.durable, change)
        done = set(map(id, changes))
        self.unsynced = [change for change in self.unsynced if id(change) not in done]

    def survivors(self, kind, seed=0):
        """Files and folders by their path: the mode, and the bytes of a file."""
        chance = random.Random(seed)
        names = {folder: dict(entries) for folder, entries in self.durable.items()}
        count = len(self.unsynced)
        for change in self.unsynced[:{"min": 0, "data": 0, "random": chance.randint(0, count)}.get(kind, count)]:
            put(names, change)
        found, folders, seen = {}, [("", ROOT)], set()
        while folders:
            path, folder = folders.pop()
            for name, inode in sorted(names[folder].items()):
                if inode in self.files:
                    found[path + name] = self.modes[inode], self.files[inode].survivor(kind, chance)
                elif inode not in seen:
                    seen.add(inode)
                    found[path + name] = self.modes[inode], None
                    folders.append((path + name + "/", inode))
        return found


def put(names, entries):
    for folder, name, inode in entries:
        if inode is None:
            names[folder].pop(name, None)
        else:
            names[folder][name] = inode


def write_files(files, folder):
    """A folder stands before what is in it."""
    for path, (mode, data) in files.items():
        place = os.path.join(folder, path)
        if data is None:
            os.mkdir(place)
        elif stat.S_ISSOCK(mode):
            os.mknod(place, mode)
        else:
            with open(place, "wb") as file:
                file.write(data)
        os.chmod(place, stat.S_IMODE(mode) | (0o700 if data is None else 0))


class Cut:
    """A cut after `count` operations, of one kind. Its survivors can be written into a folder; `notes` are those that came before."""

    def __init__(self, disk, count, kind, seed):
        self.count, self.kind, self.rule = count, kind, disk.rule
        self.seed = seed
        self.notes = list(disk.notes)
        self.files = disk.survivors(kind, seed)

    def __str__(self):
        return f"cut after operation {self.count}, disk {self.rule}, survivors {self.kind}, seed {self.seed}"

    def facts(self, name):
        return [note[name] for note in self.notes if name in note]

    def write(self, folder):
        write_files(self.files, folder)


def moments(operations, begin=0):
    """The operations after which a cut tells most: just before a sync, when most is unsynced, and just after a note, when most is promised."""
    return [index for index in range(begin, len(operations) + 1)
            if (index < len(operations) and operations[index][0] in ("sync", "datasync", "syncdir"))
            or (index > 0 and operations[index - 1][0] == "note")]


def cuts(operations, count, chance, rules=("strict", "ext4"), begin=0, ignores_syncs=False):
    """`count` cuts: at those moments and at random ones, of all kinds. They come one by one: their files are not small."""
    best, everywhere = moments(operations, begin), range(begin, len(operations) + 1)
    for rule, share in zip(rules, ((count + 1) // 2, count // 2) if len(rules) > 1 else (count,)):
        chosen = chance.sample(best, min(len(best), share * 3 // 4))
        chosen += chance.choices(everywhere, k=share - len(chosen))
        kinds = itertools.cycle(chance.sample(KINDS, len(KINDS)))
        disk, done = ForgetfulDisk(rule, ignores_syncs), 0
        for place in sorted(chosen):
            for operation in operations[done:place]:
                disk.apply(operation)
            done = place
            yield Cut(disk, place, next(kinds), chance.randrange(2**31))
