#!/bin/sh
# Runs the S3 server of `npm start` for other containers. It reads its settings from stdin, and ends with it.
set -eu
mkfifo /tmp/lifeline
exec 3<>/tmp/lifeline
printf '{"host":"0.0.0.0","hostname":"s3","dir":"/data","port":8333,"bucket":"penstock","accessKeyId":"%s","secretAccessKey":"%s"}\n' \
  "$(cat /run/secrets/s3_access_key_id)" "$(cat /run/secrets/s3_secret_access_key)" >&3
exec node /checkout/deploy/local/stores/s3-server.mjs </tmp/lifeline
