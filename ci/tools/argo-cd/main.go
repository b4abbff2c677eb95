// Command argo-cd-pull fetches an OCI artifact as Argo CD's repo-server does, with its own client: one content layer of an
// allowed media type, unpacked within the default limit. Prints the manifest's digest and annotations as JSON.
//
//	argo-cd-pull REGISTRY/NAME TAG|DIGEST FOLDER
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	utilio "github.com/argoproj/argo-cd/v3/util/io"
	"github.com/argoproj/argo-cd/v3/util/oci"
)

// What the repo-server allows and unpacks unless an administrator says otherwise (its flags --oci-layer-media-types and
// --oci-manifest-max-extracted-size).
var mediaTypes = []string{
	"application/vnd.oci.image.layer.v1.tar",
	"application/vnd.oci.image.layer.v1.tar+gzip",
	"application/vnd.cncf.helm.chart.content.v1.tar+gzip",
}

const maxExtracted = 1_000_000_000

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: argo-cd-pull REGISTRY/NAME TAG|DIGEST FOLDER")
		os.Exit(2)
	}
	if err := pull(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "argo-cd-pull:", err)
		os.Exit(1)
	}
}

func pull(name, revision, folder string) error {
	cache, err := os.MkdirTemp("", "argo-cd-pull-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(cache)
	client, err := oci.NewClient("oci://"+name, oci.Creds{InsecureHTTPOnly: true}, "", "", mediaTypes,
		oci.WithImagePaths(utilio.NewRandomizedTempPaths(cache)),
		oci.WithManifestMaxExtractedSize(maxExtracted),
		oci.WithEventHandlers(silent()))
	if err != nil {
		return err
	}
	ctx := context.Background()
	digest, err := client.ResolveRevision(ctx, revision, true)
	if err != nil {
		return err
	}
	manifest, err := client.DigestMetadata(ctx, digest)
	if err != nil {
		return err
	}
	extracted, closer, err := client.Extract(ctx, digest)
	if err != nil {
		return err
	}
	defer closer.Close()
	if err := os.CopyFS(filepath.Clean(folder), os.DirFS(extracted)); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"digest": digest, "annotations": manifest.Annotations})
}

// The client calls these without asking whether they are there.
func silent() oci.EventHandlers {
	begin := func(string) func() { return func() {} }
	failed := func(string) func(string) { return func(string) {} }
	return oci.EventHandlers{
		OnExtract:             begin,
		OnResolveRevision:     begin,
		OnDigestMetadata:      begin,
		OnTestRepo:            begin,
		OnGetTags:             begin,
		OnExtractFail:         failed,
		OnResolveRevisionFail: failed,
		OnDigestMetadataFail:  failed,
		OnTestRepoFail:        begin,
		OnGetTagsFail:         begin,
	}
}
