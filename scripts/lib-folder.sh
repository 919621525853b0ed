# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# The build folder as a place that may be cleaned up: whose it is, and who is using it.
#
# A marker says that the folder is ours, so that cleaning up removes nothing else. Who uses
# the folder holds a shared lock on it, who cleans it up an exclusive one; parts of it have
# locks of their own. cli/ceasefire/build_folder.py does the same for Python. Sourced by lib.sh.

MARKER=$B/.ceasefire-build
# The removal of the whole folder has begun.
REMOVING=$B/.removing

# at_or_above FOLDER PATH: is PATH the folder itself, or something in it?
at_or_above() {
	[[ $1 == / || $2 == "$1" || $2 == "$1"/* ]]
}

# refuse_precious: the build folder may be none that has more than what is built in it.
refuse_precious() {
	local real precious
	real=$(realpath -m -- "$B")
	for precious in "$ROOT" "${HOME:-/}"; do
		precious=$(realpath -m -- "$precious")
		! at_or_above "$real" "$precious" ||
			die "$B has $precious in it, so it cannot be a build folder: set CEASEFIRE_BUILD to another"
	done
}

# Make the build folder, or say why that is impossible.
need_build_folder() {
	refuse_precious
	if ! mkdir -p -- "$B" 2>/dev/null || [[ ! -w $B ]]; then
		die "cannot write to $B: chown it to $(id -un), or set CEASEFIRE_BUILD"
	fi
	# It says so when strangers can change what is there.
	"$ROOT/scripts/paths" --built . >/dev/null || exit 1
	if [[ ! -f $MARKER || -L $MARKER ]]; then
		# The place that scripts/paths has made up is ours in any case.
		[[ -z ${CEASEFIRE_BUILD:-} || -z $(find "$B" -mindepth 1 -maxdepth 1 -print -quit) ]] ||
			die "$B has files that are not of ceasefire: set CEASEFIRE_BUILD to a new or empty" \
				"folder (or 'touch $MARKER' if all in it may be removed)"
		! new_file "$MARKER" || printf '%s\n' "$ROOT" >"$MARKER"
	fi
	if ! mkdir -p -- "$LOGS" 2>/dev/null || [[ ! -w $LOGS ]]; then
		die "cannot write to $LOGS: chown it to $(id -un), or set CEASEFIRE_BUILD"
	fi
}

# new_file FILE: make it, empty, unless something is there. A link is not followed.
new_file() {
	[[ ! -e $1 && ! -L $1 ]] && (set -o noclobber && : >"$1") 2>/dev/null
}

# open_lock FILE: sets LOCK_FD. What another has planted there is neither followed nor changed
# nor waited for: the file is made anew or opened for reading, and looked at afterwards.
open_lock() {
	local opened old
	new_file "$1" || true
	[[ -f $1 && ! -L $1 ]] || die "$1 is no lock of ceasefire (no plain file): remove it"
	exec {LOCK_FD}<"$1" || die "cannot open $1: chown it to $(id -un)"
	opened=$(stat -L -c %d:%i "/proc/self/fd/$LOCK_FD")
	[[ $opened == "$(stat -c %d:%i -- "$1" 2>/dev/null)" ]] || return 1
	# File systems of the network lock only what is open for writing.
	old=$LOCK_FD
	if [[ -w /proc/self/fd/$old ]]; then
		exec {LOCK_FD}<>"/proc/self/fd/$old" {old}<&-
	fi
}

# lock_file FILE MODE WHAT: hold it until exit; MODE is -s or -x.
lock_file() {
	local waited=0
	while :; do
		# A file that was removed meanwhile, with the whole folder, locks nothing.
		need_build_folder
		if open_lock "$1"; then
			if ! flock -n "$2" "$LOCK_FD"; then
				[[ $waited -eq 1 ]] || say "waiting for $3 in $B ..."
				waited=1
				flock -w 7200 "$2" "$LOCK_FD" || die "$3 has run for two hours: end it first"
			fi
			[[ $(stat -L -c %h "/proc/self/fd/$LOCK_FD") -eq 0 ]] || return 0
		fi
		exec {LOCK_FD}<&-
	done
}

# use_build_folder: nobody cleans it up until exit.
use_build_folder() {
	lock_file "$B/.lock" -s "its cleaning up"
	rm -f -- "$REMOVING"
}

# with_lock NAME: one user of a part of the build folder at a time; held until exit.
with_lock() {
	use_build_folder
	lock_file "$B/.lock-$1" -x "another '$1' step"
}

# lock_all: nobody else uses the folder; held until exit.
lock_all() {
	local file
	for file in "$B/.lock" "$B"/.lock-*; do
		[[ $file != "$B/.lock-*" ]] || continue
		open_lock "$file" || die "$B is being changed: repeat when that has ended"
		flock -n -x "$LOCK_FD" ||
			die "$B is in use (somebody holds $file): wait for that, or end it"
	done
}
