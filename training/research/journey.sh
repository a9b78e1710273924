#!/bin/sh
# Makes the tables of docs/results/complete-journey.md, and those of new articles.
set -eu
at() { target/release/atelier-training "$@"; }
python3 training/research/complete_journey.py data/groceries
at import data/groceries --out data/journey
at evaluate --data data/journey --out baselines.json
for seed in 1 2 3; do
  for method in none c np gs gsu; do
    at fit --data data/journey --method $method --seed $seed --epochs 15 --patience 15 --learning-rate 0.001 \
      --set fit.drop_profile=0.0 --set fit.drop_feature=0.0
  done
  at fit --data data/journey --method match --seed $seed
done
at evaluate --data data/journey --runs runs/journey/* --baselines baselines.json --out all.json
python3 training/research/vary.py --data data/journey --withhold 0.1 --out data/journey-new
for seed in 1 2 3; do for data in journey-new journey; do
  at fit --data data/$data --method match --seed $seed --epochs 10 --patience 10 --run runs/$data/new-$seed
done; done
at evaluate --data data/journey-new --runs runs/journey-new/new-*
at evaluate --data data/journey --runs runs/journey/new-* --new-in data/journey-new
