#!/usr/bin/env python3
"""Runs the commands of pages as a reader would: from top to bottom, in a fresh home, and compares what they print.

Usage: blocks.py [--build FOLDER] MONITOR PAGE...

A block of `sh` is run. A block of `text` right behind it is what it must print: `…` stands for anything within a line,
a line of `…` for any lines, and blanks for any number of blanks. Comments before a block say more:

  <!-- not run: REASON -->                         the block is not run
  <!-- commands of this page are not run: REASON -->
  <!-- in the background -->                       the block goes on while the next ones run; wait until its monitor answers
  <!-- exits with CODE -->                         one command of the block fails with this code, and readers are to see that
  <!-- file: NAME -->                              the block is the content of a file
  <!-- run: COMMANDS -->                           run, and not shown to readers

Pages run in a network of their own where the system allows that; else the ports 3000, 3001 and 8080 must be free.
Exit code 77: they are not.
"""

import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PORTS = (3000, 3001, 8080)
PATIENCE_S = 50
TOKEN = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\n(?P<code>.*?)^(?P=indent)```$|[ \t]*<!-- *(?P<comment>.*?) *-->|(?P<text>^[^\n]*\S[^\n]*$)", re.M | re.S)
PRELUDE = r"""
set -E -o pipefail
trap 'echo "@failed $?: $BASH_COMMAND" >&2' ERR
answers() { until curl -q -sf http://127.0.0.1:3000/healthz >/dev/null; do kill -0 "$1" || return 1; sleep 0.05; done; }
start_monitor() { watchdog-monitor serve "$@" >"$HOME/monitor.log" 2>&1 & answers $!; }
"""


class Shell:
    """One bash that keeps its variables from block to block."""

    def __init__(self, home, environment):
        self.output = home / ".output"
        self.bash = subprocess.Popen(["bash", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                     cwd=home / "work", env=environment, text=True, start_new_session=True)
        self.run(PRELUDE)

    def run(self, code, background=False, status=0):
        """What the code prints; raises if it does not come to its end, or if other commands fail than one with `status`."""
        self.output.write_text("")
        done = self.output.with_name(".done")
        done.unlink(missing_ok=True)
        if background:
            code = f"{{\n{code}\n}} >>{self.output} 2>&1 &\nanswers $!\n"
        self.bash.stdin.write(f"{{ :\n{code}\n}} >>{self.output} 2>&1 </dev/null\ntouch {done}\n")
        self.bash.stdin.flush()
        limit = time.monotonic() + PATIENCE_S
        while not done.exists():
            if time.monotonic() > limit or self.bash.poll() is not None:
                raise AssertionError(f"did not come to its end:\n{code}\nIt printed:\n{self.output.read_text()}")
            time.sleep(0.02)
        printed = self.output.read_text(errors="replace")
        failed = [int(code) for code in re.findall(r"^@failed (\d+): ", printed, re.M)]
        if failed != [status] * (status != 0):
            raise AssertionError(f"failed with {failed}, and should have failed with {status}:\n{code}\nIt printed:\n{printed}")
        return re.sub(r"^@failed \d+: .*\n", "", printed, flags=re.M)

    def end(self):
        os.killpg(self.bash.pid, signal.SIGTERM)
        try:
            self.bash.wait(5)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self.bash.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def pattern_of(expected):
    lines = []
    for line in expected.strip("\n").split("\n"):
        if line.strip() == "…":
            lines.append("(?:.*\n)*?")
        else:
            words = [".*".join(map(re.escape, re.split(r" *… *", word))) if "…" in word else re.escape(word) for word in re.split(r"(?<!…) +(?!…)", line.strip())]
            lines.append(r"\s*" + r"[ \t]+".join(words) + "[ \t]*\n")
    return re.compile("".join(lines) + r"\s*")


def run_page(page, home, environment):
    """How many blocks were run."""
    text, count, printed = page.read_text(), 0, None
    if re.search(r"<!-- commands of this page are not run: \S", text):
        return 0
    shell = Shell(home, environment)
    comment = ""
    try:
        for found in TOKEN.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            try:
                if found["comment"] is not None:
                    comment = found["comment"]
                    if comment.startswith("run: "):
                        shell.run(comment[5:])
                        comment = ""
                elif found["text"] is not None:
                    # Prose is between: the next block is not the output of the command before.
                    comment = ""
                    printed = None
                else:
                    code = re.sub(rf"^{found['indent']}", "", found["code"], flags=re.M)
                    if comment.startswith("file: "):
                        (home / "work" / comment[6:]).write_text(code)
                    elif found["language"] == "sh":
                        printed = None
                        if not comment.startswith("not run: "):
                            expected = re.fullmatch(r"exits with (\d+)", comment)
                            printed = shell.run(code, comment == "in the background", int(expected[1]) if expected else 0)
                            count += 1
                    elif found["language"] == "text" and printed is not None and not pattern_of(code).fullmatch(printed):
                        raise AssertionError(f"printed:\n{printed}\nand should have printed:\n{code}")
                    comment = ""
            except AssertionError as error:
                raise AssertionError(f"{page.relative_to(ROOT)}:{line} {error}") from None
    finally:
        shell.end()
    return count


def own_network():
    """Goes on in a network that has nothing but a loopback of its own, if that is allowed."""
    if os.environ.get("WATCHDOG_OWN_NETWORK"):
        return
    words = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--"]
    up = "import fcntl, socket, struct; fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sH14s', b'lo', 0x49, b''))"
    if shutil.which("unshare") and subprocess.run([*words, sys.executable, "-c", up], capture_output=True).returncode == 0:
        os.environ["WATCHDOG_OWN_NETWORK"] = "1"
        os.execvp("unshare", [*words, sys.executable, "-c", f"{up}; import os; os.execv({sys.executable!r}, {[sys.executable, *sys.argv]!r})"])
    for port in PORTS:
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                print(f"port {port} is in use, and a network of its own is not allowed here")
                sys.exit(77)


def main(arguments):
    build = None
    if arguments[:1] == ["--build"]:
        build, arguments = pathlib.Path(arguments[1]).resolve(), arguments[2:]
    monitor, pages = pathlib.Path(arguments[0]).resolve(), [pathlib.Path(one).resolve() for one in arguments[1:]]
    failures = 0
    for page in pages:
        with tempfile.TemporaryDirectory() as folder:
            home = pathlib.Path(folder)
            (home / "work").mkdir()
            # As at a terminal: no meter, and each answer on a line of its own.
            (home / ".curlrc").write_text('silent\nshow-error\nwrite-out = "\\n"\n')
            if build:  # a source tree with a finished build
                for name in ("clients", "libwatchdog", "scripts"):
                    (home / "work" / name).symlink_to(ROOT / name)
                (home / "work/build").mkdir()
                (home / "work/build/release").symlink_to(build)
            environment = {"HOME": str(home), "PATH": f"{monitor.parent}:/usr/bin:/usr/local/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC", "COLUMNS": "120",
                           "WATCHDOG_BUILD": str(build or ""), "PYTHONDONTWRITEBYTECODE": "1"}
            begin = time.monotonic()
            try:
                print(f"{page.relative_to(ROOT)}: {run_page(page, home, environment)} blocks run in {time.monotonic() - begin:.1f} s")
            except AssertionError as error:
                failures += 1
                print(error)
    return 1 if failures else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    own_network()
    sys.exit(main(sys.argv[1:]))
