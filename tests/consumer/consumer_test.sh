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
root=${here%/tests/consumer}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset WATCHDOG_EXEC  # an agent finds the helper without it

quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "$*"; }; }
fail() { echo "FAILED: $*" >&2; exit 1; }
find_here=(-DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)

# On another system the configuration ends with the reason.
if cmake -S "$root" -B "$work/other" -DCMAKE_SYSTEM_NAME=FreeBSD >"$work/log" 2>&1; then fail "a build for FreeBSD was configured"; fi
grep -q 'need Linux, not FreeBSD' "$work/log" || { cat "$work/log" >&2; fail "a build for FreeBSD says nothing about Linux"; }

# To a prefix other than the configured one, then moved: the place of an installation is known
# only when it is used.
quietly cmake --install "$build" --prefix "$work/first"
mv "$work/first" "$work/prefix"
if grep -rqF -e "$build" -e "$root/" "$work"/prefix/lib*/; then
  grep -rlF -e "$build" -e "$root/" "$work"/prefix/lib*/ >&2
  fail "installed files name the build or the source directory"
fi

# CMake, in C++ with the warnings of a careful user.
quietly cmake -S "$here" -B "$work/build" "${find_here[@]}"
quietly cmake --build "$work/build"
grep -q "watchdog_DIR:PATH=$work/prefix/" "$work/build/CMakeCache.txt" ||
  fail "CMake found a package other than the installed one"
said=$("$work/build/consumer" "$work/w.db") || fail "the consumer: $said"
[[ $said == ok:* ]] || fail "the consumer said: $said"
"$work/build/in_c" "$work/c.db" c >"$work/log" || fail "the agent in C: $(cat "$work/log")"
"$work/build/in_c_shared" "$work/c.db" c1 >"$work/log" || fail "the agent in C with the shared library: $(cat "$work/log")"
readelf -d "$work/build/in_c_shared" | grep -q 'NEEDED.*\[libwatchdog\.so\.0\]' || fail "it is not linked to libwatchdog.so.0"

# Its shell calls work although it lies outside of the prefix.
ran=$("$work/build/agent" "$work/agent.db") || fail "the agent: $ran"
[[ $ran == "ok: task_complete" ]] || fail "the agent said: $ran"
# Without the helper program it says so at its start.
exec=$(echo "$work"/prefix/*/watchdog/watchdog-exec)
mv "$exec" "$work/hidden"
if ran=$("$work/build/agent" "$work/agent.db"); then fail "an agent without its helper ran"; fi
[[ $ran == *watchdog-exec* ]] || fail "the agent without its helper said: $ran"
mv "$work/hidden" "$exec"

# CMake, in a project that knows C only.
quietly cmake -S "$here/in_c" -B "$work/in_c" "${find_here[@]}"
quietly cmake --build "$work/in_c"
"$work/in_c/in_c" "$work/c.db" c2 >"$work/log" || fail "the C project: $(cat "$work/log")"

# pkg-config, with the C compiler for C.
export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name watchdog-progress.pc)")
# shellcheck disable=SC2046  # its words are to be split
quietly cc "$root/tests/report/agent.c" -o "$work/by_pc_c" $(pkg-config --cflags --libs watchdog-progress)
"$work/by_pc_c" "$work/c.db" c3 >"$work/log" || fail "C by pkg-config: $(cat "$work/log")"
# shellcheck disable=SC2046
quietly "${CXX:-c++}" -std=c++20 "$here/agent.cpp" -o "$work/by_pc" \
  $(pkg-config --cflags --libs watchdog-agent)
ran=$("$work/by_pc" "$work/pc.db") || fail "the agent by pkg-config: $ran"
[[ $ran == "ok: task_complete" ]] || fail "the agent by pkg-config said: $ran"

# Agents link this: SQLite and the runtime, nothing else.
needed=$(ldd "$work/build/consumer" | sed -E 's,^\s*(\S*/)?([^ /]+) .*,\2,' | sort)
grep -q '^libsqlite3\.so' <<<"$needed" || fail "libsqlite3 is not among: $needed"
strange=$(grep -vE '^(linux-(vdso|gate)|ld-linux[^.]*|libsqlite3|libstdc\+\+|libgcc_s|libm|libc|libpthread|libdl|librt)\.so' \
  <<<"$needed") && fail "it needs more than SQLite and the runtime: $strange"

# The examples of the documentation, with the compilers that people have.
quietly python3 "$here/examples.py" "$work/prefix/include" g++,clang++ "$root/README.md" "$root"/docs/how-to/*.md

# Only what reports can be configured where neither Boost nor OpenSSL nor RE2 is.
quietly cmake -S "$root" -B "$work/alone" -DWATCHDOG_MONITOR=OFF -DWATCHDOG_TESTS=OFF \
  -DWATCHDOG_AGENT=OFF -DCMAKE_DISABLE_FIND_PACKAGE_Boost=ON -DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON \
  -DRE2_LIBRARY=RE2_LIBRARY-NOTFOUND -DRE2_INCLUDE_DIR=RE2_INCLUDE_DIR-NOTFOUND
quietly cmake -S "$root" -B "$work/library" -DWATCHDOG_MONITOR=OFF -DWATCHDOG_TESTS=OFF
if cmake --build "$work/library" --target help | grep -q watchdog-monitor; then
  fail "the library alone builds the monitor"
fi

# A component that does not exist is refused.
mkdir "$work/unknown"
cat >"$work/unknown/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(unknown LANGUAGES CXX)
find_package(watchdog REQUIRED COMPONENTS nonexistent)
CMAKE
if cmake -S "$work/unknown" -B "$work/unknown/build" "${find_here[@]}" >"$work/log" 2>&1; then
  fail "find_package accepted an unknown component"
fi
grep -q 'watchdog has no component nonexistent' "$work/log" ||
  { cat "$work/log" >&2; fail "of another cause"; }

echo "$said"
