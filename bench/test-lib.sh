# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
# For the tests of the benchmark programs (TAP): their names, a folder for what they write, and what
# has run. Sourced, with the programs as arguments in this order:
#      MUNMAP-BENCH CYCLE-BENCH EVICT-BENCH ALLOC-BENCH MODE-RUN YCSB-BENCH SCALE-BENCH BESIDE-BENCH BOUND-BENCH
#      WORDCOUNT-BENCH BFS-BENCH STENCIL-BENCH MALLOC-BENCH COW-BENCH OWN-TABLES-BENCH MORSEL-BENCH VECTOR-BENCH POOL-BENCH
#      SNAPSHOT-BENCH

# shellcheck disable=SC2034 # the names are for those who source this
munmap=$1
cycle=$2
evict=$3
alloc=$4
mode_run=$5
ycsb=$6
scale=$7
beside=$8
bound=$9
wordcount=${10}
bfs=${11}
stencil=${12}
malloc=${13}
cow=${14}
own_tables=${15}
morsel=${16}
vector=${17}
pool=${18}
snapshot=${19}
spread=${20}
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
