#!/bin/sh
# $1: first or second version of the sources. Two versions of requests, and a second folder of a deployment.
set -e
cd /srv/shop
[ "$1" = 1 ] && versions="requests==2.28.2 urllib3==1.26.20" || versions="requests==2.32.4 urllib3==2.5.0"
/usr/bin/python3 -m venv .venv
.venv/bin/pip install -q $versions >&2
.venv/bin/python main.py
mkdir -p /home/deploy/releases/20260304120000
cp -r main.py shop /home/deploy/releases/20260304120000/
cd /home/deploy/releases/20260304120000
/srv/shop/.venv/bin/python main.py | sed 's/"scenario": "/&deployed:/'
