# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# Hooks as files <-> hooks as commits. Sourced by tree, save, patch and the checks.
#
# A hook is a patch <hooks>/<feature>/<name>.patch and a commit of the generated
# tree, kernel or emulator (PART), with the trailer `Hook: <feature>/<name>`. Both directions are
# pure functions: the same files always give the same commit ids, and the same
# commits the same bytes. The tree -> files -> tree identity rests on that.

# shellcheck disable=SC2153,SC2034 # TREE comes from lib.sh; callers read FAILED_HOOK, RESULT

# Commits of the generated tree carry no clock: 6.12's release day stands in.
FIXED_DATE='2024-11-17T00:00:00Z'
PROJECT_NAME='The ceasefire developers'
PROJECT_EMAIL='ceasefire@localhost'
export GIT_COMMITTER_NAME=$PROJECT_NAME GIT_COMMITTER_EMAIL=$PROJECT_EMAIL
export GIT_COMMITTER_DATE=$FIXED_DATE

# hook_name COMMIT: the value of its Hook: trailer, empty when there is none.
hook_name() {
	git -C "$TREE" log -1 --format='%(trailers:key=Hook,valueonly,separator=%x20)' "$1"
}

# check_hook_commit COMMIT: may this commit become a hook file? Prints its name.
check_hook_commit() {
	local name title other
	title=$(git -C "$TREE" log -1 --format='%h ("%s")' "$1")
	name=$(hook_name "$1")
	[[ $name =~ ^[a-z0-9]+/[a-z0-9][a-z0-9-]*$ ]] ||
		die "commit $title has no trailer like 'Hook: fpr/page-alloc-free': add it" \
			"(git commit --amend or git rebase -i in $TREE)"
	[[ $(git -C "$TREE" rev-list --no-walk --count --merges "$1") -eq 0 ]] ||
		die "commit $title is a merge: hooks are a straight line, rebase it"
	other=$(git -C "$TREE" diff-tree --no-commit-id -r --no-renames --diff-filter=AT \
		--name-only "$1" | head -n 1)
	[[ -z $other ]] ||
		die "commit $title creates $other: new files belong to $PART/src, not into a hook"
	other=$(git -C "$TREE" diff-tree --no-commit-id -r --no-renames --diff-filter=D \
		--name-only "$1" | head -n 1)
	[[ -z $other ]] || die "commit $title deletes $other: a hook only edits files"
	printf '%s\n' "$name"
}

# export_hooks FROM TO DIR: commits FROM..TO as DIR/<feature>/<name>.patch and DIR/series.
export_hooks() {
	local from=$1 to=$2 dir=$3 commit name
	mkdir -p "$dir"
	{
		echo "# SPDX-License-Identifier: $HOOKS_LICENCE"
		echo "# The hooks in the order in which they apply; written by $MAKE_SAVE."
	} >"$dir/series"
	for commit in $(git -C "$TREE" rev-list --reverse "$from..$to"); do
		name=$(check_hook_commit "$commit") || return 1
		[[ ! -e $dir/$name.patch ]] ||
			die "two commits have the trailer 'Hook: $name': squash them or rename one"
		mkdir -p "$dir/${name%/*}"
		# The date says nothing and would change with every rebase. Objects are
		# named in full so that a three-way merge finds them.
		git -C "$TREE" format-patch -1 --stdout --keep-subject --zero-commit \
			--no-signature --full-index --no-renames --patch "$commit" |
			sed '1,/^$/{/^Date: /d}' >"$dir/$name.patch"
		printf '%s.patch\n' "$name" >>"$dir/series"
	done
}

# same_hooks DIR DIR: do both hold the same series and the same patches?
same_hooks() {
	local a b
	a=$(hooks_id "$1") && b=$(hooks_id "$2") && [[ $a == "$b" ]]
}

# hooks_id DIR: one word for all hooks in DIR in their order; comments do not count.
hooks_id() {
	local dir=$1 name
	{
		for name in $(HOOKS=$dir series); do
			[[ -f $dir/$name ]] || die "$dir/series names $name, which does not exist"
			printf '== %s\n' "$name"
			cat "$dir/$name"
		done
	} | sha256sum | cut -d' ' -f1
}

# commit_hook DIR NAME PARENT INDEX: apply one hook on top of PARENT's index, print
# the commit. Works on the index alone: the files of the tree are not touched.
commit_hook() {
	local dir=$1 name=$2 parent=$3 index=$4 tmp tree
	tmp=$(dirname "$index")
	git -C "$TREE" mailinfo -k --no-scissors "$tmp/body" "$tmp/diff" \
		<"$dir/$name" >"$tmp/info" || return 1
	GIT_INDEX_FILE=$index git -C "$TREE" apply --cached --3way --whitespace=nowarn \
		"$tmp/diff" >"$tmp/apply.log" 2>&1 || return 1
	tree=$(GIT_INDEX_FILE=$index git -C "$TREE" write-tree) || return 1
	{
		sed -n 's/^Subject: //p' "$tmp/info"
		echo
		cat "$tmp/body"
	} >"$tmp/message"
	GIT_AUTHOR_NAME=$(sed -n 's/^Author: //p' "$tmp/info") \
		GIT_AUTHOR_EMAIL=$(sed -n 's/^Email: //p' "$tmp/info") \
		GIT_AUTHOR_DATE=$FIXED_DATE \
		git -C "$TREE" commit-tree -p "$parent" -F "$tmp/message" "$tree"
}

# commit_hooks DIR BASE TMP: all hooks of DIR as commits on BASE; sets CHAIN (the
# last commit). When one does not apply: FAILED_HOOK names it, CHAIN ends before it.
commit_hooks() {
	local dir=$1 index=$3/index name commit
	CHAIN=$2
	FAILED_HOOK=
	GIT_INDEX_FILE=$index git -C "$TREE" read-tree "$CHAIN"
	for name in $(HOOKS=$dir series); do
		[[ -f $dir/$name ]] || die "$PART/hooks/series names $name, which does not exist"
		if ! commit=$(commit_hook "$dir" "$name" "$CHAIN" "$index"); then
			FAILED_HOOK=$name
			return 1
		fi
		CHAIN=$commit
		[[ $(hook_name "$CHAIN").patch == "$name" ]] ||
			die "$PART/hooks/$name lacks the trailer 'Hook: ${name%.patch}': add it"
	done
}

# link_overlay TREE: the overlay files named on standard input at their places there.
link_overlay() {
	local file at
	while IFS= read -r file; do
		at=$1/$file
		[[ ! -L $at || $(readlink "$at") != "$OVERLAY/$file" ]] || continue
		[[ ! -e $at || -L $at ]] || die "$at is in the way of $PART/src/$file: move it away"
		mkdir -p "${at%/*}"
		ln -sfn "$OVERLAY/$file" "$at"
	done
}

# hooked_files [PATTERN]: the files that the hooks edit, each once.
hooked_files() {
	local name
	for name in $(series); do
		git -C "$ROOT" apply --numstat "$HOOKS/$name" | cut -f3
	done | LC_ALL=C sort -u | grep -E -- "${1:-.}" || true # none is an answer
}

# scratch_tree NAME COMMIT: a second checkout, B/check/NAME, at COMMIT of the tree.
# Only files that differ from the last use are written.
scratch_tree() {
	local at=$B/check/$1
	if [[ ! -e $at/.git ]]; then
		rm -rf "$at"
		mkdir -p "$B/check"
		git -C "$TREE" worktree prune
		say "a second checkout of the kernel source for this check (once)"
		git -C "$TREE" worktree add -q --force --detach "$at" "$2"
	fi
	git -C "$at" checkout -q --detach --force "$2"
}

# whole_tree TMP: hooks and overlay as one tree of git; sets RESULT. From the files of the hooks, not
# from what the generated tree happens to hold.
whole_tree() {
	local index=$1/whole-index file mode
	commit_hooks "$HOOKS" base "$1" || die "hook $FAILED_HOOK does not apply: run $MAKE_TREE"
	GIT_INDEX_FILE=$index git -C "$TREE" read-tree "$CHAIN"
	overlay_files >"$1/overlay"
	while IFS= read -r file; do
		mode=100644
		[[ ! -x $OVERLAY/$file ]] || mode=100755
		printf '%s %s\t%s\n' "$mode" \
			"$(git -C "$TREE" hash-object -w --no-filters "$OVERLAY/$file")" "$file"
	done <"$1/overlay" | GIT_INDEX_FILE=$index git -C "$TREE" update-index --index-info
	RESULT=$(GIT_INDEX_FILE=$index git -C "$TREE" write-tree)
}
