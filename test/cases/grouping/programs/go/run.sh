#!/bin/sh
# $1: first or second version of the sources. Two versions of the SDK, and builds with other flags.
set -e
export GOFLAGS=-mod=mod GOMODCACHE=/home/deploy/go/pkg/mod GOTOOLCHAIN=local
cd /srv/shop
[ "$1" = 1 ] || sed -i 's/v1\.46\.0/v1.47.0/' go.mod
go mod tidy >&2
go build -o shop . && ./shop
go build -gcflags=-l -o plain . && ./plain | sed 's/"scenario":"/&no-inlining:/'
go build -trimpath -o trimmed . && ./trimmed | sed 's/"scenario":"/&trimmed:/'
for name in total total-other goroutine own parent error walk walk-other again again-other; do
  node "$PROGRAMS/crash.mjs" "crash-$name" ./shop "$name"
done
