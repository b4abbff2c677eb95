// A registry in memory, of go-containerregistry. Its own program has no switch for the referrers API, which Debian's registry
// does not have either; this one has both, so that images are pushed to registries with and without it.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

func main() {
	port := flag.Int("port", 0, "port on 127.0.0.1")
	referrers := flag.Bool("referrers", false, "list what refers to an image (OCI distribution 1.1)")
	flag.Parse()
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("serving on %s", listener.Addr())
	server := http.Server{
		ReadHeaderTimeout: 30 * time.Second,
		Handler:           registry.New(registry.WithReferrersSupport(*referrers)),
	}
	log.Fatal(server.Serve(listener))
}
