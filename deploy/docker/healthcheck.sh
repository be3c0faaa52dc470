#!/bin/bash
# Succeeds while the process of this container is alive. `healthcheck.sh readyz` succeeds while it is ready too.
# Bash opens the connection itself: another Node for each check would take 40 MB of the container's memory.
# The command of the container is that of its first process, also below an init. Commands that end have no port to ask.
set -u

case " $(tr '\0' ' ' </proc/1/cmdline)" in
  */ingest/main.ts* | *' edge '*) port=${INGEST_ADMIN_PORT:-4319} ;;
  */workers/main.ts* | *' workers '*) port=${WORKERS_ADMIN_PORT:-4302} ;;
  */api/main.ts* | *' api '*) port=${API_ADMIN_PORT:-4301} ;;
  *) exit 0 ;;
esac
host=${ADMIN_BIND_HOST:-127.0.0.1}
[ "$host" != 0.0.0.0 ] || host=127.0.0.1

exec 3<>"/dev/tcp/$host/$port" || exit 1
printf 'GET /%s HTTP/1.0\r\nHost: localhost\r\n\r\n' "${1:-livez}" >&3
IFS= read -r -t 2 status <&3 || exit 1
case $status in *' 200 '*) exit 0 ;; esac
# The reason is in the body, after the empty line. Docker keeps it with the health of the container.
sed '1,/^\r*$/d' <&3
exit 1
