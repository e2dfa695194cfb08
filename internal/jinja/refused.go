package jinja

// What authors know from Jinja2, Python or other hosts of Jinja2 and will not
// find here, with what to write instead.
var (
	refusedFilters = map[string]string{
		"random":         "the same input must give the same result; choose in a tool",
		"urlize":         "templates make requests, not pages; build the link in a tool",
		"xmlattr":        "templates make requests, not pages; write the attributes out with | escape",
		"striptags":      "templates make requests, not pages; clean the text in a tool",
		"encrypt_secret": "name the secret in keychain and read it as keychain.<name>",
		"strftime":       "format the time in a tool",
		"regex_replace":  "use replace, or do it in a tool",
		"regex_search":   "use 'x' in text, startswith or split, or do it in a tool",
		"combine":        "write dict(a, key=value)",
		"to_yaml":        "write | tojson, which is YAML too",
		"to_json":        "write | tojson",
		"from_json":      "write | fromjson",
	}
	refusedTests = map[string]string{
		"escaped": "there is no escaping by itself; use | escape where it is wanted",
		"safe":    "there is no escaping by itself; use | escape where it is wanted",
	}
	refusedFunctions = map[string]string{
		"now":        "a template has no clock; read event.timestamp, or take the time in a tool",
		"utcnow":     "a template has no clock; read event.timestamp, or take the time in a tool",
		"lipsum":     "write the text out",
		"cycler":     "use loop.cycle('a', 'b')",
		"joiner":     "use | join(', '), or {% if not loop.last %}, {% endif %}",
		"env":        "pass the value in workload, or use keychain for secrets",
		"caller":     "give the macro the text as an argument",
		"super":      "templates do not extend one another",
		"len":        "write x | length",
		"str":        "write x | string",
		"int":        "write x | int",
		"float":      "write x | float",
		"bool":       "write x | bool",
		"list":       "write x | list",
		"sum":        "write x | sum",
		"min":        "write x | min",
		"max":        "write x | max",
		"abs":        "write x | abs",
		"round":      "write x | round",
		"sorted":     "write x | sort",
		"reversed":   "write x | reverse",
		"enumerate":  "use loop.index0 inside {% for %}",
		"zip":        "use loop.index0 inside {% for %} to index the other list",
		"isinstance": "write x is string, x is mapping and so on",
		"any":        "write x | select | list | length > 0",
		"all":        "write x | reject | list | length == 0",
	}
	refusedTags = map[string]string{
		"include":    "a template is one text; put what is shared into workload or a macro",
		"import":     "a template is one text; write the macro into it",
		"from":       "a template is one text; write the macro into it",
		"extends":    "a template is one text; write it out",
		"block":      "a template is one text; write it out",
		"call":       "capture the text with {% set body %}…{% endset %} and pass it: {{ m(body) }}",
		"do":         "values cannot be changed; use {% set ns.list = ns.list + [x] %} on a namespace()",
		"autoescape": "nothing is escaped by itself; use | escape where it is wanted",
		"break":      "filter the loop instead: {% for x in list if … %}, or list[:n]",
		"continue":   "filter the loop instead: {% for x in list if … %}",
		"debug":      "print a value with {{ x | pprint }}",
		"trans":      "write the text out",
	}
	// refusedMethods change a list or a mapping, which templates cannot.
	refusedMethods = map[string]string{
		"append":     "write list + [x]",
		"extend":     "write list + other",
		"insert":     "write list[:i] + [x] + list[i:]",
		"remove":     "write list | reject('equalto', x) | list",
		"pop":        "read the value by its index or key; list[:-1] is the rest",
		"sort":       "write list | sort",
		"reverse":    "write list | reverse",
		"clear":      "write [] or {}",
		"update":     "write dict(d, key=value)",
		"setdefault": "write d.get(key, fallback)",
		"popitem":    "read the value by its key",
		"encode":     "write text | b64encode or text | urlencode",
	}
)

// refusal reports a name that is known but not offered, or nil.
func refusal(what, name string) *Error {
	table := map[string]map[string]string{
		"filter": refusedFilters, "test": refusedTests, "function": refusedFunctions,
	}[what]
	remedy, ok := table[name]
	if !ok {
		return nil
	}
	return newError(kindName, "the %s '%s' is not available in playbook templates", what, name).withRemedy("%s", remedy)
}
