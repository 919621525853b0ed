# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# The folder that Debian packages are put into. Sourced by deb and deb-kernel after lib.sh.

# is_package FILE: is it something that the build of packages makes?
is_package() {
	case ${1##*/} in
	*.deb | *.dsc | *.tar.xz | *.buildinfo | *.changes) [[ -f $1 && ! -L $1 ]] ;;
	*) false ;;
	esac
}

# need_package_folder FOLDER: it must be new, empty, or have packages of an earlier call only, which
# are replaced.
need_package_folder() {
	local file
	[[ -e $1 ]] || return 0
	[[ -d $1 ]] || die "--out $1: that is no folder"
	while IFS= read -r -d '' file; do
		is_package "$file" ||
			die "--out $1: ${file##*/} there is no package: choose a new folder"
	done < <(find "$1" -mindepth 1 -maxdepth 1 -print0)
}
