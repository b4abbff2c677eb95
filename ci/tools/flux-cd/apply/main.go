// Command flux-cd-apply applies a stream of Kubernetes objects as Flux CD does: with its own engine, and the options that
// kustomize-controller gives it. With a file it then prunes what that file has and the stream has not, as Flux CD does
// with its inventory. Prints one line for each object: what was done, and the object.
//
//	kubectl kustomize generated/hpc | flux-cd-apply [BEFORE.yaml]
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/normalize"
	"github.com/fluxcd/pkg/ssa/utils"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	group = "kustomize.toolkit.fluxcd.io"
	// The Kustomization whose objects they are.
	owner, ownerNamespace = "bundles", "flux-system"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "flux-cd-apply: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 1 {
		return errors.New("usage: flux-cd-apply [BEFORE.yaml]")
	}
	manager, err := newManager()
	if err != nil {
		return err
	}
	objects, err := read(os.Stdin)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	manager.SetOwnerLabels(objects, owner, ownerNamespace)
	changes, err := manager.ApplyAllStaged(ctx, objects, applyOptions())
	show(changes)
	if err != nil || len(args) == 0 {
		return err
	}
	return prune(ctx, manager, args[0], objects)
}

func newManager() (*ssa.ResourceManager, error) {
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{})
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, err
	}
	kubernetes, err := client.New(config, client.Options{})
	if err != nil {
		return nil, err
	}
	// The poller is for health and cluster-wide objects, which are none of our business here.
	return ssa.NewResourceManager(kubernetes, nil, ssa.Owner{Field: "kustomize-controller", Group: group}), nil
}

func read(from io.Reader) ([]*unstructured.Unstructured, error) {
	objects, err := utils.ReadObjects(from)
	if err != nil {
		return nil, err
	}
	return objects, normalize.UnstructuredList(objects)
}

// What the controller passes for a Kustomization without spec.force.
func applyOptions() ssa.ApplyOptions {
	options := ssa.DefaultApplyOptions()
	options.ForceSelector = map[string]string{group + "/force": "enabled"}
	options.IfNotPresentSelector = map[string]string{group + "/ssa": "IfNotPresent"}
	options.ExclusionSelector = map[string]string{group + "/reconcile": "disabled", group + "/ssa": "Ignore"}
	return options
}

func prune(ctx context.Context, manager *ssa.ResourceManager, before string, objects []*unstructured.Unstructured) error {
	file, err := os.Open(before)
	if err != nil {
		return err
	}
	defer file.Close()
	old, err := read(file)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, object := range objects {
		wanted[utils.FmtUnstructured(object)] = true
	}
	var stale []*unstructured.Unstructured
	for _, object := range old {
		if !wanted[utils.FmtUnstructured(object)] {
			stale = append(stale, object)
		}
	}
	changes, err := manager.DeleteAll(ctx, stale, ssa.DeleteOptions{
		PropagationPolicy: metav1.DeletePropagationBackground,
		Inclusions:        manager.GetOwnerLabels(owner, ownerNamespace),
		Exclusions:        map[string]string{group + "/prune": "disabled", group + "/reconcile": "disabled"},
	})
	show(changes)
	return err
}

func show(changes *ssa.ChangeSet) {
	if changes == nil {
		return
	}
	for _, entry := range changes.Entries {
		fmt.Printf("%s %s\n", entry.Action, entry.Subject)
	}
}
