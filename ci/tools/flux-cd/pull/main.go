// Command flux-cd-pull unpacks an OCI artifact with the client of Flux CD: what `flux pull artifact` and its source-controller
// do. Prints what it says of itself as JSON.
//
//	flux-cd-pull REGISTRY/NAME:TAG FOLDER
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/fluxcd/pkg/oci"
	"github.com/google/go-containerregistry/pkg/crane"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: flux-cd-pull REGISTRY/NAME:TAG FOLDER")
		os.Exit(2)
	}
	client := oci.NewClient(append(oci.DefaultOptions(), crane.Insecure))
	said, err := client.Pull(context.Background(), os.Args[1], os.Args[2])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(said)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "flux-cd-pull:", err)
		os.Exit(1)
	}
}
