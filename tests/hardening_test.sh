#!/usr/bin/env bash
# Reads from each program given whether it was built with what makes memory faults hard to exploit.
set -euo pipefail

if (($# == 0)); then
  echo "Usage: hardening_test.sh PROGRAM..." >&2
  exit 2
fi
failed=0
# Usage: expect WHAT PATTERN TEXT
expect() {
  if ! grep -qE -- "$2" <<<"$3"; then
    echo "$program: no $1"
    failed=1
  fi
}
for program in "$@"; do
  symbols=$(nm -D --undefined-only "$program")
  dynamic=$(readelf -dW "$program")
  headers=$(readelf -hlW "$program")
  expect "stack protector (-fstack-protector-strong)" '__stack_chk_fail' "$symbols"
  expect "fortified calls (_FORTIFY_SOURCE)" '__(mem|str|printf|snprintf|read|recv|fd_).*_chk' "$symbols"
  expect "checked containers (_GLIBCXX_ASSERTIONS)" 'glibcxx_assert_fail' "$symbols"
  expect "immediate binding (-z now)" 'BIND_NOW|FLAGS_1.*NOW' "$dynamic"
  expect "read-only relocations (-z relro)" 'GNU_RELRO' "$headers"
  expect "position independence (PIE)" 'Type: *DYN' "$headers"
  if grep -qE 'GNU_STACK.*RWE' <<<"$headers"; then
    echo "$program: its stack is executable"
    failed=1
  fi
done
exit $failed
