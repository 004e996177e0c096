#!/usr/bin/env bash
# Has systemd look at the unit, without a systemd that runs.
set -euo pipefail

usage() { echo "Usage: unit_test.sh UNIT PROGRAM SYSTEMD_ANALYZE"; }
if (($# != 3)); then usage >&2; exit 2; fi
unit=$1 program=$2 analyze=$3
if [[ $analyze == *NOTFOUND ]]; then
  echo "there is no systemd-analyze on this machine"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Where it will be is not where it is.
sed "s|^ExecStart=[^ ]*|ExecStart=$program|" "$unit" >"$work/watchdog-monitor.service"
said=$("$analyze" verify --man=no "$work/watchdog-monitor.service" 2>&1) || { echo "$said"; exit 1; }
if [[ $said == *watchdog-monitor.service* ]]; then
  echo "$said"
  exit 1
fi
# Of 10, where 10 is a service that may do everything.
"$analyze" security --offline=yes --threshold=20 "$work/watchdog-monitor.service" | tail -2
