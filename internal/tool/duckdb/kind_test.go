package duckdb

import (
	"fmt"
	"strings"
	"testing"
)

// shape writes a kind out again.
func shape(k *kind) string {
	switch {
	case k == nil:
		return "?"
	case k.key != nil:
		return "MAP(" + shape(k.key) + "," + shape(k.elem) + ")"
	case k.elem != nil:
		return "LIST(" + shape(k.elem) + ")"
	case len(k.fields) == 0:
		return k.name
	}
	parts := make([]string, len(k.fields))
	for i, f := range k.fields {
		parts[i] = f.name + ":" + shape(f.kind)
	}
	return k.name + "(" + strings.Join(parts, ",") + ")"
}

func TestTypesAreReadAsDuckDBWritesThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"INTEGER":                    "INTEGER",
		"DECIMAL(18,3)":              "DECIMAL",
		"TIMESTAMP WITH TIME ZONE":   "TIMESTAMP WITH TIME ZONE",
		"VARCHAR[]":                  "LIST(VARCHAR)",
		"DATE[3][]":                  "LIST(LIST(DATE))",
		"DECIMAL(4,1)[]":             "LIST(DECIMAL)",
		"ENUM('a', 'b)', 'c''d')":    "ENUM",
		"MAP(VARCHAR, DATE)":         "MAP(VARCHAR,DATE)",
		`STRUCT("a b" DATE, c TIME)`: "STRUCT(a b:DATE,c:TIME)",
		`STRUCT("q""x" STRUCT("y" DECIMAL(2,1)[]))[]`:     `LIST(STRUCT(q"x:STRUCT(y:LIST(DECIMAL))))`,
		`UNION("n" INTEGER, "m" MAP(VARCHAR, TIMESTAMP))`: "UNION(n:INTEGER,m:MAP(VARCHAR,TIMESTAMP))",
		"": "", "[": "", "STRUCT(": "STRUCT(:)", `STRUCT("a`: "STRUCT(a:)", "MAP(": "MAP(,)",
	} {
		if got := shape(parseKind(text)); got != want {
			t.Errorf("%s is read as %s, want %s", text, got, want)
		}
	}
}

func TestNumbersThatJSONReadersWouldRoundAreTold(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"1": true, "9223372036854775807": true, "9223372036854775808": false, "0.1": true, "12.50": true, "-0.00": true, "0.30000000000000004": true,
		"0.300000000000000041": false, "12345678901234567.89": false, "100.000": true,
	} {
		if got := exact(text); got != want {
			t.Errorf("exact(%s) is %v", text, got)
		}
	}
}

func TestIntervalsAreWrittenAsISODurations(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]interval{
		"PT0S": {}, "P14M": {months: 14}, "P-1M2DT-0.000001S": {months: -1, days: 2, micros: -1}, "PT3600S": {micros: 3_600_000_000},
	} {
		if got := fmt.Sprint(v); got != want {
			t.Errorf("%+v is %s, want %s", v, got, want)
		}
	}
}
