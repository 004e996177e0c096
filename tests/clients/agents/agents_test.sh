#!/usr/bin/env bash
# Runs real coding agents against a scripted model, watched by their hooks, through the proxy, and both at once.
# Usage: agents_test.sh MONITOR FOLDER [OPTIONS of real_agents.py]
set -euo pipefail

here=$(dirname "$(realpath "$0")")
monitor=$(realpath "$1")
"$here/fetch.sh" "$2"
folder=$(realpath "$2")
shift 2
exec /usr/bin/python3 "$here"/../real_agents.py "$monitor" "$folder/node_modules" "$@"
