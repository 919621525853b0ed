# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# What the tests of packages share: results as KTAP, roots by mmdebstrap. Sourced after
# scripts/lib.sh and scripts/lib-apt.sh.
# shellcheck disable=SC2034 # failed is read by the tests

# begin: sets folder, which is gone at the end, and counters of results.
begin() {
	folder=$(mktemp -d)
	trap 'rm -rf --one-file-system "$folder"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	number=0 failed=0
}

# attempt NAME COMMAND...: one test; what is printed is shown if it fails.
attempt() {
	local name=$1 status=0
	shift
	number=$((number + 1))
	"$@" >"$folder/said" 2>&1 </dev/null || status=$?
	if [[ $status -eq 0 ]]; then
		echo "ok $number - $name"
	else
		tail -n 40 "$folder/said" | sed 's/^/# /'
		echo "not ok $number - $name"
		failed=1
	fi
}

# needed PACKAGE...: what the files of packages depend on, without those packages themselves.
needed() {
	local ours package
	ours=$(for package; do dpkg-deb -f "$package" Package; done)
	for package; do
		dpkg-deb -f "$package" Depends
	done | names_of_packages | grep -vxF "$ours"
}

# names_of_packages: those of fields like Depends on standard input, one a line.
names_of_packages() {
	tr ',' '\n' | sed -E 's/\|.*//; s/\(.*//; s/:any//; s/ //g; /^$/d' | LC_ALL=C sort -u
}

# in_a_root TARGET RELEASE OPTION...: mmdebstrap with this machine's mirror and its way there.
# Target and temporary files are in folder.
in_a_root() {
	local target=$1 release=$2 uri option options=() mode=unshare
	shift 2
	uri=$(mirror)
	[[ -n $uri ]] || die "apt's sources name no Debian mirror: add one to /etc/apt"
	[[ -f $KEYRING ]] || die "no $KEYRING: run 'apt-get install debian-archive-keyring'"
	while IFS= read -r option; do
		options+=("--aptopt=$option")
	done < <(apt-config dump | grep -E '^Acquire::(http|https)::' || true) # none is an answer
	[[ $(id -u) -ne 0 ]] || mode=root
	# Root there may be another user here.
	mkdir -p "$folder/tmp"
	chmod 1777 "$folder/tmp"
	chmod 755 "$folder"
	TMPDIR=$folder/tmp timeout -k 30 3000 mmdebstrap --mode="$mode" --variant=apt \
		--dpkgopt=force-unsafe-io "${options[@]}" "$@" \
		"$release" "$target" "deb [signed-by=$KEYRING] $uri $release main"
}
