"""Which files the solution may read, and a root directory that holds only those.

Readable are the standard library (without ``site-packages``), the packages that were preloaded, the system's shared
libraries, time zones and locales. Nothing is writable.
"""

from __future__ import annotations

import os
import sys
from typing import List, Set, Tuple

from . import kernel

READ = kernel.READ_FILE | kernel.READ_DIR
_FOREIGN = ("site-packages", "dist-packages")
_PLACES = (
    "/usr/share/zoneinfo",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/ld.so.cache",
    "/usr/lib/locale",
    "/dev/null",
    "/dev/zero",
    "/dev/urandom",
    "/dev/random",
)


def library_directories() -> List[str]:
    """Return the directories of the standard library and of the system's shared libraries."""
    found = {os.path.dirname(os.path.realpath(os.__file__))}
    found.update(os.path.realpath(path) for path in sys.path if os.path.isdir(path))
    triplet = getattr(sys.implementation, "_multiarch", "") or ""
    for parent in ("/lib", "/usr/lib", "/usr/local/lib"):
        found.add(os.path.realpath(os.path.join(parent, triplet)) if triplet else "")
    found.update(os.path.realpath(path) for path in ("/lib64", "/usr/lib64"))
    return sorted(path for path in found if os.path.isdir(path) and path not in ("/", "/usr"))


def package_directories() -> List[str]:
    """Return the files and directories of all loaded packages that are not part of the standard library."""
    found: Set[str] = set()
    for name, module in list(sys.modules.items()):
        origin = getattr(module, "__file__", None)
        if "." in name or not origin or not any(part in origin for part in _FOREIGN):
            continue
        place = os.path.realpath(origin)
        base = os.path.basename(place)
        place = os.path.dirname(place) if base.startswith("__init__.") else place
        found.add(place)
        libraries = os.path.join(os.path.dirname(place), f"{name}.libs")  # where wheels put shared libraries
        if os.path.isdir(libraries):
            found.add(libraries)
    return sorted(found)


def interpreter_libraries() -> List[str]:
    """Return the shared libraries beside the interpreter, such as libpython."""
    folder = os.path.join(os.path.realpath(sys.base_prefix), "lib")
    if not os.path.isdir(folder) or folder in ("/usr/lib", "/lib"):
        return []
    return [
        os.path.join(folder, name)
        for name in sorted(os.listdir(folder))
        if name.startswith("lib") and ".so" in name
    ]


def foreign_directories(folder: str) -> List[str]:
    """Return the directories below ``folder`` that hold other packages, which stay hidden."""
    names = [*_FOREIGN, *(name for name in os.listdir(folder) if name.startswith("python"))]
    return [path for path in (os.path.join(folder, name) for name in names) if os.path.isdir(path)]


def landlock_rules() -> List[Tuple[str, int]]:
    """Return what may be read, as pairs of a path and its rights."""
    rules: List[Tuple[str, int]] = []
    for folder in library_directories():
        hidden = set(foreign_directories(folder))
        rules.append((folder, kernel.READ_DIR if hidden else READ))
        if hidden:
            paths = [os.path.join(folder, name) for name in os.listdir(folder)]
            rules.extend(_rule(path) for path in paths if path not in hidden)
    others = [*package_directories(), *interpreter_libraries(), *_PLACES]
    rules.extend(_rule(path) for path in others if os.path.exists(path))
    return rules


def _rule(path: str) -> Tuple[str, int]:
    return path, (READ if os.path.isdir(path) else kernel.READ_FILE)


def enter_private_root() -> int:
    """Make a root directory that holds only what may be read, and enter it.

    Must run in a mount namespace of its own. On failure the former root stays.

    Returns:
        A descriptor of a process file system for this process namespace, reachable by no path; -1 without.
    """
    places = [*library_directories(), *package_directories(), *interpreter_libraries()]
    sources = [(os.path.realpath(path), path) for path in (*places, *_PLACES) if os.path.exists(path)]
    hidden = [path for folder in library_directories() for path in foreign_directories(folder)]
    links = [(path, os.readlink(path)) for path in ("/lib", "/lib64", "/usr/lib64") if os.path.islink(path)]
    kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("sandbox", "/tmp", "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "size=1m,mode=755")  # noqa: S108
    try:
        return _fill_and_pivot(sources, hidden, links)
    except OSError:
        kernel.unmount("/tmp")  # noqa: S108
        raise


def _fill_and_pivot(sources: List[Tuple[str, str]], hidden: List[str], links: List[Tuple[str, str]]) -> int:
    base = "/tmp"  # noqa: S108  # exists everywhere; hidden only inside this namespace
    os.mkdir(base + "/new")
    os.mkdir(base + "/old")
    kernel.mount("sandbox", base + "/new", "tmpfs", kernel.MS_NOSUID, "size=1m,mode=755")
    kernel.pivot_root(base, base + "/old")
    os.chdir("/")
    try:
        for source, place in sources:
            _bind("/old" + source, "/new" + place)
        for path in hidden:
            if not any(place == path or place.startswith(path + "/") for _, place in sources):
                kernel.mount("empty", "/new" + path, "tmpfs", kernel.MS_RDONLY, "size=4k,mode=755")
        for path, target in links:
            _link(target, "/new" + path)
        process_files = _process_files("/new/proc")
        _remount_read_only("/new")
    except OSError:
        kernel.pivot_root("/old", "/old/tmp")
        os.chdir("/")
        raise
    kernel.pivot_root("/new", "/new")
    kernel.unmount("/")
    os.chdir("/")
    return process_files


def _bind(source: str, target: str) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if not os.path.lexists(target):
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    kernel.mount(source, target, "", kernel.MS_BIND | kernel.MS_REC)
    if not source.startswith("/old/dev/"):
        _remount_read_only(target, kernel.MS_BIND)


def _remount_read_only(target: str, extra: int = 0) -> None:
    flags = os.statvfs(target).f_flag
    keep = flags & 0b1111 | flags & (1024 | 2048)  # what the parent namespace locked may not be taken off
    if flags & 4096:
        keep |= 1 << 21  # relatime
    kernel.mount("none", target, "", keep | kernel.MS_REMOUNT | kernel.MS_RDONLY | extra)


def _link(target: str, path: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not os.path.lexists(path):
        os.symlink(target, path)


def _process_files(place: str) -> int:
    """Mount a process file system, keep a descriptor of it, and take it away again."""
    os.makedirs(place, exist_ok=True)
    try:
        kernel.mount("proc", place, "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
    except OSError:  # where parts of the host's are covered, as in containers
        return -1
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    kernel.unmount(place)
    return descriptor
