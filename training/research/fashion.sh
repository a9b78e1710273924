#!/bin/sh
# Makes the table of stylists' outfits in docs/results.md from a clone that training/examples/fashion.py names:
#     training/research/fashion.sh hackathon-Mango_Challenge
set -eu
at() { target/release/atelier-training "$@"; }
python3 training/examples/fashion.py mango "$1" theirs/mango
at import theirs/mango --out data/mango --no-history
at evaluate --data data/mango --out baselines.json
for seed in 1 2 3; do at fit --method match --seed $seed --data data/mango; done
at evaluate --data data/mango --runs runs/mango/* --baselines baselines.json --out all.json
