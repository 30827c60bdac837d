"""Rules in force are a function of the place: the user's and that project's own, whatever happened elsewhere."""

import itertools
import random
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.event import Event
from holdfast.features.gates import FEATURE
from holdfast.features.gates.rules.in_force import rules_in_force
from holdfast.features.gates.settings import GateSettings
from holdfast.features.gates.views import Simulation
from holdfast.settings import Settings, trust
from holdfast.settings.placements import OtherPlacements

PLACES = ("a", "b", "c")
NAMES = ("planned", "reviewed", "tested", "signed")


class Places:
    """Real settings files of several projects, and one log of sessions in all of them."""

    def __init__(self, folder: Path) -> None:
        self.config = folder / "config"
        self.config.mkdir(mode=0o700)
        self.folders = {name: folder / name for name in PLACES}
        for project in self.folders.values():
            (project / ".holdfast").mkdir(parents=True)
        elsewhere = {"gates": OtherPlacements(FEATURE.settings_names, FEATURE.settings_files)}
        self.settings = Settings(
            {"gates": GateSettings}, config_dir=self.config, environ={"HOME": str(folder)}, elsewhere=elsewhere
        )
        self.simulation = Simulation(GateSettings())
        self.written: dict[str, set[str]] = {}
        self._seq = itertools.count(1)

    def file(self, place: str) -> Path:
        return self.settings.file("project" if place else "user", self.folders.get(place, ""))

    def write(self, place: str, names: set[str]) -> None:
        self.written[place] = names
        rules = "".join(f"  {name}: {{auto_resolve_skill: {name}}}\n" for name in sorted(names))
        self.file(place).write_text(f"requirements:\n{rules}" if rules else "")

    def trust(self, place: str) -> None:
        if self.file(place).exists():
            trust.trust_file(self.file(place), config_dir=self.config)

    def begin_session(self, place: str) -> None:
        settings = self._load(place)
        self.simulation.settings = settings
        seq = next(self._seq)
        # Longer ago than settings count as half written.
        at = settings.changed_at + 10_000
        data: dict[str, Any] = {"source": "startup", "settings_at": settings.changed_at}
        self.simulation.apply_event(
            Event(key=f"k{seq}", seq=seq, kind="session.started", at=at, session=f"s-{seq}",
                  project=str(self.folders[place]), agent="claude-code", data=data)
        )  # fmt: skip

    def in_force(self, place: str) -> set[str]:
        found = rules_in_force(self.simulation, str(self.folders[place]), self._load(place))
        return {rule.name for rule in found.rules}

    def expected(self, place: str) -> set[str]:
        return self.written.get("", set()) | self.written.get(place, set())

    def _load(self, place: str) -> GateSettings:
        section = self.settings.load(self.folders[place])["gates"]
        assert isinstance(section, GateSettings)
        return section


def test_the_rules_of_one_project_never_hold_in_another(tmp_path: Path) -> None:
    places = Places(tmp_path)
    places.write("a", {"tested"})
    places.trust("a")
    for place in ("a", "b", "a"):
        places.begin_session(place)
    assert places.in_force("a") == {"tested"}
    assert places.in_force("b") == set()


@pytest.mark.parametrize("seed", range(200))
def test_any_interleaving_gives_each_place_its_own_rules(tmp_path: Path, seed: int) -> None:
    chance, places = random.Random(seed), Places(tmp_path)
    for _ in range(25):
        place = chance.choice(PLACES)
        act = chance.randrange(6)
        if act == 0:
            places.write(place, set(chance.sample(NAMES, chance.randrange(3))))
        elif act == 1:
            places.write("", set(chance.sample(NAMES, chance.randrange(2))))
        elif act == 2:
            places.trust(place)
        else:
            places.begin_session(place)
    for place in PLACES:
        places.begin_session(place)
    assert {place: places.in_force(place) for place in PLACES} == {place: places.expected(place) for place in PLACES}
