#!/bin/sh
# Installs the Debian packages the tests drive: a container engine, a registry, a browser, tmux and git.
# As root or through sudo; where neither is to be had, it names the one command to run and fails.
set -eu
packages="docker.io containerd iptables iproute2 docker-registry apache2-utils busybox-static openssh-server git tmux chromium"
missing=""
for package in $packages; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -z "$missing" ] && exit 0
command="apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends$missing"
if [ "$(id -u)" -eq 0 ]; then
    run="sh -c"
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    run="sudo sh -c"
else
    echo "perdure: the tests need Debian packages. Run as root, once:" >&2
    echo "  $command" >&2
    exit 1
fi
echo "perdure: installing for the tests:$missing"
$run "$command" >/tmp/perdure-apt.$$ 2>&1 || { cat /tmp/perdure-apt.$$ >&2; rm -f /tmp/perdure-apt.$$; exit 1; }
rm -f /tmp/perdure-apt.$$
