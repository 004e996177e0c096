#!/usr/bin/env bash
# Runs the examples of the JavaScript client with the packages that they are for, and its vitest helper with vitest. They
# are fetched with npm as package-lock.json says, into FOLDER, once (100 MB).
# Usage: adapters_test.sh MONITOR MODEL FOLDER
set -euo pipefail

monitor=$(realpath "$1")
model=$(realpath "$2")
source=$(dirname "$(realpath "$0")")
client=$source/../../../clients/javascript
mkdir -p "$3"
cd "$3"
cp "$source"/*.mjs "$source"/package.json "$source"/package-lock.json "$source"/.npmrc "$source"/../../page/monitor.mjs .
cp "$client"/examples/*.js .
if ! cmp -s package-lock.json node_modules/installed; then
  npm ci --no-audit --no-fund --loglevel=error
  cp package-lock.json node_modules/installed
fi
ln -sfn "$(realpath "$client")" node_modules/watchdog-client
WATCHDOG_MONITOR=$monitor WATCHDOG_MODEL_SERVER=$model exec node --test adapters.test.mjs
