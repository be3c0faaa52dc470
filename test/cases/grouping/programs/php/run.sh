#!/bin/sh
# $1: first or second version of the sources. In two folders of deployments.
set -e
php /srv/shop/shop.php
mkdir -p /home/deploy/shop/releases/20260304120000
cp /srv/shop/shop.php /home/deploy/shop/releases/20260304120000/
php /home/deploy/shop/releases/20260304120000/shop.php | sed 's/"scenario":"/&deployed:/'
