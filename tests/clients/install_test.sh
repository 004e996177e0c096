#!/usr/bin/env bash
# Installs the Python and the JavaScript client as their users do, without a network, and uses what is installed.
set -euo pipefail
clients=$(realpath "$(dirname "$0")/../../clients")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -r "$clients" "$folder/clients"  # installing writes beside the sources
version=$(sed -n 's/^project(watchdog VERSION \([0-9.]*\).*/\1/p' "$clients/../CMakeLists.txt")

echo "== pip install, without a network: the wheel where nothing else is, the sources with Debian's hatchling, and editable"
"$clients/../packaging/wheel" "$folder/one"
wheel=$(echo "$folder"/one/watchdog_client-"$version"-py3-none-any.whl)
/usr/bin/python3 -m venv --without-pip "$folder/bare"
/usr/bin/python3 -m venv --without-pip --system-site-packages "$folder/python"
pip() { /usr/bin/python3 -m pip --python "$1" --disable-pip-version-check "${@:2}"; }
check() {
  pip "$1" show --verbose watchdog-client 2>/dev/null >"$folder/shown"
  grep -qx "Version: $version" "$folder/shown"
  grep -q 'Typing :: Typed' "$folder/shown"
  "$1/bin/python" -W error - "$2" <<'PYTHON'
import importlib.metadata
import importlib.resources
import sys
import watchdog_client
assert watchdog_client.__file__.startswith(sys.argv[1] + "/"), watchdog_client.__file__
with watchdog_client.Reporter("s", server="") as reporter:
    reporter.heartbeat(1, "testing")
facts = importlib.metadata.metadata("watchdog-client")
assert (facts["License-Expression"], facts["License-File"]) == ("MIT", "LICENSE"), facts
assert "no dependencies" in facts.get_payload(), facts
assert facts.get_all("Project-URL") is None, facts
assert all("extra ==" in one for one in importlib.metadata.requires("watchdog-client")), "it needs another package"
PYTHON
}
cd "$folder"
pip "$folder/bare" install --no-index --quiet "$wheel"
check "$folder/bare" "$folder/bare"
pip "$folder/python" install --no-index --no-build-isolation --quiet --editable "$folder/clients/python"
check "$folder/python" "$folder/clients/python"
pip "$folder/python" install --no-index --no-build-isolation --quiet --force-reinstall "$folder/clients/python"
check "$folder/python" "$folder/python"
cmp "$clients/../LICENSE" "$clients/python/LICENSE"

echo "== its types reach the code that uses it"
cd "$folder/python"
echo 'import watchdog_client; reveal_type(watchdog_client.Reporter("s").session); watchdog_client.Monitor().progres("s")' >used.py
bin/python -m mypy --python-version 3.9 --cache-dir="$folder/types-cache" --python-executable bin/python used.py >"$folder/types" || true
grep -q 'Revealed type is "builtins.str"' "$folder/types" && grep -q '"Monitor" has no attribute "progres"' "$folder/types" || { cat "$folder/types"; exit 1; }
rm used.py
(cd "$clients/python" && /usr/bin/python3 -m mypy --cache-dir="$folder/types-cache" watchdog_client pytest_watchdog.py)

echo "== pytest finds the fixture"
echo 'def test_has_the_fixture(pytestconfig): assert pytestconfig.pluginmanager.has_plugin("pytest_watchdog")' >installed_test.py
bin/python -m pytest -q -p no:cacheprovider installed_test.py
# A project that named the plugin before it was installed goes on to work.
echo 'pytest_plugins = ["pytest_watchdog"]' >conftest.py
bin/python -m pytest -q -p no:cacheprovider installed_test.py
pip . uninstall --yes --quiet watchdog-client
if bin/python -c 'import watchdog_client' 2>/dev/null; then echo "it is still there" >&2; exit 1; fi

echo "== one file can be copied"
mkdir "$folder/copied"
cp "$clients/python/watchdog_client/__init__.py" "$folder/copied/watchdog_client.py"
cd "$folder/copied"
/usr/bin/python3 -c 'import watchdog_client; watchdog_client.Reporter("s", server="").completed()'

echo "== the same sources give the same wheel"
(umask 077 && touch -d 2001-01-01 "$folder/clients/python/README.md" && "$clients/../packaging/wheel" "$folder/two")
cmp "$wheel" "$folder/two/${wheel##*/}"

echo "== what is published names the repository"
home=https://example.org/owner/watchdog
HOMEPAGE=$home "$clients/../packaging/wheel" "$folder/named"
/usr/bin/python3 -m zipfile -e "$folder/named/${wheel##*/}" "$folder/named"
grep -qx "Project-URL: Repository, $home" "$folder/named/watchdog_client-$version.dist-info/METADATA"
for mask in 022 077; do (umask "$mask" && SOURCE_DATE_EPOCH=1 HOMEPAGE=$home "$clients/../packaging/javascript" "$folder/packed-$mask"); done
cmp "$folder"/packed-*/watchdog-client-"$version".tgz

echo "== npm install watchdog-client-$version.tgz"
mkdir "$folder/packed"
cd "$folder/packed"
echo '{"type": "module"}' >package.json
npm install --offline --no-audit --no-fund --loglevel=error "$folder/packed-022/watchdog-client-$version.tgz"
node - "$clients/javascript" "$home" <<'JAVASCRIPT'
const { execSync } = require('child_process');
const { isDeepStrictEqual } = require('util');
const read = (folder) => JSON.parse(require('fs').readFileSync(`${folder}/package.json`, 'utf8'));
const { homepage, repository, ...others } = read('node_modules/watchdog-client');
if (homepage !== process.argv[3] || repository.url !== `git+${homepage}.git`) throw new Error('the package names another repository');
if (!isDeepStrictEqual(others, read(process.argv[2]))) throw new Error('the package has other facts');
const listed = JSON.parse(execSync('npm pack --dry-run --json --ignore-scripts', { cwd: process.argv[2] }))[0].files.map(({ path }) => path).sort();
const has = require('fs').readdirSync('node_modules/watchdog-client').sort();
if (!isDeepStrictEqual(listed, has)) throw new Error(`npm would pack ${listed}, and the package has ${has}`);
JAVASCRIPT

echo "== npm install ./clients/javascript"
mkdir "$folder/javascript"
cd "$folder/javascript"
echo '{"type": "module"}' >package.json
npm install --offline --no-audit --no-fund --loglevel=error "$folder/clients/javascript"
test "$(node -p 'JSON.parse(require("fs").readFileSync("node_modules/watchdog-client/package.json")).version')" = "$version"
for file in LICENSE README.md vitest.js; do test -s "node_modules/watchdog-client/$file"; done
cmp "$clients/../LICENSE" node_modules/watchdog-client/LICENSE
test "$(node -p 'JSON.parse(require("fs").readFileSync(process.argv[1])).version' "$clients/claude-code/.claude-plugin/plugin.json")" = "$version"
node - "$clients/claude-code/.claude-plugin" <<'JAVASCRIPT'
const read = (name) => JSON.parse(require('fs').readFileSync(`${process.argv[2]}/${name}.json`, 'utf8'));
const { name, owner, plugins: [plugin, ...others] } = read('marketplace');
const { name: own, description } = read('plugin');
if (others.length || !name || !owner.name || plugin.source !== './' || plugin.name !== own || plugin.description !== description) throw new Error('the marketplace differs from the plugin');
JAVASCRIPT
cat >use.js <<'JAVASCRIPT'
import { readFileSync } from 'node:fs';
import { Reporter } from 'watchdog-client';
const { exports, files, engines, sideEffects } = JSON.parse(readFileSync('node_modules/watchdog-client/package.json', 'utf8'));
for (const [name, { types, default: file } = {}] of Object.entries(exports)) {
  if (!file) continue;
  await import(`watchdog-client${name.slice(1)}`);
  readFileSync(`node_modules/watchdog-client/${types}`);
}
if (engines.node !== '>=20.19' || sideEffects !== false || !files.includes('LICENSE')) throw new Error('package.json lacks something');
const reporter = new Reporter('s', { server: '' });
reporter.heartbeat(1, 'testing');
await reporter.close?.();
JAVASCRIPT
node use.js
