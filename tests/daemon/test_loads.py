"""What the daemon brings into memory when it starts: a hook waits for that, and it stays for days."""

import subprocess
import sys

import pytest

NOT_AT_START = (
    "pydantic", "pydantic_core", "ruamel.yaml", "difflib", "fastapi", "typer", "rich",
    "holdfast.analysis.handover.summary", "holdfast.features.memory.policy.recall",
)  # fmt: skip
"""The last two are loaded when memory first needs them."""
LOADED = "import sys, {module}; print(*[name for name in {names!r} if name in sys.modules])"


def test_up_loads_no_feature_of_its_own() -> None:
    """The daemon it starts has them; loading them twice took most of its time."""
    program = LOADED.format(
        module="holdfast.doors.cli.doctor, holdfast.doors.cli.importing", names=("holdfast.features",)
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []


@pytest.mark.parametrize("module", ["holdfast.daemon.service", "holdfast.daemon.run"])
def test_only_what_is_needed(module: str) -> None:
    program = LOADED.format(module=module, names=NOT_AT_START)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []


def test_nor_do_settings_and_scenarios_bring_it() -> None:
    program = (
        "import sys; from holdfast.app import open_settings; from holdfast.settings import json_schema\n"
        "from holdfast.features.uat.scenarios import reader\n"
        "settings = open_settings().settings; settings.defaults(); json_schema(settings)\n"
        "assert settings.sections['gates'].of({'requirements': {'a': {}}}).rules\n"
        "assert reader.parse_scenario(b'name: x\\nsteps: [{action: click}]', 'x')[0]\n"
        "print('pydantic' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
