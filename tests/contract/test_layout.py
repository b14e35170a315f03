"""The layout's rules: which folder may import which, and what light commands never load."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import rlvr

ROOT = Path(rlvr.__file__).parent
STAGES = {"task", "audit", "probe", "inspection", "plan", "train", "watch", "report"}
SHARED = {"rewards": {"sandbox"}, "generate": {"task"}, "probe": {"task", "rewards", "generate"}}
HEAVY = {"torch", "trl", "transformers", "vllm", "peft", "accelerate"}
HEAVY_PLACES = ("generate/", "train/", "watch/callback.py", "plan/memory/trace", "demo/", "templates/")


def sources() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def stage_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", [p for p in sources() if stage_of(p) in STAGES], ids=lambda p: str(p.name))
def test_a_stage_imports_no_other_stage(path: Path):
    own = stage_of(path)
    others = STAGES - {own, "task"}  # rows of the task are what every stage reads
    used = {name.split(".")[1] for name in imports(path) if name.startswith("rlvr.") and name.count(".") >= 1}
    assert not used & others, f"{path} imports {used & others}"


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(ROOT)))
def test_heavy_libraries_are_imported_only_in_their_places(path: Path):
    relative = path.relative_to(ROOT).as_posix()
    if relative.startswith(HEAVY_PLACES):
        return
    used = {name.split(".")[0] for name in imports(path)}
    assert not used & HEAVY, f"{relative} imports {used & HEAVY}"


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["check", "--help"], ["status", "--help"], ["audit", "--help"], ["plan", "--help"]],
)
def test_light_commands_load_nothing_heavy(arguments: list[str]):
    code = (
        "import sys; from rlvr.cli import main; main(sys.argv[1:]); "
        f"print(sorted(set(sys.modules) & {HEAVY | {'datasets', 'pandas', 'matplotlib'}!r}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip().splitlines()[-1] == "[]"


def test_importing_the_package_loads_nothing():
    code = "import sys, rlvr; print(sorted(m for m in sys.modules if m.startswith(('pydantic', 'click', 'torch'))))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_built_in_rewards_are_a_literal_table():
    tree = ast.parse((ROOT / "rewards" / "__init__.py").read_text())
    table = next(
        node.value for node in tree.body if isinstance(node, ast.AnnAssign) and node.target.id == "BUILTINS"
    )
    assert ast.literal_eval(table)


def test_every_listed_command_exists_and_shows_an_example():
    import click

    from rlvr.cli import COMMANDS, root

    context = click.Context(root)
    for name in COMMANDS:
        command = root.get_command(context, name)
        assert command is not None, name
        parts = list(command.commands.values()) if isinstance(command, click.Group) else [command]
        for part in parts:
            shown = part.get_help(click.Context(part, info_name=part.name))
            assert "xample" in shown, f"{name} {part.name} shows no example"
            assert "--json" in shown, f"{name} {part.name} has no --json"
