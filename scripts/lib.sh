# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# Shared by the bash scripts of this folder: paths, messages, the kernel base, git.
#
# Sourced, never run. Sets ROOT (this clone), B (its build folder), TREE (the
# generated kernel tree) and BASE_PACKAGE, BASE_VERSION, BASE_SHA256. After
# use_emulator they mean the emulator's tree and its base.

# shellcheck disable=SC2034 # used by the scripts that source this file

unset CDPATH
ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P) || exit 1
# Without it the paths below would be those of the root folder.
B=$("$ROOT/scripts/paths") || exit 1
[[ $B == /* ]] || exit 1
TREE=$B/linux
LOGS=$B/logs
HOOKS=$ROOT/kernel/hooks
OVERLAY=$ROOT/kernel/src
# Messages call the part by name: its folder here, the make targets, the licence of
# the hooks.
PART=kernel
MAKE_TREE="make tree"
MAKE_SAVE="make save"
HOOKS_LICENCE=GPL-2.0-only

# One line on what is going on; standard output stays for results.
say() {
	printf '%s\n' "$*" >&2
}

# die MESSAGE: one line that says what to do, exit status 1.
die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# require_plain_path: what we build with the build systems of others takes no space there.
require_plain_path() {
	[[ $B != *[[:space:]:]* ]] || die "nothing can be built in '$B', whose path has a space or a" \
		"colon: set CEASEFIRE_BUILD to another folder"
}

# usage TEXT: wrong use, exit status 2.
usage() {
	printf 'usage: %s\n' "$*" >&2
	exit 2
}

read -r BASE_PACKAGE BASE_VERSION BASE_SHA256 <"$ROOT/kernel/BASE"
BASE_SHA256=${BASE_SHA256#sha256:}
# The upstream part of the version names the patch: 6.12.117-1~deb12u1 -> 6.12.117
BASE_UPSTREAM=${BASE_VERSION%%-*}
# CEASEFIRE_SOURCE: the tarball, for machines without the Debian package
BASE_TARBALL=${CEASEFIRE_SOURCE:-/usr/src/$BASE_PACKAGE.tar.xz}

# use_ccache: its objects serve every clone and every user. What a file depends on
# it takes from the compiler; running the preprocessor first is a quarter of a build.
use_ccache() {
	export CCACHE_BASEDIR=$B CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
	# It tells results in different languages apart.
	unset LC_ALL LC_CTYPE LC_MESSAGES LANGUAGE
	export LANG=C.UTF-8
}

# use_emulator: from here on tree, hooks, overlay and base are those of the emulator.
use_emulator() {
	PART=emulator
	TREE=$B/qemu/tree
	HOOKS=$ROOT/emulator/hooks
	OVERLAY=$ROOT/emulator/src
	MAKE_TREE="make emulator-tree"
	MAKE_SAVE="make emulator-save"
	HOOKS_LICENCE=GPL-2.0-or-later
	read -r BASE_PACKAGE BASE_VERSION BASE_SHA256 BASE_SUITE <"$ROOT/emulator/BASE"
	BASE_SHA256=${BASE_SHA256#sha256:}
	# The upstream part, without the epoch: 1:10.0.13+ds-0+deb13u1 -> 10.0.13+ds
	BASE_UPSTREAM=${BASE_VERSION#*:}
	BASE_UPSTREAM=${BASE_UPSTREAM%-*}
	# CEASEFIRE_QEMU_SOURCE: the tarball, for machines that cannot download it
	BASE_TARBALL=${CEASEFIRE_QEMU_SOURCE:-$B/qemu/download/qemu_$BASE_UPSTREAM.orig.tar.xz}
}

# The clone and the tree may belong to another user than the one who builds
# (sudo make demo). Tell git so by its environment, for these scripts only; and
# keep settings of the user (diff format, signing, hooks) out of what is generated.
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
_n=0
for _setting in "safe.directory=*" "core.hooksPath=/dev/null" "gc.auto=0" \
	"advice.detachedHead=false"; do
	export "GIT_CONFIG_KEY_$_n=${_setting%%=*}" "GIT_CONFIG_VALUE_$_n=${_setting#*=}"
	_n=$((_n + 1))
done
export GIT_CONFIG_COUNT=$_n
unset _n _setting GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE

# shellcheck source=scripts/lib-folder.sh
. "$ROOT/scripts/lib-folder.sh"

# The hooks of the series in order, comments and empty lines left out.
series() {
	[[ -f $HOOKS/series ]] || return 0
	sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' "$HOOKS/series"
}

# The overlay's files relative to its root; editor leftovers are not files.
overlay_files() {
	[[ -d $OVERLAY ]] || return 0
	(cd "$OVERLAY" && find . -type f ! -name '*~' ! -name '.*.sw?' ! -name '*.orig' \
		! -name '*.rej' ! -path '*/__pycache__/*' -printf '%P\n' | LC_ALL=C sort)
}
