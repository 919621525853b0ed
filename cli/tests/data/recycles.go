// SPDX-License-Identifier: GPL-2.0-only

// Does what recycles.c does, without any C library.
//
//	recycles FILE BYTES
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	size, err := strconv.ParseInt(os.Args[2], 10, 64)
	must(err)
	file, err := os.OpenFile(os.Args[1], os.O_RDWR|os.O_CREATE, 0666)
	must(err)
	must(file.Truncate(size))
	memory, err := syscall.Mmap(int(file.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	must(err)
	smaps, err := os.ReadFile("/proc/self/smaps")
	must(err)
	_, rest, _ := strings.Cut(string(smaps), fmt.Sprintf("%x-", uintptr(unsafe.Pointer(&memory[0]))))
	_, flags, _ := strings.Cut(rest, "VmFlags:")
	flags, _, _ = strings.Cut(flags, "\n")
	if strings.Contains(flags+" ", " fr ") {
		fmt.Println("recycles")
	} else {
		fmt.Println("plain")
	}
}
