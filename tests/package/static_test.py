#!/usr/bin/python3
"""Usage: static_test.py BUILD
       static_test.py --resolve ROOT    resolves names in the root; in a network of its own

Makes the file system of the container image from BUILD by the steps of the Dockerfile, and runs the image's own
commands in it: there is nothing else than certificates. Checks the bill of materials, the tarball and the manifests.
"""

import fcntl
import hashlib
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import urllib.request

import yaml

SOURCE = pathlib.Path(__file__).resolve().parents[2]
CONTAINER = SOURCE / "packaging/container"
PATIENCE_S = 120
# Bytes of the stripped program, by the build type. A release has the program that is compiled for size, and scripts/release
# refuses a larger one. Compiled for speed the same code has a third more bytes.
SIZE_MAX = {"MinSizeRel": 15_000_000, "Release": 20_500_000}
TOKEN = "0123456789abcdef-of-a-test"
USER = "65532:65532"


def expect(holds, what):
    if not holds:
        sys.exit(f"FAILED: {what}")


def out(*words, **more):
    done = subprocess.run([*map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL, check=False, **more)
    expect(done.returncode == 0, f"{' '.join(map(str, words))} exited with {done.returncode}:\n{done.stdout}")
    return done.stdout


class Dockerfile:
    """What the last stage of the Dockerfile says of the image."""

    def __init__(self, path):
        text = path.read_text().replace("\\\n", " ")
        rows = [line.split(None, 1) for line in text[text.rindex("\nFROM "):].splitlines() if line and not line.startswith("#")]
        last = {word: rest for word, rest in rows}
        self.user = last["USER"]
        self.environment = dict(pair.split("=", 1) for pair in last["ENV"].split())
        self.words = json.loads(last["ENTRYPOINT"]) + json.loads(last["CMD"])
        self.health = json.loads(last["HEALTHCHECK"].split("CMD ", 1)[1])
        self.ports = last["EXPOSE"].split()
        self.text = text


class Image:
    """A root made as the Dockerfile makes it, and the files that a container engine puts into each root."""

    def __init__(self, build, folder):
        self.path = folder / "root"
        out(CONTAINER / "make-root", build, self.path)
        self.file = Dockerfile(CONTAINER / "Dockerfile")
        (self.path / "etc/hosts").write_text("127.0.0.1 localhost\n")
        (self.path / "etc/resolv.conf").write_text("")

    def words(self, words):
        return ["/usr/sbin/chroot", f"--userspec={USER}", str(self.path), *words]

    def run(self, *words):
        return subprocess.run(self.words(words), env=self.environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False, stdin=subprocess.DEVNULL)

    def environment(self, **more):
        return {**self.file.environment, "WATCHDOG_TOKEN": TOKEN, **more}


def check_program(image, build):
    program = image.path / "usr/bin/watchdog-monitor"
    size = program.stat().st_size
    limit = SIZE_MAX[re.search(r"^CMAKE_BUILD_TYPE:\w+=(\w+)$", (build / "CMakeCache.txt").read_text(), re.M)[1]]
    expect(size <= limit, f"the program has {size} bytes, more than {limit}")
    # A call of a function that no library has would end the program. The C library of a static program names the one that is left.
    undefined = [line.split() for line in out("nm", "--undefined-only", build / "bin/watchdog-monitor-static").splitlines()]
    missing = {name for kind, name in undefined if kind == "U"} - {"__tls_get_addr"}
    expect(not missing, f"the program has no {sorted(missing)}")
    headers = out("readelf", "-W", "--program-headers", "--dynamic", program)
    expect("INTERP" not in headers, "the program needs a loader")
    expect("(NEEDED)" not in headers, "the program needs shared libraries")
    expect("GNU_RELRO" in headers and "NOW" in headers, "the program's tables stay writable")
    expect(re.search(r"Type:\s+DYN", out("readelf", "--file-header", program)), "the program has a fixed address")
    expect(out("readelf", "--file-header", image.path / "usr/libexec/watchdog/watchdog-exec"), "the helper is missing")
    print(f"static {size / 1e6:.1f} MB, stripped")


class Service:
    """The image's own command, on a free port."""

    def __init__(self, image):
        self.image = image
        self.process = subprocess.Popen(image.words([*image.file.words, "--port", "0"]), env=image.environment(), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines = []
        for line in self.process.stdout:
            self.lines.append(line)
            if found := re.search(r"http://[\d.]+:(\d+)", line):
                self.url = f"http://127.0.0.1:{found[1]}"
                break
        else:
            expect(False, f"the image's command ended: {self.lines}")
        threading.Thread(target=lambda: self.lines.extend(self.process.stdout), daemon=True).start()

    def ask(self, path, body=None):
        request = urllib.request.Request(self.url + path, body, {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return json.loads(answer.read())

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        expect(self.process.wait(PATIENCE_S) == 0, f"the service exited with {self.process.returncode}: {self.lines}")
        expect(not [line for line in self.lines if TOKEN in line], "the token is in the log")


def check_service(image):
    service = Service(image)
    health = image.run(*image.file.health, "--wait", "60", "--server", service.url)
    expect(health.returncode == 0 and health.stdout == "ready\n", f"the health check says {health}")
    by_name = image.run("/usr/bin/watchdog-monitor", "ready", "--server", service.url.replace("127.0.0.1", "localhost"))
    expect(by_name.returncode == 0, f"a host's name is not resolved: {by_name.stderr}")
    service.ask("/api/autonomous/sessions/in-image/events", b'{"kind":"state_change","type":"built"}')
    service.stop()
    gone = image.run(*image.file.health, "--server", service.url, "--json")
    expect(gone.returncode == 4 and json.loads(gone.stdout)["ready"] is False, f"the health check of a stopped monitor says {gone}")
    service = Service(image)
    expect(service.ask("/api/autonomous/progress/in-image")["progress"]["stateChanges"] == 1, "the volume lost a report")
    service.stop()
    database = image.path / "data/watchdog.db"
    expect(database.stat().st_uid == 65532 and database.stat().st_mode & 0o077 == 0, "others can read the database")


def check_mail(image):
    """The program has no mail, and says so instead of losing an alert."""
    settings = image.path / "tmp/mail.toml"
    settings.write_text('[alerts.channels.post]\ntype = "mail"\nurl = "smtp://localhost:1"\nfrom = "a@example.org"\nto = "b@example.org"\n')
    settings.chmod(0o644)
    said = image.run("/usr/bin/watchdog-monitor", "alerts", "--test", "post", "--config", "/tmp/mail.toml")
    expect(said.returncode != 0 and "static program cannot send e-mail" in said.stdout + said.stderr, f"a mail of the static program: {said}")
    settings.unlink()


class Resolver(socketserver.BaseRequestHandler):
    """A DNS server that knows one name."""

    def handle(self):
        question, connection = self.request
        end = question.index(b"\0", 12) + 5
        name, kind = question[12:end - 4], question[end - 4:end - 2]
        known = name == b"\x07monitor\x04test\0"
        address = b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\x7f\0\0\x01" if known and kind == b"\0\x01" else b""
        flags = b"\x81\x80" if known else b"\x81\x83"
        connection.sendto(question[:2] + flags + b"\0\x01\0" + (b"\x01" if address else b"\0") + b"\0\0\0\0" + question[12:end] + address, self.client_address)


def resolve(root):
    """Names come from DNS too, without a library that the root would have to have."""
    with socket.socket() as loopback:
        fcntl.ioctl(loopback, 0x8914, struct.pack("16sH14s", b"lo", 0x1 | 0x40, b""))  # SIOCSIFFLAGS: IFF_UP, IFF_RUNNING
    servers = [socketserver.UDPServer(("127.0.0.1", 53), Resolver), http.server.ThreadingHTTPServer(("127.0.0.1", 0), Ready)]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    (root / "etc/resolv.conf").write_text("nameserver 127.0.0.1\n")
    for name, status in (("monitor.test", 0), ("nowhere.test", 4)):
        words = ["/usr/sbin/chroot", f"--userspec={USER}", root, "/usr/bin/watchdog-monitor", "ready", "--server", f"http://{name}:{servers[1].server_port}"]
        said = subprocess.run(words, env={}, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        expect(said.returncode == status, f"{name}: {said}")


class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "18")
        self.end_headers()
        self.wfile.write(b'{"status":"ready"}')

    def log_message(self, *_):
        pass


def check_certificates(image, folder):
    """The program trusts the certificates of the image, and no others."""
    out("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
        "-addext", "subjectAltName=DNS:localhost", "-keyout", folder / "key.pem", "-out", folder / "cert.pem")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Ready)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    ready = ("/usr/bin/watchdog-monitor", "ready", "--server", f"https://localhost:{server.server_port}")
    expect(image.run(*ready).returncode == 4, "a certificate of nobody is trusted")
    certificates = image.path / "etc/ssl/certs/ca-certificates.crt"
    trusted = certificates.read_text()
    certificates.write_text(trusted + (folder / "cert.pem").read_text())
    said = image.run(*ready)
    expect(said.returncode == 0, f"a certificate of the image is not trusted: {said.stderr}")
    # Without the variable the program looks where the distributions have them.
    without = subprocess.run(image.words(ready), env={"PATH": "/usr/bin"}, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    expect(without.returncode == 0, f"the certificates are found only with SSL_CERT_FILE: {without.stderr}")
    certificates.write_text(trusted)
    server.shutdown()


def check_bill(build, folder):
    for number in (1, 2):
        out(SOURCE / "scripts/sbom", "--build", build, "--target", "watchdog-monitor-static", "--output", folder / f"bill{number}",
            env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
    names = sorted(path.name for path in (folder / "bill1").iterdir())
    expect(names == ["THIRD-PARTY-NOTICES.txt", "watchdog-monitor-static.cdx.json", "watchdog-monitor-static.spdx.json"], f"these were written: {names}")
    for name in names:
        expect((folder / "bill1" / name).read_bytes() == (folder / "bill2" / name).read_bytes(), f"{name} differs between two runs")
    cyclonedx, spdx = (json.loads((folder / "bill1" / name).read_text()) for name in names[1:])
    parts = {part["name"]: part["version"] for part in cyclonedx["components"]}
    expect(any(name.startswith("boost1.") for name in parts), f"Boost is missing: {parts}")
    expect({"openssl", "sqlite3", "re2", "nlohmann-json3", "spdlog", "zlib", "glibc"} <= set(parts), f"parts are missing: {parts}")
    libraries = json.loads(out(build / "bin/watchdog-monitor-static", "--version", "--json"))
    expect(re.match(r"[\d.]+", parts["sqlite3"])[0] == libraries["sqlite"], f"SQLite is {libraries['sqlite']}, the bill says {parts['sqlite3']}")
    expect(re.match(r"[\d.]+", parts["openssl"])[0] in libraries["openssl"], f"OpenSSL is {libraries['openssl']}, the bill says {parts['openssl']}")
    listed = {package["name"] for package in spdx["packages"]} - {"watchdog-monitor"}
    expect(listed == set(parts), f"the two bills differ: {listed ^ set(parts)}")
    strangers = {part for part in parts if part.startswith(("googletest", "gtest", "curl", "postgresql"))}
    expect(not strangers, f"the bill lists what the program does not have: {strangers}")
    program = hashlib.sha256((folder / "tarball/bin/watchdog-monitor").read_bytes()).hexdigest()
    named = cyclonedx["metadata"]["component"]["hashes"][0]["content"], spdx["packages"][0]["checksums"][0]["checksumValue"]
    expect(named == (program, program), f"the bills name another program: {named}, not {program}")


def check_tarball(build, folder):
    tree = folder / "tarball"
    out(SOURCE / "packaging/tarball", build, tree)
    for name in ("bin/watchdog-monitor", "libexec/watchdog/watchdog-exec", "share/man/man1/watchdog-monitor.1", "README", "LICENSE",
                 "share/bash-completion/completions/watchdog-monitor", "share/watchdog/clients/python/watchdog_client/__init__.py"):
        expect((tree / name).exists(), f"the tarball has no {name}")
    expect(sorted(path.name for path in (tree / "bin").iterdir()) == ["watchdog-monitor"], "the tarball has programs that need libraries")
    expect("dynamically" not in out("file", tree / "bin/watchdog-monitor") or "static-pie" in out("file", tree / "bin/watchdog-monitor"), "the tarball's program is dynamic")


def check_archives(build, folder):
    """The same build gives the same tarball and the same image, with the owners that a volume needs."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    for number, mask, elsewhere in (("1", "022", []), ("2", "027", ["env", "TZ=Pacific/Kiritimati", "LC_ALL=C.UTF-8", "faketime", "-f", "+400d"])):
        base = folder / f"archives{number}"
        base.mkdir()
        shutil.copytree(folder / "tarball", base / "watchdog", symlinks=True)
        (base / "watchdog/bin/watchdog-monitor").write_bytes(b"the image has it too, and compressing it takes seconds")
        out(CONTAINER / "make-root", build, base / "image")
        for words in (["watchdog.tar.gz", base / "watchdog"], ["--image", "image.tar.gz", base / "image"]):
            out("sh", "-c", f'umask {mask} && exec "$@"', "-", *elsewhere, SOURCE / "packaging/archive", *words, env=environment, cwd=base)
    for name in ("watchdog.tar.gz", "image.tar.gz"):
        expect((folder / "archives1" / name).read_bytes() == (folder / "archives2" / name).read_bytes(), f"{name} differs between two packings")
    with tarfile.open(folder / "archives1/image.tar.gz") as packed:
        owners = {member.name.removeprefix("./"): (member.uid, member.gid) for member in packed}
    expect(owners.pop("data") == (65532, 65532), "the image's user does not own its volume")
    expect(set(owners.values()) == {(0, 0)}, "the image's user owns more than its volume")
    expect("usr/bin/watchdog-monitor" in owners, f"the image has other files: {sorted(owners)[:5]}")


def check_compiled_elsewhere(build, folder):
    """The helper compiled in another folder, at another time, has the same bytes. `scripts/release --verify` compares everything."""
    place = folder / "another/place/of another length"
    place.mkdir(parents=True)
    for name in ("CMakeLists.txt", "CMakePresets.json", "LICENSE", "clients", "cmake", "libwatchdog", "monitor", "packaging", "schemas"):
        copy = shutil.copytree if (SOURCE / name).is_dir() else shutil.copy
        copy(SOURCE / name, place / name)
    cache = (build / "CMakeCache.txt").read_text()
    settings = [f"-D{name}={found[1]}" for name in ("CMAKE_BUILD_TYPE", "CMAKE_CXX_COMPILER", "CMAKE_CXX_FLAGS", "CMAKE_UNITY_BUILD", "WATCHDOG_WERROR")
                if (found := re.search(rf"^{name}:\w+=(.*)$", cache, re.M))]
    elsewhere = {**os.environ, "TZ": "Pacific/Kiritimati", "LC_ALL": "C.UTF-8", "CCACHE_DISABLE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    out("faketime", "-f", "+400d", "cmake", "-S", place, "-B", place / "made", "-G", "Ninja", "-DWATCHDOG_TESTS=OFF", *settings, env=elsewhere)
    out("faketime", "-f", "+400d", "ninja", "-C", place / "made", "bin/watchdog-exec", env=elsewhere)
    same = (build / "bin/watchdog-exec").read_bytes() == (place / "made/bin/watchdog-exec").read_bytes()
    expect(same, "watchdog-exec differs between two folders")


def check_manifests(image):
    """Compose and Kubernetes start the image as the Dockerfile does, as the same user."""
    command = image.file.words[1:]
    compose = yaml.safe_load((CONTAINER / "compose.yaml").read_text())
    service = compose["services"]["monitor"]
    expect(service["command"][:len(command)] == command, "compose starts another command")
    expect(all(port.startswith("127.0.0.1:") for port in service["ports"]), "compose publishes a port to other machines")
    expect({port.rsplit(":", 1)[1] for port in service["ports"]} <= set(image.file.ports), "compose publishes unknown ports")
    documents = list(yaml.safe_load_all((CONTAINER / "kubernetes.yaml").read_text()))
    expect([document["kind"] for document in documents] == ["PersistentVolumeClaim", "Deployment", "Service"], "the manifest has other kinds")
    pod = documents[1]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    expect("-DCMAKE_BUILD_TYPE=MinSizeRel" in image.file.text, "the image's program is not compiled for size")
    expect(container["args"] == command, "Kubernetes starts another command")
    expect(container["image"] == service["image"], "Kubernetes and compose have different images")
    expect(f"{pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}" == image.file.user == USER, "the users differ")
    expect(container["readinessProbe"]["exec"]["command"] == image.file.health, "the probes differ")
    expect(container["livenessProbe"]["httpGet"]["path"] == "/healthz", "the liveness probe asks for more than life")
    expect(documents[1]["spec"]["replicas"] == 1, "two monitors would share one database")
    version = re.search(r"project\(watchdog VERSION ([\d.]+)", (SOURCE / "CMakeLists.txt").read_text())[1]
    expect(service["image"].endswith(f":{version}"), f"the manifests have another version than {version}")


def main():
    if sys.argv[1] == "--resolve":
        resolve(pathlib.Path(sys.argv[2]))
        return 0
    build = pathlib.Path(sys.argv[1]).resolve()
    if not (build / "bin/watchdog-monitor-static").exists():
        print("NOT IN A CLEAN DEBIAN: watchdog-monitor-static was not built, because static libraries are missing")
        return 77
    if os.geteuid() != 0:
        print("the test needs root, to change the root of a process")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        image = Image(build, folder)
        check_program(image, build)
        check_service(image)
        check_certificates(image, folder)
        check_mail(image)
        if subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode == 0:
            out("unshare", "--net", sys.executable, __file__, "--resolve", image.path)
        else:
            print("NOT IN A CLEAN DEBIAN: this process may not make a network, so no name was asked of a DNS server")
        check_manifests(image)
        check_tarball(build, folder)
        check_bill(build, folder)
        check_archives(build, folder)
        check_compiled_elsewhere(build, folder)
    return 0


sys.exit(main())
