#!/usr/bin/env bash
# Drives the dashboard in Debian's Chromium. Node, npm and its registry are needed: playwright-core
# and axe-core are fetched as package-lock.json says, into FOLDER, once.
# Usage: page_test.sh MONITOR MODEL_BACKEND FOLDER
set -euo pipefail

monitor=$(realpath "$1")
backend=$(realpath "$2")
source=$(dirname "$(realpath "$0")")
mkdir -p "$3"
cd "$3"
cp "$source"/*.mjs "$source"/package.json "$source"/package-lock.json "$source"/.npmrc .
if ! cmp -s package-lock.json node_modules/installed; then
  npm ci --no-audit --no-fund --loglevel=error
  cp package-lock.json node_modules/installed
fi
WATCHDOG_MONITOR=$monitor WATCHDOG_MODEL_BACKEND=$backend WATCHDOG_TEST_DATA=$(realpath "$source/../data") \
  exec node --test ./*.test.mjs
