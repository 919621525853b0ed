# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# Configure and build kernels from fragments. Sourced by kernel-build and the checks.

require_plain_path

JOBS=${CEASEFIRE_JOBS:-$(nproc)}
# Compiled files of a whole build, for the progress line only.
USUAL_FILES=2100

# Equal input gives equal output.
use_ccache
export KBUILD_BUILD_TIMESTAMP='Sun Nov 17 00:00:00 UTC 2024'
export KBUILD_BUILD_USER=ceasefire KBUILD_BUILD_HOST=ceasefire KBUILD_BUILD_VERSION=1
unset MAKEFLAGS MAKELEVEL MFLAGS

# kbuild_command TREE FOLDER: sets KBUILD to the make command with all it needs.
# FOLDER is directly below TREE: kbuild then calls the source `..`, and paths of
# this machine reach no object. Tools that some machines have (Rust, pahole) would
# leave their versions in the configuration, which every object depends on; PAHOLE_PROGRAM
# is for kernels that are to have BTF.
kbuild_command() {
	KBUILD=(make -C "$1" "O=$2" ARCH=x86_64 "CC=$ROOT/scripts/kbuild-cc" "HOSTCC=ccache gcc"
		RUSTC=no-rustc "PAHOLE=${PAHOLE_PROGRAM:-no-pahole}"
		"LOCALVERSION=-ceasefire-${2#build-}")
}

# kbuild TREE FOLDER ARG...
kbuild() {
	kbuild_command "$1" "$2"
	shift 2
	"${KBUILD[@]}" "$@"
}

# fragments KIND: the files that make up its configuration, in order.
fragments() {
	local configs=$ROOT/kernel/configs
	case $1 in
	run) printf '%s\n' "$configs"/{base,run}.config ;;
	debug) printf '%s\n' "$configs"/{base,run,debug}.config ;;
	plain) printf '%s\n' "$configs"/{base,plain}.config ;;
	stock) printf '%s\n' "$configs"/{base,stock}.config ;;
	*) die "no configuration named $1" ;;
	esac
}

# configure TREE FOLDER KIND [FRAGMENT...]: write TREE/FOLDER/.config unless it is
# already what these fragments give. A later fragment overrides an earlier one.
# CONFIG_MAY_LACK=1: TREE is not the whole patch, lines need not hold.
configure() {
	local tree=$1 folder=$2 kind=$3 out=$1/$2 parts new log stamp
	shift 3
	mapfile -t parts < <(fragments "$kind")
	parts+=("$@")
	new=$out/.config.new
	log=$LOGS/config-$folder.log
	stamp=$(config_stamp "$tree" "${parts[@]}")
	if [[ -f $out/.config && -f $out/.ceasefire-config ]] &&
		[[ $(<"$out/.ceasefire-config") == "$stamp $(sha256sum <"$out/.config")" ]]; then
		return 0
	fi
	say "configuring $folder"
	mkdir -p "$out"
	rm -f "$new"
	{
		kbuild "$tree" "$folder" KCONFIG_CONFIG="$new" allnoconfig &&
			cat "${parts[@]}" >>"$new" &&
			kbuild "$tree" "$folder" KCONFIG_CONFIG="$new" olddefconfig
	} >"$log" 2>&1 </dev/null || {
		tail -n 5 "$log" >&2
		die "configuring $folder failed (all of it in $log)"
	}
	[[ -n ${CONFIG_MAY_LACK:-} ]] || check_config "$new" "${parts[@]}"
	# An equal configuration keeps its time stamp.
	cmp -s "$new" "$out/.config" || cp "$new" "$out/.config"
	rm -f "$new" "$new.old"
	printf '%s\n' "$stamp $(sha256sum <"$out/.config")" >"$out/.ceasefire-config"
}

# configure_from TREE FOLDER CONFIG FRAGMENT: write TREE/FOLDER/.config from the configuration of
# another kernel and a fragment on top of it. The lines of the fragment must hold.
configure_from() {
	local tree=$1 folder=$2 out=$1/$2 new=$1/$2/.config.new log=$LOGS/config-$2.log
	mkdir -p "$out"
	say "configuring $folder"
	cat -- "$3" "$4" >"$new"
	kbuild "$tree" "$folder" KCONFIG_CONFIG="$new" olddefconfig >"$log" 2>&1 </dev/null || {
		tail -n 5 "$log" >&2
		die "configuring $folder failed (all of it in $log)"
	}
	check_config "$new" "$4"
	cmp -s "$new" "$out/.config" || cp "$new" "$out/.config"
	rm -f "$new" "$new.old"
}

# What a configuration depends on: the fragments, the compiler, the hooks, the
# overlay's Kconfig files.
config_stamp() {
	local tree=$1
	shift
	{
		cat "$@" "$ROOT/scripts/lib-kbuild.sh"
		gcc --version
		if [[ -n $SOURCE_ID ]]; then
			echo "$SOURCE_ID"
		else
			git -C "$tree" rev-parse HEAD
		fi
		overlay_files | grep -E '(^|/)Kconfig' | while IFS= read -r file; do
			cat "$OVERLAY/$file"
		done
	} | sha256sum
}

# check_config CONFIG FRAGMENT...: does each line hold? Kconfig drops, without a
# word, what has an unmet dependency or does not exist.
check_config() {
	local config=$1 lost
	shift
	lost=$(awk '
		function symbol(line) {
			sub(/^# /, "", line)
			sub(/[= ].*/, "", line)
			return line
		}
		FNR == 1 { file++ }
		/^CONFIG_/ || /^# CONFIG_.* is not set$/ {
			if (file == files)
				have[symbol($0)] = $0
			else {
				if (!(symbol($0) in want))
					order[++n] = symbol($0)
				want[symbol($0)] = $0
			}
		}
		END {
			for (i = 1; i <= n; i++) {
				s = order[i]
				# A symbol that is not there at all is not set.
				if (want[s] ~ /^#/ ? (s in have) && have[s] !~ /^#/ : have[s] != want[s])
					print "  " want[s]
			}
		}' files=$(($# + 1)) "$@" "$config")
	[[ -z $lost ]] || {
		say "$lost"
		die "these lines of kernel/configs do not hold in the final configuration (a" \
			"dependency is missing, or the option is gone): see $config"
	}
}

# Stands for the commit of a source that has no repository.
SOURCE_ID=

# Seconds that a build may take: ten times the usual length.
KBUILD_LIMIT=12000

# kbuild_watched TREE FOLDER LOG TARGET...: build in the background, say every ten
# seconds how far it is; on failure show the lines that matter.
kbuild_watched() {
	local tree=$1 folder=$2 log=$3 began=$SECONDS next=10 pid rc=0 of=
	shift 3
	[[ $* != *bzImage* ]] || of=" of about $USUAL_FILES"
	kbuild_command "$tree" "$folder"
	# timeout makes a process group of its own, and ends all of it when it is told to end.
	timeout "$KBUILD_LIMIT" "${KBUILD[@]}" "-j$JOBS" "$@" >"$log" 2>&1 </dev/null &
	pid=$!
	# shellcheck disable=SC2064 # the pid of now
	trap "kill $pid; wait; exit 130" INT TERM
	while kill -0 "$pid" 2>/dev/null; do
		sleep 0.3
		if ((SECONDS - began >= next)); then
			next=$((next + 10))
			say "  $(grep -c -E '^  (CC|AS|LD|AR) ' "$log")$of steps," \
				"$(((SECONDS - began) / 60)) min $(((SECONDS - began) % 60)) s"
		fi
	done
	wait "$pid" || rc=$?
	trap 'exit 130' INT
	trap 'exit 143' TERM
	[[ $rc -ne 0 ]] || return 0
	grep -n -E '(error|undefined reference|Error [0-9]+|No rule to make)' "$log" | head -n 15 >&2 ||
		tail -n 15 "$log" >&2
	[[ $rc -ne 124 ]] || die "building $folder took over $((KBUILD_LIMIT / 3600)) hours (all of it in $log)"
	die "building $folder failed (all of it in $log)"
}
