#!/usr/bin/env bash
# Takes the screenshots of the documentation from the demo, in light and dark.
# Usage: screenshots.sh MONITOR [FOLDER]   FOLDER: docs/images unless given
set -euo pipefail
monitor=$(realpath "$1")
folder=$(realpath "${2:-$(dirname "$0")/../images}")
home=$(mktemp -d)
export HOME=$home
: >"$home/log"
"$monitor" demo --port 0 --proxy-port 0 >"$home/log" 2>&1 &
demo=$!
trap 'kill $demo; wait $demo || true; rm -rf "$home"' EXIT
until url=$(grep -om1 'http://[0-9.:]*' "$home/log"); do kill -0 $demo; sleep 0.1; done
for goal in spinner:health=stuck looper:health=looping doomed:health=dead frozen:health=suspect; do
  "$monitor" wait "${goal%%:*}" --for "${goal#*:}" --on-stuck keep --server "$url" >/dev/null 2>&1
done
take() {  # take NAME PATH HEIGHT
  local scheme number=1
  for scheme in light dark; do
    chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --blink-settings=preferredColorScheme=$number \
      --user-data-dir="$home/$1-$scheme" --window-size=1200,"$3" --virtual-time-budget=3000 \
      --screenshot="$folder/$1-$scheme.png" "$url$2" >/dev/null 2>&1
    number=0
  done
}
take sessions / 735
take session /sessions/looper 900
# Fewer colours make the files a third as large.
if command -v pngquant >/dev/null; then pngquant --force --ext .png "$folder"/session{,s}-{light,dark}.png; fi
ls -l "$folder"/session{,s}-{light,dark}.png
