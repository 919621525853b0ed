# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# apt with a configuration of its own, for what the machine's own release does not have.
#
# The lists and the cache are in the build folder, and apt checks what it fetches as always: the
# signature of the release, checksums from there on. The machine's own apt configuration is not
# touched; the mirror is the one the machine uses. Sourced after lib.sh.

KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

# mirror: where this machine gets Debian from, in either format of apt's sources; empty if nowhere.
mirror() {
	local file
	{
		for file in /etc/apt/sources.list.d/*.sources; do
			[[ ! -f $file ]] || sed -n 's/^URIs:[[:space:]]*//p' "$file" | tr ' ' '\n'
		done
		for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
			[[ ! -f $file ]] ||
				sed -n 's/^deb \(\[[^]]*\] *\)\{0,1\}\([^ ]*\).*/\2/p' "$file"
		done
	} | grep -E '/debian/?$' | head -n 1 || true
}

# use_private_apt FOLDER URI TYPE SUITE: what private_apt works with; TYPE is deb or deb-src.
use_private_apt() {
	APT_FOLDER=$1
	mkdir -p "$1"/{sources,state,lists/partial,cache/archives/partial}
	printf '%s\n' "Types: $3" "URIs: $2" "Suites: $4" "Components: main" \
		"Architectures: amd64" "Signed-By: $KEYRING" >"$1/sources/private.sources"
}

# private_apt COMMAND WORD...: with nothing of the machine's configuration but its proxy settings,
# and as if no package were installed.
private_apt() {
	timeout 1800 "$@" \
		-o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$APT_FOLDER/sources" \
		-o Dir::State="$APT_FOLDER/state" -o Dir::State::lists="$APT_FOLDER/lists" \
		-o Dir::State::status=/dev/null -o Dir::Cache="$APT_FOLDER/cache" \
		-o APT::Get::List-Cleanup=0 -o APT::Sandbox::User= -o Acquire::Retries=3 \
		-o Acquire::Languages=none
}
