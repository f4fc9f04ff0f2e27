#!/bin/sh
# Install the Debian packages named as arguments, those that are missing.
set -eu

missing=
for package in "$@"; do
    state=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "please install these packages (the names are Debian's):$missing" >&2
    exit 1
fi
as_root=
if [ "$(id -u)" -ne 0 ]; then
    as_root=sudo
    if ! command -v sudo >/dev/null; then
        echo "please install these packages as root: apt-get install$missing" >&2
        exit 1
    fi
fi
echo "installing$missing"
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -qq
# shellcheck disable=SC2086 # one word a package
$as_root apt-get install -qq --yes --no-install-recommends $missing >/dev/null
