#!/usr/bin/env bash
# Runs real coding agents against a scripted model, watched by their hooks, through the proxy, and both at once. They are
# fetched with npm as package-lock.json says, into FOLDER, once (900 MB).
# Usage: agents_test.sh MONITOR FOLDER [OPTIONS of real_agents.py]
set -euo pipefail

monitor=$(realpath "$1")
source=$(dirname "$(realpath "$0")")
mkdir -p "$2"
folder=$(realpath "$2")
shift 2
fetch() {  # in the present directory
  cmp -s package-lock.json node_modules/installed && return
  # Not `ci`: that wants the packages for other platforms as well to be in the lock file.
  npm install --no-save --no-audit --no-fund --loglevel=error
  cp package-lock.json node_modules/installed
}
cd "$folder"
cp "$source"/package.json "$source"/package-lock.json "$source"/.npmrc .
fetch
mkdir -p opencode  # what opencode fetches for its plugins
cd opencode
cp "$source"/opencode/package.json "$source"/opencode/package-lock.json .
cp "$source"/.npmrc .
fetch
exec /usr/bin/python3 "$source"/../real_agents.py "$monitor" "$folder/node_modules" "$@"
