# The servers of compose.yaml where their images cannot be pulled: Debian's packages. ClickHouse and S3 are those of `npm start`,
# from the packages of this checkout, which compose.local.yaml mounts.
FROM node:22-bookworm-slim
RUN apt-get update \
  && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends redis-server redis-tools nginx-light prometheus wget \
  && rm -rf /var/lib/apt/lists/* \
  && install -d -o 999 -g 999 /data && install -d -o 101 -g 101 /var/lib/clickhouse && install -d -o 65534 -g 65534 /prometheus
COPY servers/*.sh /usr/local/bin/
