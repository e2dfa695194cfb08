package process

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
)

// Limits bound one call; 0 = no limit.
type Limits struct {
	Memory  int64         // bytes of address space of each process
	CPU     time.Duration // processor time of each process, in whole seconds
	Disk    int64         // bytes of the largest file it may write
	Timeout time.Duration // of the call
}

// CPUSeconds is the processor time in seconds, at least one when there is a
// limit.
func (l Limits) CPUSeconds() int64 {
	return int64(math.Ceil(l.CPU.Seconds()))
}

// Any tells whether a process has to be limited at all.
func (l Limits) Any() bool { return l.Memory > 0 || l.CPU > 0 || l.Disk > 0 }

// narrow is the limits of a step: what it asks for, else the worker's own. To
// ask for more than the worker gives is an error.
func (l Limits) narrow(resources map[string]any) (Limits, error) {
	out := l
	for _, name := range tool.SortedKeys(resources) {
		v := resources[name]
		if v == nil {
			continue
		}
		var err error
		switch name {
		case "memory":
			err = narrowTo(&out.Memory, v, Bytes)
		case "disk":
			err = narrowTo(&out.Disk, v, Bytes)
		case "cpu":
			err = narrowTo(&out.CPU, v, tool.ParseDuration)
		case "timeout":
			err = narrowTo(&out.Timeout, v, tool.ParseDuration)
		default:
			return l, tool.ConfigErrorf("resources.%s is not known; there are cpu, memory, disk and timeout", name)
		}
		if err != nil {
			return l, tool.ConfigErrorf("resources.%s: %v", name, err)
		}
	}
	return out, nil
}

func narrowTo[N int64 | time.Duration](limit *N, v any, parse func(any) (N, error)) error {
	n, err := parse(v)
	switch {
	case err != nil:
		return err
	case n <= 0:
		return errors.New("must be more than nothing")
	case *limit > 0 && n > *limit:
		return fmt.Errorf("%v is more than this worker gives a step, which is %v; ask for less, or raise the worker's setting", n, *limit)
	}
	*limit = n
	return nil
}

// units of sizes, as Kubernetes and people write them.
var units = map[string]float64{
	"": 1, "b": 1, "k": 1e3, "kb": 1e3, "m": 1e6, "mb": 1e6, "g": 1e9, "gb": 1e9, "t": 1e12, "tb": 1e12,
	"ki": 1 << 10, "kib": 1 << 10, "mi": 1 << 20, "mib": 1 << 20, "gi": 1 << 30, "gib": 1 << 30, "ti": 1 << 40, "tib": 1 << 40,
}

// Bytes reads a size: a number of bytes, or text such as 512Mi or 2GB.
func Bytes(v any) (int64, error) {
	text, err := tool.Text(v)
	if err != nil {
		return 0, err
	}
	text = strings.TrimSpace(text)
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
	unit, known := units[strings.ToLower(strings.TrimSpace(text[len(digits):]))]
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || !known || math.IsNaN(n) || n < 0 || n*unit > math.MaxInt64/2 {
		return 0, fmt.Errorf("%q is not a size; write bytes, or a text such as 512Mi or 2G", text)
	}
	return int64(n * unit), nil
}

func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
