#!/usr/bin/env bash
# Runs the examples and the integrations of the JavaScript client with the packages that they are for, and its vitest helper
# with vitest. pyright reads the types of the Python client. They are fetched with npm as package-lock.json says, into FOLDER, once (80 MB).
# Usage: adapters_test.sh MONITOR MODEL FOLDER
set -euo pipefail

monitor=$(realpath "$1")
model=$(realpath "$2")
source=$(dirname "$(realpath "$0")")
root=$(realpath "$source/../../..")
client=$root/clients/javascript
mkdir -p "$3"
cd "$3"
cp "$source"/*.mjs "$source"/*.txt "$source"/package.json "$source"/package-lock.json "$source"/.npmrc "$source"/../../page/monitor.mjs .
cp "$client"/examples/*.js .
rm -rf python
cp -r "$root/clients/python" python
cp "$root/docs/tutorials/05-test-without-sleep.md" tutorial.md
cp "$root/docs/how-to/in-your-javascript-program.md" programs.md
if ! cmp -s package-lock.json node_modules/installed; then
  npm ci --no-audit --no-fund --loglevel=error
  cp package-lock.json node_modules/installed
fi
# A copy, because TypeScript and the integrations look for packages beside the files that they are imported from.
rm -rf node_modules/watchdog-client
cp -r "$client" node_modules/watchdog-client
export WATCHDOG_MONITOR=$monitor WATCHDOG_PROGRAM=$monitor WATCHDOG_MODEL_SERVER=$model
exec node --test adapters.test.mjs integrations.test.mjs harness.test.mjs python_types.test.mjs junit.test.mjs
