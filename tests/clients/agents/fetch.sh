#!/usr/bin/env bash
# Fetches real coding agents with npm, as package-lock.json says, into FOLDER, once (900 MB).
# Usage: fetch.sh FOLDER
set -euo pipefail

source=$(dirname "$(realpath "$0")")
mkdir -p "$1/opencode"  # what opencode fetches for its plugins

# Usage: fetch PACKAGES INTO   No program of a package runs meanwhile: opencode's would only link its file.
fetch() {
  cp "$1"/package.json "$1"/package-lock.json "$source"/.npmrc "$2"
  cd "$2"
  if ! cmp -s package-lock.json node_modules/installed; then
    # Not `ci`: that wants the packages for other platforms as well to be in the lock file.
    npm install --ignore-scripts --no-save --no-audit --no-fund --loglevel=error
    cp package-lock.json node_modules/installed
  fi
}
folder=$(realpath "$1")
fetch "$source" "$folder"
case $(uname -m) in aarch64) platform=linux-arm64 ;; *) platform=linux-x64 ;; esac
if ! grep -qw avx2 /proc/cpuinfo && [[ $platform == linux-x64 ]]; then platform=linux-x64-baseline; fi
ln -f "$folder/node_modules/opencode-$platform/bin/opencode" "$folder/node_modules/opencode-ai/bin/opencode.exe"
fetch "$source/opencode" "$folder/opencode"
