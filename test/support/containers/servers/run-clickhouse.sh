#!/bin/sh
# Runs the ClickHouse of `npm start` for other containers. It ends with its stdin, which ClickHouse opens by its name.
set -eu
/opt/forget-lost-parts.sh /var/lib/clickhouse
mkfifo /tmp/lifeline
exec 3<>/tmp/lifeline
exec node /checkout/deploy/local/stores/clickhouse-server.mjs --path=/var/lib/clickhouse \
  --config-file=/etc/clickhouse-local/config.xml --listen_host=0.0.0.0 --http_port=8123 </tmp/lifeline
