# An echo server and its client in Go, built without modules and without a way out.
export GO111MODULE=off GOTOOLCHAIN=local GOPROXY=off GOFLAGS= CGO_ENABLED=0 GOCACHE=$PWD/cache GOPATH=$PWD/go
cat >echo.go <<'END'
package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
)

func main() {
	if os.Args[1] == "serve" {
		listener, err := net.Listen("tcp", ":7000")
		if err != nil {
			panic(err)
		}
		for {
			stream, _ := listener.Accept()
			go func() { io.Copy(stream, stream); stream.Close() }()
		}
	}
	var group sync.WaitGroup
	right := make(chan bool, 8)
	for i := 0; i < 8; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			sent := make([]byte, 400000)
			rand.Read(sent)
			stream, err := net.Dial("tcp", "h2:7000")
			if err != nil {
				panic(err)
			}
			go func() { stream.Write(sent); stream.(*net.TCPConn).CloseWrite() }()
			got, _ := io.ReadAll(stream)
			right <- bytes.Equal(sent, got)
		}()
	}
	group.Wait()
	close(right)
	count := 0
	for is := range right {
		if is {
			count++
		}
	}
	fmt.Println("right", count)
}
END
go build -o echo echo.go
serve h2 ./echo serve
eventually listens h2 7000
go run echo.go ask
