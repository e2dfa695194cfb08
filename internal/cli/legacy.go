package cli

import "github.com/alecthomas/kong"

// legacyCommands are those of older releases that have no place here. They say
// what to use instead, so that a script that calls them fails with a direction.
type legacyCommands struct {
	Build   buildCommand   `cmd:"" hidden:"" help:"Use make release."`
	K8s     k8sCommand     `cmd:"" name:"k8s" hidden:"" help:"Use the Helm chart."`
	IaP     iapCommand     `cmd:"" name:"iap" hidden:"" help:"Use noetl run."`
	Console consoleCommand `cmd:"" hidden:"" help:"Use the shell."`
}

// anything swallows the arguments of a command that does nothing with them.
type anything struct {
	Rest []string `arg:"" optional:"" passthrough:"" help:"Ignored."`
}

type (
	buildCommand   struct{ anything }
	k8sCommand     struct{ anything }
	iapCommand     struct{ anything }
	consoleCommand struct{ anything }
)

// Run says what to use instead.
func (buildCommand) Run(*kong.Context) error {
	return invalidf("noetl builds no images: make release builds binaries, and deploy/docker/Dockerfile makes an image of one")
}

// Run says what to use instead.
func (k8sCommand) Run() error {
	return invalidf("noetl deploys nothing to Kubernetes by itself: install the chart with helm upgrade --install noetl deploy/helm/noetl")
}

// Run says what to use instead.
func (iapCommand) Run() error {
	return invalidf("noetl keeps no state of infrastructure: write the changes as a playbook and apply it with noetl run FILE")
}

// Run says what to use instead.
func (consoleCommand) Run() error {
	return invalidf("there is no console: the commands are in the shell, with completion (noetl completion bash|zsh|fish)")
}
