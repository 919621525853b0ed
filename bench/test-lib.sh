# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# For the tests of the benchmark programs (TAP): their names, a folder for what they write, and what
# has run. Sourced, with the folder in which meson has built them as the argument.

# shellcheck disable=SC2034 # the names are for those who source this
munmap=$1/munmap/munmap-bench
cycle=$1/instructions/cycle-bench
beside=$1/instructions/beside-bench
own_tables=$1/instructions/own-tables-bench
morsel=$1/instructions/morsel-bench
evict=$1/evict/evict-bench
vector=$1/evict/vector-bench
pool=$1/evict/pool-bench
alloc=$1/alloc/alloc-bench
mode_run=$1/run/mode-run
ycsb=$1/ycsb/ycsb-bench
scale=$1/scale/scale-bench
bound=$1/bound/bound-bench
wordcount=$1/parallel/wordcount-bench
bfs=$1/parallel/bfs-bench
stencil=$1/parallel/stencil-bench
malloc=$1/parallel/malloc-bench
cow=$1/parallel/cow-bench
spread=$1/parallel/spread-bench
snapshot=$1/snapshot/snapshot-bench
n=0
bad=0
work=$(mktemp -d "${TMPDIR:-/tmp}/test-programs-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
mkdir "$work/dir"

# What belongs to a failure comes before it, as KTAP has it.
report() { # STATUS NAME
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $n - $2"
	else
		sed 's/^/# /' "$work/out" "$work/err"
		echo "not ok $n - $2"
		bad=1
	fi
}

run() { # EXPECTED-STATUS COMMAND...
	expected=$1
	shift
	timeout 600 "$@" >"$work/out" 2>"$work/err"
	[ $? -eq "$expected" ]
}

usage() { # NAME COMMAND...
	name=$1
	shift
	run 2 "$@" && [ "$(wc -l <"$work/err")" -eq 1 ] && [ ! -s "$work/out" ]
	report $? "wrong use: $name"
}

quick='--seconds 0.1 --rounds 1'

has_two_nodes() {
	[ -e /sys/devices/system/node/node1 ]
}

scale_names() { # Those tests of scale-bench that this machine can run.
	"$scale" --list | cut -d ' ' -f 1 | while read -r name; do
		[ "$name" = own_move ] && ! has_two_nodes || echo "$name"
	done
}

scale_tests() { # MODE: all tests of scale-bench, by threads and by processes
	runs=0
	for name in $(scale_names); do
		# An emulated CPU may take a tenth of a second to answer a shootdown.
		seconds=0.5
		kinds='threads processes'
		case $name in
		tlb_*) seconds=2 ;;
		shared_*) seconds=2 kinds=threads ;;
		esac
		for kind in $kinds; do
			run 0 "$scale" --test "$name" "--$kind" 2 --pages 256 --mode "$1" \
				--seconds $seconds --rounds 1 --json --dir "$work/dir"
			report $? "scale-bench: $name, $kind, $1"
			cat "$work/out" >>"$work/scale"
			runs=$((runs + 1))
		done
	done
	[ -z "$(ls "$work/dir")" ]
	report $? "scale-bench: no file is left behind, $1"
	python3 -I - "$work/scale" "$1" "$runs" >"$work/out" 2>"$work/err" <<-'END'
		import json, sys
		lines = [json.loads(line) for line in open(sys.argv[1])]
		samples = [line for line in lines if line["type"] == "scale"]
		assert len({(s["test"], s["kind"]) for s in samples}) == int(sys.argv[3]) > 35
		for s in samples:
		    assert s["mode"] == sys.argv[2] and s["operations"] > 0 and s["wrong"] == 0, s
		    assert s["least"] <= s["most"] <= s["operations"], s
		    assert (s["peer_checks"] > 0) == s["test"].startswith(("tlb_", "shared_")), s
	END
	report $? "scale-bench: JSON of all tests, $1"
}
