#!/usr/bin/env bash
# Makes debian:bookworm-slim and node:22-bookworm-slim where they cannot be pulled: of Debian's packages, and of Node and npm from
# npm. As root, with Docker's engine and mmdebstrap. An image that is there, or can be pulled, stays as it is.
set -euo pipefail

has() { docker image inspect "$1" >/dev/null 2>&1 || docker pull -q "$1" >/dev/null 2>&1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

has debian:bookworm-slim || {
  mmdebstrap --quiet --variant=minbase --include=ca-certificates --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' bookworm debian.tar
  docker import --change 'CMD ["bash"]' debian.tar debian:bookworm-slim >/dev/null
  rm debian.tar
}

has node:22-bookworm-slim || {
  case $(uname -m) in aarch64) arch=arm64 ;; *) arch=x64 ;; esac
  mkdir node npm
  tar xzf "$(npm pack --silent "node-linux-$arch@22" | tail -n 1)" -C node --strip 1
  tar xzf "$(npm pack --silent npm@10 | tail -n 1)" -C npm --strip 1
  # The certificates of this machine: what npm trusts outside of a container it must trust inside too.
  cp "${NODE_EXTRA_CA_CERTS:-/etc/ssl/certs/ca-certificates.crt}" ca-certificates.crt
  cat >Dockerfile <<'D'
FROM debian:bookworm-slim
COPY node/bin/node /usr/local/bin/
COPY npm /usr/local/lib/node_modules/npm
COPY ca-certificates.crt /etc/ssl/certs/
RUN apt-get update && apt-get install -y --no-install-recommends libstdc++6 && rm -rf /var/lib/apt/lists/* \
  && ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm \
  && mkdir -p /usr/local/etc && echo cafile=/etc/ssl/certs/ca-certificates.crt > /usr/local/etc/npmrc \
  && groupadd -g 1000 node && useradd -u 1000 -g node -m node
CMD ["node"]
D
  # Debian's engine has no other builder.
  DOCKER_BUILDKIT=0 docker build -q -t node:22-bookworm-slim . >/dev/null
}
docker images --format '{{.Repository}}:{{.Tag}} {{.Size}}' | grep -E '^(debian:bookworm-slim|node:22-bookworm-slim) '
