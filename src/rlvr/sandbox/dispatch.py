"""The thread that moves jobs between the queue and the workers."""

from __future__ import annotations

import collections
import contextlib
import itertools
import json
import os
import selectors
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlvr.errors import InfrastructureError
from rlvr.sandbox.guest import wire
from rlvr.sandbox.judged import JudgedTask, read_verdict
from rlvr.sandbox.protocol import JobResult, Status
from rlvr.sandbox.tasks import Task
from rlvr.sandbox.worker import Greeting, Worker, WorkerConfig, anonymous_file

_DEPTH = 2
_ATTEMPTS = 3
_HOPELESS = 0.5
_TOO_BUSY = "the machine was too busy: alone, too, it waited for a processor most of its time"
_JUDGE_GRACE = 2.0
_SOLUTION_GRACE = 0.2
_LOOK_AHEAD = 32


@dataclass(eq=False)
class _Judge:
    """A judge process of one worker and the flights it has yet to judge, the first being under way."""

    number: int
    source: bytes
    socket: socket.socket
    flights: collections.deque[_Flight] = field(default_factory=collections.deque)
    alive: bool = True


@dataclass(eq=False)
class _Flight:
    """A task while a worker has it."""

    task: Task
    station: _Station
    number: int
    judge: _Judge | None = None
    report: wire.Report | None = None
    verdict: Mapping[str, Any] | None = None
    judged: bool = False
    lost: bool = False
    overdue_at: float | None = None


@dataclass(eq=False)
class _Station:
    """A worker with what it is doing."""

    worker: Worker
    flights: dict[int, _Flight] = field(default_factory=dict)
    judges: dict[bytes, _Judge] = field(default_factory=dict)


class Dispatcher:
    """Moves tasks between a queue and workers, in a thread of its own.

    Attributes:
        greeting: What the first worker said about itself.
        counts: Number of results by status, and of workers ``restarted``.
    """

    def __init__(self, config: WorkerConfig, count: int) -> None:
        self._config = config
        self.counts: collections.Counter[str] = collections.Counter()
        self._numbers = itertools.count(1)
        self._ready: collections.deque[Task] = collections.deque()
        self._alone: collections.deque[Task] = collections.deque()
        self._incoming: collections.deque[Task] = collections.deque()
        self._stopping = False
        self._lock = threading.Lock()
        self._stations: list[_Station] = []
        self._selector = selectors.DefaultSelector()
        self._wake, self._wake_writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._selector.register(self._wake, selectors.EVENT_READ, None)
        try:
            for _ in range(count):
                self._add_station()
        except BaseException:
            self._close_everything()
            raise
        self.greeting: Greeting = self._stations[0].worker.greeting
        self._thread = threading.Thread(target=self._loop, name="rlvr-sandbox", daemon=True)
        self._thread.start()

    @property
    def worker_pids(self) -> list[int]:
        """Process numbers of the workers."""
        return [station.worker.pid for station in self._stations]

    def add(self, task: Task) -> None:
        """Queue a task; raises InfrastructureError when the pool is closed."""
        with self._lock:
            if self._stopping:
                raise InfrastructureError("sandbox.closed", "the pool is closed", fix="make a new pool")
            idle = not self._incoming
            self._incoming.append(task)
        if idle:
            self._ring()

    def stop(self) -> None:
        """End all workers and the thread; pending tasks fail."""
        with self._lock:
            self._stopping = True
        self._ring()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def abandon(self) -> None:
        """In a forked child: close the copies of the parent's descriptors, disturbing nobody."""
        self._stopping = True
        for station in self._stations:
            station.worker.forget()
            for judge in station.judges.values():
                judge.socket.close()
            for flight in station.flights.values():
                flight.task.release()
        self._selector.close()
        os.close(self._wake)
        os.close(self._wake_writer)

    def _ring(self) -> None:
        with contextlib.suppress(BlockingIOError):  # it rings already
            os.write(self._wake_writer, b"!")

    # The thread

    def _loop(self) -> None:
        try:
            while not self._stopping:
                self._take_incoming()
                self._fill()
                self._read(self._selector.select(self._timeout()))
                self._end_overdue()
        finally:
            self._close_everything()

    def _take_incoming(self) -> None:
        with self._lock:
            self._ready.extend(self._incoming)
            self._incoming.clear()

    def _timeout(self) -> float | None:
        moments = [flight.overdue_at for flight in self._flights() if flight.overdue_at is not None]
        return max(0.0, min(moments) - time.monotonic()) if moments else None

    def _flights(self) -> Iterator[_Flight]:
        for station in self._stations:
            yield from station.flights.values()

    def _read(self, events: list[tuple[selectors.SelectorKey, int]]) -> None:
        for key, _ in events:
            owner = key.data
            if owner is None:
                os.read(self._wake, 4096)
            elif isinstance(owner, _Station):
                self._read_station(owner)
            elif owner[1].alive:
                self._read_judge(*owner)

    def _read_station(self, station: _Station) -> None:
        reports = station.worker.receive()
        if reports is None:
            self._replace(station)
            return
        for report in reports:
            flight = station.flights.get(report.number)
            if flight is None:
                self._judge_ended(station, report.number)
                continue
            flight.report = report
            self._settle(flight)

    # Starting

    def _fill(self) -> None:
        if self._alone:
            if not any(True for _ in self._flights()):
                self._launch(self._alone.popleft(), self._stations[0])
            return
        if any(flight.task.alone for flight in self._flights()):
            return
        while self._ready:
            station = min(self._stations, key=lambda one: len(one.flights))
            if len(station.flights) >= _DEPTH:
                return
            self._launch(self._next_for(station), station)
        self._retire_idle_judges()

    def _next_for(self, station: _Station) -> Task:
        """Return the first task, or one near it whose judge this worker has already."""
        for index, task in enumerate(itertools.islice(self._ready, _LOOK_AHEAD)):
            if task.judge_source is None or task.judge_source in station.judges:
                if task.judge_source is None and index:
                    break
                del self._ready[index]
                return task
        return self._ready.popleft()

    def _launch(self, task: Task, station: _Station) -> None:
        if task.future.cancelled():
            return
        flight = _Flight(task, station, next(self._numbers))
        station.flights[flight.number] = flight
        try:
            request, files = task.start(flight.number)
            if task.judge_source is None:
                station.worker.send(request, files)
            else:
                self._launch_judged(flight, request, files)
        except OSError as error:
            self._failed_to_launch(flight, error)

    def _failed_to_launch(self, flight: _Flight, error: OSError) -> None:
        station = flight.station
        station.flights.pop(flight.number, None)
        flight.task.release()
        self._again(flight.task, f"a job could not be sent to a worker: {error}")
        self._replace(station)

    def _launch_judged(self, flight: _Flight, request: wire.Request, files: list[int]) -> None:
        judge = self._judge_for(flight)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with ours, theirs:
            socket.send_fds(judge.socket, [b"run"], [ours.fileno()])
            flight.judge = judge
            judge.flights.append(flight)
            flight.station.worker.send(request._replace(judge=judge.number), [*files, theirs.fileno()])

    def _judge_for(self, flight: _Flight) -> _Judge:
        source, station = flight.task.judge_source, flight.station
        assert source is not None
        if source in station.judges:
            return station.judges[source]
        for other in [one for one in station.judges.values() if not one.flights]:
            self._retire(station, other)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        judge = _Judge(next(self._numbers), source, ours)
        payload = anonymous_file(source)
        try:
            memory = json.loads(source)["memory"]
            request = wire.Request(wire.JUDGE, judge.number, memory=memory)
            station.worker.send(request, [payload, theirs.fileno()])
        except OSError:
            ours.close()
            raise
        finally:
            os.close(payload)
            theirs.close()
        ours.setblocking(False)
        station.judges[source] = judge
        self._selector.register(ours, selectors.EVENT_READ, (station, judge))
        return judge

    # Ending

    def _settle(self, flight: _Flight) -> None:
        """Conclude a flight once all that it waits for has come."""
        report = flight.report
        if report is None:
            return
        if flight.judge is not None and not flight.judged and not flight.lost:
            flight.overdue_at = flight.overdue_at or time.monotonic() + _JUDGE_GRACE
            return
        flight.station.flights.pop(flight.number, None)
        task = flight.task
        if report.ended == wire.NOT_STARTED:
            task.release()
            self._again(task, "a process could not be started or confined")
        elif flight.lost and not flight.judged:
            task.release()
            self._ready.appendleft(task)
        elif _starved(report) and not task.alone:
            task.release()
            task.alone = True
            task.attempts += 1
            self._alone.append(task)
        elif _starved(report) and report.starved > _HOPELESS * report.wall:
            task.release()
            self._deliver(task, task.uniform(Status.INFRASTRUCTURE, _TOO_BUSY))
        else:
            self._conclude(flight, report)

    def _conclude(self, flight: _Flight, report: wire.Report) -> None:
        task = flight.task
        try:
            if isinstance(task, JudgedTask):
                result: JobResult | None = task.conclude(report, flight.verdict)
            else:
                result = task.finish(report)
        except Exception as error:  # the caller hears of it, and the thread goes on for all others
            task.future.set_exception(error)
            return
        finally:
            task.release()
        task.alone = False
        if result is None:
            self._ready.appendleft(task)
        else:
            self._deliver(task, result)

    def _deliver(self, task: Task, result: JobResult) -> None:
        self.counts[result.status.value] += 1
        if task.future.set_running_or_notify_cancel():
            task.future.set_result(result)

    def _again(self, task: Task, why: str) -> None:
        """Start a task again after a failure that is not its own, or give it up."""
        if task.attempts >= _ATTEMPTS:
            self._deliver(task, task.uniform(Status.INFRASTRUCTURE, why))
            return
        task.attempts += 1
        self._ready.appendleft(task)

    # Judges

    def _read_judge(self, station: _Station, judge: _Judge) -> None:
        try:
            data = judge.socket.recv(1 << 22)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose_judge(station, judge)
            return
        verdict = read_verdict(data)
        if verdict is None or not judge.flights:  # the tests tampered with their judge
            self._kill_judge(station, judge)
            return
        flight = judge.flights.popleft()
        flight.verdict = verdict
        flight.judged = True
        if flight.report is None:  # a solution that does not end when nobody asks any more is ended
            flight.overdue_at = time.monotonic() + _SOLUTION_GRACE
        self._settle(flight)

    def _judge_ended(self, station: _Station, number: int) -> None:
        for judge in list(station.judges.values()):
            if judge.number == number:
                self._read_judge(station, judge)  # a verdict may have arrived before the end
                if judge.alive:
                    self._lose_judge(station, judge)

    def _lose_judge(self, station: _Station, judge: _Judge) -> None:
        """A judge ended: the solution before it is answerable, those waiting are started again."""
        self._forget_judge(station, judge)
        for index, flight in enumerate(judge.flights):
            flight.judged = index == 0
            flight.lost = index > 0
            self._settle(flight)

    def _end_overdue(self) -> None:
        now = time.monotonic()
        for flight in list(self._flights()):
            if flight.overdue_at is None or flight.overdue_at > now or flight.judge is None:
                continue
            flight.overdue_at = None
            if flight.judged:
                with contextlib.suppress(OSError):  # the worker's end is noticed elsewhere
                    flight.station.worker.send(wire.Request(wire.KILL, flight.number))
            else:
                self._kill_judge(flight.station, flight.judge)

    def _kill_judge(self, station: _Station, judge: _Judge) -> None:
        with contextlib.suppress(OSError):  # the worker's end is noticed elsewhere
            station.worker.send(wire.Request(wire.KILL, judge.number))
        self._lose_judge(station, judge)

    def _retire_idle_judges(self) -> None:
        for station in self._stations:
            for judge in [one for one in station.judges.values() if not one.flights]:
                self._retire(station, judge)

    def _retire(self, station: _Station, judge: _Judge) -> None:
        self._forget_judge(station, judge)

    def _forget_judge(self, station: _Station, judge: _Judge) -> None:
        """Close the channel; the judge ends when it notices."""
        if not judge.alive:
            return
        judge.alive = False
        if station.judges.get(judge.source) is judge:
            del station.judges[judge.source]
        self._selector.unregister(judge.socket)
        judge.socket.close()

    # Workers

    def _add_station(self) -> None:
        station = _Station(Worker(self._config))
        self._stations.append(station)
        self._selector.register(station.worker.socket, selectors.EVENT_READ, station)

    def _remove_station(self, station: _Station) -> None:
        self._stations.remove(station)
        self._selector.unregister(station.worker.socket)
        for judge in list(station.judges.values()):
            self._forget_judge(station, judge)
        station.worker.close()

    def _replace(self, station: _Station) -> None:
        """A worker died: start another, and its tasks again."""
        if station not in self._stations:
            return
        self._remove_station(station)
        for flight in station.flights.values():
            flight.task.release()
            self._again(flight.task, "the worker's process died while it ran the job")
        self.counts["restarted"] += 1
        try:
            self._add_station()
        except InfrastructureError as error:
            if not self._stations:
                self._fail_all(error)

    def _fail_all(self, error: InfrastructureError) -> None:
        """No worker is left and none can be started."""
        with self._lock:
            self._stopping = True
            tasks = [*self._ready, *self._alone, *self._incoming]
        for task in tasks:
            if not task.future.done():
                self._deliver(task, task.uniform(Status.INFRASTRUCTURE, error.found))

    def _close_everything(self) -> None:
        with self._lock:
            self._stopping = True
        tasks = [flight.task for flight in self._flights()]
        for station in list(self._stations):
            self._remove_station(station)
        for task in (*tasks, *self._ready, *self._alone, *self._incoming):
            task.release()
            if not task.future.done() and task.future.set_running_or_notify_cancel():
                task.future.set_exception(
                    InfrastructureError("sandbox.closed", "the pool was closed before the job ended")
                )
        self._selector.close()
        os.close(self._wake)
        os.close(self._wake_writer)


def _starved(report: wire.Report) -> bool:
    """Return whether the wall time passed while the process would have run, had it been let."""
    return report.ended == wire.BY_WALL and bool(report.awake)
