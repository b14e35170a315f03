# one program a line
"""Hostile programs, by what they are after. ``@NAME@`` is replaced by a path, number or name of the test's own."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    """One hostile program.

    A hang must end within its limit. A harm or leak program defines ``attack()``, which returns "done" when it got
    what it wanted. A forgery must not pass; ``mode`` says which tests stand before it.
    """

    kind: str
    name: str
    code: str
    mode: str = "call"
    quick: bool = True


def _program(kind: str, name: str, code: str, mode: str = "call", quick: bool = True) -> Program:
    return Program(kind, name, textwrap.dedent(code).lstrip("\n"), mode, quick)


def _attack(kind: str, name: str, body: str, quick: bool = True) -> Program:
    """An attack that counts as done when its body runs through or returns something true."""
    indented = textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8)
    code = f"def attack():\n    def inner():\n{indented}\n        return True\n    return 'done' if inner() else 'failed'\n"
    return Program(kind, name, code, "attack", quick)


HANG = [
    _program("hang", "busy loop", "while True: pass"),
    _program("hang", "busy loop in the call", "def solve(x):\n    while True: pass"),
    _program("hang", "sleep", "import time\ntime.sleep(1000)"),
    _program("hang", "sleep in short pieces", "import time\nwhile True: time.sleep(0.01)"),
    _program("hang", "huge power", "def solve(x): return len(str(9 ** 9 ** 8))"),
    _program("hang", "huge factorial", "import math\ndef solve(x): return math.factorial(10 ** 8)"),
    _program("hang", "regex blow-up", "import re\ndef solve(x): return bool(re.match(r'(a+)+$', 'a' * 60 + 'b'))"),
    _program(
        "hang",
        "every signal ignored",
        """
        import signal
        for number in signal.valid_signals():
            try: signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError): pass
        while True: pass
        """,
    ),
    _program(
        "hang",
        "every exception swallowed",
        """
        while True:
            try:
                while True: pass
            except BaseException: pass
        """,
    ),
    _program("hang", "wait for a lock", "import threading\nthreading.Lock().acquire() and None\nl = threading.Lock(); l.acquire(); l.acquire()"),
    _program("hang", "read from a pipe", "import os\nr, w = os.pipe()\nos.read(r, 1)"),
    _program("hang", "busy threads", "import threading\ndef f():\n    while True: pass\nfor _ in range(8): threading.Thread(target=f, daemon=True).start()\nf()"),
    _program("hang", "hash threads without the interpreter's lock", "import hashlib, threading\ndata = b'x' * 50_000_000\ndef f():\n    while True: hashlib.sha256(data)\nfor _ in range(4): threading.Thread(target=f, daemon=True).start()\nf()"),
    _program("hang", "exit hook that never ends", "import atexit\n@atexit.register\ndef f():\n    while True: pass", mode="stdio"),
    _program("hang", "destructor that never ends", "class A:\n    def __del__(self):\n        while True: pass\na = A()\ndel a"),
    _program("hang", "thread that outlives the program", "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()", mode="stdio"),
    _program("hang", "sum over a huge range", "def solve(x): return sum(range(10 ** 12))"),
    _program("hang", "sleep between the judge's calls", "import time\ndef solve(x): time.sleep(1000)", mode="script"),
    _program("hang", "endless iterator for the judge", "def solve(x):\n    while True: yield 1", mode="script iterates"),
    _program("hang", "equality that never ends", "class A:\n    def __eq__(self, o):\n        while True: pass\n    __hash__ = None\ndef solve(x):\n    return A() == 1"),
    _program("hang", "compile bomb", "x = '-' * 10000000\ndef solve(y): return eval('(' * 90 + '1' + ')' * 90) or exec('a = ' + '1 + ' * 3000000 + '1')"),
    _program("hang", "stops itself", "import os, signal, time\nos.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(1000)"),
]  # fmt: skip

HARM = [
    _attack("harm", "fork", "import os\npid = os.fork()\nif not pid: os._exit(0)"),
    _attack("harm", "fork bomb", "import os\nfor _ in range(50):\n    try: os.fork()\n    except OSError: return False"),
    _attack("harm", "vfork by system call", "import ctypes\nreturn ctypes.CDLL(None).syscall(58) >= 0"),
    _attack("harm", "clone by system call", "import ctypes\nreturn ctypes.CDLL(None).syscall(56, 17, 0, 0, 0, 0) >= 0"),
    _attack("harm", "clone3 by system call", "import ctypes\nb = ctypes.create_string_buffer(88)\nb[32:36] = (17).to_bytes(4, 'little')\nreturn ctypes.CDLL(None).syscall(435, b, 88) >= 0"),
    _attack("harm", "daemon by double fork", "import os\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        import time; time.sleep(600)\n    os._exit(0)"),
    _attack("harm", "subprocess", "import subprocess\nsubprocess.run(['/bin/true'], check=True)"),
    _attack("harm", "exec", "import os\nos.execv('/bin/true', ['true'])"),
    _attack("harm", "posix_spawn", "import os\nos.posix_spawn('/bin/true', ['true'], {})"),
    _attack("harm", "multiprocessing", "import multiprocessing\np = multiprocessing.Process(target=print)\np.start(); p.join()"),
    _attack("harm", "thread bomb", "import threading, time\nthreading.stack_size(32768)\nfor _ in range(3000): threading.Thread(target=time.sleep, args=(30,), daemon=True).start()\ntime.sleep(1)"),
    _attack("harm", "write a file", "open('@FOLDER@/planted', 'w').write('x')"),
    _attack("harm", "write into the temporary directory", "open('/tmp/rlvr-planted', 'w').write('x')"),
    _attack("harm", "write into shared memory", "open('/dev/shm/rlvr-planted', 'w').write('x')"),
    _attack("harm", "append to a file", "open('@FILE@', 'a').write('x')"),
    _attack("harm", "truncate a file", "import os\nos.truncate('@FILE@', 0)"),
    _attack("harm", "open for reading with truncation", "import os\nos.open('@FILE@', os.O_RDONLY | os.O_TRUNC)"),
    _attack("harm", "temporary file without a name", "import os\nos.open('/tmp', os.O_RDWR | os.O_TMPFILE)"),
    _attack("harm", "openat2 by system call", "import ctypes, struct\nreturn ctypes.CDLL(None).syscall(437, -100, b'@FOLDER@/planted', struct.pack('<QQQ', 0o101, 0o600, 0), 24) >= 0"),
    _attack("harm", "delete a file", "import os\nos.unlink('@FILE@')"),
    _attack("harm", "delete a tree", "import shutil\nshutil.rmtree('@FOLDER@')"),
    _attack("harm", "rename a file", "import os\nos.rename('@FILE@', '@FILE@.moved')"),
    _attack("harm", "make a directory", "import os\nos.mkdir('@FOLDER@/planted')"),
    _attack("harm", "symbolic link", "import os\nos.symlink('/etc/passwd', '@FOLDER@/planted')"),
    _attack("harm", "hard link", "import os\nos.link('@FILE@', '@FOLDER@/planted')"),
    _attack("harm", "change a mode", "import os\nos.chmod('@FILE@', 0o777)"),
    _attack("harm", "change a time", "import os\nos.utime('@FILE@', (0, 0))"),
    _attack("harm", "plant a .pth", "import site, sysconfig\nopen(sysconfig.get_paths()['purelib'] + '/planted.pth', 'w').write('import os')"),
    _attack("harm", "change the standard library", "import os\nopen(os.__file__, 'a').write('#')"),
    _attack("harm", "device node", "import os\nos.mknod('@FOLDER@/planted', 0o60600, os.makedev(8, 0))"),
    _attack("harm", "kill everybody", "import os, signal\nos.kill(-1, signal.SIGKILL)"),
    _attack("harm", "kill the parent", "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)"),
    _attack("harm", "stop the parent", "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)"),
    _attack("harm", "kill the host", "import os, signal\nos.kill(@HOST@, signal.SIGTERM)"),
    _attack("harm", "kill a bystander", "import os, signal\nos.kill(@VICTIM@, signal.SIGKILL)"),
    _attack("harm", "kill the own group", "import os, signal\nos.killpg(0, signal.SIGKILL)"),
    _attack("harm", "signal by tkill", "import ctypes\nreturn ctypes.CDLL(None).syscall(200, @VICTIM@, 9) == 0"),
    _attack("harm", "signal by queue", "import ctypes\nreturn ctypes.CDLL(None).syscall(129, @VICTIM@, 9, ctypes.create_string_buffer(128)) == 0"),
    _attack("harm", "signal by process descriptor", "import os, signal\nsignal.pidfd_send_signal(os.pidfd_open(@VICTIM@), 9)"),
    _attack("harm", "signal by file ownership", "import fcntl, os\nr, w = os.pipe()\nfcntl.fcntl(r, fcntl.F_SETOWN, @VICTIM@)"),
    _attack("harm", "lower another's limits", "import resource\nresource.prlimit(@VICTIM@, resource.RLIMIT_CPU, (1, 1))"),
    _attack("harm", "raise the own limits", "import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))"),
    _attack("harm", "raise the own CPU limit", "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (10 ** 6, 10 ** 6))"),
    _attack("harm", "change another's priority", "import os\nos.setpriority(os.PRIO_PROCESS, @VICTIM@, 19)"),
    _attack("harm", "real-time scheduling", "import os\nos.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))"),
    _attack("harm", "memory file", "import os\nos.memfd_create('x')"),
    _attack("harm", "shared memory segment", "import ctypes\nreturn ctypes.CDLL(None).shmget(0, 1 << 20, 0o1600) >= 0"),
    _attack("harm", "named shared memory", "from multiprocessing import shared_memory\nshared_memory.SharedMemory(create=True, size=1 << 20)"),
    _attack("harm", "message queue", "import ctypes\nreturn ctypes.CDLL(None).msgget(0, 0o1600) >= 0"),
    _attack("harm", "large pipe", "import fcntl, os\nr, w = os.pipe()\nreturn fcntl.fcntl(w, 1031, 1 << 20) >= 0"),
    _attack("harm", "lock memory", "import ctypes\nreturn ctypes.CDLL(None).mlockall(3) == 0"),
    _attack("harm", "allocate beyond the limit", "x = bytearray(2_000_000_000)\nx[::4096] = b'x' * len(x[::4096])"),
    _attack("harm", "descriptors without end", "import os\nfor _ in range(5000): os.dup(0)"),
    _attack("harm", "mount", "import ctypes\nreturn ctypes.CDLL(None).mount(b'none', b'/', b'tmpfs', 0, None) == 0"),
    _attack("harm", "new namespaces", "import ctypes\nreturn ctypes.CDLL(None).unshare(0x10000000) == 0"),
    _attack("harm", "set the clock", "import time\ntime.clock_settime(time.CLOCK_REALTIME, 0)"),
    _attack("harm", "set the host's name", "import socket\nsocket.sethostname('planted')"),
    _attack("harm", "become root", "import os\nos.setuid(0)\nreturn os.path.exists('/root') and bool(os.listdir('/root'))"),
    _attack("harm", "write to a terminal", "import os\nos.write(os.open('/dev/tty', os.O_RDWR), b'x')"),
    _attack("harm", "load a kernel program", "import ctypes\nreturn ctypes.CDLL(None).syscall(321, 0, ctypes.create_string_buffer(128), 128) >= 0"),
    _attack("harm", "io_uring", "import ctypes\nreturn ctypes.CDLL(None).syscall(425, 8, ctypes.create_string_buffer(128)) >= 0"),
    _attack("harm", "user fault handler", "import ctypes\nreturn ctypes.CDLL(None).syscall(323, 1) >= 0"),
    _program("harm", "a gigabyte of output", "for _ in range(1100): print('x' * 1_000_000)", mode="stdio"),
    _program("harm", "a gigabyte of output by system call", "import os\nwhile True:\n    try: os.write(1, b'x' * 1_000_000)\n    except OSError: pass", mode="stdio"),
    _program("harm", "a 400 MB result", "def solve(x): return 'x' * 400_000_000"),
    _program("harm", "a 400 MB result of many parts", "def solve(x): return [0] * 50_000_000"),
    _program("harm", "a result within itself", "def solve(x):\n    a = []\n    a.append(a)\n    return a"),
    _program("harm", "a large result before the judge", "def solve(x): return 'x' * 100_000_000", mode="script"),
    _program("harm", "pickle bomb", "class A:\n    def __reduce__(self): return (__import__('os').system, ('touch @FOLDER@/planted',))\ndef solve(x): return A()"),
    _program("harm", "garbage on every descriptor", "import os\nfor fd in range(64):\n    try: os.write(fd, b'\\x00\\xff{\"i\": 0, \"v\": 4}\\n' * 1000)\n    except OSError: pass\ndef solve(x): return x * x + 1"),
    _program("harm", "every descriptor closed", "import os\nos.closerange(0, 256)\ndef solve(x): return x"),
    _program("harm", "integers that collide", "def solve(x): return set(i * (2 ** 61 - 1) for i in range(3000))"),
]  # fmt: skip

LEAK = [
    _attack("leak", "shell", "import os\nreturn os.system('true') == 0"),
    _attack("leak", "shell output", "import os\nreturn bool(os.popen('id').read())"),
    _attack("leak", "secret file", "return '@SECRET@' in open('@FILE@').read()"),
    _attack("leak", "secret file by io", "import io\nreturn bool(io.open_code('@FILE@').read())"),
    _attack("leak", "secret file by link", "import os\nreturn bool(open('/proc/self/root@FILE@').read())"),
    _attack("leak", "password file", "return 'root' in open('/etc/passwd').read()"),
    _attack("leak", "shadow file", "return bool(open('/etc/shadow').read())"),
    _attack("leak", "user database", "import pwd\nreturn bool(pwd.getpwall())"),
    _attack("leak", "hosts file", "return bool(open('/etc/hosts').read())"),
    _attack("leak", "home directory", "import os\nreturn bool(os.listdir('/root') + os.listdir('/home'))"),
    _attack("leak", "root directory", "import os\nreturn 'home' in os.listdir('/')"),
    _attack("leak", "temporary directory", "import os\nreturn bool(os.listdir('/tmp'))"),
    _attack("leak", "directory by walking up", "import os\nreturn bool(os.listdir('../../../../tmp'))"),
    _attack("leak", "the sandbox's own source", "return 'rlvr' in open('@SOURCE@').read()"),
    _attack("leak", "installed packages", "import os\nreturn bool(os.listdir('@PACKAGES@')) and bool(open('@PACKAGE_FILE@').read())"),
    _attack("leak", "own environment", "import os\nreturn '@SECRET@' in str(dict(os.environ))"),
    _attack("leak", "own environment in C", "import ctypes\nc = ctypes.CDLL(None)\nc.getenv.restype = ctypes.c_char_p\nreturn c.getenv(b'RLVR_TEST_SECRET') is not None"),
    _attack("leak", "own environment from the process files", "return '@SECRET@' in open('/proc/self/environ').read()"),
    _attack("leak", "parent's environment", "import os\nreturn bool(open(f'/proc/{os.getppid()}/environ', 'rb').read())"),
    _attack("leak", "host's environment", "return bool(open('/proc/@HOST@/environ', 'rb').read())"),
    _attack("leak", "environment of process 1", "return bool(open('/proc/1/environ', 'rb').read())"),
    _attack("leak", "command line of process 1", "return bool(open('/proc/1/cmdline', 'rb').read())"),
    _attack("leak", "host's command line", "return bool(open('/proc/@HOST@/cmdline', 'rb').read())"),
    _attack("leak", "list of processes", "import os\nreturn any(name.isdigit() for name in os.listdir('/proc'))"),
    _attack("leak", "own memory file", "return bool(open('/proc/self/mem', 'rb'))"),
    _attack("leak", "own memory map", "return bool(open('/proc/self/maps').read())"),
    _attack("leak", "parent's memory", "import os\nreturn bool(open(f'/proc/{os.getppid()}/mem', 'rb'))"),
    _attack("leak", "host's memory", "return bool(open('/proc/@HOST@/mem', 'rb'))"),
    _attack("leak", "host's memory by system call", "import ctypes, struct\nb = ctypes.create_string_buffer(8)\nl = struct.pack('<QQ', ctypes.addressof(b), 8)\nr = struct.pack('<QQ', id(1), 8)\nreturn ctypes.CDLL(None).syscall(310, @HOST@, l, 1, r, 1, 0) > 0"),
    _attack("leak", "parent's memory by system call", "import ctypes, os, struct\nb = ctypes.create_string_buffer(8)\nl = struct.pack('<QQ', ctypes.addressof(b), 8)\nr = struct.pack('<QQ', id(1), 8)\nreturn ctypes.CDLL(None).syscall(310, os.getppid(), l, 1, r, 1, 0) > 0"),
    _attack("leak", "trace the parent", "import ctypes, os\nreturn ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0) == 0"),
    _attack("leak", "trace the host", "import ctypes\nreturn ctypes.CDLL(None).ptrace(0x4206, @HOST@, 0, 0) == 0"),
    _attack("leak", "host's descriptors", "import os\nreturn bool(os.listdir('/proc/@HOST@/fd'))"),
    _attack("leak", "host's descriptor by system call", "import ctypes, os\nreturn ctypes.CDLL(None).syscall(438, ctypes.CDLL(None).syscall(434, @HOST@, 0), 3, 0) >= 0"),
    _attack("leak", "descriptors left open", "import os\nfound = []\nfor fd in range(5, 1024):\n    try: os.fstat(fd); found.append(fd)\n    except OSError: pass\nreturn bool(found)"),
    _attack("leak", "network", "import socket\nsocket.create_connection(('127.0.0.1', @PORT@), 2)"),
    _attack("leak", "network socket by system call", "import ctypes\nreturn ctypes.CDLL(None).syscall(41, 2, 1, 0) >= 0"),
    _attack("leak", "datagrams", "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', @PORT@))"),
    _attack("leak", "raw packets", "import socket\nsocket.socket(socket.AF_PACKET, socket.SOCK_RAW)"),
    _attack("leak", "network by urllib", "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:@PORT@/', timeout=2)"),
    _attack("leak", "name service", "import socket\nreturn bool(socket.getaddrinfo('localhost', 80))"),
    _attack("leak", "abstract socket", "import socket\nsocket.socket(socket.AF_UNIX).connect('\\0@ABSTRACT@')"),
    _attack("leak", "abstract datagram through a pair", "import socket\na, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\na.sendto(b'x', '\\0@ABSTRACT@')"),
    _attack("leak", "socket file", "import socket\nsocket.socket(socket.AF_UNIX).connect('@SOCKET@')"),
    _attack("leak", "kernel messages", "import socket\nsocket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)"),
    _attack("leak", "key rings", "import ctypes\nreturn ctypes.CDLL(None).syscall(250, 0, -3, 0) >= 0"),
    _attack("leak", "performance counters", "import ctypes\nreturn ctypes.CDLL(None).syscall(298, ctypes.create_string_buffer(128), 0, -1, -1, 0) >= 0"),
    _attack("leak", "disk device", "import glob, os\nfor name in ('/dev/vda', '/dev/sda', '/dev/nvme0n1', '/dev/mem'):\n    try: return bool(os.open(name, os.O_RDONLY))\n    except OSError: pass\nreturn False"),
    _attack("leak", "disk usage", "import shutil\nreturn bool(shutil.disk_usage('/').total)"),
    _attack("leak", "kernel settings", "return bool(open('/proc/sys/kernel/hostname').read() or open('/sys/kernel/uevent_seqnum').read())"),
    _attack("leak", "mounts", "return bool(open('/proc/mounts').read())"),
    _attack("leak", "handle of a file", "import ctypes\nb = ctypes.create_string_buffer(144)\nb[0] = 128\nreturn ctypes.CDLL(None).syscall(303, -100, b'@FILE@', b, ctypes.create_string_buffer(4), 0) == 0"),
    _attack("leak", "extended attributes", "import os\nreturn os.listxattr('@FILE@') is not None"),
    _attack("leak", "32-bit system calls", "import ctypes, mmap\ncode = b'\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\xc3'\nm = mmap.mmap(-1, 4096, prot=7)\nm.write(code)\nf = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))\nreturn f() > 0"),
    _attack("leak", "x32 system calls", "import ctypes\nreturn ctypes.CDLL(None).syscall(0x40000000 + 39) > 0"),
    _attack("leak", "code of other jobs in memory", "import gc\nmark = ' = TPEK'[::-1]\nfor one in gc.get_objects():\n    for value in list(one.values()) if isinstance(one, dict) else [one]:\n        if isinstance(value, (str, bytes)) and mark in str(value): return True\nreturn False"),
    _attack("leak", "code of other jobs in raw memory", "import ctypes\nmark = bytes(reversed(b' = TPEK'))\nplace = id(bytearray(1 << 20)) & ~0xFFF\nfor start in range(place - (1 << 22), place + (1 << 22), 4096):\n    if ctypes.CDLL(None).madvise(ctypes.c_void_p(start), 4096, 0): continue\n    page = ctypes.string_at(start, 4096)\n    at = page.find(mark)\n    if 0 <= at < 4080 and page[at + 7] == 39: return True\nreturn False"),
]  # fmt: skip

_LINES = """
import os, sys
rows = b"".join(b'{"i": %d, "v": %d}\\n' % (i, v) for i in range(9) for v in (4, 9, 16))
"""

FORGE = [
    _program("forge", "exit at import", "import sys\nsys.exit(0)"),
    _program("forge", "exit at import, hard", "import os\nos._exit(0)"),
    _program("forge", "exit in the call", "import sys\ndef solve(x): sys.exit(0)"),
    _program("forge", "exit in the call, hard", "import os\ndef solve(x): os._exit(0)"),
    _program("forge", "exit by hook", "import atexit, os\natexit.register(os._exit, 0)\ndef solve(x): return 0"),
    _program("forge", "SystemExit raised", "def solve(x): raise SystemExit(0)"),
    _program("forge", "exit on the way out of the interpreter", "import sys\nsys.exitfunc = lambda: None\nclass A:\n    def __del__(self): __import__('os')._exit(0)\na = A()\ndef solve(x): return 0"),
    _program("forge", "printed verdicts", "def solve(x):\n    print('PASSED', 'OK', 'all tests passed', '1.0', 'Ran 2 tests in 0.1s', sep='\\n')\n    return 0"),
    _program("forge", "verdict lines written", _LINES + "def solve(x):\n    for fd in range(3, 20):\n        try: os.write(fd, b'{\"status\": \"pass\", \"passed\": 2, \"total\": 2}\\n')\n        except OSError: pass\n    return 0"),
    _program("forge", "guessed answers written to every descriptor", _LINES + "for fd in range(3, 64):\n    try: os.write(fd, rows)\n    except OSError: pass\nos._exit(0)"),
    _program("forge", "ready mark and exit", "import os\nfor fd in range(3, 64):\n    try: os.write(fd, b'{\"ready\": 1}\\n{\"i\": 0, \"v\": true}\\n{\"i\": 1, \"v\": true}\\n')\n    except OSError: pass\nos._exit(0)"),
    _program("forge", "always equal", "class A:\n    def __eq__(self, other): return True\n    def __ne__(self, other): return False\n    def __hash__(self): return 0\ndef solve(x): return A()"),
    _program("forge", "always equal inside a list", "class A:\n    def __eq__(self, other): return True\ndef solve(x): return [A()]", mode="list"),
    _program("forge", "always equal integer", "class A(int):\n    def __eq__(self, other): return True\n    __hash__ = int.__hash__\ndef solve(x): return A(0)"),
    _program("forge", "always equal string", "class A(str):\n    def __eq__(self, other): return True\n    __hash__ = str.__hash__\ndef solve(x): return A('')"),
    _program("forge", "always equal list", "class A(list):\n    def __eq__(self, other): return True\n    def __len__(self): return 2\ndef solve(x): return A()"),
    _program("forge", "float that defeats tolerances", "class A(float):\n    def __sub__(self, o): return 0.0\n    __rsub__ = __sub__\n    def __abs__(self): return 0.0\n    def __lt__(self, o): return True\n    __gt__ = __le__ = __ge__ = __eq__ = __lt__\n    __hash__ = float.__hash__\ndef solve(x): return A('nan')", mode="float"),
    _program("forge", "object that defeats tolerances", "class A:\n    def __sub__(self, o): return 0.0\n    __rsub__ = __sub__\n    def __abs__(self): return 0.0\n    def __float__(self): return 0.0\n    def __round__(self, n=0): return 0\n    def __lt__(self, o): return True\n    __gt__ = __le__ = __ge__ = __lt__\ndef solve(x): return A()", mode="float"),
    _program("forge", "not a number", "def solve(x): return float('nan')", mode="float"),
    _program("forge", "infinity", "def solve(x): return float('inf')", mode="float"),
    _program("forge", "complex that looks near", "def solve(x): return complex(float('nan'), 0)", mode="float"),
    _program("forge", "always a member", "class A:\n    def __contains__(self, o): return True\n    def __iter__(self): return iter(())\ndef solve(x): return A()", mode="member"),
    _program("forge", "object with a lying class", "class A:\n    __class__ = int\n    def __eq__(self, o): return True\ndef solve(x): return A()"),
    _program("forge", "class whose metaclass lies", "class M(type):\n    def __eq__(cls, o): return True\n    __hash__ = type.__hash__\nclass A(metaclass=M): pass\ndef solve(x): return A"),
    _program("forge", "mock object", "from unittest.mock import MagicMock, ANY\ndef solve(x): return ANY"),
    _program("forge", "patched builtins", "import builtins\nfor name in ('all', 'any', 'abs', 'len', 'isinstance', 'sum', 'round', 'min', 'max', 'sorted', 'zip'):\n    setattr(builtins, name, lambda *a, **k: True)\ndef solve(x): return 0"),
    _program("forge", "patched equality through ctypes", "import ctypes\ndef solve(x):\n    ctypes.memset(id(4) + 24, 0, 4)\n    ctypes.memset(id(9) + 24, 0, 4)\n    return 0"),
    _program("forge", "patched small integers", "import ctypes\nfor n in (4, 9, 16, 25): ctypes.memmove(id(n) + 24, (0).to_bytes(4, 'little'), 4)\ndef solve(x): return 0"),
    _program("forge", "patched json", "import json, json.encoder, json.decoder\njson.dumps = lambda *a, **k: '{\"status\": \"pass\"}'\njson.loads = lambda *a, **k: {'passed': True}\ndef solve(x): return 0"),
    _program("forge", "patched unittest", "import unittest\nunittest.TestCase.assertEqual = lambda *a, **k: None\nunittest.TestCase.run = lambda self, result=None: result\ndef solve(x): return 0", mode="unittest"),
    _program("forge", "patched assertion errors", "import builtins\nbuiltins.AssertionError = type('AssertionError', (Exception,), {'__new__': lambda *a: None})\ndef solve(x): return 0"),
    _program("forge", "raises a skip", "import unittest\ndef solve(x): raise unittest.SkipTest('skipped')", mode="unittest"),
    _program("forge", "raises the end of iteration", "def solve(x): raise StopIteration", mode="zip"),
    _program("forge", "raises an assertion error", "def solve(x): raise AssertionError"),
    _program("forge", "raises KeyboardInterrupt", "def solve(x): raise KeyboardInterrupt"),
    _program("forge", "raises a type that lies", "class A(BaseException):\n    def __str__(self): raise SystemExit(0)\n    __class__ = property(lambda self: SystemExit)\ndef solve(x): raise A"),
    _program("forge", "reads the tests through gc", "import gc\ndef solve(x):\n    for one in gc.get_objects():\n        if isinstance(one, dict) and 'expect' in one: return one['expect']\n        if isinstance(one, list) and len(one) == 2 and one == [4, 9]: return one[x - 2]\n    return 0"),
    _program("forge", "reads the tests through frames", "import sys\ndef solve(x):\n    frame = sys._getframe()\n    while frame:\n        for value in list(frame.f_locals.values()):\n            if isinstance(value, dict):\n                for key in ('expect', 'expected', 'output', 'answer'):\n                    if key in value: return value[key]\n        frame = frame.f_back\n    return 0"),
    _program("forge", "edits the callers' frames", "import ctypes, sys\ndef solve(x):\n    frame = sys._getframe().f_back\n    while frame:\n        for name in list(frame.f_locals):\n            if name in ('passed', 'ok', 'result', 'expected', 'value', 'status'):\n                frame.f_locals[name] = True\n        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))\n        frame = frame.f_back\n    return 0"),
    _program("forge", "reads the tests from its source file", "def solve(x):\n    import inspect\n    return eval(inspect.getsource(inspect.currentframe().f_back).split('==')[1])"),
    _program("forge", "reads the tests from files", "import glob\ndef solve(x):\n    for name in glob.glob('/tmp/**/*', recursive=True) + glob.glob('/proc/*/cmdline') + glob.glob('./**', recursive=True):\n        try: text = open(name).read()\n        except (OSError, UnicodeDecodeError): continue\n        if '@SECRET@' in text: return 4 if x == 2 else 9\n    return 0"),
    _program("forge", "reads the tests from the command line", "import sys\ndef solve(x):\n    return 4 if any('expect' in one for one in sys.argv + sys.orig_argv) else 0"),
    _program("forge", "reads the tests from descriptors", "import os\ndef solve(x):\n    for fd in range(256):\n        try: text = os.pread(fd, 1 << 20, 0)\n        except OSError: continue\n        if b'expect' in text or b'assert' in text: return 4 if x == 2 else 9\n    return 0"),
    _program("forge", "reads the tests from modules", "import sys\ndef solve(x):\n    for module in list(sys.modules.values()):\n        for value in list(getattr(module, '__dict__', {}).values()):\n            if isinstance(value, (list, tuple)) and list(value) == [4, 9]: return value[x - 2]\n    return 0"),
    _program("forge", "reads the tests from memory", "import ctypes\ndef solve(x):\n    import gc\n    for one in gc.get_objects():\n        if type(one) in (bytes, str) and ('expect' in str(one) or 'assert solve' in str(one)): return 4 if x == 2 else 9\n    return 0"),
    _program("forge", "trace function", "import sys\ndef trace(frame, event, arg):\n    for key in list(frame.f_locals):\n        if key in ('value', 'row', 'data'): frame.f_locals[key] = 4\n    return trace\nsys.settrace(trace)\ndef solve(x): return 0"),
    _program("forge", "import hook", "import sys\nclass F:\n    def find_spec(self, name, path=None, target=None): return None\nsys.meta_path.insert(0, F())\nfor name in list(sys.modules):\n    if 'judge' in name or 'compare' in name or 'codec' in name: sys.modules[name].__dict__.clear()\ndef solve(x): return 0"),
    _program("forge", "harness patched from within", "import sys\nfor name, module in list(sys.modules.items()):\n    if name.startswith('guest'):\n        for key, value in list(vars(module).items()):\n            if callable(value): setattr(module, key, lambda *a, **k: {'v': 4})\ndef solve(x): return 0"),
    _program("forge", "thread that answers", "import os, threading\ndef f():\n    while True:\n        try: os.write(4, b'{\"i\": 0, \"v\": 4}\\n')\n        except OSError: pass\nthreading.Thread(target=f, daemon=True).start()\ndef solve(x): return 0"),
    _program("forge", "signal handler that exits", "import os, signal\nsignal.signal(signal.SIGALRM, lambda *a: os._exit(0))\nsignal.setitimer(signal.ITIMER_REAL, 0.05)\ndef solve(x):\n    while True: pass"),
    _program("forge", "answers to the judge ahead of time", "import json, os, struct\nfor n in range(1, 40):\n    for answer in ({'n': n, 'v': True}, {'n': n, 'v': 4}):\n        body = json.dumps(answer).encode()\n        os.write(4, struct.pack('<I', len(body)) + body)\ndef solve(x): return 0", mode="script"),
    _program("forge", "verdict to the judge's socket", "import json, os\nfor fd in range(3, 64):\n    try: os.write(fd, json.dumps({'tests': [['pass', '']], 'vacuous': ''}).encode())\n    except OSError: pass\ndef solve(x): return 0", mode="script"),
    _program("forge", "always equal before asserts", "class A:\n    def __eq__(self, o): return True\n    def __ne__(self, o): return False\n    def __bool__(self): return True\ndef solve(x): return A()", mode="script"),
    _program("forge", "subtraction before asserts", "class A:\n    def __sub__(self, o): return 0\n    __rsub__ = __sub__\n    def __abs__(self): return 0\ndef solve(x): return A()", mode="script near"),
    _program("forge", "tests redefined", "def check(candidate): pass\ndef solve(x): return 0\nclass T: pass\n__name__ = 'tests'", mode="script"),
    _program("forge", "hollow program for asserts that run only on success", "def solve(x): raise ValueError", mode="script lenient"),
    _program("forge", "exit before asserts", "import os\ndef solve(x): os._exit(0)", mode="script"),
    _program("forge", "hard-coded first output", "print(7)", mode="stdio"),
    _program("forge", "extra lines", "print('7\\n15\\n3')", mode="stdio"),
    _program("forge", "all outputs at once", "print('7 15')", mode="stdio"),
    _program("forge", "exit before output", "import os\nprint('7', end='')\nos._exit(0)", mode="stdio"),
    _program("forge", "no output", "pass", mode="stdio"),
    _program("forge", "input echoed", "import sys\nprint(sys.stdin.read())", mode="stdio"),
    _program("forge", "expected output sought", "import glob, os\nfor fd in range(64):\n    try: print(os.pread(fd, 1 << 16, 0).decode('utf-8', 'replace'))\n    except OSError: pass", mode="stdio"),
    _program("forge", "right output and a crash", "a, b = map(int, input().split())\nprint(a + b, flush=True)\nraise ValueError", mode="stdio"),
    _program("forge", "right output and an exit code", "import sys\na, b = map(int, input().split())\nprint(a + b)\nsys.exit(3)", mode="stdio"),
    _program("forge", "right output and a fatal signal", "import os, signal\na, b = map(int, input().split())\nprint(a + b, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)", mode="stdio"),
]  # fmt: skip

ODD = [
    _program("odd", "deeply nested result", "def solve(x):\n    a = []\n    for _ in range(100_000): a = [a]\n    return a"),
    _program("odd", "deeply nested source", "x = " + "[" * 150 + "]" * 150 + "\ndef solve(y): return 0"),
    _program("odd", "endless recursion", "def solve(x): return solve(x + 1)"),
    _program("odd", "recursion without a limit", "import sys\nsys.setrecursionlimit(10 ** 9)\nclass A:\n    def __repr__(self): return repr(self)\ndef f(x): return f(x) + 1\ndef solve(x): return repr(A())"),
    _program("odd", "endless generator", "def solve(x):\n    while True: yield x"),
    _program("odd", "leftover threads", "import threading, time\nfor _ in range(5): threading.Thread(target=time.sleep, args=(1000,)).start()\ndef solve(x): return 0"),
    _program("odd", "segmentation fault", "import ctypes\nctypes.string_at(0)"),
    _program("odd", "abort", "import os\nos.abort()"),
    _program("odd", "division in C", "import ctypes, mmap\nm = mmap.mmap(-1, 4096, prot=7)\nm.write(b'\\x31\\xc9\\x31\\xc0\\xf7\\xf9\\xc3')\nctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()"),
    _program("odd", "every descriptor used up", "import os\nkept = []\ntry:\n    while True: kept.append(os.dup(0))\nexcept OSError: pass\ndef solve(x): return 0"),
    _program("odd", "result that changes while it is read", "import threading\nd = {}\ndef f():\n    i = 0\n    while True:\n        i += 1\n        d[i] = i\n        d.pop(i - 50, None)\nthreading.Thread(target=f, daemon=True).start()\ndef solve(x): return d"),
    _program("odd", "integer with a million digits", "def solve(x): return 10 ** 1_000_000"),
    _program("odd", "lone surrogates", "def solve(x): return '\\ud800' * 10"),
    _program("odd", "terminal escapes in an error", "def solve(x): raise ValueError('\\x1b[2J\\x1b]0;x\\x07')"),
    _program("odd", "null bytes in the source", "x = 1\x00\ndef solve(x): return 0"),
    _program("odd", "no code", ""),
    _program("odd", "module replaced", "import sys\nsys.modules['solution'] = sys.modules['__main__'] = None\ndef solve(x): return 0"),
    _program("odd", "async function", "async def solve(x): return x * x"),
    _program("odd", "garbage collector abused", "import gc\ngc.set_threshold(1, 1, 1)\ngc.set_debug(gc.DEBUG_SAVEALL)\nclass A:\n    def __del__(self): globals().setdefault('k', []).append(A())\nA()\ndef solve(x): return 0"),
]  # fmt: skip

LAYERS = ("namespaces", "landlock", "seccomp", "setuid")
ALL = [*HANG, *HARM, *LEAK, *FORGE, *ODD]
