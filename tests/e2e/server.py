"""A monitor that runs, for tests that ask it over HTTP."""

import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import tempfile


def memory(mib):
    """A limit on memory in KiB. A sanitizer keeps records of all memory, and what was freed for a while."""
    return mib * 1024 * (5 if os.environ.get("WATCHDOG_SANITIZE") else 1)


class Server:
    """A monitor on a database of its own; gone with the block."""

    def __init__(self, program, more=None, arguments=()):
        self.program, self.more, self.arguments = program, more or {}, list(arguments)
        self.port = 0  # Any; after a restart the same.

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.log = open(os.path.join(self.folder.name, "log"), "w+", encoding="utf-8")
        return self.start()

    def start(self):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("WATCHDOG_", "OPENAI_"))}
        environment |= self.more
        command = [self.program, "serve", "--db", os.path.join(self.folder.name, "w.db"), "--port", str(self.port)]
        command += self.arguments
        die_with_parent = lambda libc=ctypes.CDLL(None): libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True,
                                        env=environment, preexec_fn=die_with_parent)
        line = self.process.stdout.readline()
        if not line.startswith("listening on http"):
            self.__exit__()
            sys.exit(f"{self.program} says: {line}")
        self.host = line.split("://")[1].strip()
        self.secret = pathlib.Path(self.folder.name, "w.db-token").read_text().split()[-1]
        self.port = int(self.host.rpartition(":")[2])
        return self

    def crash(self):
        """As if the power had gone."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def __exit__(self, *_):
        self.process.kill()
        if self.process.wait() not in (0, -signal.SIGKILL):
            self.log.seek(0)
            print(f"the server ended by itself with {self.process.returncode}:", self.log.read())
        self.process.stdout.close()
        self.log.close()
        self.folder.cleanup()
