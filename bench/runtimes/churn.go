// SPDX-License-Identifier: GPL-2.0-only

// go-churn: goroutines that allocate and drop, with the memory management of Go.
//
// The program is static and has an allocator of its own, so that nothing can be put in front of
// it. Four times a second it gives back what it does not need. Each block is compared with
// what was written to it before it is dropped. An operation is a block.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

const (
	kept     = 256
	turns    = 64
	giveBack = 250 * time.Millisecond
	// What all goroutines do at least, each, however slow they are.
	least = 4 * turns
)

// block has words that follow from its seed.
type block struct {
	seed  uint64
	words []uint64
}

func mix(x uint64) uint64 {
	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93
	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93
	return x ^ (x >> 32)
}

// Most blocks are small, and most memory is in large ones.
func sizeOf(seed uint64) uint64 {
	switch kind := seed % 100; {
	case kind < 70:
		return 8 + seed>>16%64
	case kind < 98:
		return 8 + seed>>16%4096
	default:
		return 8 + seed>>16%65536
	}
}

func take(seed uint64) block {
	words := make([]uint64, sizeOf(seed))
	for i := range words {
		words[i] = seed + uint64(i)
	}
	return block{seed, words}
}

func (b block) wrong() bool {
	for i, word := range b.words {
		if word != b.seed+uint64(i) {
			return true
		}
	}
	return false
}

func churn(number uint64, stop *atomic.Bool, done, wrong *atomic.Uint64, spoil *atomic.Bool) {
	var blocks [kept]block
	seed := mix(number + 1)
	for !stop.Load() {
		for i := 0; i < turns; i++ {
			seed = mix(seed + 0x9e3779b97f4a7c15)
			slot := &blocks[seed>>40%kept]
			if slot.words != nil && spoil.CompareAndSwap(true, false) {
				slot.words[0] ^= 1
			}
			if slot.wrong() {
				wrong.Add(1)
			}
			*slot = take(seed)
		}
		done.Add(turns)
	}
}

func main() {
	threads := flag.Int("threads", runtime.NumCPU(), "goroutines, and threads that run them")
	seconds := flag.Float64("seconds", 2, "how long")
	spoiled := flag.Bool("spoil", false, "make a block wrong, which must be noticed")
	flag.Parse()
	if flag.NArg() > 0 || *threads < 1 || *seconds <= 0 {
		fmt.Fprintln(os.Stderr, "go-churn: use: go-churn [--threads N] [--seconds S]")
		os.Exit(2)
	}
	runtime.GOMAXPROCS(*threads)
	var stop, spoil atomic.Bool
	var done, wrong atomic.Uint64
	var group sync.WaitGroup
	spoil.Store(*spoiled)
	begin := time.Now()
	for i := 0; i < *threads; i++ {
		group.Add(1)
		go func(number uint64) {
			defer group.Done()
			churn(number, &stop, &done, &wrong, &spoil)
		}(uint64(i))
	}
	for time.Since(begin).Seconds() < *seconds || done.Load() < uint64(*threads)*least {
		time.Sleep(giveBack)
		debug.FreeOSMemory()
	}
	stop.Store(true)
	group.Wait()
	took := time.Since(begin).Seconds()
	fmt.Printf("{\"operations\": %d, \"seconds\": %.6f, \"rate\": %.3f, \"wrong\": %d}\n",
		done.Load(), took, float64(done.Load())/took, wrong.Load())
	if wrong.Load() > 0 {
		fmt.Fprintf(os.Stderr, "go-churn: %d times wrong data\n", wrong.Load())
		os.Exit(1)
	}
}
