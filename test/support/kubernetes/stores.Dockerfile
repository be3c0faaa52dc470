# The stores of the tests on Kubernetes, where their images cannot be pulled: Redis of Debian, and what `npm start` uses as ClickHouse
# and S3.
FROM node:22-bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends redis-server && rm -rf /var/lib/apt/lists/*
WORKDIR /stores
ARG PACKAGES
RUN npm install --ignore-scripts --no-audit --no-fund --cache /tmp/npm ${PACKAGES} && rm -rf /tmp/npm
COPY clickhouse-server.mjs s3-server.mjs forget-lost-parts.sh ./
