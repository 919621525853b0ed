# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# For tests of what is installed: KTAP, and the command run far away from the checkout.
#
# Sourced, with $folder a folder that is removed at the end. Also used by debian/tests, where there
# is no checkout.

# shellcheck disable=SC2154 # folder is of those who source this
number=0
failed=0

# ok WHAT COMMAND...: one test. What the command prints is shown if it fails.
ok() {
	what=$1
	shift
	number=$((number + 1))
	if "$@" >"$folder/said" 2>&1; then
		echo "ok $number - $what"
	else
		sed 's/^/# /' "$folder/said"
		echo "not ok $number - $what"
		failed=1
	fi
}

# plan COUNT: of the tests that follow.
plan() {
	echo 'KTAP version 1'
	echo "1..$1"
}

# finish: the exit status; who reads KTAP compares the plan.
finish() {
	exit "$failed"
}

# call PROGRAM ARG...: run it with nothing of the caller's environment, in a folder of nobody.
# Sets status; what it prints is in $folder/out and $folder/err.
call() {
	mkdir -p "$folder/elsewhere" "$folder/home"
	status=0
	(cd "$folder/elsewhere" &&
		exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME="$folder/home" \
			timeout -k 10 120 "$@") >"$folder/out" 2>"$folder/err" </dev/null || status=$?
	cat "$folder/out" "$folder/err"
	echo "exit status $status"
	! grep -q -e Traceback -e 'internal error' "$folder/err"
}

# prints PATTERN PROGRAM ARG...: it succeeds, prints that, and complains about nothing.
prints() {
	pattern=$1
	shift
	call "$@" && [ "$status" -eq 0 ] && [ ! -s "$folder/err" ] &&
		grep -q -- "$pattern" "$folder/out"
}

# refuses STATUS PATTERN PROGRAM ARG...: it says in one line what is missing, and nothing else.
refuses() {
	want=$1
	pattern=$2
	shift 2
	call "$@" && [ "$status" -eq "$want" ] && [ ! -s "$folder/out" ] &&
		[ "$(wc -l <"$folder/err")" -eq 1 ] && grep -q -- "$pattern" "$folder/err"
}

# works_or_refuses PROGRAM ARG...: what depends on the kernel and on rights succeeds, or says why
# not in one line.
works_or_refuses() {
	call "$@" || return 1
	[ "$status" -eq 0 ] || { [ ! -s "$folder/out" ] && [ "$(wc -l <"$folder/err")" -eq 1 ]; }
}

# finds_out COMMAND: `doctor` shows both tables, whatever this machine has.
finds_out() {
	call "$1" doctor && [ "$status" -le 1 ] && [ ! -s "$folder/err" ] &&
		grep -q '^On this kernel' "$folder/out" &&
		grep -q '^In a virtual machine' "$folder/out" &&
		# There is no checkout that these targets would be run in.
		! grep 'make ' "$folder/out" | grep -qv 'in a checkout'
}

# counts COMMAND: `stat` runs a command and says what happened meanwhile.
counts() {
	call "$1" stat -- echo hello && [ "$status" -eq 0 ] && grep -q hello "$folder/out"
}

# command_works WHICH COMMAND RESULTS: every verb that needs no kernel of ours, as one test each.
# RESULTS is a folder of results as bench/results has them.
command_works() {
	which=$1
	command=$2
	results=$3
	ok "$which: help" prints '^  advise ' "$command" --help
	ok "$which: version" prints '^ceasefire [0-9]' "$command" --version
	ok "$which: doctor" finds_out "$command"
	ok "$which: stat" counts "$command"
	ok "$which: maps" prints mapping "$command" maps $$
	ok "$which: run" works_or_refuses "$command" run -- true
	ok "$which: run --force" call "$command" run --force -- true
	ok "$which: advise" works_or_refuses "$command" advise -- true
	ok "$which: record" works_or_refuses "$command" record --output "$folder/recording" -- true
	ok "$which: bench list" prints applications "$command" bench list
	ok "$which: bench report" prints munmap "$command" bench report "$results"
	ok "$which: bench report --html" page "$command" "$results"
	ok "$which: no kernel" refuses 1 'make kernel. in a checkout' "$command" vm -- true
	ok "$which: no kernel to try" refuses 1 'make kernel. in a checkout' "$command" try -- true
	ok "$which: wrong use" refuses 2 'ceasefire run --help' "$command" run --no-such-option
}

# page COMMAND RESULTS: the template is there.
page() {
	rm -f "$folder/elsewhere/page.html"
	call "$1" bench report "$2" --html "$folder/elsewhere/page.html" && [ "$status" -eq 0 ] &&
		grep -q '</html>' "$folder/elsewhere/page.html"
}
