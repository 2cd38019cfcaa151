# Builds and runs a program with goroutines.
cat >main.go <<'GO'
package main

import (
	"fmt"
	"sync"
)

func main() {
	var all sync.WaitGroup
	sums := make([]int, 8)
	for i := range sums {
		all.Add(1)
		go func() { defer all.Done(); for j := 0; j <= 1000; j++ { sums[i] += j } }()
	}
	all.Wait()
	fmt.Println(sums[0], sums[7])
}
GO
GOTOOLCHAIN=local GOFLAGS=-mod=mod GO111MODULE=off go run main.go
