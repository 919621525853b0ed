# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# Checks whose result follows from files: when nothing has changed since one passed, it passes.
# Sourced by check, after lib.sh.
#
# A check names what it reads in its header: `# inputs: kernel scripts`, paths of this clone as git
# takes them (`:!` leaves one out). The locked Python packages count, too, and the versions of all
# Debian packages, so of every compiler. Generated trees count as what they are made from, and have
# to be that. A pass is kept for other clones of this user, a failure never.

KEPT=${XDG_CACHE_HOME:-${HOME:-$B}/.cache}/ceasefire/checks

# made_from TREE-OPTION...: is the generated tree what its hooks and its overlay say?
made_from() {
	"$ROOT/scripts/tree" "$@" >/dev/null 2>&1 && "$ROOT/scripts/tree" "$@" --check-saved >/dev/null 2>&1
}

# kept_key SCRIPT: a hash of all that a check depends on; false if it does not say, or if that
# cannot be known.
kept_key() {
	local inputs
	read -ra inputs <<<"$(sed -n 's/^# inputs: //p' "$1" | head -n 1)"
	[[ ${#inputs[@]} -gt 0 ]] || return 1
	[[ " ${inputs[*]} " != *" kernel "* ]] || made_from || return 1
	[[ " ${inputs[*]} " != *" emulator "* ]] || made_from --emulator || return 1
	(
		set -o pipefail
		cd "$ROOT" || exit 1
		{
			echo "${1##*/}"
			dpkg-query -W -f '${Package} ${Architecture} ${Version}\n' || exit 1
			git ls-files -z --cached --others --exclude-standard -- "${inputs[@]}" requirements.txt |
				xargs -0 sha256sum -- || exit 1
		} | sha256sum | cut -d ' ' -f 1
	)
}

# is_kept KEY: has it passed?
is_kept() {
	[[ -e $KEPT/$1 ]]
}

# keep KEY: it has.
keep() {
	mkdir -p "$KEPT" && touch "$KEPT/$1"
}
