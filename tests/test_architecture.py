"""The layers hold: imports go down only, pure packages are pure, `import bridle` is cheap."""

from __future__ import annotations

import ast
import functools
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import bridle
import bridle.approvals
import bridle.journal
import bridle.policy
import bridle.protocol
import bridle.supervisor
import bridle.testing
import bridle.views

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "bridle"
FILES = sorted(SOURCE.rglob("*.py"))

EVERYONE = {"errors", "ids"}
BELOW_SUPERVISOR = {
    "protocol",
    "journal",
    "workspaces",
    "process",
    "policy",
    "views",
    "session",
    "approvals",
}
#: What each package may import of ours, beside itself, errors and ids.
LAYERS: dict[str, set[str]] = {
    "__init__": {"protocol", "process", "policy", "session"},
    "errors": set(),
    "ids": set(),
    "config": set(),
    "home": set(),
    "protocol": set(),
    "journal": set(),
    "workspaces": set(),
    "process": {"protocol"},
    "policy": {"protocol"},
    "views": {"protocol"},
    "session": {"protocol", "process", "policy", "home"},
    "approvals": {"protocol", "policy", "journal"},
    "supervisor": {*BELOW_SUPERVISOR, "config", "home"},
    "server": {*BELOW_SUPERVISOR, "config", "home", "supervisor"},
    "loopback": {*BELOW_SUPERVISOR, "config", "supervisor"},
    "cli": {*BELOW_SUPERVISOR, "config", "home", "supervisor", "server", "loopback", "testing"},
    "testing": {"protocol", "process"},
}

#: All that a pure package may import from outside: no I/O, clock, randomness or logging in it.
PURE = {"protocol", "policy", "views"}
PURE_IMPORTS = {
    "__future__",
    "abc",
    "base64",
    "binascii",
    "collections",
    "dataclasses",
    "enum",
    "functools",
    "hashlib",
    "itertools",
    "math",
    "msgspec",
    "posixpath",
    "re",
    "tomllib",
    "types",
    "typing",
    "unicodedata",
}
IMPURE_CALLS = {"open", "print", "input", "exec", "eval", "__import__"}

MAX_FUNCTION_LINES = 40


def package_of(file: Path) -> str:
    parts = file.relative_to(SOURCE).parts
    return parts[0] if len(parts) > 1 else file.stem


@functools.cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def imports(file: Path) -> Iterator[tuple[int, str]]:
    """Every import of a file, inside of functions too, as absolute dotted names."""
    inside = ["bridle", *file.relative_to(SOURCE).with_suffix("").parts]
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = inside[: -node.level] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{start}.{alias.name}") for alias in node.names)


def trespasses(file: Path) -> Iterator[str]:
    package = package_of(file)
    allowed = LAYERS.get(package, set()) | EVERYONE | {package}
    for line, name in imports(file):
        root, *rest = name.split(".")
        where = f"{file.relative_to(ROOT)}:{line}"
        if root == "bridle" and rest and rest[0] in LAYERS and rest[0] not in allowed:
            yield f"{where}: {package} must not import {rest[0]}"
        if package in PURE and root not in {*PURE_IMPORTS, "bridle"}:
            yield f"{where}: {package} is pure and must not import {root}"


def test_imports_go_down_only_and_pure_packages_stay_pure() -> None:
    assert {package_of(file) for file in FILES} <= LAYERS.keys(), "a new package needs its row"
    assert [trespass for file in FILES for trespass in trespasses(file)] == []


def test_the_import_walk_sees_a_trespass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guilty = tmp_path / "protocol" / "guilty.py"
    guilty.parent.mkdir()
    guilty.write_text(
        "import time\nfrom ..testing import model\nfrom ..errors import BridleError\n"
    )
    monkeypatch.setattr(sys.modules[__name__], "SOURCE", tmp_path)
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    assert [trespass.split(": ")[1] for trespass in trespasses(guilty)] == [
        "protocol is pure and must not import time",
        "protocol must not import testing",
    ]


@pytest.mark.parametrize("package", sorted(PURE & {file.name for file in SOURCE.iterdir()}))
def test_pure_packages_call_nothing_that_does_io(package: str) -> None:
    called = [
        f"{file.name}:{node.lineno} {node.func.id}"
        for file in (SOURCE / package).rglob("*.py")
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in IMPURE_CALLS
    ]
    assert called == []


def loaded_by(statement: str) -> set[str]:
    code = f"import sys, json; {statement}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_importing_bridle_loads_nothing_heavy() -> None:
    heavy = {"sqlite3", "asyncio", "msgspec", "h11", "psutil", "pytest", "mcp", "litestar"}
    assert loaded_by("import bridle") & heavy == set()


def test_what_a_session_needs_loads_nothing_heavy() -> None:
    heavy = {"sqlite3", "h11", "psutil", "pytest", "mcp", "litestar", "tempfile", "shutil"}
    assert loaded_by("import bridle; bridle.connect, bridle.Session") & heavy == set()


def test_a_journal_in_memory_loads_no_database() -> None:
    assert loaded_by("import bridle.journal; bridle.journal.memory_journal") & {"sqlite3"} == set()


def test_importing_the_protocol_loads_no_event_loop_and_no_database() -> None:
    heavy = {"sqlite3", "asyncio", "socket", "h11", "psutil", "pytest", "mcp", "litestar"}
    assert loaded_by("import bridle.protocol") & heavy == set()


#: Where users are sent to by the docs.
PUBLIC = [
    "bridle",
    "bridle.approvals",
    "bridle.errors",
    "bridle.journal",
    "bridle.loopback",
    "bridle.policy",
    "bridle.protocol",
    *(f"bridle.protocol.{name}" for name in ("answers", "blocks", "capabilities", "content")),
    *(f"bridle.protocol.{name}" for name in ("control", "events", "hook_outputs", "hooks")),
    *(f"bridle.protocol.{name}" for name in ("messages", "permissions", "requests", "system")),
    "bridle.supervisor",
    "bridle.testing",
    "bridle.views",
    "bridle.views.bounds",
    "bridle.views.stream",
]


def public_names() -> dict[str, list[str]]:
    return {name: sorted(_names_of(import_module(name))) for name in PUBLIC}


def _names_of(module: ModuleType) -> list[str]:
    """What a module offers: its `__all__`, or the functions and classes that it defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    own = {k: v for k, v in vars(module).items() if not k.startswith("_")}
    return [name for name, value in own.items() if _is_own(value, module)]


def _is_own(value: object, module: ModuleType) -> bool:
    return getattr(value, "__module__", None) == module.__name__


def test_the_public_names_are_these() -> None:
    packages = (bridle, bridle.journal, bridle.protocol, bridle.supervisor, bridle.testing)
    for package in (*packages, bridle.views):
        assert all(hasattr(package, name) for name in package.__all__)
        assert len(set(package.__all__)) == len(package.__all__)
    pinned = json.loads((Path(__file__).parent / "public_names.json").read_text())
    assert public_names() == pinned, (
        "a change of the public API is a decision: change public_names.json"
    )


def test_an_unknown_name_of_the_kit_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = bridle.testing.nonsense


def test_functions_stay_small() -> None:
    long = [
        f"{file.relative_to(ROOT)}:{node.lineno} {node.name}"
        for file in FILES
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno > MAX_FUNCTION_LINES
    ]
    assert long == []


def test_no_file_names_a_machine_or_a_registry() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    path = re.compile(r"(?<![\w.])/(?:work|farm|root|Users)/[\w.-]")
    host = re.compile(r"registry\.npmjs|pypi\.org|pythonhosted|deb\.debian")
    names = [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]
    texts = {name: (ROOT / name).read_text(errors="replace") for name in names}
    del texts[str(Path(__file__).relative_to(ROOT))]
    guilty = [name for name, text in texts.items() if path.search(text) or host.search(text)]
    assert guilty == []
