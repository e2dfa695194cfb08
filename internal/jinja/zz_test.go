package jinja_test
import ("testing";"time";"math/rand";"fmt";"github.com/noetl/noetl-go/internal/jinja";"os";"path/filepath";"strings";"strconv")
func TestZZSlow(t *testing.T){
 scope := scopeOf(t, `{"n": 3, "s": "text", "list": [3, 1, 2], "d": {"a": 1, "b": [null]}, "users": [{"name": "ann"}], "nil": null}`)
 var corpus []string
 files,_:=filepath.Glob(os.Getenv("CORP")+"/*")
 for _,f:=range files { b,_:=os.ReadFile(f); l:=strings.Split(string(b),"\n"); if len(l)>1 { s:=strings.TrimSuffix(strings.TrimPrefix(l[1],"string("),")"); if u,err:=strconv.Unquote(s); err==nil {corpus=append(corpus,u)} } }
 for _,src:=range []string{"{{ n + 1 }}", "{% for k, v in d.items() if v %}{{ loop.index }}{{ k|upper }}{% else %}x{% endfor %}",
		"{% macro m(a, b=1) %}{{ m(a) }}{% endmacro %}{{ m(1, b=2) }}", "{%- set x | upper -%}a{% endset %}{{ x[::-1] }}",
		"{{ users|groupby('name')|map(attribute='list')|list|tojson }}", "{% raw %}{{{% endraw %}{# c #}", "{{ 'x' * 99999 }}",
		"{{ '%5.2f|%s'|format(n, s) ~ '{:>9,}'.format(n) }}", "{{ '%.9999999f'|format(1.5) }}","{{ 1.5|round(999) }}","{% for i in range(999) %}{{ '%.999999f'|format(1.5) }}{% endfor %}"} {corpus=append(corpus,src)}
 fmt.Println(len(corpus))
 var worst time.Duration; start:=time.Now(); n:=0
 toks:=[]string{"{{","}}","{%","%}"," for x in list "," endfor ","|","(",")","[","]","'","99999","*","+","**","~","|join","|list","range(9999)","|sort","is","not","x","n",".","format","%","center(999)"}
 for time.Since(start)<20*time.Second { n++
  s:=corpus[rand.Intn(len(corpus))]
  for range rand.Intn(6) { i:=0; if len(s)>0 {i=rand.Intn(len(s))}; switch rand.Intn(3){case 0: s=s[:i]+toks[rand.Intn(len(toks))]+s[i:]; case 1: if i<len(s) {j:=i+rand.Intn(len(s)-i); s=s[:i]+s[j:]}; case 2: o:=corpus[rand.Intn(len(corpus))]; if len(o)>0 {j:=rand.Intn(len(o)); s=s[:i]+o[j:]+s[i:]}}}
  a:=time.Now()
  tm,err:=jinja.Compile(s); if err==nil { tm=tm.WithLimits(jinja.Limits{Steps: 10_000, Bytes: 1 << 16, Depth: 20}); tm.Render(scope); tm.Value(scope); tm.Free() }
  if d:=time.Since(a); d>worst {worst=d; fmt.Printf("%v %.300q\n",d,s)}
 }
 fmt.Println(n)
}
