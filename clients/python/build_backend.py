"""Builds the wheel of the modules beside it (PEP 517). The standard library is enough: pip fetches nothing."""

import base64
import gzip
import hashlib
import io
import pathlib
import re
import tarfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
MODULES = ("watchdog_client.py", "pytest_watchdog.py")
# pytest finds the fixture by itself. The module imports pytest only if pytest loads it.
ENTRY_POINTS = "[pytest11]\npytest_watchdog = pytest_watchdog\n"
# So that the same sources make the same bytes.
MADE = (1980, 1, 1, 0, 0, 0)


def facts():
    """Name, version, metadata. Python 3.9 reads no TOML."""
    text = (HERE / "pyproject.toml").read_text(encoding="utf-8")
    of = lambda key: re.search(rf'^{key} = (?:{{ text = )?"([^"]*)"', text, re.M)[1]
    lines = ["Metadata-Version: 2.1", f"Name: {of('name')}", f"Version: {of('version')}", f"Summary: {of('description')}",
             f"License: {of('license')}", f"Requires-Python: {of('requires-python')}"]
    return of("name").replace("-", "_"), of("version"), "\n".join(lines) + "\n"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name, version, metadata = facts()
    info = f"{name}-{version}.dist-info"
    files = {module: (HERE / module).read_bytes() for module in MODULES}
    files[f"{info}/METADATA"] = metadata.encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: build_backend\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/entry_points.txt"] = ENTRY_POINTS.encode()
    rows = []
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(content)}\n")
    files[f"{info}/RECORD"] = ("".join(rows) + f"{info}/RECORD,,\n").encode()
    wheel = f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, MADE)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    name, version, metadata = facts()
    files = {module: (HERE / module).read_bytes() for module in (*MODULES, "pyproject.toml", "build_backend.py")}
    files["PKG-INFO"] = metadata.encode()
    archive_name = f"{name}-{version}.tar.gz"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(f"{name}-{version}/{path}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    pathlib.Path(sdist_directory, archive_name).write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    return archive_name
