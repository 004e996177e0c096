#!/usr/bin/python3
"""Usage: launcher_test.py PROGRAMS
       launcher_test.py --files FOLDER    installs the files of a release

Packs the static program in the folder PROGRAMS for npm and for pip, twice, and compares the bytes. Installs the files as users
do, without a network: npm from files and from a registry of the test's own, pip into a virtual environment. Checks what
the launcher passes on, and what it says where there is no program.
"""

import base64
import errno
import hashlib
import http.server
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
VERSION = re.search(r"project\(watchdog VERSION ([\d.]+)", (SOURCE / "CMakeLists.txt").read_text())[1]
# As npm and as pip name this processor, and another one that has packages as well.
(NATIVE, NATIVE_WHEEL), (FOREIGN, FOREIGN_MARK) = {"x86_64": (("x64", "x86_64"), ("arm64", 183)), "aarch64": (("arm64", "aarch64"), ("x64", 62))}[os.uname().machine]
PATIENCE_S = 120
HOME = "https://example.org/owner/watchdog"
NPM = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"]
began = time.monotonic()


def say(text):
    print(f"{time.monotonic() - began:6.1f} s  {text}", flush=True)


def expect(holds, what):
    if not holds:
        sys.exit(f"FAILED: {what}")


def out(*words, **more):
    done = subprocess.run([*map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL, check=False, **more)
    expect(done.returncode == 0, f"{' '.join(map(str, words))} exited with {done.returncode}:\n{done.stdout}")
    return done.stdout


def make_trees(programs, folder):
    """The part of the tarball that is packed; and the same with the mark of another processor, which nothing here can run."""
    trees = [folder / NATIVE, folder / FOREIGN]
    for name, place in (("watchdog-monitor-static", "bin/watchdog-monitor"), ("watchdog-exec", "libexec/watchdog/watchdog-exec")):
        for tree in trees:
            (tree / place).parent.mkdir(parents=True)
        out("strip", "-o", trees[0] / place, programs / name)
        head = bytearray((trees[0] / place).read_bytes()[:4096])
        head[18:20] = FOREIGN_MARK.to_bytes(2, "little")
        (trees[1] / place).write_bytes(head)
        (trees[1] / place).chmod(0o755)
    for tree in trees:
        (tree / "THIRD-PARTY-NOTICES.txt").write_text("the licences of all parts\n")
    return trees


def pack(trees, folder):
    """Two packings of the same files at different times have the same bytes."""
    elsewhere = ["env", "TZ=Pacific/Kiritimati", "LC_ALL=C.UTF-8", "FAKETIME_DONT_FAKE_MONOTONIC=1", "faketime", "-f", "+400d"]
    for mask, before, place in (("022", [], folder / "dist"), ("077", elsewhere, folder / "again")):
        for maker in ("npm", "program-wheel"):
            out("sh", "-c", f'umask {mask} && exec "$@"', "-", *before, SOURCE / "packaging" / maker, place, *trees, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000", "HOMEPAGE": HOME})
    files = {file.name: file for file in (folder / "dist").iterdir()}
    tags = {cpu: f"manylinux_2_17_{cpu}.manylinux2014_{cpu}.musllinux_1_1_{cpu}" for cpu in ("x86_64", "aarch64")}
    expected = {f"watchdog-monitor{part}-{VERSION}.tgz" for part in ("", "-linux-x64", "-linux-arm64")} | {f"watchdog_monitor-{VERSION}-py3-none-{tag}.whl" for tag in tags.values()}
    expect(set(files) == expected, f"these were made: {sorted(files)}")
    for name, file in files.items():
        expect(file.read_bytes() == (folder / "again" / name).read_bytes(), f"{name} differs between two packings")
    with tarfile.open(files[f"watchdog-monitor-linux-{NATIVE}-{VERSION}.tgz"]) as packed:
        names = {member.name for member in packed if member.isfile()}
        expect({(member.uid, member.gid, member.mtime) for member in packed} == {(0, 0, 1700000000)}, "the package names who packed it, or when")
    wanted = {f"package/{name}" for name in ("package.json", "LICENSE", "THIRD-PARTY-NOTICES.txt", "bin/watchdog-monitor", "bin/watchdog-exec")}
    expect(names == wanted, f"the package has {sorted(names)}")
    for name, file in files.items():
        if name.endswith(".whl"):
            with zipfile.ZipFile(file) as packed:
                facts = packed.read(f"watchdog_monitor-{VERSION}.dist-info/METADATA").decode()
            expect(f"\nProject-URL: Repository, {HOME}\n" in facts, f"{name} says of itself: {facts}")
        else:
            with tarfile.open(file) as packed:
                facts = json.load(packed.extractfile("package/package.json"))
            expect((facts["homepage"], facts["repository"]["url"]) == (HOME, f"git+{HOME}.git"), f"{name} says of itself: {facts}")
    say("two packings have the same bytes, and name the repository")
    return files


class Registry(http.server.BaseHTTPRequestHandler):
    """What npm asks a registry for: the facts of a package, and its file."""

    def do_GET(self):
        name = self.path.strip("/")
        if file := self.server.files.get(name):
            return self.answer(200, file.read_bytes())
        file = self.server.files.get(f"{name}-{VERSION}.tgz")
        if file is None:
            return self.answer(404, b"{}")
        with tarfile.open(file) as packed:
            facts = json.load(packed.extractfile("package/package.json"))
        digest = base64.b64encode(hashlib.sha512(file.read_bytes()).digest()).decode()
        facts["dist"] = {"tarball": f"http://127.0.0.1:{self.server.server_port}/{file.name}", "integrity": f"sha512-{digest}"}
        self.answer(200, json.dumps({"name": name, "dist-tags": {"latest": VERSION}, "versions": {VERSION: facts}}).encode())

    def answer(self, code, body):
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def project(folder, name):
    place = folder / name
    place.mkdir()
    (place / "package.json").write_text("{}")
    return place, place / "node_modules/.bin/watchdog-monitor"


def check_npm(files, folder):
    launcher, program = files[f"watchdog-monitor-{VERSION}.tgz"], files[f"watchdog-monitor-linux-{NATIVE}-{VERSION}.tgz"]
    environment = {**os.environ, "npm_config_cache": str(folder / "npm-cache"), "npm_config_update_notifier": "false"}
    place, command = project(folder, "files")
    out(*NPM, "--offline", launcher, program, cwd=place, env=environment)
    expect(out("npx", "--no-install", "watchdog-monitor", "--version", cwd=place, env=environment).strip() == VERSION, "npx starts another version")
    expect((place / f"node_modules/watchdog-monitor-linux-{NATIVE}/bin/watchdog-exec").stat().st_mode & 0o111, "the helper cannot be run")
    out("npm", "uninstall", "--offline", "watchdog-monitor", f"watchdog-monitor-linux-{NATIVE}", cwd=place, env=environment)
    left = [str(path) for path in place.glob("node_modules/**/watchdog*")]
    expect(not left, f"uninstalling left {left}")
    say("npm installs files and removes them")

    place, command = project(folder, "omitted")
    out(*NPM, "--offline", "--omit=optional", launcher, cwd=place, env=environment)
    done = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    said = f"watchdog-monitor: the package watchdog-monitor-linux-{NATIVE} with the program is missing, so install watchdog-monitor again without --omit=optional.\n"
    expect((done.returncode, done.stdout, done.stderr) == (1, "", said), f"without optional packages it said: {done}")
    cpus = [cpu for cpu in ("arm64", "x64") if f"watchdog-monitor-linux-{cpu}-{VERSION}.tgz" in files]
    check_other_systems(place / "node_modules/watchdog-monitor/bin/watchdog-monitor.js", cpus)

    registry = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    registry.files = files
    threading.Thread(target=registry.serve_forever, daemon=True).start()
    environment["npm_config_registry"] = f"http://127.0.0.1:{registry.server_port}/"
    for system, cpu, expected in (*(("linux", cpu, [f"watchdog-monitor-linux-{cpu}"]) for cpu in cpus), ("darwin", "arm64", [])):
        place, command = project(folder, f"registry-{system}-{cpu}")
        out(*NPM, f"--os={system}", f"--cpu={cpu}", "watchdog-monitor", cwd=place, env=environment)
        installed = sorted(path.name for path in (place / "node_modules").glob("watchdog-monitor-*"))
        expect(installed == expected, f"on {system}-{cpu} npm installed {installed}")
    registry.shutdown()
    say("npm chooses the package of the platform")
    return folder / f"registry-linux-{NATIVE}/node_modules"


def check_other_systems(launcher, cpus):
    def on(system, cpu):
        script = f"Object.defineProperty(process, 'platform', {{ value: '{system}' }}); Object.defineProperty(process, 'arch', {{ value: '{cpu}' }}); require('{launcher}')"
        done = subprocess.run(["node", "-e", script], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        expect((done.returncode, done.stdout) == (1, ""), f"on {system}-{cpu} it did: {done}")
        return done.stderr
    page = (SOURCE / "docs/how-to/install.md").read_text().replace("\\\n  ", "")
    line = re.search(r"^docker run .*$", page, re.M)[0].replace('"$(openssl rand -hex 32)"', "TOKEN")
    for system in ("darwin", "win32"):
        said = re.sub(r"TOKEN=[0-9a-f]{64} ", "TOKEN=TOKEN ", on(system, "arm64"))
        expect(said == f"watchdog-monitor: the program runs on Linux only. On this system, run its container:\n  {line}\n", f"on {system} it said: {said}")
    said = f"watchdog-monitor: the program is not made for linux-riscv64, only for {' and '.join(f'linux-{cpu}' for cpu in cpus)}.\n"
    expect(on("linux", "riscv64") == said, "it says something else on riscv64")


def check_passing(modules, folder):
    """The launcher passes on what a program gets, and how it ends."""
    command = modules / ".bin/watchdog-monitor"
    real = modules / f"watchdog-monitor-linux-{NATIVE}/bin/watchdog-monitor"
    words = [command, "run", "--config", "", "--db", folder / "run.db", "--"]
    expect(out(*words, "echo", "a b", "*") == "a b *\n", "the words of the command changed")
    for code in (0, 7, 255):
        done = subprocess.run([*words, "sh", "-c", f"exit {code}"], timeout=PATIENCE_S, check=False)
        expect(done.returncode == code, f"the code {code} became {done.returncode}")
    many = bytes(range(256)) * 4096
    done = subprocess.run([*words, "cat"], input=many, capture_output=True, timeout=PATIENCE_S, check=False)
    expect((done.returncode, done.stdout) == (0, many), "the input does not come out as it went in")

    # From here on a script takes the program's place: it can do what the program never does.
    real.unlink()
    real.write_text('#!/bin/sh\neval "$1"\n')
    real.chmod(0o755)
    for name in ("HUP", "INT", "QUIT", "TERM", "USR1", "USR2"):
        reports = f"trap 'echo {name}; kill -9 $!; exit 9' {name}; sleep 600 & echo ready; wait"  # KILL: a child that has not begun yet could lose a TERM
        process = subprocess.Popen([command, reports], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdout.readline()
        process.send_signal(getattr(signal, f"SIG{name}"))
        said, errors = process.communicate(timeout=PATIENCE_S)
        expect((process.returncode, said, errors) == (9, f"{name}\n", ""), f"SIG{name} became {process.returncode}, {said!r}, {errors!r}")
    for name in ("HUP", "INT", "TERM", "USR1", "KILL"):
        done = subprocess.run([command, f"kill -{name} $$"], timeout=PATIENCE_S, check=False)
        expect(done.returncode == -getattr(signal, f"SIG{name}"), f"a program that SIG{name} ended became {done.returncode}")
    real.chmod(0o644)
    done = subprocess.run([command], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    expect(done.returncode == 1 and re.fullmatch(r"watchdog-monitor: the program does not start: .*EACCES\.\n", done.stderr), f"it said: {done}")
    real.chmod(0o755)
    check_terminal(command)
    say("the launcher passes on words, input, signals, the terminal and the end")


def check_terminal(command):
    """At a terminal Ctrl-C reaches the program once."""
    child, terminal = pty.fork()
    if child == 0:
        os.execv(command, [str(command), "trap 'echo INT' INT; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo ready; read -r line; read -r line; echo \"got $line\"; exit 5"])
    said, pending = "", [("ready", b"\x03"), ("INT\r\n", b"x\ny\n")]
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            part = os.read(terminal, 4096).decode()
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            break
        said += part
        if not part:
            break
        if pending and pending[0][0] in said:
            os.write(terminal, pending.pop(0)[1])
    else:
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(terminal)
    expect(status == 5 and said.count("INT\r\n") == 1 and "got " in said, f"at a terminal it exited with {status}: {said!r}")


def check_pip(files, folder):
    wheel = next(file for name, file in files.items() if name.endswith(f"_{NATIVE_WHEEL}.whl"))
    place = folder / "python"
    out("/usr/bin/python3", "-m", "venv", "--without-pip", place)
    pip = ["/usr/bin/python3", "-m", "pip", "--python", str(place), "--disable-pip-version-check"]
    out(*pip, "install", "--no-index", "--quiet", wheel)
    expect(out(place / "bin/watchdog-monitor", "--version").strip() == VERSION, "the installed program has another version")
    expect(out(place / "libexec/watchdog/watchdog-exec", "--version").strip() == f"watchdog-exec {VERSION}", "the helper cannot be run")
    facts = out(place / "bin/python", "-c", "import importlib.metadata as m; d = m.distribution('watchdog-monitor'); print(d.version, d.metadata['License-Expression'], *d.metadata.get_all('License-File'))")
    expect(facts.split() == [VERSION, "MIT", "LICENSE", "THIRD-PARTY-NOTICES.txt"], f"the wheel says of itself: {facts}")
    out(*pip, "uninstall", "--yes", "--quiet", "watchdog-monitor")
    left = [str(path) for path in place.rglob("watchdog*")]
    expect(not left, f"uninstalling left {left}")
    say("pip installs the wheel and removes it")

    # The clients name the program in the same version, and do without it.
    extra = re.search(r'^monitor = \["watchdog-monitor==([\d.]+); sys_platform == \'linux\'"\]$', (SOURCE / "clients/python/pyproject.toml").read_text(), re.M)
    expect(extra and extra[1] == VERSION, "watchdog-client[monitor] is another version of the program")
    facts = json.loads((SOURCE / "clients/javascript/package.json").read_text())
    expect(facts["peerDependencies"]["watchdog-monitor"] == f">={VERSION}" and facts["peerDependenciesMeta"]["watchdog-monitor"] == {"optional": True},
           "the JavaScript client names another version of the program, or cannot do without it")
    if subprocess.run(["/usr/bin/python3", "-c", "import hatchling"], capture_output=True, check=False).returncode != 0:
        return
    out(SOURCE / "packaging/wheel", folder / "client")
    out(*pip, "install", "--no-index", "--quiet", "--find-links", folder / "client", "--find-links", wheel.parent, "watchdog-client[monitor]")
    expect(out(place / "bin/watchdog-monitor", "--version").strip() == VERSION, "watchdog-client[monitor] does not bring the program")
    say("watchdog-client[monitor] brings the program")


def main():
    made = sys.argv[1] == "--files"
    programs = pathlib.Path(sys.argv[2 if made else 1]).resolve()
    if not made and not (programs / "watchdog-monitor-static").exists():
        print("NOT IN A CLEAN DEBIAN: watchdog-monitor-static was not built, because static libraries are missing")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        files = {file.name: file for file in programs.iterdir()} if made else pack(make_trees(programs, folder), folder)
        modules = check_npm(files, folder)
        check_passing(modules, folder)
        check_pip(files, folder)
    print("ok")
    return 0


sys.exit(main())
