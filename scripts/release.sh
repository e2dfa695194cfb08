#!/usr/bin/env bash
# Builds static programs for PLATFORMS into DIST: an archive and an SBOM
# (CycloneDX) per platform, and SHA256SUMS over all of them. The same commit
# gives the same bytes. DuckDB needs a C++ library and is not in them.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${VERSION:?VERSION is needed, such as v0.2.0}
dist=${DIST:-dist}
platforms=${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}
go=${GO:-go}
# Archives carry the time of the commit, not of the build.
stamp=$(git log -1 --format=%ct 2>/dev/null || echo 0)

rm -rf "$dist"
mkdir -p "$dist"
dist=$(cd "$dist" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for platform in $platforms; do
  os=${platform%/*} arch=${platform#*/}
  name=noetl_${version#v}_${os}_${arch}
  mkdir -p "$work/$name"
  echo "building $name"
  CGO_ENABLED=0 GOOS=$os GOARCH=$arch "$go" build -trimpath -buildvcs=false \
    -ldflags "-s -w -X github.com/noetl/noetl-go/internal/cli.Version=$version" -o "$work/$name/noetl" ./cmd/noetl
  cp README.md LICENSE CHANGELOG.md "$work/$name/"
  cp -r deploy/systemd "$work/$name/"
  tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$stamp" -C "$work" -cf - "$name" | gzip -n >"$dist/$name.tar.gz"
  "$go" tool -modfile=release.mod cyclonedx-gomod bin -json -noserial -version "$version" -output "$dist/$name.cdx.json" "$work/$name/noetl" 2>"$work/sbom.log" ||
    { cat "$work/sbom.log" >&2; exit 1; }
done

(cd "$dist" && sha256sum -- *.tar.gz *.cdx.json >SHA256SUMS && sha256sum --check --quiet SHA256SUMS)
ls -l "$dist"
