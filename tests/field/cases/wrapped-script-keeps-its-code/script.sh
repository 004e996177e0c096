#!/bin/bash
for n in $(seq 250); do echo "row $n"; done
echo "the last row: frost"; exit 3
