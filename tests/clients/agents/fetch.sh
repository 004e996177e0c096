#!/usr/bin/env bash
# Fetches real coding agents with npm, as package-lock.json says, into FOLDER, once (900 MB).
# Usage: fetch.sh FOLDER
set -euo pipefail

source=$(dirname "$(realpath "$0")")
mkdir -p "$1/opencode"  # what opencode fetches for its plugins

# Usage: fetch PACKAGES INTO
fetch() {
  cp "$1"/package.json "$1"/package-lock.json "$source"/.npmrc "$2"
  cd "$2"
  if ! cmp -s package-lock.json node_modules/installed; then
    # Not `ci`: that wants the packages for other platforms as well to be in the lock file.
    npm install --no-save --no-audit --no-fund --loglevel=error
    cp package-lock.json node_modules/installed
  fi
}
folder=$(realpath "$1")
fetch "$source" "$folder"
fetch "$source/opencode" "$folder/opencode"
