#!/bin/sh
# Makes the table of the synthetic world in docs/results.md, in about four hours of one core.
set -eu
at() { target/release/atelier-training "$@"; }
at synthesise --seed 1 --articles 6000 --customers 24000 --outfits 76000 --validation 3400 --out data/fifth
for seed in 1 2 3 4 5; do for method in none c np gs gsu; do
  at fit --method $method --seed $seed --data data/fifth --epochs 20 --patience 20 --learning-rate 0.001 --set fit.calibrate=false \
    --set model.dropout_elsewhere=0.0 --set fit.drop_profile=0.0 --set fit.drop_feature=0.0
done; done
for seed in 1 2 3; do at fit --method match --seed $seed --data data/fifth --set fit.calibrate=false; done
cargo run --release -q -p atelier-training --example research -- oracle --data data/fifth --slots 1000 --customers 20000 --json oracle.json
at evaluate --data data/fifth --runs runs/fifth/* --out all.json
at table --runs runs/fifth/* --baselines all.json --oracle oracle.json --json fifth.json
