# One monitor with a proxy before a small model; a wrapped client asks once.
python3 model.py >model &
model=$!
until read -r port <model; do sleep 0.1; done 2>/dev/null
"$MONITOR" serve --db "$DB" --port 0 --no-checks --no-probe --upstream "http://127.0.0.1:$port" --proxy-port 0 >served 2>log &
monitor=$!
trap 'kill $model $monitor' EXIT
until grep -q 'their model at' served; do sleep 0.1; kill -0 $monitor || exit 9; done
url=$(grep -om1 'listening on http[^ ]*' served | cut -d' ' -f3)
proxy=$(grep -o 'their model at http://[0-9.:]*' served | cut -d' ' -f4)
"$MONITOR" run --server "$url" --session outer -- python3 client.py "$proxy"
sleep 0.5
echo "$("$MONITOR" sessions --server "$url" --json | wc -l) session"
