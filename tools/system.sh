#!/bin/sh
# Programs that tests drive but Python cannot bring. Missing ones make their tests skip, with the reason.
wanted="git tmux strace jq sqlite3 node:nodejs npm chromium dunst Xvfb:xvfb import:imagemagick dbus-daemon:dbus-daemon gdbus:libglib2.0-bin"
missing=""
for entry in $wanted; do
  program=${entry%%:*}
  command -v "$program" >/dev/null 2>&1 || missing="$missing ${entry##*:}"
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  echo "installing:$missing"
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null && exit 0
fi
echo "Not found:$missing. Tests that need them are skipped; to run them all: sudo apt-get install$missing"
exit 0
