# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# Leaves relative and empty entries out of PATH: they mean the current folder, which may be
# that of somebody else. Sourced by paths and python, which are called from everywhere, before
# they start any program; programs that they start search in the same PATH.

_path=
_rest=${PATH:-}:
while [ -n "$_rest" ]; do
	_folder=${_rest%%:*}
	_rest=${_rest#*:}
	case $_folder in
	/*) _path=$_path${_path:+:}$_folder ;;
	esac
done
PATH=${_path:-/usr/sbin:/usr/bin:/sbin:/bin}
export PATH
unset _path _rest _folder CDPATH
