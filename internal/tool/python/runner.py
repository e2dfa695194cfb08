"""The warm parent of python steps, and its children.

Descriptor 3 is the control socket. The worker writes 8-byte orders (op, pid):
F fork a child, T terminate a child's group, K kill it. The parent answers with
12-byte notes (op, pid, status): C child made, with three descriptors attached
(talk, stdout, stderr); X child ended; E fork failed. When the worker's end
closes, everything here dies.

The parent never runs user code. Each child is made ahead of need, takes one
request from its talk socket, answers there and ends.
"""
import gc
import resource
import select
import signal
import socket
import struct

try:
    import ctypes

    _libc = ctypes.CDLL(None) if sys.platform.startswith("linux") else None
except Exception:  # a build without ctypes loses only the second safety net
    _libc = None

ORDER = struct.Struct(">cxxxi")
NOTE = struct.Struct(">cxxxii")
SIZES = struct.Struct(">QQQ")
ANSWER = struct.Struct(">cQ")
MAX_FILES = 4096


# ---------------------------------------------------------------- the parent


class Stop(BaseException):
    pass


def stop(*_):
    raise Stop


class Parent:
    def __init__(self):
        self.control = socket.socket(fileno=3)
        self.control.set_inheritable(False)
        self.live = set()
        self.wake_r, self.wake_w = os.pipe()
        os.set_blocking(self.wake_r, False)
        os.set_blocking(self.wake_w, False)
        signal.set_wakeup_fd(self.wake_w, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def run(self):
        """Ends, with every child, when the worker is gone."""
        signal.signal(signal.SIGTERM, stop)
        try:
            self.loop()
        except (OSError, Stop):
            pass
        finally:
            for pid in self.live:
                kill_group(pid, signal.SIGKILL)

    def loop(self):
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(self.wake_r, select.POLLIN)
        pending = b""
        while True:
            ready = {fd for fd, _ in poll.poll()}
            if self.wake_r in ready:
                self.reap()
            if 3 not in ready:
                continue
            data = self.control.recv(4096)
            if not data:
                return
            pending += data
            while len(pending) >= ORDER.size:
                op, pid = ORDER.unpack_from(pending)
                pending = pending[ORDER.size:]
                self.obey(op, pid)

    def obey(self, op, pid):
        if op == b"F":
            self.fork()
        elif pid in self.live:  # a reaped pid may belong to somebody else
            kill_group(pid, signal.SIGTERM if op == b"T" else signal.SIGKILL)

    def fork(self):
        fds = []
        try:
            talk, talk_child = socket.socketpair()
            fds += [talk.detach(), talk_child.detach()]
            fds += os.pipe()
            fds += os.pipe()
            parent = os.getpid()
            pid = os.fork()
        except OSError as e:
            for fd in fds:
                os.close(fd)
            self.control.sendall(NOTE.pack(b"E", 0, e.errno or 0))
            return
        talk, talk_child, out_r, out_w, err_r, err_w = fds
        if pid == 0:
            be_child(self, parent, talk_child, out_w, err_w, (talk, out_r, err_r))
        try:  # both sides do it, so that the group exists for either
            os.setpgid(pid, pid)
        except OSError:
            pass
        self.live.add(pid)
        socket.send_fds(self.control, [NOTE.pack(b"C", pid, 0)], [talk, out_r, err_r])
        for fd in fds:
            os.close(fd)

    def orphans(self):
        """Kills what escaped the group of a call that has ended: it comes to
        us, because we asked for orphans."""
        try:
            with open("/proc/self/task/%d/children" % os.getpid()) as f:
                pids = [int(pid) for pid in f.read().split()]
        except (OSError, ValueError):
            return
        for pid in pids:
            if pid not in self.live:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass

    def reap(self):
        try:
            while os.read(self.wake_r, 512):
                pass
        except BlockingIOError:
            pass
        for pid, status in ended_children():
            self.live.discard(pid)
            self.control.sendall(NOTE.pack(b"X", pid, status))
        if _libc is not None:
            self.orphans()


def ended_children():
    """Reaps children, each after what is left of its group was killed: only
    until then does the group's id surely belong to it."""
    look = getattr(os, "waitid", None)
    while True:
        try:
            if look:
                info = look(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if info is None:
                    return
                kill_group(info.si_pid, signal.SIGKILL)
                yield os.waitpid(info.si_pid, 0)
            else:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                kill_group(pid, signal.SIGKILL)
                yield pid, status
        except ChildProcessError:
            return


def kill_group(pid, signum):
    try:
        os.killpg(pid, signum)
    except OSError:
        pass


# ----------------------------------------------------------------- the child


def be_child(parent, parent_pid, talk, out_w, err_w, not_ours):
    """Never returns."""
    status = 1
    try:
        try:
            os.setpgid(0, 0)
        except OSError:
            pass
        if _libc is not None:
            _libc.prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
            if os.getppid() != parent_pid:
                os._exit(1)
            _libc.prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.dup2(out_w, 1)
        os.dup2(err_w, 2)
        for fd in (*not_ours, out_w, err_w, parent.wake_r, parent.wake_w):
            os.close(fd)
        parent.control.close()
        rehearse()
        gc.enable()
        Child(socket.socket(fileno=talk)).serve()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def confine(head):
    """Applies what a call may use. Nothing of it can be undone."""
    head = json.loads(head)
    if head.get("sandbox") != "trusted" and _libc is not None:
        _libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    apply_limits(head.get("limits") or {})


def apply_limits(limits):
    names = {"memory": resource.RLIMIT_AS, "cpu": resource.RLIMIT_CPU, "file": resource.RLIMIT_FSIZE}
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    for name, which in names.items():
        value = limits.get(name, 0)
        if value > 0:
            _, hard = resource.getrlimit(which)
            if hard != resource.RLIM_INFINITY:
                value = min(value, hard)
            # A second above lets the process see SIGXCPU, which has a name.
            resource.setrlimit(which, (value, value + 1 if name == "cpu" and hard == resource.RLIM_INFINITY else value))


def rehearse():
    """Runs a program nobody asked for. In a child this takes, while it is idle,
    the page faults its one real call would pay for; in the parent it brings
    caches into the shape that children inherit."""
    main = sys.modules["__main__"]
    head = b'{"code":"def f(a):\\n    return a\\nb = f(n)\\nresult = {\\"n\\": b}\\n","step":"","env":{}}'
    encode(Run(head, b'{"n": 1, "s": "x", "l": [1.5, true]}', b"").value())
    linecache.cache.clear()
    sys.modules["__main__"] = main


class Child:
    def __init__(self, talk):
        self.talk = talk
        self.pid = os.getpid()

    def serve(self):
        head = self.read(SIZES.size)
        if head is None:
            return  # never needed
        sizes = SIZES.unpack(head)
        parts = [self.read(n) for n in sizes]
        if None in parts:
            return
        self.talk.sendall(b"A")  # from here on the code may have run
        kind, body = self.outcome(parts)
        if os.getpid() != self.pid:
            return  # user code forked; the answer belongs to the first process
        # Readers see the end of both streams before the answer.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        head = ANSWER.pack(kind, len(body))
        if len(body) < 1 << 16:
            self.talk.sendall(head + body)
        else:
            self.talk.sendall(head)
            self.talk.sendall(body)

    def read(self, size):
        buf = bytearray(size)
        view, at = memoryview(buf), 0
        while at < size:
            n = self.talk.recv_into(view[at:])
            if n == 0:
                return None
            at += n
        return buf

    def outcome(self, parts):
        run = None
        try:
            confine(parts[0])
            run = Run(*parts)
            try:
                value = run.checked()
            finally:
                finish_threads()
            return (b"N", b"") if value is None else (b"R", encode(value))
        except BaseException as e:
            try:
                return b"E", describe(e, run)
            except BaseException as again:  # e.g. no memory left to describe it
                text = {"type": type(e).__name__, "message": "%s, and it cannot be described: %s" % (type(e).__name__, type(again).__name__)}
                return b"E", json.dumps(text).encode()
        finally:
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except Exception:
                    pass


def finish_threads():
    """Ends like a script does: other threads are joined, exit hooks run."""
    threading = sys.modules.get("threading")
    if threading is not None:
        others = [t for t in threading.enumerate() if t is not threading.current_thread() and not t.daemon]
        if others and hasattr(threading, "_shutdown"):
            threading._shutdown()  # also tells thread pools that nothing more comes
    import atexit

    atexit._run_exitfuncs()


def start():
    if _libc is not None:
        _libc.prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    if null > 2:
        os.close(null)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    sys.argv = [""]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Children share the parent's pages until they write to them; a collector
    # that touches every object would copy them all.
    for _ in range(40):
        rehearse()
    gc.collect()
    gc.freeze()
    gc.disable()
    Parent().run()
    os._exit(0)


start()
