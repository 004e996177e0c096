#!/usr/bin/env bash
# Installs a build of the project and uses it as a stranger would. Compiler and generator: CXX and
# CMAKE_GENERATOR, which CMake reads itself.
set -euo pipefail

usage() { echo "Usage: consumer_test.sh BUILD_DIRECTORY"; }
case ${1:-} in
  --help) usage; exit ;;
  '' | -*) usage >&2; exit 2 ;;
esac
build=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "$*"; }; }
fail() { echo "FAILED: $*" >&2; exit 1; }

quietly cmake --install "$build" --prefix "$work/prefix"
quietly cmake -S "$here" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF
quietly cmake --build "$work/build"
grep -q "watchdog_DIR:PATH=$work/prefix/" "$work/build/CMakeCache.txt" ||
  fail "the package found is not the one installed"

# An installed package can be moved: nothing in it says where it was built.
if grep -rqF -e "$build" -e "${here%/tests/consumer}/" "$work"/prefix/lib*/; then
  grep -rlF -e "$build" -e "${here%/tests/consumer}/" "$work"/prefix/lib*/ >&2
  fail "installed files name the build or the source directory"
fi

said=$("$work/build/consumer" "$work/w.db") || fail "the consumer: $said"
[[ $said == ok:* ]] || fail "the consumer said: $said"

in_c=$("$work/build/in_c" "$work/c.db" c) || fail "the agent in C: $in_c"

# Not where it was to be installed, and the agent is not installed at all.
exec=$(echo "$work"/prefix/*/watchdog/watchdog-exec)
ran=$(WATCHDOG_EXEC=$exec "$work/build/agent" "$work/agent.db") || fail "the agent: $ran"
[[ $ran == "ok: task_complete" ]] || fail "the agent said: $ran"

# Agents link this: SQLite and the runtime, nothing else.
needed=$(ldd "$work/build/consumer" | sed -E 's,^\s*(\S*/)?([^ /]+) .*,\2,' | sort)
grep -q '^libsqlite3\.so' <<<"$needed" || fail "libsqlite3 is not among: $needed"
strange=$(grep -vE '^(linux-(vdso|gate)|ld-linux[^.]*|libsqlite3|libstdc\+\+|libgcc_s|libm|libc|libpthread|libdl|librt)\.so' \
  <<<"$needed") && fail "it needs more than SQLite and the runtime: $strange"

# A component that does not exist is refused.
mkdir "$work/unknown"
cat >"$work/unknown/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(unknown LANGUAGES CXX)
find_package(watchdog REQUIRED COMPONENTS nonexistent)
CMAKE
if cmake -S "$work/unknown" -B "$work/unknown/build" -DCMAKE_PREFIX_PATH="$work/prefix" \
  >"$work/log" 2>&1; then
  fail "find_package accepted an unknown component"
fi
grep -q 'set watchdog_FOUND to FALSE' "$work/log" || { cat "$work/log" >&2; fail "of another cause"; }

echo "$said"
