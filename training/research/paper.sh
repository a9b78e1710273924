#!/bin/sh
# Makes the table of the paper's scale in docs/results.md; the GPU trains one method at a time. Without one, leave out
# --prepare and fit.py: each of the paper's methods takes about 25 minutes of two cores. A match then learns whole outfits, too.
set -eu
at() { target/release/atelier-training "$@"; }
at synthesise --seed 1 --articles 30000 --customers 120000 --outfits 380000 --validation 17000 --out data/paper
for method in none c np gs gsu match; do
  settings=
  [ $method = match ] || settings="--set model.dropout_elsewhere=0.0 --set fit.drop_profile=0.0 --set fit.drop_feature=0.0"
  at fit --method $method --seed 1 --data data/paper --run runs/paper/$method-1 --epochs 20 --patience 20 --learning-rate 0.001 \
    --set fit.calibrate=false $settings --prepare
  python3 training/pytorch/fit.py runs/paper/$method-1
done
cargo run --release -q -p atelier-training --example research -- oracle --data data/paper --slots 1000 --customers 20000 --json oracle.json
at evaluate --data data/paper --runs runs/paper/* --out all.json
at table --runs runs/paper/* --baselines all.json --oracle oracle.json --json paper.json
