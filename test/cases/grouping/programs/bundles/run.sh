#!/bin/sh
# $1: first or second version of the sources. The first is also built with a statement more at its end, for another hash.
set -e
cd /srv/shop
export NEXT_TELEMETRY_DISABLED=1 PARCEL_WORKERS=1
npm install --silent --no-audit --no-fund >&2
node build.mjs >&2
node browse.mjs | tee stacks.jsonl
node builds.mjs "$PROGRAMS/../builds" "$1" < stacks.jsonl
[ "$1" = 1 ] || exit 0
echo "console.debug('built again')" >> src/main.js
rm -rf out .next
node build.mjs >&2
node browse.mjs | sed 's/"scenario":"/&again:/'
