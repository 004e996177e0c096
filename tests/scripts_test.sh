#!/usr/bin/env bash
# The scripts parse, explain themselves, refuse what they do not know, and know what is installed.
set -euo pipefail
cd "$(dirname "$0")/.."

failures=0
check() {  # check WHAT COMMAND...
  local what=$1
  shift
  if ! "$@"; then
    echo "FAILED: $what" >&2
    failures=$((failures + 1))
  fi
}
exits() {  # exits STATUS COMMAND...; what it said is in $said
  local expected=$1 status=0
  shift
  said=$("$@" </dev/null 2>&1) || status=$?
  [[ $status == "$expected" ]] || { echo "exit $status: $said" >&2; return 1; }
}

while IFS= read -r script; do
  check "$script parses" bash -n "$script"
done < <(grep -rlE --exclude=*.py '^#!.*bash' scripts .ci tests; echo scripts/packages.sh)

for script in run test bench tidy format docs prose commits cross package release publish sbom agents; do
  check "$script --help" exits 0 "scripts/$script" --help
  check "$script --help says how to use it" grep -q "^Usage: scripts/$script" <<<"$said"
done
for script in test bench tidy format docs prose commits cross package release publish sbom agents; do
  check "$script --nonsense" exits 2 "scripts/$script" --nonsense
done
check "test --only nonsense" exits 2 scripts/test --only nonsense

# A release is refused before anything is built.
version=$(sed -n 's/^project(watchdog VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
check "release without a version" exits 2 scripts/release
check "release of no version" exits 2 scripts/release "v$version"
check "release of another version" exits 1 scripts/release 9.9.9
check "then it names both" grep -q "$version.*9.9.9" <<<"$said"

# A machine on which only `here` is installed; what is done to it goes to $work/done.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stub() { printf '#!/bin/bash\n%s\n' "$2" >"$work/$1"; chmod +x "$work/$1"; }
stub dpkg-query 'if [[ ${*: -1} == here ]]; then echo installed; else echo not-installed; exit 1; fi'
stub apt-get 'echo "$@" >>"${0%/*}/done"'
stub id 'echo "${TEST_UID:-0}"'
stub sudo 'exit 1'
ensure() { PATH=$work:$PATH bash -c '. scripts/packages.sh; ensure_packages "$@"' - "$@"; }

check "nothing is missing" exits 0 ensure here
check "then nothing is done" test ! -e "$work/done"
TEST_UID=1000 check "no rights" exits 3 ensure here absent1 absent2
check "then it says what to do" grep -q 'apt-get install .* absent1 absent2$' <<<"$said"
check "then nothing is done" test ! -e "$work/done"
check "something is missing" exits 0 ensure here absent
check "one line says so" test "$said" = "Installing absent"
check "one update" test "$(grep -c ' update$' "$work/done")" = 1
check "one install" grep -q ' install .*--no-install-recommends absent$' "$work/done"
stub apt-get 'echo "$@" >>"${0%/*}/done"; exit 100'
stub sleep ''
check "apt fails" exits 3 ensure absent

# Which Boost a Debian has: here grep finds no Debian 12, and there it does.
named() { PATH=$work:$PATH bash -c '. scripts/packages.sh; echo "${build_packages[*]} ${test_packages[*]}"'; }
stub grep 'exit 1'
check "a newer Debian has Boost.URL as a library" bash -c '[[ " $1 " == *" libboost-dev libboost-url-dev "* && $1 != *1.81* && $1 != *clang-format* ]]' - "$(named)"
stub grep 'exit 0'
check "Debian 12 has two Boosts" bash -c '[[ " $1 " == *" libboost1.81-dev "* && $1 != *boost-url* && $1 == *clang-format-14* ]]' - "$(named)"
rm "$work/grep"

# scripts/test tells a sanitizer's fault from its note.
eval "$(sed -n '/^sanitizer_fault=/,/^}/p' scripts/test)"
written_kind() {  # written_kind TEXT
  mkdir -p "$work/build/asan"
  printf '%s\n' "$1" >"$work/build/asan/sanitizer-report.1"
  (cd "$work" && report_sanitizers asan) | sed -n 's/^== asan: a sanitizer \([a-z]*\) .*/\1/p'
}
while IFS='|' read -r kind text; do
  check "'$text' is one of the $kind" test "$(written_kind "$text")" = "$kind"
done <<'TABLE'
notes|==9648==Unable to get registers from thread 9642.
notes|==9648==WARNING: AddressSanitizer failed to allocate 0x80000000000 bytes
reports|==1==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000010
reports|==1==ERROR: LeakSanitizer: detected memory leaks
reports|==1==LeakSanitizer has encountered a fatal error.
reports|AddressSanitizer: CHECK failed: asan_thread.cpp:367
reports|WARNING: ThreadSanitizer: data race (pid=1)
reports|FATAL: ThreadSanitizer: unexpected memory mapping
reports|store.cpp:10:3: runtime error: signed integer overflow
reports|SUMMARY: UndefinedBehaviorSanitizer: undefined-behavior store.cpp:10:3
TABLE
check "an empty file is nothing" test -z "$(: >"$work/build/asan/sanitizer-report.1"; cd "$work"; report_sanitizers asan)"

((failures == 0)) && echo "ok"
