package obs

import (
	"bufio"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ContentType is that of WriteText.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// WriteText writes all metrics in the text format of Prometheus.
func (r *Registry) WriteText(w io.Writer) error {
	r.mu.Lock()
	families, before := slices.Clone(r.families), slices.Clone(r.before)
	r.mu.Unlock()
	for _, f := range before {
		f()
	}
	out := bufio.NewWriter(w)
	for _, f := range families {
		f.write(out)
	}
	return out.Flush()
}

func (f *family) write(w *bufio.Writer) {
	_, _ = w.WriteString("# HELP " + f.name + " " + escape(f.help, false) + "\n# TYPE " + f.name + " " + f.kind + "\n")
	if f.table != nil {
		for _, row := range f.table.all() {
			labels := make([]string, len(row.Labels))
			for i, v := range row.Labels {
				labels[i] = pair(f.table.names[i], v)
			}
			line(w, f.name, labels, row.Value)
		}
		return
	}
	for i := range f.series {
		s, labels := &f.series[i], f.labelsOf(i)
		if f.kind == "histogram" {
			f.writeHistogram(w, s, labels)
			continue
		}
		line(w, f.name, labels, math.Float64frombits(s.bits.Load()))
	}
}

// writeHistogram adds the buckets up. The count is that sum too, so that the
// lines agree although observations go on.
func (f *family) writeHistogram(w *bufio.Writer, s *series, labels []string) {
	var total uint64
	for i := range s.buckets {
		total += s.buckets[i].Load()
		bound := "+Inf"
		if i < len(f.bounds) {
			bound = number(f.bounds[i])
		}
		line(w, f.name+"_bucket", append(slices.Clone(labels), pair("le", bound)), float64(total))
	}
	line(w, f.name+"_sum", labels, math.Float64frombits(s.bits.Load()))
	line(w, f.name+"_count", labels, float64(total))
}

// labelsOf are the pairs of the series at a place.
func (f *family) labelsOf(at int) []string {
	pairs := make([]string, len(f.labels))
	for i := len(f.labels) - 1; i >= 0; i-- {
		l := &f.labels[i]
		pairs[i] = pair(l.name, l.values[at%len(l.values)])
		at /= len(l.values)
	}
	return pairs
}

func pair(name, value string) string { return name + `="` + escape(value, true) + `"` }

func line(w *bufio.Writer, name string, labels []string, v float64) {
	_, _ = w.WriteString(name)
	if len(labels) > 0 {
		_, _ = w.WriteString("{" + strings.Join(labels, ",") + "}")
	}
	_, _ = w.WriteString(" " + number(v) + "\n")
}

func number(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

var (
	escapeHelp  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	escapeValue = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

func escape(s string, value bool) string {
	if value {
		return escapeValue.Replace(s)
	}
	return escapeHelp.Replace(s)
}
