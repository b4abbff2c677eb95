// Command flux-cd-substitute reads a stream of Kubernetes objects and writes it as Flux CD would apply it: each object goes
// through the variable substitution of kustomize-controller, from its own module, strict (its default since Flux 2.9).
//
//	kubectl kustomize generated/hpc | flux-cd-substitute CLUSTER=prod
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/fluxcd/pkg/kustomize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/resmap"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "flux-cd-substitute: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	// kustomize-controller substitutes only when there is at least one variable.
	if len(args) == 0 {
		return fmt.Errorf("usage: flux-cd-substitute NAME=VALUE...")
	}
	variables := map[string]any{}
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%q is not NAME=VALUE", arg)
		}
		variables[name] = value
	}
	// The Kustomization that a user would write, as far as substitution reads it.
	kustomization := unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"postBuild": map[string]any{"substitute": variables}},
	}}
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	factory := resmap.NewFactory(provider.NewDefaultDepProvider().GetResourceFactory())
	objects, err := factory.NewResMapFromBytes(text)
	if err != nil {
		return err
	}
	for _, object := range objects.Resources() {
		// Without a cluster: variables are given here, none comes from a ConfigMap.
		substituted, err := kustomize.SubstituteVariables(context.Background(), nil, kustomization, object,
			kustomize.SubstituteWithDryRun(true), kustomize.SubstituteWithStrict(true))
		if err != nil {
			return fmt.Errorf("%s: %w", object.CurId(), err)
		}
		// Nothing comes back for an object with the guard, which is applied as it is.
		if substituted == nil {
			continue
		}
		if _, err := objects.Replace(substituted); err != nil {
			return fmt.Errorf("%s: %w", object.CurId(), err)
		}
	}
	result, err := objects.AsYaml()
	if err != nil {
		return err
	}
	_, err = out.Write(result)
	return err
}
