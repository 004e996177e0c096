#!/usr/bin/env bash
# Runs real clients of model servers against a slow one, straight and through the proxy. They are fetched with npm as
# package-lock.json says, into FOLDER, once (80 MB).
# Usage: npm_test.sh MONITOR MODEL_BACKEND FOLDER
set -euo pipefail

monitor=$(realpath "$1")
backend=$(realpath "$2")
source=$(dirname "$(realpath "$0")")
mkdir -p "$3"
cd "$3"
cp "$source"/*.{mjs,py,java,go} "$source"/package.json "$source"/package-lock.json "$source"/.npmrc "$source"/../../page/{monitor,model_backend}.mjs .
if ! cmp -s package-lock.json node_modules/installed; then
  npm ci --no-audit --no-fund --loglevel=error
  cp package-lock.json node_modules/installed
fi
ln -sfn "$(realpath "$source/../../../clients/javascript")" node_modules/watchdog-client
export WATCHDOG_MONITOR=$monitor WATCHDOG_MODEL_BACKEND=$backend WATCHDOG_COMPILERS='' GOCACHE=$PWD/go-cache
# Nothing else here needs these two, and they take half a gigabyte.
for compiler in javac go; do
  if command -v "$compiler" >/dev/null; then
    WATCHDOG_COMPILERS+="$compiler "
  else
    echo "LEFT OUT: streams are not read by the HTTP client of this language, because $compiler is not installed"
  fi
done
# One after the other: the clients of the first have time limits.
node --test --test-timeout=120000 npm.test.mjs
exec node --test --test-timeout=300000 shapes.test.mjs
