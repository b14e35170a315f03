"""Devices: a table of public figures, names such as ``4xL4``, and what this machine has.

Memory is what ``nvidia-smi`` reports in MiB, which is less than the number on the box. Bandwidth and dense 16-bit
throughput come from the makers' data sheets; they are used for estimates of time only, never for the memory verdict.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from rlvr.errors import UsageError

MIB = 1024**2
GIB = 1024**3


@dataclass(frozen=True)
class Device:
    """One device.

    Attributes:
        name: Such as ``H200``.
        kind: ``cuda``, ``cpu`` or ``mps``.
        memory_bytes: What a program can allocate at most, the CUDA context included.
        bandwidth: Bytes per second; 0 when unknown.
        flops: Dense 16-bit floating-point operations per second; 0 when unknown.
        bf16: Whether bfloat16 is computed in hardware.
        unified: Whether processor and accelerator share one memory.
        note: What else matters on it.
    """

    name: str
    kind: Literal["cuda", "cpu", "mps"]
    memory_bytes: int
    bandwidth: float = 0.0
    flops: float = 0.0
    bf16: bool = True
    unified: bool = False
    note: str = ""


def _card(name: str, mib: int, bandwidth: float, tflops: float, *, bf16: bool = True) -> Device:
    return Device(name, "cuda", mib * MIB, bandwidth * 1e9, tflops * 1e12, bf16)


SPARK_NOTE = (
    "Unified memory: 121.7 GiB are seen by the operating system and 101 to 102 GiB are free to CUDA. Sleep mode and "
    "CPU offload free nothing here, vllm_gpu_memory_utilization is no hard limit, and MemAvailable in /proc/meminfo "
    "is the figure to watch. Rollouts are bound by 273 GB/s of bandwidth. Thermal and memory repairs: dgx-spark-ops."
)

DEVICES: dict[str, Device] = {
    "t4": _card("T4", 15360, 320, 65, bf16=False),
    "v100-16gb": _card("V100-16GB", 16384, 900, 125, bf16=False),
    "v100": _card("V100-32GB", 32768, 900, 125, bf16=False),
    "l4": _card("L4", 23034, 300, 121),
    "a10g": _card("A10G", 23028, 600, 70),
    "a10": _card("A10", 23028, 600, 125),
    "rtx3090": _card("RTX3090", 24576, 936, 71),
    "rtx4090": _card("RTX4090", 24564, 1008, 165),
    "rtx5090": _card("RTX5090", 32607, 1792, 209),
    "a100-40gb": _card("A100-40GB", 40960, 1555, 312),
    "l40s": _card("L40S", 46068, 864, 362),
    "a6000": _card("A6000", 49140, 768, 155),
    "a100": _card("A100-80GB", 81920, 2039, 312),
    "h100": _card("H100", 81559, 3350, 989),
    "h100-pcie": _card("H100-PCIE", 81559, 2000, 756),
    "rtxpro6000": _card("RTXPRO6000", 97887, 1792, 504),
    "gh200": _card("GH200", 97871, 4000, 989),
    "h200": _card("H200", 143771, 4800, 989),
    "b200": _card("B200", 183359, 8000, 2250),
    "dgx-spark": Device("DGX-Spark", "cuda", int(101.5 * GIB), 273e9, 125e12, True, True, SPARK_NOTE),
}
"""Name in lower case to the device."""

ALIASES = {
    "spark": "dgx-spark",
    "gb10": "dgx-spark",
    "dgxspark": "dgx-spark",
    "4090": "rtx4090",
    "3090": "rtx3090",
    "5090": "rtx5090",
    "a100-80gb": "a100",
    "h100-80gb": "h100",
    "h200-141gb": "h200",
    "v100-32gb": "v100",
    "rtxa6000": "a6000",
}

MAX_DEVICES = 1024


def parse_device(text: str) -> tuple[Device, ...]:
    """Return the devices that a name such as ``1xH200``, ``4xL4``, ``dgx-spark``, ``2x48GB`` or ``cpu`` means.

    Raises:
        UsageError: The name is not in the table.
    """
    match = re.fullmatch(r"\s*(?:(\d+)\s*[xX*]\s*)?([A-Za-z0-9 ._-]+?)\s*", text)
    count = int(match[1]) if match and match[1] else 1
    if match is None or not 1 <= count <= MAX_DEVICES:
        raise _unknown(text)
    name = re.sub(r"[ _]", "", match[2].lower()).removeprefix("nvidia")
    if name == "cpu":
        return (replace(detect_cpu(), name="cpu"),) * count
    return (_by_name(name, text),) * count


def _by_name(name: str, text: str) -> Device:
    name = ALIASES.get(name, name)
    if name in DEVICES:
        return DEVICES[name]
    size = re.fullmatch(r"(\d+(?:\.\d+)?)(?:gb|gib)", name)
    if size and 4 <= float(size[1]) <= 1024:
        # A card that is sold with 24 GB shows 22.5 to 24 GiB: 0.94 is the least of the table above.
        return Device(f"{size[1]}GB", "cuda", int(float(size[1]) * 0.94 * GIB))
    raise _unknown(text)


def _unknown(text: str) -> UsageError:
    names = [device.name for device in DEVICES.values()]
    count, _, name = text.strip().rpartition("x")
    nearest = difflib.get_close_matches(name.upper(), names, n=1, cutoff=0.6)
    number = count if count.isdigit() and 1 <= int(count) <= MAX_DEVICES else "1"
    hint = f"did you mean {nearest[0]!r}?" if nearest else ""
    return UsageError(
        "plan.unknown-device",
        f"no device {text!r} is known. {hint}".rstrip(),
        where="--device",
        expected="COUNTxNAME with one of " + ", ".join(names) + ", or a size such as 2x48GB, or cpu",
        fix=f"rlvr plan --device {number}x{nearest[0] if nearest else 'H100'}",
    )


def detect() -> tuple[Device, ...]:
    """Return the devices of this machine: CUDA devices by ``nvidia-smi``, otherwise the CPU; torch is not needed."""
    cards = _nvidia()
    return cards or (detect_cpu(),)


def _nvidia() -> tuple[Device, ...]:
    command = ["nvidia-smi", "--query-gpu=name,memory.total,compute_cap", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    visible = _visible(os.environ.get("CUDA_VISIBLE_DEVICES"))
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    chosen = lines if visible is None else [lines[i] for i in visible if i < len(lines)]
    return tuple(device for line in chosen if (device := read_smi_line(line)) is not None)


def _visible(text: str | None) -> list[int] | None:
    if text is None or not re.fullmatch(r"\s*(\d+\s*(,\s*\d+\s*)*)?", text):
        return None  # unset, or identifiers that only the driver can map to indices
    return [int(part) for part in text.split(",") if part.strip()]


def read_smi_line(line: str) -> Device | None:
    """Return the device of one line ``name, MiB, compute capability``; unified memory reports no size."""
    parts = [part.strip() for part in line.split(",")]
    if len(parts) != 3:
        return None
    name, mib, capability = parts
    known = _known(name, int(mib) if mib.isdigit() else 0)
    if known is not None and known.unified:
        return replace(known, memory_bytes=_memory_available() or known.memory_bytes)
    if not mib.isdigit():
        return None
    bf16 = float(capability or 0) >= 8.0
    base = known or Device(name, "cuda", 0)
    return replace(base, memory_bytes=int(mib) * MIB, bf16=bf16)


def _known(name: str, mib: int) -> Device | None:
    """Return the card of the table with this name; of several sizes the nearest."""
    flat = re.sub(r"[^a-z0-9]", "", name.lower())
    table = {**DEVICES, **{alias: DEVICES[key] for alias, key in ALIASES.items()}}
    fitting = [key for key in table if _bare(key) in flat]
    longest = max((len(_bare(key)) for key in fitting), default=0)
    cards = [table[key] for key in fitting if len(_bare(key)) == longest]
    return min(cards, key=lambda card: abs(card.memory_bytes - mib * MIB), default=None)


def _bare(key: str) -> str:
    return re.sub(r"-?\d+gb$", "", key).replace("-", "")


def detect_cpu() -> Device:
    """Return this machine's CPU with the memory that is available to this process."""
    import platform

    limits = [limit for limit in (_memory_available(), _cgroup_free()) if limit]
    kind: Literal["cpu", "mps"] = "mps" if _is_apple() else "cpu"
    return Device(platform.machine() or "cpu", kind, min(limits, default=8 * GIB), bf16=False, unified=True)


def _is_apple() -> bool:
    import platform

    return platform.system() == "Darwin" and platform.machine() == "arm64"


def _memory_available() -> int:
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return _memory_by_sysconf()
    match = re.search(r"^MemAvailable:\s+(\d+) kB", text, re.MULTILINE)
    return int(match[1]) * 1024 if match else 0


def _memory_by_sysconf() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 0


def _cgroup_free() -> int:
    folder = Path("/sys/fs/cgroup")
    try:
        limit = (folder / "memory.max").read_text(encoding="ascii").strip()
        used = int((folder / "memory.current").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0
    return int(limit) - used if limit.isdigit() else 0


def describe(devices: tuple[Device, ...]) -> str:
    """Return the devices in words, such as ``4 x L4 (22.5 GiB each)``."""
    first = devices[0]
    size = f"{first.memory_bytes / GIB:.1f} GiB"
    return f"{len(devices)} x {first.name} ({size} each)" if len(devices) > 1 else f"{first.name} ({size})"
