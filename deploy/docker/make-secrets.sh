#!/bin/sh
# Creates the passwords and keys of compose.yaml in secrets/, each once: what is there stays. Needs openssl.
# Containers run as users of their own, so the files may be read by all. The directory may not be entered by others.
set -eu
umask 077
directory=${1:-$(dirname "$0")/secrets}
mkdir -p "$directory/tls"
cd "$directory"

# Writes standard input to a file that does not exist yet.
keep() {
  if [ -e "$1" ]; then cat >/dev/null; else cat >"$1.new" && mv "$1.new" "$1"; fi
}
random() { openssl rand -hex 24; }

for name in redis_password directory_redis_password clickhouse_password s3_secret_access_key grafana_password; do
  random | tr -d '\n' | keep "$name"
done
openssl rand -hex 10 | tr -d '\n' | keep s3_access_key_id
for name in key_pepper directory_backup_key; do
  openssl rand -base64 32 | tr -d '\n' | keep "$name"
done

printf 'redis://default:%s@redis:6379' "$(cat redis_password)" | keep redis_url
printf 'redis://default:%s@directory:6379' "$(cat directory_redis_password)" | keep directory_redis_url
keep clickhouse_users.xml <<X
<clickhouse>
  <users>
    <default remove="remove"/>
    <penstock>
      <password_sha256_hex>$(printf %s "$(cat clickhouse_password)" | openssl dgst -sha256 -r | cut -d ' ' -f 1)</password_sha256_hex>
      <networks><ip>::/0</ip></networks>
      <profile>default</profile>
      <quota>default</quota>
    </penstock>
  </users>
</clickhouse>
X
keep s3.json <<X
{
  "identities": [
    {
      "name": "penstock",
      "credentials": [{ "accessKey": "$(cat s3_access_key_id)", "secretKey": "$(cat s3_secret_access_key)" }],
      "actions": ["Admin", "Read", "List", "Tagging", "Write"]
    }
  ]
}
X

# The key of session tokens, for installations without an identity provider: `penstock token` signs with it.
openssl genpkey -algorithm ed25519 2>/dev/null | keep auth_private_key
openssl pkey -in auth_private_key -pubout | keep auth_public_key
printf '{"authPrivateKey":"%s"}' "$(awk '{ printf "%s\\n", $0 }' auth_private_key)" | keep secrets.json

# A certificate for this machine. Clients outside of it need one that they trust, in the same two files.
if [ ! -e tls/certificate.pem ]; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 825 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout tls/key.pem -out tls/certificate.pem 2>/dev/null
fi

chmod 644 ./*
chmod 755 tls
chmod 644 tls/*
chmod 600 auth_private_key
