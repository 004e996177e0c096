#!/usr/bin/env bash
# Installs the Python and the JavaScript client as their users do, without a network, and uses what is installed.
set -euo pipefail
clients=$(realpath "$(dirname "$0")/../../clients")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -r "$clients" "$folder/clients"  # installing writes beside the sources
version=$(sed -n 's/^project(watchdog VERSION \([0-9.]*\).*/\1/p' "$clients/../CMakeLists.txt")

echo "== pip install ./clients/python"
/usr/bin/python3 -m venv --system-site-packages "$folder/python"
"$folder/python/bin/pip" install --no-index --disable-pip-version-check --quiet "$folder/clients/python"
cd "$folder/python"
test "$(bin/pip show watchdog-client 2>/dev/null | sed -n 's/^Version: //p')" = "$version"
bin/python - "$folder/python" <<'PYTHON'
import sys
import watchdog_client
assert watchdog_client.__file__.startswith(sys.argv[1]), watchdog_client.__file__
with watchdog_client.Reporter("s", server="") as reporter:
    reporter.heartbeat(1, "testing")
PYTHON
echo 'def test_has_the_fixture(pytestconfig): assert pytestconfig.pluginmanager.has_plugin("pytest_watchdog")' >installed_test.py
bin/python -m pytest -q -p no:cacheprovider installed_test.py
# A project that named the plugin before it was installed goes on to work.
echo 'pytest_plugins = ["pytest_watchdog"]' >conftest.py
bin/python -m pytest -q -p no:cacheprovider installed_test.py
bin/pip uninstall --yes --quiet watchdog-client
if bin/python -c 'import watchdog_client' 2>/dev/null; then echo "it is still there" >&2; exit 1; fi

echo "== the same sources give the same packages"
cd "$folder/clients/python"
/usr/bin/python3 - "$folder" <<'PYTHON'
import pathlib
import sys
import time
import build_backend
made = []
for now in (1_700_000_000.0, 1_800_000_000.0):
    time.time = lambda now=now: now
    place = pathlib.Path(sys.argv[1], str(int(now)))
    place.mkdir()
    made.append([(place / name).read_bytes() for name in (build_backend.build_wheel(place), build_backend.build_sdist(place))])
assert made[0] == made[1], "the packages differ"
PYTHON

echo "== npm install ./clients/javascript"
mkdir "$folder/javascript"
cd "$folder/javascript"
echo '{"type": "module"}' >package.json
npm install --offline --no-audit --no-fund --loglevel=error "$folder/clients/javascript"
test "$(node -p 'JSON.parse(require("fs").readFileSync("node_modules/watchdog-client/package.json")).version')" = "$version"
cat >use.js <<'JAVASCRIPT'
import { Reporter } from 'watchdog-client';
const reporter = new Reporter('s', { server: '' });
reporter.heartbeat(1, 'testing');
await reporter.close?.();
JAVASCRIPT
node use.js
