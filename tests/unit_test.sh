#!/usr/bin/env bash
# Has systemd look at the units, without a systemd that runs.
set -euo pipefail

usage() { echo "Usage: unit_test.sh UNIT USER_UNIT PROGRAM SYSTEMD_ANALYZE"; }
if (($# != 4)); then usage >&2; exit 2; fi
unit=$1 user_unit=$2 program=$3 analyze=$4
if [[ $analyze == *NOTFOUND ]]; then
  echo "there is no systemd-analyze on this machine"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Where it will be is not where it is.
verify() {  # verify UNIT OPTION...
  local said
  sed "s|^ExecStart=[^ ]*|ExecStart=$program|" "$1" >"$work/watchdog-monitor.service"
  said=$("$analyze" verify --man=no "${@:2}" "$work/watchdog-monitor.service" 2>&1) || { echo "$said"; exit 1; }
  if [[ $said == *watchdog-monitor.service* ]]; then
    echo "$said"
    exit 1
  fi
}
XDG_RUNTIME_DIR=$work verify "$user_unit" --user
verify "$unit"
# Of 10, where 10 is a service that may do everything.
"$analyze" security --offline=yes --threshold=20 "$work/watchdog-monitor.service" | tail -2
