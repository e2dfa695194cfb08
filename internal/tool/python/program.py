"""User code: how it runs, and how its value or failure is told.

Loaded before runner.py into the same namespace. Nothing here knows about
processes or sockets.
"""
import sys

# No import may come from the directory the worker happens to run in.
sys.path[:] = [p for p in sys.path if p]

import ast
import base64
import collections
import dataclasses
import datetime
import decimal
import enum
import errno
import json
import keyword
import linecache
import math
import os
import time
import traceback
import types
import uuid
from collections import abc

MISSING = object()


class Failure(Exception):
    """A failure with its own kind and code, reported as it is."""

    def __init__(self, kind, code, message):
        super().__init__(message)
        self.kind, self.code = kind, code


def usable(name):
    """Whether an argument can be a name in scope, not only a key of args."""
    return name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("__")


class Run:
    """One program with its scope."""

    def __init__(self, head, args, variables):
        head = json.loads(head)
        self.code = head["code"]
        self.filename = "<code of step %s>" % head["step"]
        self.args = json.loads(args)
        self.variables = json.loads(variables or b"{}") or {}
        os.environ.update(head.get("env") or {})
        if "TZ" in (head.get("env") or {}):
            time.tzset()
        self.returns = head.get("returns") or []
        self.enter(head)
        self.bind(head)
        self.import_libs(head.get("libs") or [])
        lines = self.code.splitlines(True)
        linecache.cache[self.filename] = (len(self.code), None, lines, self.filename)

    def enter(self, head):
        cwd, path = head.get("cwd"), head.get("path")
        if cwd:
            try:
                os.chdir(cwd)
            except OSError as e:
                raise Failure("config", "CONFIG", "cwd %r cannot be entered: %s" % (cwd, e.strerror)) from None
        if not path and head.get("own_cwd"):
            path = cwd
        sys.path[:0] = ([path] if path else []) + (head.get("sys_path") or [])

    def bind(self, head):
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module  # pickle and dataclasses look there
        context = {"args": self.args, "variables": self.variables}
        for name in ("execution_id", "step", "server_url"):
            context[name] = head.get(name) or ""
        g = self.scope = module.__dict__
        g.update(sys=sys, json=json, os=os, datetime=datetime, uuid=uuid, context=context, args=self.args)
        g.update(variables=self.variables, execution_id=context["execution_id"], step=context["step"])
        g.update(get_val=get_val, make_serializable=make_serializable, now_utc=now_utc)
        g.update(format_iso8601=format_iso8601, deep_merge=deep_merge)
        files = head.get("files") or {}
        g["files"] = files
        g.update((k, v) for k, v in files.items() if usable(k) and k not in g)
        if "data" in self.variables:
            g["data"] = self.variables["data"]
        g.update((k, v) for k, v in self.args.items() if usable(k))
        g.setdefault("input_data", dict(self.args))  # an argument of that name is meant
        g["__file__"] = self.filename

    def import_libs(self, libs):
        for module, attr, name in libs:
            try:
                found = __import__(module)
                if attr is not None:
                    found = getattr(sys.modules[module], attr, MISSING)
                    if found is MISSING:
                        found = __import__(module + "." + attr, fromlist=["*"])
                elif name != module.split(".")[0]:
                    found = sys.modules[module]
                self.scope[name] = found
            except ImportError as e:
                text = "libs: %s cannot be imported by %s: %s (install it there, or remove it from libs)"
                raise Failure("config", "PY_" + type(e).__name__, text % (module, sys.executable, e)) from None

    def checked(self):
        """The value, which must have the keys that the step promises."""
        value = self.value()
        if self.returns:
            found = value if isinstance(value, abc.Mapping) else plain(value)
            if not isinstance(found, abc.Mapping):
                raise Failure("schema", "ASSERT_RETURNS", "assert.returns: the result is not a map")
            for name in self.returns:
                if name not in found:
                    raise Failure("schema", "ASSERT_RETURNS", "assert.returns: the result has no " + name)
        return value

    def value(self):
        code, function = self.compile()
        g = self.scope
        try:
            exec(code, g)
            if function:
                value = g.pop("__noetl_code__")(**{k: g[k] for k in function})
                if value is not None:
                    return value
        except SystemExit as e:
            if e.code not in (None, 0):
                raise
            return g.get("result")
        main = g.get("main")
        value = g.get("result")
        untouched = "result" in self.args and value is self.args["result"]
        if value is not None and not (untouched and callable(main)):
            return value
        if not callable(main):
            return None
        try:
            value = self.call_main(main)
        except SystemExit as e:
            if e.code not in (None, 0):
                raise
            value = None
        return g.get("result") if value is None and not untouched else value

    def compile(self):
        """The program, and the parameters of the function it had to become
        because it returns at the top level (None when it did not)."""
        try:
            return compile(self.code, self.filename, "exec", dont_inherit=True), None
        except SyntaxError as e:
            if "'return' outside function" not in str(e.msg):
                raise
        tree = ast.parse(self.code, self.filename)
        # A name assigned in a function is local to it, so the scope comes in
        # as parameters: "x = x + 1" must see the x it was given.
        declared = {n for node in ast.walk(tree) if isinstance(node, ast.Global) for n in node.names}
        names = [n for n in self.scope if usable(n) and n not in declared]
        holder = ast.parse("def __noetl_code__(%s): pass" % ", ".join(names))
        future = [n for n in tree.body if isinstance(n, ast.ImportFrom) and n.module == "__future__"]
        body = [n for n in tree.body if n not in future]
        if "result" not in names and "result" not in declared:
            body.insert(0, ast.copy_location(ast.Global(["result"]), body[0]))
        holder.body[0].body = body
        holder.body = future + holder.body
        return compile(holder, self.filename, "exec", dont_inherit=True), names

    def call_main(self, main):
        import inspect

        try:
            params = inspect.signature(main).parameters.values()
        except (TypeError, ValueError):
            params = ()
        given, positional = {}, []
        missing = []
        for p in params:
            if p.kind is p.VAR_POSITIONAL:
                continue
            if p.kind is p.VAR_KEYWORD:
                given.update((k, v) for k, v in self.args.items() if k not in given)
                continue
            value = self.find(p.name)
            if value is MISSING:
                if p.default is p.empty:
                    missing.append(p.name)
                elif p.kind is p.POSITIONAL_ONLY:
                    positional.append(p.default)
                continue
            if p.kind is p.POSITIONAL_ONLY:
                positional.append(value)
            else:
                given[p.name] = value
        if missing:
            have = ", ".join(sorted(self.args)) or "nothing"
            text = "main() needs %s, which the step does not give it (input has: %s)"
            raise Failure("schema", "PY_MissingArgument", text % (", ".join(missing), have))
        value = main(*positional, **given)
        if inspect.isawaitable(value):
            import asyncio

            async def wait():
                return await value

            value = asyncio.run(wait())
        return value

    def find(self, name):
        for source in (self.args, self.variables):
            if name in source:
                return source[name]
        if name in ("args", "input_data", "context", "variables", "execution_id", "step", "files"):
            return self.scope[name]
        return MISSING


# ------------------------------------------------------ names offered to code


def get_val(source, path, default=None):
    """What is at a path such as "a.b.0" in maps and lists, or default."""
    for part in path.split(".") if isinstance(path, str) else path:
        try:
            if isinstance(source, abc.Mapping):
                source = source[part]
            elif isinstance(source, (list, tuple)):
                source = source[int(part)]
            else:
                source = getattr(source, str(part))
        except (LookupError, ValueError, TypeError, AttributeError):
            return default
    return default if source is None else source


def make_serializable(value):
    """A copy of a value that holds only what JSON knows."""
    return json.loads(encode(value))


def now_utc():
    return datetime.datetime.now(datetime.timezone.utc)


def format_iso8601(moment=None):
    """A moment as text, in UTC; one without a zone is taken as UTC."""
    moment = moment or now_utc()
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.timezone.utc)
    return moment.astimezone(datetime.timezone.utc).isoformat().replace("+00:00", "Z")


def deep_merge(base, *others):
    """A new map: later maps win, maps in the same place are merged."""
    out = dict(base or {})
    for other in others:
        for k, v in (other or {}).items():
            both = isinstance(out.get(k), abc.Mapping) and isinstance(v, abc.Mapping)
            out[k] = deep_merge(out[k], v) if both else v
    return out


# ---------------------------------------------------------------- the answer


def encode(value):
    digits = getattr(sys, "set_int_max_str_digits", None)
    if digits:
        digits(0)  # an integer has as many digits as it has
    try:
        text = dumps(value)
    except (TypeError, ValueError, RecursionError):
        # Something JSON has no word for: say so when it is hopeless, else
        # write a copy that has only what JSON knows.
        problem = find_problem(value, "result", set())
        if problem:
            raise Failure("schema", "PY_RESULT", problem) from None
        text = dumps(clean(value, 0))
    try:
        return text.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def dumps(value):
    return json.dumps(value, default=plain, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def plain(o):
    """What JSON does not know, as something it knows."""
    if isinstance(o, (datetime.datetime, datetime.date, datetime.time)):
        return o.isoformat()
    if isinstance(o, decimal.Decimal):
        return plain_decimal(o)
    if isinstance(o, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(o)).decode("ascii")
    if isinstance(o, enum.Enum):
        return o.value
    if isinstance(o, abc.Mapping):
        return dict(o)
    if isinstance(o, (set, frozenset)):
        try:
            return sorted(o)  # a set has no order of its own; give it one
        except TypeError:
            return list(o)
    if isinstance(o, (abc.Sequence, abc.Set, abc.ValuesView, collections.deque)):
        return list(o)
    if dataclasses.is_dataclass(o) and not isinstance(o, type):
        return {f.name: getattr(o, f.name) for f in dataclasses.fields(o)}
    for method, args in (("model_dump", {}), ("to_dict", {"orient": "records"}), ("to_dict", {}), ("tolist", {})):
        # pydantic, pandas, numpy, by how they behave
        if callable(getattr(o, method, None)) and not isinstance(o, type):
            try:
                return getattr(o, method)(**args)
            except TypeError:
                continue
    return text_of(o)


def text_of(o):
    try:
        return str(o)
    except Exception:
        return "<%s>" % type(o).__name__


def plain_decimal(d):
    """A number when a float holds it exactly, else its text."""
    if not d.is_finite():
        return plain_float(float("nan") if d.is_nan() else float(d))
    if d == d.to_integral_value() and abs(d) < 10**15:
        return int(d)
    f = float(d)
    return f if math.isfinite(f) and decimal.Decimal(repr(f)) == d else str(d)


def plain_float(f):
    """Not a number is null; infinity, which is one, is a text."""
    if math.isfinite(f):
        return f
    return None if math.isnan(f) else "Infinity" if f > 0 else "-Infinity"


def clean(o, depth):
    """A copy with only what JSON knows."""
    if depth > 500:
        raise Failure("schema", "PY_RESULT", "the result is nested too deeply")
    if isinstance(o, dict):
        return {k if isinstance(k, str) else key_text(k): clean(v, depth + 1) for k, v in o.items()}
    if isinstance(o, (list, tuple)):
        return [clean(v, depth + 1) for v in o]
    if isinstance(o, float):
        return plain_float(float(o))
    if o is None or isinstance(o, (str, int)) and not isinstance(o, enum.Enum):
        return o
    return clean(plain(o), depth + 1)


def key_text(k):
    if isinstance(k, float):
        k = plain_float(k)
        return k if isinstance(k, str) else json.dumps(k)
    if k is None or isinstance(k, (bool, int)) and not isinstance(k, enum.Enum):
        return json.dumps(k)
    k = plain(k) if not isinstance(k, tuple) else str(k)
    return k if isinstance(k, str) else text_of(k)


def find_problem(o, path, above):
    """Says where a value cannot be JSON; None when it can."""
    if not isinstance(o, (dict, list, tuple)):
        return None
    if id(o) in above:
        return "%s contains itself, so it cannot be written as JSON" % path
    if len(above) > 500:
        return "%s is nested too deeply" % path[:80]
    above.add(id(o))
    pairs = o.items() if isinstance(o, dict) else enumerate(o)
    for k, v in pairs:
        where = "%s[%d]" % (path, k) if not isinstance(o, dict) else "%s.%s" % (path, k)
        problem = find_problem(v, where, above)
        if problem:
            return problem
    above.discard(id(o))
    return None


# ---------------------------------------------------------------- the failure


def describe(e, run):
    name = type(e).__name__
    out = {"type": name, "message": text_of(e)[:16384], "exit_code": 1}
    if isinstance(e, Failure):
        out.update(type="", kind=e.kind, code=e.code)
        return json.dumps(out).encode()
    filename = run.filename if run else None
    if isinstance(e, SystemExit):
        out["exit_code"] = e.code & 0xFF if isinstance(e.code, int) else 1
    if isinstance(e, SyntaxError):
        out["message"] = e.msg or str(e)
    if isinstance(e, SyntaxError) and e.filename == filename:
        out["line"] = e.lineno or 0
        out["text"] = (e.text or "").strip()
    else:
        for frame in traceback.extract_tb(e.__traceback__):
            if frame.filename == filename:
                out["line"], out["text"] = frame.lineno, (frame.line or "").strip()
    out.update(classify(e))
    out["traceback"] = user_traceback(e, filename)
    return json.dumps(out).encode()


def classify(e):
    """Kind, and where they differ from the rule, code and retryable."""
    ancestors = {c.__name__ for c in type(e).__mro__}
    if isinstance(e, MemoryError):
        return {"kind": "resource_limit", "code": "OOM"}
    if isinstance(e, json.JSONDecodeError):
        return {"kind": "parse"}
    if isinstance(e, OSError) and e.errno == errno.EFBIG:
        return {"kind": "resource_limit", "code": "DISK_LIMIT"}
    if isinstance(e, OSError) and e.errno in (errno.ENOSPC, errno.EDQUOT):
        return {"kind": "storage_quota"}
    if ancestors & {"TimeoutError", "Timeout", "TimeoutException"}:
        return {"kind": "timeout", "retryable": True}
    if ancestors & {"ConnectionError", "ConnectError", "NetworkError", "gaierror"} or name_of_cause(e) == "gaierror":
        return {"kind": "connection", "retryable": True}
    if isinstance(e, (TypeError, ValueError, LookupError)) or "ValidationError" in ancestors:
        return {"kind": "schema"}
    return {"kind": "logic"}


def name_of_cause(e):
    """What is behind urllib's URLError."""
    return type(getattr(e, "reason", None)).__name__


def user_traceback(e, filename):
    """The traceback from the first line of user code on."""
    report = traceback.TracebackException.from_exception(e)
    part, seen = report, 0
    while part is not None and seen < 20:
        frames = list(part.stack)
        first = next((i for i, f in enumerate(frames) if f.filename == filename), len(frames))
        part.stack = traceback.StackSummary.from_list(frames[first:][:40])
        part, seen = part.__cause__ or part.__context__, seen + 1
    return "".join(report.format())[-16384:]
