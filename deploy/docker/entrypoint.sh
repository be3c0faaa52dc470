#!/bin/sh
# Starts one process of Penstock, which takes the place of this shell and so gets the signals.
set -eu

usage() {
  cat >&2 <<'USAGE'
usage: docker run IMAGE COMMAND
  edge [--listen http|grpc]   accepts telemetry, replay chunks and source maps; without --listen, by both protocols
  workers [--pools a,b]       store what was accepted; without --pools, all queues
  api                         answers reads
  migrate [--force]           migrates ClickHouse to the schema of this version
  penstock ...                the commands of operators (penstock --help)
Settings are environment variables, listed in deploy/env.example. Another COMMAND is run as it is.
USAGE
  exit 64
}

command=${1:-help}
[ $# -eq 0 ] || shift
case $command in
  # Nearly all garbage of an edge is short-lived. In a young generation of the default size it takes 40 MB more, and no less CPU.
  edge) exec node --max-semi-space-size=2 /app/ingest/main.ts "$@" ;;
  workers) exec node /app/workers/main.ts "$@" ;;
  api) exec node /app/api/main.ts "$@" ;;
  migrate) exec node /app/clickhouse/migrate/main.ts "$@" ;;
  penstock) exec node /app/cli/penstock.mjs "$@" ;;
  *)
    command -v "$command" >/dev/null || usage
    exec "$command" "$@"
    ;;
esac
