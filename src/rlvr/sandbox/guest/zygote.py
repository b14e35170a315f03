"""The warmed process that forks one confined child a job, watches its limits, and reports its end.

One thread, no knowledge of code, tests or results: those go from the host to the child in descriptors.
"""

from __future__ import annotations

import collections
import gc
import math
import mmap
import os
import resource
import select
import signal
import socket
import time
from typing import Callable, Deque, Dict, List, Optional, Tuple

from . import judge, kernel, program, serve, solver, wire
from .layers import Layers

_LOWEST = 10  # descriptors below are reserved for the places that a child expects
_HIGHEST = 128
_SHORTEST_CHECK, _LONGEST_CHECK = 0.01, 0.1
_MOST_THREADS = 128
_FORGIVEN = 3.0
_SLOTS = mmap.PAGESIZE

_ENTRY: Dict[bytes, Callable[[], None]] = {
    wire.CALLS: solver.run_calls,
    wire.PROGRAM: program.run_program,
    wire.SERVED: serve.serve_calls,
    wire.JUDGE: judge.serve_judge,
}


class _Child:
    """A child that runs, and what is known of its limits."""

    def __init__(self, pid: int, request: wire.Request, partner: Optional[_Child]) -> None:
        self.pid = pid
        self.request = request
        self.partner = partner
        self.partner_base = _cpu_used(partner.pid) if partner else 0.0
        self.started = time.monotonic()
        self.check_at = self.started + min(request.cpu, request.wall, _LONGEST_CHECK / 2)
        self.ended = 0
        self.awake = 0
        self.starved = 0.0

    def partner_cpu(self) -> float:
        return max(0.0, _cpu_used(self.partner.pid) - self.partner_base) if self.partner else 0.0


class Zygote:
    """Serves requests until the host closes the control socket."""

    def __init__(self, control: socket.socket, layers: Layers, address_space: int) -> None:
        self._control = control
        self._layers = layers
        self._address_space = address_space
        self._pid = os.getpid()
        self._waiting: Deque[Tuple[wire.Request, List[int]]] = collections.deque()
        self._children: Dict[int, _Child] = {}
        self._running: Optional[_Child] = None
        self._confined = mmap.mmap(-1, _SLOTS)  # shared: a child sets its byte once all its layers are on
        self._wake, self._wake_writer = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._wake_writer, False)

    def serve(self) -> None:
        """Serve until the control socket closes, then end every child."""
        signal.set_wakeup_fd(self._wake_writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # inherited: who writes more than allowed is ended
        poller = select.poll()
        poller.register(self._control.fileno(), select.POLLIN)
        poller.register(self._wake, select.POLLIN)
        solver.rehearse()
        gc.collect()
        gc.freeze()
        while True:
            ready = dict(poller.poll(self._timeout()))
            if self._wake in ready:
                os.read(self._wake, 4096)
            self._reap()
            if self._control.fileno() in ready and not self._receive():
                break
            self._check_limits()
            self._start_waiting()
        self._end_all()

    def _timeout(self) -> Optional[float]:
        if self._running is None:
            return None
        return max(0.0, self._running.check_at - time.monotonic()) * 1000 + 1

    def _receive(self) -> bool:
        data, descriptors, _, _ = socket.recv_fds(self._control, wire.LARGEST, 8)
        if not data:
            return False
        request = wire.Request.unpack(data)
        if request.kind == wire.KILL:
            self._kill_by_number(request.number)
        elif request.kind == wire.JUDGE:
            self._start(request, descriptors)
        else:
            self._waiting.append((request, descriptors))
        return True

    def _start_waiting(self) -> None:
        if self._running is None and self._waiting:
            self._running = self._start(*self._waiting.popleft())

    def _start(self, request: wire.Request, descriptors: List[int]) -> Optional[_Child]:
        self._confined[request.number % _SLOTS] = 0
        try:
            pid = os.fork()
            if not pid:
                self._become_child(request, descriptors)
        except OSError:
            self._send(wire.Report(request.number, 0, wire.NOT_STARTED, 0, 0.0, 0.0, 0.0, 0))
            return None
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        child = _Child(pid, request, self._children.get(request.judge))
        self._children[request.number] = child
        return child

    def _become_child(self, request: wire.Request, descriptors: List[int]) -> None:
        try:
            signal.set_wakeup_fd(-1)
            os.setpgid(0, 0)  # not setsid, which costs a scheduling group on many kernels
            kernel.die_with_parent()
            if os.getppid() != self._pid:
                return
            self._limit(request)
            self._layers.confine_child()
            _arrange(descriptors)
            self._layers.filter_child()
            self._confined[request.number % _SLOTS] = 1
            self._confined.close()  # what runs next cannot take the mark back
            _ENTRY[request.kind]()
        finally:
            os._exit(70)

    def _limit(self, request: wire.Request) -> None:
        resource.setrlimit(resource.RLIMIT_AS, (self._address_space + request.memory,) * 2)
        resource.setrlimit(resource.RLIMIT_FSIZE, (request.file_size,) * 2)
        if request.kind != wire.JUDGE:  # a judge's time is counted by the solutions it judges
            seconds = math.ceil(1.2 * request.cpu) + 1  # a second guard: the kernel counts this one by ticks
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))

    def _check_limits(self) -> None:
        child = self._running
        now = time.monotonic()
        if child is None or child.ended or now < child.check_at:
            return
        used = _cpu_used(child.pid) + child.partner_cpu()
        left_cpu, left_wall = child.request.cpu - used, child.started + child.request.wall - now
        if left_cpu <= 0:
            self._end(child, wire.BY_CPU)
        elif left_wall <= 0 and self._has_had_its_time(child, now):
            self._end(child, wire.BY_WALL)
        elif self._threads(child.pid) > _MOST_THREADS:
            self._end(child, wire.BY_THREADS)
        else:
            soon = min(
                left_wall if left_wall > 0 else _LONGEST_CHECK, left_cpu / 2, _LONGEST_CHECK
            )  # half, since two threads may run
            child.check_at = now + max(_SHORTEST_CHECK, soon)

    def _has_had_its_time(self, child: _Child, now: float) -> bool:
        """Return whether the wall time passed without what it spent waiting for a processor.

        That is forgiven up to a few times the limit, so that a busy machine does not fail a right program.
        """
        child.awake, child.starved = self._waited(child)
        forgiven = min(child.starved, _FORGIVEN * child.request.wall)
        if forgiven < child.starved:
            child.awake = 1
        return now >= child.started + child.request.wall + forgiven

    def _waited(self, child: _Child) -> Tuple[int, float]:
        found = [self._delay(one.pid) for one in (child, child.partner) if one is not None]
        return max(awake for awake, _ in found), max(starved for _, starved in found)

    def _delay(self, pid: int) -> Tuple[int, float]:
        """Return whether a process was awake, and for how long one of its threads waited for a processor."""
        folder = self._layers.process_files
        try:
            threads = _names(folder, f"{pid}/task")
            states = [
                _text(folder, f"{pid}/task/{one}/stat").rpartition(")")[2].split()[0] for one in threads
            ]
            delays = [int(_text(folder, f"{pid}/task/{one}/schedstat").split()[1]) for one in threads]
        except (OSError, ValueError, IndexError):  # not known here: as if it had starved
            return 1, 0.0
        return int(any(state in "DTt" for state in states)), max(delays) / 1e9

    def _threads(self, pid: int) -> int:
        try:
            return int(_text(self._layers.process_files, f"{pid}/stat").rpartition(")")[2].split()[17])
        except (OSError, ValueError, IndexError):  # not known here: address space alone limits them
            return 1

    def _end(self, child: _Child, why: int) -> None:
        child.ended = child.ended or why
        _kill(child.pid)
        if child.partner is not None and why != wire.BY_REQUEST:
            self._end(child.partner, why)

    def _kill_by_number(self, number: int) -> None:
        child = self._children.get(number)
        if child is not None:
            self._end(child, wire.BY_REQUEST)
            return
        for entry in list(self._waiting):
            if entry[0].number == number:
                self._waiting.remove(entry)
                for descriptor in entry[1]:
                    os.close(descriptor)
                self._send(wire.Report(number, 9, wire.BY_REQUEST, 0, 0.0, 0.0, 0.0, 0))

    def _reap(self) -> None:
        while self._children:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            number = next((key for key, child in self._children.items() if child.pid == pid), 0)
            if number:
                self._report(self._children.pop(number), status, usage)

    def _report(self, child: _Child, status: int, usage: resource.struct_rusage) -> None:
        if child is self._running:
            self._running = None
        cpu = usage.ru_utime + usage.ru_stime + child.partner_cpu()
        wall = time.monotonic() - child.started
        number, peak = child.request.number, usage.ru_maxrss * 1024
        ended = child.ended or (0 if self._confined[number % _SLOTS] else wire.NOT_STARTED)
        self._send(wire.Report(number, status, ended, child.awake, cpu, wall, child.starved, peak))

    def _send(self, report: wire.Report) -> None:
        try:
            self._control.send(report.pack())
        except OSError:  # the host is gone; the loop ends at its next turn
            pass

    def _end_all(self) -> None:
        for child in self._children.values():
            _kill(child.pid)
        while True:
            try:
                os.wait()
            except ChildProcessError:
                return


def reserve_descriptors(control: int) -> int:
    """Fill the places below ten, so that nothing arrives there; return the new place of ``control``."""
    moved = os.dup(control)
    spare = [moved]
    while spare[-1] < _LOWEST:
        spare.append(os.dup(control))
    keep = spare.pop()
    null = os.open(os.devnull, os.O_RDWR)
    for place in range(_LOWEST):
        os.dup2(null, place)
    if null >= _LOWEST:
        os.close(null)
    for place in spare:
        if place >= _LOWEST:
            os.close(place)
    os.set_inheritable(keep, False)
    return keep


def _arrange(descriptors: List[int]) -> None:
    """Put payload and results at 3 and 4, standard input and output at 0 and 1, and close all else."""
    places = (3, 4, 0, 1)
    for descriptor, place in zip(descriptors, places):
        os.dup2(descriptor, place)
    os.closerange(5, _HIGHEST)


def _cpu_used(pid: int) -> float:
    try:
        return time.clock_gettime((~pid << 3) | 2)  # the kernel's number for the clock of another process
    except OSError:  # it ended meanwhile
        return 0.0


def _kill(pid: int) -> None:
    for send in (os.kill, os.killpg):
        try:
            send(pid, signal.SIGKILL)
        except OSError:  # gone, or not yet a group of its own
            pass


def _text(folder: int, path: str) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.read(descriptor, 4096).decode("ascii", "replace")
    finally:
        os.close(descriptor)


def _names(folder: int, path: str) -> List[str]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.listdir(descriptor)
    finally:
        os.close(descriptor)
