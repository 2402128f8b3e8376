#!/usr/bin/env bash
# Installs the brokers that tests start for themselves. Their system services are neither started nor enabled.
set -euo pipefail
services=(mosquitto rabbitmq-server redis-server nats-server)

missing=()
for package in "${services[@]}"; do
  dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^ii' || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  sudo -n true 2>/dev/null || {
    echo "Run this as root or with sudo: $0 (installs ${missing[*]})" >&2
    exit 1
  }
  as_root=(sudo)
fi

# Debian's own switch: with it, no package may start a service while it is installed.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod 755 "$policy"
  trap '"${as_root[@]}" rm -f "$policy"' EXIT
fi
echo "Installing ${missing[*]} ..."
"${as_root[@]}" apt-get update -qq >/dev/null
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
if [ -d /run/systemd/system ]; then
  "${as_root[@]}" systemctl disable --quiet "${missing[@]}"
fi
