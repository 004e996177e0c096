#!/usr/bin/env bash
# Runs the official clients of the Model Context Protocol against the real server. They are fetched with npm as
# package-lock.json says, into FOLDER, once (40 MB).
# Usage: mcp_test.sh MONITOR FOLDER
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
WATCHDOG_MONITOR=$monitor WATCHDOG_MCP_DATA=$source/../../data/mcp exec node --test --test-timeout=300000 mcp.test.mjs mcp_proxy.test.mjs
