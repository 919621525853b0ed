# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# A disk with Debian that QEMU boots by its own boot loader, for the tests of packages. Sourced after
# lib.sh.
#
# The disk has the release $release, made by mmdebstrap from the machine's mirror, with Debian's own
# kernel, GRUB for EFI, and systemd. At each boot the unit ceasefire-test runs the next step
# (on-disk, with the steps of the test), prints its results to the second serial port, and switches
# off. Nothing of virtme-ng is in it. Needs root.
# shellcheck disable=SC2154 # folder, failed, release, kernel: of lib.sh and of the test

# What each disk has beside what the packages depend on.
INCLUDES=(linux-image-cloud-amd64 initramfs-tools grub-efi-amd64 systemd-sysv udev dbus kmod e2fsprogs)
# Seconds for one boot with all that its step does; the longest step takes four minutes on two
# free cores.
STEP_LIMIT=2400
MIB=1048576
FIRMWARE=/usr/share/OVMF

# usual_options PROGRAM [OPTION...]: sets kernel and release from the options of a test.
usual_options() {
	local program=$1
	shift
	kernel=
	if [[ ${1:-} == --kernel && -n ${2:-} ]]; then
		kernel=$(realpath -- "$2")
		shift 2
	fi
	[[ $# -le 1 && ${1:-} != -* ]] || usage "$program [--kernel FOLDER] [RELEASE]"
	# shellcheck source=/dev/null
	release=${1:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
	[[ $(id -u) -eq 0 ]] || die "files of a disk have the owners they have there: run it as root"
}

# packages_of_kernel: into $folder/kernel; those of $kernel if it is a folder, else small ones are made.
packages_of_kernel() {
	if [[ -n $kernel ]]; then
		mkdir "$folder/kernel" && cp -- "$kernel"/*.deb "$folder/kernel/"
	else
		"$ROOT/scripts/deb-kernel" --out "$folder/kernel" small
	fi
}

# documented FILE WORDS: the one command of a document that begins with the words, on one line, with the
# build folder at /test.
documented() {
	local line
	# shellcheck disable=SC2016 # as it stands there
	line=$(sed -e ':more' -e '/\\$/{N;s/\\\n *//;b more' -e '}' "$ROOT/$1" | grep -- "^$2" |
		sed 's/$(scripts\/paths)/\/test/g')
	[[ $(wc -l <<<"$line") -eq 1 && -n $line ]] && printf '%s\n' "$line"
}

# put STEPS: what the guest finds in /test: its steps, and the packages of the kernel.
put() {
	mkdir -p "$folder/put/packages-small" &&
		cp -- "$folder"/kernel/*.deb "$folder/put/packages-small/" &&
		cp -- "$ROOT/tests/packages/on-disk" "$folder/put/" &&
		cp -- "$ROOT/tests/packages/$1" "$folder/put/steps"
}

# root_of_disk PACKAGE...: with those packages of Debian, and /test.
root_of_disk() {
	local include
	include=$(printf '%s\n' "${INCLUDES[@]}" "$@" | paste -sd,)
	# The hooks are shells with the root as $1.
	# shellcheck disable=SC2016
	PUT=$folder/put in_a_root "$folder/root" "$release" --include="$include" \
		--customize-hook='cp -r "$PUT" "$1/test"' \
		--customize-hook='chroot "$1" sh /test/on-disk prepare'
}

# disk: an EFI system partition, and the root.
disk() {
	local image=$folder/disk
	truncate -s 3072M "$image" &&
		sfdisk --quiet "$image" <<-'END' &&
			label: gpt
			start=1MiB, size=64MiB, type=uefi, name=esp
			start=65MiB, size=3006MiB, type=linux, name=root
		END
		truncate -s 64M "$folder/esp" &&
		mkfs.vfat -n ESP "$folder/esp" >/dev/null &&
		dd if="$folder/esp" of="$image" bs=1M seek=1 conv=notrunc status=none &&
		mke2fs -q -t ext4 -L root -d "$folder/root" -E "offset=$((65 * MIB)),no_copy_xattrs" \
			"$image" 3006M &&
		cp -- "$(readlink -f "$folder"/root/vmlinuz)" "$folder/vmlinuz" &&
		cp -- "$(readlink -f "$folder"/root/initrd.img)" "$folder/initrd" &&
		cp -- "$FIRMWARE/OVMF_VARS_4M.fd" "$folder/vars" &&
		rm -rf "$folder/root"
}

# machine NUMBER [OPTION...]: QEMU with the disk, in the foreground; what it has printed is in
# $folder/console-NUMBER. $code is the firmware, $folder/vars its variables; with Secure Boot only the
# firmware itself may write to them.
code=$FIRMWARE/OVMF_CODE_4M.fd
machine() {
	local number=$1 smm=off
	shift
	[[ $code != *.secboot.* ]] || smm=on
	timeout -k 10 "$STEP_LIMIT" qemu-system-x86_64 -machine "q35,accel=tcg,smm=$smm" -cpu max -smp 2 -m 1G \
		-display none -nodefaults -no-reboot -device virtio-rng-pci \
		-global "driver=cfi.pflash01,property=secure,value=$smm" \
		-drive "if=pflash,format=raw,readonly=on,file=$code" \
		-drive "if=pflash,format=raw,file=$folder/vars" \
		-drive "if=virtio,format=raw,cache=unsafe,file=$folder/disk" "$@" </dev/null
}

# step NUMBER [OPTION...]: boot; the guest ends by itself. Its results are in $folder/said-NUMBER.
step() {
	local number=$1 status=0
	shift
	machine "$number" -serial "file:$folder/console-$number" -serial "file:$folder/said-$number" "$@" ||
		status=$?
	# A serial line ends its lines in its own way, and firmware writes to it before.
	sed -i -e 's/\r//g' -e '1,/^begin$/d' "$folder/said-$number"
	if [[ $status -ne 0 ]] || ! grep -q '^end ' "$folder/said-$number"; then
		tail -n 30 "$folder/console-$number"
		echo "step $number did not come to its end (QEMU says $status)"
		return 1
	fi
	! grep -a -E 'BUG:|WARNING:|Oops|Call Trace' "$folder/console-$number"
}

# all_good NUMBER: each result of the step is good, and there are as many as it says.
all_good() {
	local good all
	good=$(grep -c '^ok ' "$folder/said-$1") || true
	all=$(sed -n 's/^end //p' "$folder/said-$1")
	[[ $good == "$all" ]] || { echo "$good of $all are good"; return 1; }
}

# boots NUMBER NAME [OPTION...]: a test of the boot, one of its results.
boots() {
	local step=$1 name=$2
	shift 2
	attempt "$name" step "$step" "$@"
	[[ ! -f $folder/said-$step ]] ||
		sed -e '/^end /d' -e 's/^/    /' "$folder/said-$step"
	attempt "$name: all that is tried there" all_good "$step"
	[[ $failed -eq 0 ]] || exit 1
}

# first_boot: the boot loader is not installed yet.
first_boot() {
	boots 1 'the boot loader is installed' -kernel "$folder/vmlinuz" -initrd "$folder/initrd" \
		-append 'root=LABEL=root console=ttyS0 panic=-1'
}
