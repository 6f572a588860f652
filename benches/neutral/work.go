package main

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

func count(total int) int {
	for n := 0; n < 50000000; n++ {
		total += n % 7 // BREAK
	}
	return total
}

func processorMs() float64 {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e6
}

func main() {
	fmt.Println("up")
	for {
		if _, err := os.Stat("go"); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	before := processorMs()
	var all sync.WaitGroup
	for at := 0; at < 4; at++ {
		all.Add(1)
		go func(at int) {
			defer all.Done()
			count(at)
		}(at)
	}
	all.Wait()
	fmt.Println(processorMs() - before)
}
