#!/usr/bin/python3
"""Usage: package_test.py BUILD

Packs what BUILD has compiled, twice, has lintian look at the packages, and installs, upgrades, removes and purges them
in a clean Debian. That Debian is made once and kept in BUILD/tests/package. Where it cannot be made, the packages go
into a folder, and the output says so. RPM packages are made and installed where rpmbuild exists.
"""

import hashlib
import importlib.util
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

SOURCE = pathlib.Path(__file__).resolve().parents[2]
NAMES = ("libwatchdog-dev", "libwatchdog0", "watchdog-monitor")
PATIENCE_S = 60
# Of Debian's package `watchdog`, which serves hardware.
THEIRS = {"./etc/watchdog.conf", "./etc/init.d/watchdog", "./lib/systemd/system/watchdog.service", "./usr/sbin/watchdog",
          "./usr/share/man/man8/watchdog.8.gz", "./usr/share/man/man5/watchdog.conf.5.gz", "./usr/share/doc/watchdog/"}
HELD = {
    "watchdog-monitor": """usr/bin/watchdog-monitor usr/bin/watchdog-demo-agent usr/libexec/watchdog/watchdog-exec
        usr/lib/systemd/system/watchdog-monitor.service usr/lib/systemd/user/watchdog-monitor.service
        usr/lib/systemd/system/watchdog-monitor.socket usr/lib/systemd/user/watchdog-monitor.socket
        usr/share/man/man1/watchdog-monitor.1.gz usr/share/bash-completion/completions/watchdog-monitor
        usr/share/zsh/vendor-completions/_watchdog-monitor usr/share/fish/vendor_completions.d/watchdog-monitor.fish
        usr/share/watchdog/rules.yml usr/share/watchdog/watchdog.json usr/share/watchdog/clients/opencode/watchdog.js
        usr/share/watchdog/clients/python/watchdog_client/__init__.py usr/share/watchdog/clients/javascript/watchdog.js""",
    "libwatchdog0": "usr/lib/libwatchdog.so.0",
    "libwatchdog-dev": """usr/include/watchdog.h usr/include/watchdog/tracker.h usr/lib/libwatchdog.so
        usr/lib/libwatchdog_progress.a usr/lib/libwatchdog_agent.a usr/lib/pkgconfig/watchdog.pc
        usr/lib/cmake/watchdog/watchdog-config.cmake""",
}
# Where RPM has other files: the tarball's program, and folders of 64-bit libraries.
RPM_HELD = {
    "watchdog-monitor": HELD["watchdog-monitor"].replace("usr/bin/watchdog-demo-agent ", "").replace("vendor-completions", "site-functions"),
    "libwatchdog0": "usr/lib64/libwatchdog.so.0",
    "libwatchdog-devel": HELD["libwatchdog-dev"].replace("usr/lib/", "usr/lib64/"),
}
# Another clock, time zone, language and mask of file modes.
ELSEWHERE = {**os.environ, "TZ": "Pacific/Kiritimati", "LC_ALL": "C.UTF-8", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
began = time.monotonic()


def say(text):
    print(f"{time.monotonic() - began:6.1f} s  {text}", flush=True)


def expect(holds, what):
    if not holds:
        sys.exit(f"FAILED: {what}")


def out(*words, **more):
    done = subprocess.run([*map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, stdin=subprocess.DEVNULL, **more)
    expect(done.returncode == 0, f"{' '.join(map(str, words))} exited with {done.returncode}:\n{done.stdout}")
    return done.stdout


def control(package, field):
    return out("dpkg-deb", "-f", package, field).strip()


def pack(build, work):
    """The packages by name, and a copy of each with a higher version."""
    shutil.rmtree(work / "dist", ignore_errors=True)
    out(SOURCE / "scripts/package", "--build", build, "--output", work / "dist")
    out("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=work / "dist")
    packages = {file.name.split("_")[0]: file for file in (work / "dist").glob("*.deb")}
    expect(sorted(packages) == sorted(NAMES), f"these were built: {sorted(packages)}")
    version = control(packages["watchdog-monitor"], "Version")
    higher, newer = re.sub(r"^(\d+)\.(\d+)", lambda old: f"{old[1]}.{int(old[2]) + 1}", version), {}
    for name, file in packages.items():
        tree = work / "tree"
        shutil.rmtree(tree, ignore_errors=True)
        out("dpkg-deb", "-R", file, tree)
        text = (tree / "DEBIAN/control").read_text()
        (tree / "DEBIAN/control").write_text(text.replace(version, higher))
        newer[name] = work / "dist" / f"{name}_{higher}_newer.deb"
        out("dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "-b", tree, newer[name])
    shutil.rmtree(tree)
    return packages, newer


def check_same_bytes(build, work):
    """Whoever packs a build, and whenever: the packages are the same."""
    out("sh", "-c", 'umask 077 && exec "$@"', "-", "faketime", "-f", "+400d", SOURCE / "scripts/package", "--build", build, "--output", work / "again", env=ELSEWHERE)
    sums = [(work / name / "SHA256SUMS").read_text() for name in ("dist", "again")]
    expect(sums[0] == sums[1], f"two packings of one build differ:\n{sums[0]}{sums[1]}")
    shutil.rmtree(work / "again")


def check_rpm(build, work):
    """The RPM packages have the files of the Debian packages, need no library of Debian, and can be installed."""
    # Few bytes less are not worth twenty seconds here, so the compression is another one than that of a release.
    out("cpack", "--config", build / "CPackConfig.cmake", "-G", "RPM", "-D", "CPACK_RPM_COMPRESSION_TYPE=gzip", "-B", work / "rpm")
    packages = {out("rpm", "-qp", "--queryformat", "%{NAME}", file): file for file in (work / "rpm").glob("*.rpm")}
    expect(sorted(packages) == sorted(RPM_HELD), f"these were built: {sorted(packages)}")
    owned = []
    for name, file in packages.items():
        paths = out("rpm", "-qpl", file).splitlines()
        missing = [path for path in RPM_HELD[name].split() if f"/{path}" not in paths]
        expect(not missing, f"{name} has no {missing}")
        expect(not {path.removeprefix(".") for path in THEIRS} & set(paths), f"{name} has files of the package watchdog")
        owned += [path for path in paths if re.fullmatch(r"/usr/(lib|lib64|libexec|bin|share)(/(systemd|systemd/\w+|man|man/man1|licenses|cmake|pkgconfig))?", path)]
        expect(f"/usr/share/licenses/{name}/LICENSE" in paths, f"{name} has no licence")
        scripts = out("rpm", "-qp", "--queryformat", "%{PREIN}\n%{POSTIN}\n%{PREUN}\n%{POSTUN}\n", file).replace("(none)", "")
        out("sh", "-n", "-c", scripts)
    expect(not owned, f"the packages own folders of other packages: {owned}")
    needed = [line for line in out("rpm", "-qp", "--requires", packages["watchdog-monitor"]).splitlines() if not line.startswith(("rpmlib(", "/bin/sh", "rtld("))]
    expect(not needed, f"watchdog-monitor needs {needed}")
    expect("libwatchdog.so.0(LIBWATCHDOG_0)(64bit)" in out("rpm", "-qp", "--provides", packages["libwatchdog0"]), "libwatchdog0 does not name its interface")

    root = work / "rpm-root"
    installed = ["rpm", "--root", root, "--dbpath", "/var/lib/rpm"]
    out(*installed, "--install", "--nodeps", "--noscripts", *packages.values())
    version = out(root / "usr/bin/watchdog-monitor", "--version").strip()
    expect(out("rpm", "-qp", "--queryformat", "%{VERSION}", packages["watchdog-monitor"]) == version, f"--version printed {version}")
    flags = out("pkg-config", "--cflags", "--libs", "watchdog", env={**os.environ, "PKG_CONFIG_PATH": str(root / "usr/lib64/pkgconfig")}).split()
    out("cc", SOURCE / "tests/report/agent.c", "-o", work / "rpm-agent", *flags)
    out(work / "rpm-agent", work / "rpm-agent.db", "in-rpm", env={**os.environ, "LD_LIBRARY_PATH": str(root / "usr/lib64")})
    out(*installed, "--erase", "--noscripts", *packages)
    left = [str(path.relative_to(root)) for path in (root / "usr").rglob("*") if path.is_file()]
    expect(not left, f"removing left {left}")


def check_contents(packages):
    for name, file in packages.items():
        paths = set(listing(file))
        missing = [path for path in HELD[name].split() if f"./{path}" not in paths]
        expect(not missing, f"{name} has no {missing}")
        expect(not THEIRS & paths, f"{name} has files of the package watchdog: {THEIRS & paths}")
        strange = [path for path in paths if not re.match(r"\./(usr/.*)?$", path)]
        expect(not strange, f"{name} installs outside of /usr: {strange}")


def listing(file):
    return [line.split(None, 5)[5].split(" -> ")[0] for line in out("dpkg-deb", "-c", file).splitlines()]


def build_in_c(packages, work):
    """An agent in C, built with the development package and linked to the shared library."""
    sdk = work / "sdk"
    shutil.rmtree(sdk, ignore_errors=True)
    for name in ("libwatchdog0", "libwatchdog-dev"):
        out("dpkg-deb", "-x", packages[name], sdk)
    declared = set(re.findall(r"\b(watchdog_\w+)\(", re.sub(r"/\*.*?\*/", "", (sdk / "usr/include/watchdog.h").read_text(), flags=re.S)))
    exported = {line.split()[-1].split("@")[0] for line in out("nm", "-D", "--defined-only", sdk / "usr/lib/libwatchdog.so.0").splitlines()}
    expect({name for name in exported if name.startswith("watchdog_")} == declared, f"exported {exported}, declared {declared}")
    expect(len(exported) == len(declared) + 1, f"the library exports more than its C interface: {exported - declared}")
    flags = out("pkg-config", "--cflags", "--libs", "watchdog", env={**os.environ, "PKG_CONFIG_PATH": str(sdk / "usr/lib/pkgconfig")}).split()
    out("cc", SOURCE / "tests/report/agent.c", "-o", work / "agent", *flags)
    return work / "agent"


class Unavailable(Exception):
    """There is no clean Debian, because this machine cannot make or fetch one."""


class CleanRoot:
    """A Debian without anything of this project, in a folder: what dpkg needs, and what the packages depend on."""
    base = "base-files,base-passwd,coreutils,dash,debianutils,diffutils,dpkg,grep,libc-bin,sed,tar"

    def __init__(self, work, packages):
        self.path = work / "root"
        suite = re.search(r"^VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text(), re.M)[1]
        needed = set()
        for name in ("watchdog-monitor", "libwatchdog0"):
            needed |= {re.sub(r"[ (|].*", "", one.strip()) for one in control(packages[name], "Depends").split(",")}
        needed = ",".join([self.base, *sorted(needed)])
        base = work.parent / f"clean-{suite}-{hashlib.sha256(needed.encode()).hexdigest()[:12]}.tar"
        if not base.exists():
            say(f"making a clean Debian ({suite})")
            partial = base.with_suffix(".partial.tar")
            partial.unlink(missing_ok=True)
            if not shutil.which("mmdebstrap"):
                raise Unavailable("mmdebstrap is not installed")
            done = subprocess.run(["mmdebstrap", "--mode=root", "--variant=custom", "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
                                   "--aptopt=Acquire::Languages \"none\"", f"--include={needed}", suite, partial, mirror()],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
            if found := re.search(r".*(?:Failed to fetch|Could not resolve|Unable to connect|Could not connect).*", done.stdout):
                raise Unavailable(f"{suite} cannot be fetched: {found[0]}")
            expect(done.returncode == 0, f"mmdebstrap cannot make a clean Debian:\n{done.stdout}")
            partial.rename(base)
        self.path.mkdir()
        out("tar", "-xf", base, "-C", self.path, "--exclude=./dev/*")
        out("mount", "-t", "proc", "proc", self.path / "proc")
        for name in ("null", "urandom"):
            (self.path / "dev" / name).touch()
            out("mount", "--bind", f"/dev/{name}", self.path / "dev" / name)

    def words(self, *words):
        return ["chroot", str(self.path), *map(str, words)]

    def dpkg(self, *words, files=()):
        for file in files:
            shutil.copy(file, self.path / "tmp")
        return out(*self.words("dpkg", *words, *(f"/tmp/{file.name}" for file in files)))

    def place(self, path):
        return path


class Folder:
    """A folder into which dpkg installs. The programs use the libraries of this machine."""

    def __init__(self, work, packages):
        del packages
        self.path = work / "root"
        for name in ("var/lib/dpkg/updates", "var/lib/dpkg/info", "var/lib/dpkg/triggers", "tmp", "etc"):
            (self.path / name).mkdir(parents=True)
        (self.path / "var/lib/dpkg/status").touch()

    def words(self, program, *words):
        return [str(self.path / program.lstrip("/")), *map(str, words)]

    def dpkg(self, *words, files=()):
        return out("dpkg", f"--root={self.path}", f"--log={self.path}/dpkg.log", "--force-not-root", "--force-script-chrootless", "--force-depends", *words, *files)

    def place(self, path):
        return f"{self.path}{path}"


def mirror():
    """Where this machine gets Debian from."""
    lines = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian", "Label: Debian"],
                           capture_output=True, text=True, check=False).stdout.split()
    return lines[0] if lines else "http://deb.debian.org/debian"


class Monitor:
    """`serve` with the database of the service."""

    def __init__(self, root):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.root, self.url, self.process = root, f"http://127.0.0.1:{self.port}", None

    def start(self):
        self.process = subprocess.Popen(
            self.root.words("/usr/bin/watchdog-monitor", "serve", "--port", self.port, "--log-format", "json"), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "WATCHDOG_DB": self.root.place("/var/lib/watchdog/watchdog.db"), "XDG_CONFIG_HOME": self.root.place("/etc")})
        limit = time.monotonic() + PATIENCE_S
        while True:
            try:
                return urllib.request.urlopen(f"{self.url}/healthz", timeout=5).close()
            except OSError:
                expect(self.process.poll() is None and time.monotonic() < limit, "the monitor does not answer")
                time.sleep(0.05)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        expect(self.process.wait(PATIENCE_S) == 0, f"the monitor exited with {self.process.returncode}")


class Work:
    """An agent that reports a hundred numbered state changes per second, with the client of the package."""

    def __init__(self, client, url):
        self.reporter = client.Reporter("worker", agent="worker", server=url, token="")
        self.count, self.goes_on = 0, True
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while self.goes_on:
            self.reporter.state_change(f"step-{self.count}")
            self.count += 1
            time.sleep(0.01)

    def end(self):
        self.goes_on = False
        self.thread.join()
        expect(self.reporter.flush(PATIENCE_S), "reports stay unacknowledged")
        expect((self.reporter.dropped, self.reporter.rejected) == (0, 0), "reports were dropped or refused")


def load_client(root):
    path = root.path / "usr/share/watchdog/clients/python/watchdog_client/__init__.py"
    spec = importlib.util.spec_from_file_location("watchdog_client", path)
    client = importlib.util.module_from_spec(spec)
    sys.modules["watchdog_client"] = client
    sys.dont_write_bytecode = True
    spec.loader.exec_module(client)
    return client


def install_upgrade_remove_purge(root, packages, newer, agent):
    installed = ("libwatchdog0", "watchdog-monitor")
    (root.path / "etc/watchdog.conf").write_text("of the package watchdog\n")

    root.dpkg("--install", files=[packages[name] for name in installed])
    version = out(*root.words("/usr/bin/watchdog-monitor", "--version")).strip()
    expect(control(packages["watchdog-monitor"], "Version").startswith(f"{version}-"), f"--version printed {version}")
    for unit in ("system", "user"):
        text = (root.path / f"usr/lib/systemd/{unit}/watchdog-monitor.service").read_text()
        expect("ExecStart=/usr/bin/watchdog-monitor serve" in text, f"the {unit} unit starts another program")
    say(f"installed {version}")

    # As systemd makes them for the unit.
    state, settings = root.path / "var/lib/watchdog", root.path / "etc/watchdog"
    (root.path / "var/lib/private/watchdog").mkdir(parents=True, mode=0o700)
    state.symlink_to("private/watchdog")
    settings.mkdir()
    (settings / "watchdog.toml").write_text("[monitor]\nretention_days = 7\n")
    monitor = Monitor(root)
    monitor.start()
    client = load_client(root)
    work = Work(client, monitor.url)
    time.sleep(1)

    before = work.count
    root.dpkg("--install", files=[newer[name] for name in installed])
    expect(monitor.process.poll() is None, "the upgrade ended the monitor before it can be restarted")
    monitor.stop()
    monitor.start()
    time.sleep(1)
    work.end()
    steps = [event["type"] for event in client.Monitor(monitor.url, "").events("worker", "state_change")]
    expect(steps == [f"step-{number}" for number in range(work.count)], f"{work.count} reports were made, {len(steps)} are stored")
    expect(0 < before < work.count, "nothing was reported around the upgrade")
    say(f"upgraded while {work.count} reports were made; all are stored, each once")

    # The agent in C writes to the same database through the installed library.
    shutil.copy(agent, root.path / "tmp/agent")
    out(*root.words("/tmp/agent", root.place("/var/lib/watchdog/watchdog.db"), "in-c"), env={**os.environ, "LD_LIBRARY_PATH": root.place("/usr/lib")} if root.place("/") != "/" else None)
    expect(client.Monitor(monitor.url, "").progress("in-c"), "the agent in C is not seen")
    work.reporter.completed()
    work.reporter.close(PATIENCE_S)
    monitor.stop()

    size = (state / "watchdog.db").stat().st_size
    root.dpkg("--remove", "watchdog-monitor")
    expect(not (root.path / "usr/bin/watchdog-monitor").exists(), "removing left the program")
    expect((state / "watchdog.db").stat().st_size == size and (settings / "watchdog.toml").exists(), "removing deleted state")
    root.dpkg("--purge", "watchdog-monitor", "libwatchdog0")
    left = [str(path) for path in (state, root.path / "var/lib/private/watchdog", settings, root.path / "usr/share/watchdog", root.path / "usr/libexec/watchdog",
                                   root.path / "usr/lib/libwatchdog.so.0") if path.exists() or path.is_symlink()]
    expect(not left, f"purging left {left}")
    expect((root.path / "etc/watchdog.conf").exists(), "purging deleted a file of the package watchdog")
    say("removed with the state kept, purged with the state deleted")


def can_mount():
    return os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False).returncode == 0


def main():
    """Runs the test in a process whose mounts nobody else sees: deleting its folder never deletes what is mounted there."""
    if len(sys.argv) == 4:
        return test(*map(pathlib.Path, sys.argv[1:3]), sys.argv[3] == "clean")
    build = pathlib.Path(sys.argv[1]).resolve()
    (build / "tests/package").mkdir(parents=True, exist_ok=True)
    clean = can_mount()
    with tempfile.TemporaryDirectory(dir=build / "tests/package") as folder:
        words = [sys.executable, __file__, build, folder, "clean" if clean else "folder"]
        done = subprocess.run([*(["unshare", "--mount", "--propagation=private"] if clean else []), *words], check=False)
    return done.returncode


def test(build, work, clean):
    packages, newer = pack(build, work)
    check_same_bytes(build, work)
    say("packed twice, with the same bytes")
    check_contents(packages)
    with subprocess.Popen(["lintian", "--allow-root", "--fail-on", "error", "--tag-display-limit", "0", *packages.values()], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as lint:
        agent = build_in_c(packages, work)
        say("built an agent in C with the packages")
        if shutil.which("rpmbuild") and (build / "bin/watchdog-monitor-static").exists():
            check_rpm(build, work)
            say("made, installed and removed RPM packages")
        try:
            if not clean:
                raise Unavailable("this process may not mount and chroot")
            root = CleanRoot(work, packages)
        except Unavailable as why:
            print(f"NOT IN A CLEAN DEBIAN: {why}. dpkg installs into a folder instead, without looking at dependencies, and the "
                  "programs use the libraries of this machine.", flush=True)
            root = Folder(work, packages)
        install_upgrade_remove_purge(root, packages, newer, agent)
        said = lint.communicate(timeout=300)[0]
    print(said)
    expect(lint.returncode == 0, "lintian has found errors")
    say("ok")
    return 0


sys.exit(main())
