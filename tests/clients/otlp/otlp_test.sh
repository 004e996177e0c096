#!/usr/bin/env bash
# Sends telemetry with OpenTelemetry's own exporters. They are fetched with npm as package-lock.json says, into FOLDER, once
# (66 MB).
# Usage: otlp_test.sh MONITOR FOLDER
set -euo pipefail

monitor=$(realpath "$1")
source=$(dirname "$(realpath "$0")")
mkdir -p "$2"
cd "$2"
cp "$source"/*.mjs "$source"/package.json "$source"/package-lock.json "$source"/.npmrc "$source"/../../page/monitor.mjs .
if ! cmp -s package-lock.json node_modules/installed; then
  npm ci --no-audit --no-fund --loglevel=error
  cp package-lock.json node_modules/installed
fi
WATCHDOG_MONITOR=$monitor exec node --test --test-timeout=120000 otlp.test.mjs
