#!/bin/sh
# $1: first or second version of the sources. From the class path, and as a named module with a version.
set -e
cd /srv/shop
mkdir -p src/com/shop/users src/com/shop/orders classes
mv Shop.java src/com/shop/
for room in users orders; do
  echo "package com.shop.$room; public class NotFound extends RuntimeException {
    public NotFound(String id) { super(\"not found: \" + id); } }" > src/com/shop/$room/NotFound.java
done
javac -g -d classes $(find src -name '*.java')
java -XX:MaxJavaStackTraceDepth=100 -cp classes com.shop.Shop
java -XX:MaxJavaStackTraceDepth=100 -cp classes com.shop.Shop 3 | sed 's/"scenario":"/&proxies:/'
echo 'module com.shop { requires java.net.http; requires java.sql; }' > src/module-info.java
javac -g --module-version "$1.$1" -d modules/com.shop $(find src -name '*.java')
java -XX:MaxJavaStackTraceDepth=100 -p modules -m com.shop/com.shop.Shop | sed 's/"scenario":"/&module:/'
