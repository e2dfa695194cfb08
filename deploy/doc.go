// Package deploy holds what puts NoETL on machines: container images, a Helm
// chart, systemd units, a dashboard and alert rules. Its tests run the tools
// that read these files.
package deploy
