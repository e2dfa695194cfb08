package container

import (
	"fmt"
	"strings"

	"github.com/noetl/noetl-go/internal/tool"
)

// Toleration is a taint to put up with.
type Toleration struct {
	Key      string `json:"key,omitempty"`
	Operator string `json:"operator,omitempty"`
	Value    string `json:"value,omitempty"`
	Effect   string `json:"effect,omitempty"`
	Seconds  *int64 `json:"tolerationSeconds,omitempty"`
}

// Volume is a directory of the job; exactly one of its sources is set.
type Volume struct {
	Name      string      `json:"name"`
	EmptyDir  *emptyDir   `json:"emptyDir,omitempty"`
	Claim     *claim      `json:"persistentVolumeClaim,omitempty"`
	ConfigMap *configMap  `json:"configMap,omitempty"`
	Secret    *secretDisk `json:"secret,omitempty"`
}

type emptyDir struct {
	Medium    string `json:"medium,omitempty"`
	SizeLimit string `json:"sizeLimit,omitempty"`
}

type claim struct {
	Name     string `json:"claimName"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}

type configMap struct {
	Name     string `json:"name"`
	Optional bool   `json:"optional,omitempty"`
}

type secretDisk struct {
	Name     string `json:"secretName"`
	Optional bool   `json:"optional,omitempty"`
}

// Mount says where a volume appears.
type Mount struct {
	Name     string `json:"name"`
	Path     string `json:"mountPath"`
	ReadOnly bool   `json:"readOnly,omitempty"`
	SubPath  string `json:"subPath,omitempty"`
}

// items is a list of maps.
func items(f tool.Fields, name string) ([]tool.Fields, error) {
	_, v, ok := f.First(name)
	if !ok {
		return nil, nil
	}
	list, isList := v.([]any)
	if !isList {
		return nil, tool.ConfigErrorf("%s must be a list", name)
	}
	out := make([]tool.Fields, 0, len(list))
	for i, x := range list {
		m, isMap := x.(map[string]any)
		if !isMap {
			return nil, tool.ConfigErrorf("%s[%d] must be a map", name, i)
		}
		out = append(out, Snake(m))
	}
	return out, nil
}

// texts reads several texts of a map.
func texts(m tool.Fields, to map[string]*string) (err error) {
	for name, at := range to {
		if *at, err = m.String(name); err != nil {
			return err
		}
	}
	return nil
}

func parseTolerations(f tool.Fields) ([]Toleration, error) {
	list, err := items(f, "tolerations")
	if err != nil {
		return nil, err
	}
	out := make([]Toleration, len(list))
	for i, item := range list {
		one := &out[i]
		if err := texts(item, map[string]*string{"key": &one.Key, "operator": &one.Operator, "value": &one.Value, "effect": &one.Effect}); err != nil {
			return nil, err
		}
		if d, err := item.Duration("toleration_seconds"); err != nil {
			return nil, err
		} else if item["toleration_seconds"] != nil {
			seconds := int64(d.Seconds())
			one.Seconds = &seconds
		}
	}
	return out, nil
}

func parseVolumes(f tool.Fields) ([]Volume, error) {
	list, err := items(f, "volumes")
	if err != nil {
		return nil, err
	}
	out := make([]Volume, len(list))
	for i, item := range list {
		if err := out[i].parse(fmt.Sprintf("volumes[%d]", i), item); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (v *Volume) parse(where string, item tool.Fields) (err error) {
	if v.Name, err = item.String("name"); err != nil {
		return err
	}
	if v.Name == "" || plain(v.Name, 63) != v.Name {
		return tool.ConfigErrorf("%s needs a name of lower case letters, digits and dashes", where)
	}
	sources := 0
	for _, kind := range []string{"empty_dir", "persistent_volume_claim", "config_map", "secret"} {
		m, isMap := item[kind].(map[string]any)
		if !isMap {
			if item[kind] != nil {
				return tool.ConfigErrorf("%s.%s must be a map", where, kind)
			}
			continue
		}
		sources++
		if err := v.source(kind, Snake(m)); err != nil {
			return err
		}
	}
	if sources != 1 {
		return tool.ConfigErrorf("%s needs exactly one of empty_dir, persistent_volume_claim, config_map, secret", where)
	}
	return nil
}

func (v *Volume) source(kind string, m tool.Fields) (err error) {
	name := ""
	switch kind {
	case "empty_dir":
		v.EmptyDir = &emptyDir{}
		return texts(m, map[string]*string{"medium": &v.EmptyDir.Medium, "size_limit": &v.EmptyDir.SizeLimit})
	case "persistent_volume_claim":
		v.Claim = &claim{}
		if v.Claim.Name, err = m.String("claim_name"); err == nil {
			v.Claim.ReadOnly, err = m.Bool(false, "read_only")
		}
		name = v.Claim.Name
	case "config_map":
		v.ConfigMap = &configMap{}
		if v.ConfigMap.Name, err = m.String("name"); err == nil {
			v.ConfigMap.Optional, err = m.Bool(false, "optional")
		}
		name = v.ConfigMap.Name
	default:
		v.Secret = &secretDisk{}
		if v.Secret.Name, err = m.String("secret_name"); err == nil {
			v.Secret.Optional, err = m.Bool(false, "optional")
		}
		name = v.Secret.Name
	}
	if err == nil && name == "" {
		err = tool.ConfigErrorf("volume %s: %s does not say which", v.Name, kind)
	}
	return err
}

func parseMounts(f tool.Fields) ([]Mount, error) {
	list, err := items(f, "volume_mounts")
	if err != nil {
		return nil, err
	}
	out := make([]Mount, len(list))
	for i, item := range list {
		one := &out[i]
		if err := texts(item, map[string]*string{"name": &one.Name, "mount_path": &one.Path, "sub_path": &one.SubPath}); err != nil {
			return nil, err
		}
		if one.ReadOnly, err = item.Bool(false, "read_only"); err != nil {
			return nil, err
		}
		if one.Name == "" || !strings.HasPrefix(one.Path, "/") {
			return nil, tool.ConfigErrorf("volume_mounts[%d] needs the name of a volume and an absolute mount_path", i)
		}
	}
	return out, nil
}
