#!/usr/bin/env bash
# Drives the dashboard in Debian's Chromium. Node, npm and its registry are needed: playwright-core
# and axe-core are fetched as package-lock.json says, into FOLDER, once.
# Usage: page_test.sh MONITOR FOLDER
set -euo pipefail

monitor=$(realpath "$1")
source=$(dirname "$(realpath "$0")")
mkdir -p "$2"
cd "$2"
cp "$source"/*.mjs "$source"/package.json "$source"/package-lock.json "$source"/.npmrc .
if ! cmp -s package-lock.json node_modules/installed; then
  npm ci --no-audit --no-fund --loglevel=error
  cp package-lock.json node_modules/installed
fi
WATCHDOG_MONITOR=$monitor exec node --test ./*.test.mjs
