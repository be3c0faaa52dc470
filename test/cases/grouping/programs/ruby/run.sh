#!/bin/sh
# $1: first or second version of the sources. In two folders of deployments.
set -e
ruby /srv/shop/shop.rb
for release in 20260304120000 20260305093000; do
  mkdir -p "/home/deploy/shop/releases/$release"
  cp /srv/shop/shop.rb "/home/deploy/shop/releases/$release/"
  ruby "/home/deploy/shop/releases/$release/shop.rb" | sed "s/\"scenario\":\"/&$release:/"
done
