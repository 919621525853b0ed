# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# Is there work in a generated tree, kernel or emulator, that is nowhere else? Sourced by tree
# and clean, after lib-hooks.sh; use_emulator says which tree. Callers set TMP, a scratch folder.

# shellcheck disable=SC2153 # TMP and TREE are the callers'

# What git cannot answer counts as work.
UNREADABLE="what git cannot read"

tgit() {
	git -C "$TREE" "$@"
}

# What the tree was last made from: base (id), head (commit), applied/ (its hooks),
# overlay (the links).
state() {
	[[ ! -f $TREE/.git/ceasefire/$1 ]] || cat "$TREE/.git/ceasefire/$1"
}

# unsaved: work that `make tree` would overwrite. Prints what, if so.
unsaved() {
	local changes head tmp applied=$TREE/.git/ceasefire/applied
	if [[ -d $TREE/.git/rebase-merge || -d $TREE/.git/rebase-apply ]]; then
		echo "an unfinished rebase"
		return
	fi
	if ! { changes=$(tgit status --porcelain --untracked-files=no) && head=$(tgit rev-parse HEAD); }; then
		echo "$UNREADABLE"
		return
	fi
	if [[ -n $changes ]]; then
		echo "changes that are not committed"
		return
	fi
	[[ $head != "$(state head)" ]] || return 0
	tmp=$(mktemp -d "$TMP/export.XXXX") || die "cannot write to $TMP"
	# Commits that cannot be hooks are unsaved work like any other.
	if ! (export_hooks base HEAD "$tmp") 2>/dev/null; then
		echo "commits that make save refuses"
	elif ! same_hooks "$tmp" "$applied" && ! same_hooks "$tmp" "$HOOKS"; then
		echo "hook commits that are not in $PART/hooks"
	fi
}

# stray: new files, which are lost when the files of the tree are removed. Prints one.
stray() {
	local files
	files=$(tgit ls-files --others --exclude-standard) || files=$UNREADABLE
	[[ -z $files ]] || printf '%s\n' "${files%%$'\n'*}"
}

# others: branches and stashes that HEAD does not have, lost with the repository. Prints one.
others() {
	local refs
	refs=$(tgit for-each-ref --format='%(refname)' --no-merged=HEAD refs/heads refs/stash) ||
		refs=$UNREADABLE
	[[ -z $refs ]] || printf '%s\n' "${refs%%$'\n'*}"
}

# refuse_loss WHY [files|all]: end here when work would be lost: what is overwritten, all
# files of the tree, or the repository, too.
refuse_loss() {
	local what option=
	[[ $PART == kernel ]] || option=" --emulator"
	what=$(unsaved)
	[[ -z $what ]] ||
		die "$1, but $TREE holds $what: save them ($MAKE_SAVE) or drop them" \
			"(scripts/tree$option --discard)"
	[[ $# -ge 2 ]] || return 0
	what=$(stray)
	[[ -z $what ]] ||
		die "$1, but $TREE has the new file $what: move it to $PART/src, or remove it"
	[[ $2 == all ]] || return 0
	what=$(others)
	[[ -z $what ]] ||
		die "$1, but $TREE has commits of $what that HEAD does not have: save or delete them"
}
