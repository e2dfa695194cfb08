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
import datetime
import decimal
import enum
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
        self.enter(head.get("cwd"), head.get("path"))
        self.bind(head)
        self.import_libs(head.get("libs") or [])
        lines = self.code.splitlines(True)
        linecache.cache[self.filename] = (len(self.code), None, lines, self.filename)

    def enter(self, cwd, path):
        if cwd:
            try:
                os.chdir(cwd)
            except OSError as e:
                raise Failure("config", "CONFIG", "cwd %r cannot be entered: %s" % (cwd, e.strerror)) from None
        if path or cwd:
            sys.path.insert(0, path or cwd)

    def bind(self, head):
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module  # pickle and dataclasses look there
        context = {"args": self.args, "variables": self.variables}
        for name in ("execution_id", "step", "server_url"):
            context[name] = head.get(name) or ""
        g = self.scope = module.__dict__
        g.update(sys=sys, json=json, os=os, datetime=datetime, uuid=uuid, context=context, args=self.args)
        g.update(variables=self.variables, execution_id=context["execution_id"], step=context["step"])
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
        if name in ("args", "input_data", "context", "variables", "execution_id", "step"):
            return self.scope[name]
        return MISSING


# ---------------------------------------------------------------- the answer


def encode(value):
    try:
        text = json.dumps(value, default=plain, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        problem = find_problem(value, "result", set())
        if problem:
            raise Failure("schema", "PY_RESULT", problem) from None
        text = json.dumps(text_keys(value), default=lambda o: text_keys(plain(o)), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


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
    if callable(getattr(o, "tolist", None)):  # numpy
        return o.tolist()
    return str(o)


def plain_decimal(d):
    """A number when a float holds it exactly, else its text."""
    if not d.is_finite():
        raise Failure("schema", "PY_RESULT", "result holds Decimal %s, which JSON cannot carry; use None" % d)
    if d == d.to_integral_value() and abs(d) < 10**15:
        return int(d)
    f = float(d)
    return f if decimal.Decimal(repr(f)) == d else str(d)


def text_keys(o):
    if isinstance(o, dict):
        return {k if isinstance(k, str) else key_text(k): text_keys(v) for k, v in o.items()}
    if isinstance(o, (list, tuple)):
        return [text_keys(v) for v in o]
    return o


def key_text(k):
    if k is None or isinstance(k, (bool, int, float)) and not isinstance(k, enum.Enum):
        return json.dumps(k)
    k = plain(k) if not isinstance(k, tuple) else str(k)
    return k if isinstance(k, str) else str(k)


def find_problem(o, path, above):
    """Says where a value cannot be JSON; None when it can."""
    if isinstance(o, float) and not math.isfinite(o):
        return "%s is %s, which JSON cannot carry; use None instead" % (path, o)
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
    out = {"type": name, "message": str(e)[:16384], "exit_code": 1}
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
    out["kind"] = kind_of(e)
    out["traceback"] = user_traceback(e, filename)
    return json.dumps(out).encode()


def kind_of(e):
    if isinstance(e, json.JSONDecodeError):
        return "parse"
    if isinstance(e, MemoryError):
        return "resource_limit"
    if isinstance(e, (TypeError, ValueError, LookupError)) or type(e).__name__ == "ValidationError":
        return "schema"
    return "logic"


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
