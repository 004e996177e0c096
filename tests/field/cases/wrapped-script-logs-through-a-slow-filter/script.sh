#!/bin/bash
exec > >(while IFS= read -r row; do sleep 0.02; echo "> $row"; done) 2>&1
for n in $(seq 60); do echo "row $n"; done
echo "the last row: frost"; exit 3
