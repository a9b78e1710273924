#!/bin/sh
# Makes the figures of docs/orders.md.
set -eu
at() { target/release/atelier-training "$@"; }
at synthesise --articles 1000 --customers 1500 --outfits 6000 --validation 600 --out stylists
python3 training/research/orders.py judge stylists stylists by-stylists
for b in outfits mixed refills; do
  python3 training/research/orders.py make stylists theirs-$b --behaviour $b
  at import theirs-$b --orders theirs-$b/orders.csv --no-history --out bought-$b
  python3 training/research/orders.py judge bought-$b stylists by-$b
done
for d in by-stylists by-outfits by-mixed by-refills; do
  at fit --data $d --run runs/$d && at evaluate --data $d --runs runs/$d
done
python3 training/research/complete_journey.py groceries --orders 10
at import groceries --orders groceries/orders.csv --out journey
at fit --data journey && at evaluate --data journey --runs runs/journey/match-1
