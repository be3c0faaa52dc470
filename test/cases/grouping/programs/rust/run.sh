#!/bin/sh
# $1: first or second version of the sources. A build for debugging, and an optimized one without line numbers.
set -e
cd /srv/shop
rustc --edition 2021 -g --crate-name shop -o shop main.rs 2>&2
rustc --edition 2021 -O --crate-name shop -o fast main.rs 2>&2
for name in owner owner-length total total-other order-total first-with last-with share walk-2 walk-30 amount \
  amount-other count user user-other sum sum-other borrow borrow-again thread-1 thread-2 read read-other load; do
  RUST_BACKTRACE=1 node "$PROGRAMS/crash.mjs" "$name" ./shop "$name"
done
for name in owner owner-length total; do
  RUST_BACKTRACE=full node "$PROGRAMS/crash.mjs" "full-$name" ./shop "$name"
  RUST_BACKTRACE=1 node "$PROGRAMS/crash.mjs" "fast-$name" ./fast "$name"
done
for name in charge charge-other refund; do node "$PROGRAMS/crash.mjs" "$name" ./shop "$name"; done
