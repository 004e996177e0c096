#!/bin/bash
exec > >(tee -a rows.log) 2>&1
for n in $(seq 250); do echo "row $n"; done
echo "the last row: frost"; exit 3
