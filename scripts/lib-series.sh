# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# Everything as one line of commits, for people who read patches. Sourced by make-series and
# check-series; wants lib.sh and lib-hooks.sh.
#
# kernel/series/order says what becomes a commit: files of the overlay, with the message in
# kernel/series/NAME, and hooks. Works on an index alone: the files of the tree are not touched.

# shellcheck disable=SC2153 # TREE comes from lib.sh

SERIES=$ROOT/kernel/series

# series_message NAME: the commit message of files; its head is for us.
series_message() {
	sed '1,/^$/d' "$SERIES/$1"
}

# series_head NAME FIELD: a line of the head, empty when there is none.
series_head() {
	sed -n "/^\$/q; s/^$2: *//p" "$SERIES/$1"
}

# series_files NAME: the overlay files that are this one's. In a pattern * is any name, ** any path.
series_files() {
	local patterns
	patterns=$(series_head "$1" Paths)
	overlay_files | awk -v patterns="$patterns" '
		BEGIN {
			n = split(patterns, list, " ")
			for (i = 1; i <= n; i++) {
				gsub(/[.]/, "[.]", list[i])
				gsub(/\*\*/, "\001", list[i])
				gsub(/\*/, "[^/]*", list[i])
				gsub(/\001/, ".*", list[i])
			}
		}
		{
			for (i = 1; i <= n; i++)
				if ($0 ~ "^" list[i] "$") {
					print
					next
				}
		}'
}

# without_options FILE OPTION...: a Kconfig file without the entries of these options.
without_options() {
	local file=$1
	shift
	awk -v options="$*" '
		BEGIN { n = split(options, list, " "); for (i = 1; i <= n; i++) gone[list[i]] = 1 }
		/^(menu|endmenu|if|endif|source|comment|choice|endchoice|#|config|menuconfig)/ {
			skip = $1 ~ /config$/ && $2 in gone
		}
		!skip' "$file"
}

# add_files NAME TMP: the files of NAME into the index.
add_files() {
	local name=$1 tmp=$2 file mode id options
	read -ra options < <(series_head "$name" Without) || true # none is an answer
	series_files "$name" >"$tmp/named"
	[[ -s $tmp/named ]] || die "kernel/series/$name names no file: mend its line 'Paths:'"
	while IFS= read -r file; do
		mode=100644
		[[ ! -x $OVERLAY/$file ]] || mode=100755
		if [[ ${#options[@]} -gt 0 && ${file##*/} == Kconfig ]]; then
			id=$(without_options "$OVERLAY/$file" "${options[@]}" |
				git -C "$TREE" hash-object -w --stdin)
		else
			id=$(git -C "$TREE" hash-object -w --no-filters "$OVERLAY/$file")
		fi
		printf '%s %s\t%s\n' "$mode" "$id" "$file"
	done <"$tmp/named" | GIT_INDEX_FILE=$tmp/index git -C "$TREE" update-index --index-info
}

# hooks_between FROM TO: these two of the series, and what is between them.
hooks_between() {
	series | sed 's/\.patch$//' | awk -v from="$1" -v to="$2" '
		$0 == from { on = 1 }
		on { print }
		$0 == to { exit }'
}

# commit_series TMP: all commits on base; sets CHAIN (the last one). What comes out is proved to be
# what the tree holds.
commit_series() {
	local tmp=$1 kind from to name tree
	CHAIN=$(git -C "$TREE" rev-parse base)
	GIT_INDEX_FILE=$tmp/index git -C "$TREE" read-tree "$CHAIN"
	while read -r kind from to; do
		case $kind in
		files)
			[[ -f $SERIES/$from ]] || die "kernel/series/order: there is no kernel/series/$from"
			add_files "$from" "$tmp"
			tree=$(GIT_INDEX_FILE=$tmp/index git -C "$TREE" write-tree)
			[[ $tree != "$(git -C "$TREE" rev-parse "$CHAIN^{tree}")" ]] ||
				die "kernel/series/$from changes nothing: an earlier one has all of it"
			CHAIN=$(series_message "$from" |
				GIT_AUTHOR_NAME=$PROJECT_NAME GIT_AUTHOR_EMAIL=$PROJECT_EMAIL \
					GIT_AUTHOR_DATE=$FIXED_DATE \
					git -C "$TREE" commit-tree -p "$CHAIN" "$tree")
			;;
		hooks)
			for name in $(hooks_between "$from" "$to"); do
				CHAIN=$(commit_hook "$HOOKS" "$name.patch" "$CHAIN" "$tmp/index") ||
					die "hook $name does not apply: kernel/series/order has" \
						"another order than kernel/hooks/series"
			done
			;;
		*) die "kernel/series/order: '$kind' is neither files nor hooks" ;;
		esac
	done < <(sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$SERIES/order")
	name=$CHAIN
	mkdir "$tmp/whole"
	tree=$(whole_tree "$tmp/whole" && printf '%s\n' "$RESULT")
	CHAIN=$name
	[[ $tree == "$(git -C "$TREE" rev-parse "$CHAIN^{tree}")" ]] ||
		die "kernel/series/order lacks something of kernel/src or kernel/hooks:" \
			"$(git -C "$TREE" diff --name-only "$CHAIN" "$tree" | head -n 1)"
}
