#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Boots systemd as PID 1 of namespaces of its own, with a folder of units and nothing else, and
# returns when go.target has ended: boot-systemd.sh UNITS PROGRAM...
#
# The programs are put into /usr/local/libexec/ceasefire and /usr/local/bin there. Only what is in /tmp
# is seen outside; /usr/local, /run and the units of this machine are hidden. Takes the rights of root.
set -eu

if [ "$1" != --inside ]; then
	cgroups=$(sed -n 's/^[^ ]* \([^ ]*\) cgroup2 .*/\1/p' /proc/mounts | head -n 1)
	if [ -z "$cgroups" ]; then
		cgroups=$(mktemp -d)
		mount -t cgroup2 cgroup2 "$cgroups"
	fi
	before=$(sed -n 's/^0:://p' /proc/self/cgroup)
	# systemd moves all processes of its cgroup, which must not be anybody else's.
	own=$cgroups/ceasefire-test-$$
	mkdir "$own"
	echo $$ >"$own/cgroup.procs"
	status=0
	timeout -s KILL 900 unshare -fpmC --mount-proc --kill-child sh "$0" --inside "$@" || status=$?
	echo $$ >"$cgroups$before/cgroup.procs"
	# The last processes are on their way out.
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		find "$own" -depth -type d -exec rmdir {} + 2>/dev/null && break
		sleep 0.2
	done
	exit "$status"
fi

units=$2
shift 2
mount --make-rprivate /
sed -n 's/^[^ ]* \(\/sys\/fs\/cgroup[^ ]*\) .*/\1/p' /proc/mounts | sort -r |
	while read -r folder; do umount -l "$folder"; done
mount -t cgroup2 cgroup2 /sys/fs/cgroup
programs=$(mktemp -d /tmp/ceasefire-programs.XXXXXX)
cp "$@" "$programs"
for folder in /run /usr/local /etc/systemd/system; do
	mount -t tmpfs tmpfs "$folder"
done
mkdir -p /usr/local/libexec/ceasefire /usr/local/bin
cp "$programs"/* /usr/local/libexec/ceasefire
cp "$programs"/* /usr/local/bin
rm -r "$programs"
cp -R "$units"/. /etc/systemd/system
# What is set here, PID 1 takes for itself: no units of this machine, no terminal.
export container=other SYSTEMD_UNIT_PATH=/etc/systemd/system
exec /lib/systemd/systemd --system --unit=go.target --log-target=console --log-level=notice \
	--show-status=no </dev/null
