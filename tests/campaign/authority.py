"""Random histories of work, approvals, backups, restores, erasures and kills: no approval counts twice, the log proves
itself after each of them, and what is removed from it behind our back shows."""

import contextlib
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

from holdfast.stores import backup
from tests.campaign.acks import serving
from tests.kit import World, git, wait_until

FULL = 1_000
STEPS = 9
RULES = """
requirements:
  deploy: {type: blocking, scope: single_use, manual: false, command_pattern: 'make deploy'}
"""


def run(folder: Path, size: int) -> str:
    counts = dict.fromkeys(("approved", "used", "restored", "erased", "killed", "removed"), 0)
    for number in range(size):
        history = History(folder / f"{number}", random.Random(number))
        try:
            history.play()
        finally:
            history.world.close()
        for name, count in history.counts.items():
            counts[name] += count
    told = ", ".join(f"{count} {name}" for name, count in counts.items())
    return f"{size} histories ({told}): no approval used twice, every removal proved"


class History:
    def __init__(self, root: Path, chance: random.Random) -> None:
        self.chance = chance
        self.world = World(root)
        (root / "config").mkdir(exist_ok=True)
        (root / "config" / "settings.yaml").write_text(RULES)
        git(self.world.project, "init", "-q")
        serving(self.world)
        self.counts = dict.fromkeys(("approved", "used", "restored", "erased", "killed", "removed"), 0)
        self.sessions = 0
        self.approved = False
        """Given in this session, not used, and not older than a restore."""
        self.agent = self.begin()

    def begin(self):
        self.sessions += 1
        agent = self.world.session(f"session-{self.sessions}")
        agent.start()
        return agent

    def play(self) -> None:
        steps: list[Callable[[], None]] = [self.work, self.approve, self.approve, self.use, self.use, self.use]
        steps += [self.back_up, self.back_up, self.restore, self.erase, self.kill]
        for _ in range(STEPS):
            self.chance.choice(steps)()
        self.use()
        self.use()
        assert self.world.json("verify")["good"]
        self.remove_behind_our_back()

    def work(self) -> None:
        self.agent.prompt(f"Please do number {self.chance.random()}")
        self.agent.tool("Bash", command=f"echo {self.chance.random()}")

    def approve(self) -> None:
        self.world.cli("gate", "approve", "deploy", "--session", self.agent.id)
        self.counts["approved"] += 1
        self.approved = True

    def use(self) -> None:
        if self.agent.before("Bash", command="make deploy") == {}:
            assert self.approved, "an approval counted twice, or after it was void"
            self.approved = False
            self.counts["used"] += 1
            self.agent.after("Bash", command="make deploy")

    def back_up(self) -> None:
        self.world.cli("backup")

    def restore(self) -> None:
        if made := backup.list_backups(self.world.paths.backups):
            self.world.cli("restore", self.chance.choice(made).name, "--yes")
            serving(self.world)
            self.counts["restored"] += 1
            self.approved = False

    def erase(self) -> None:
        wait_until(self._erased, "the daemon is back after a restore or a kill")
        self.agent, self.approved = self.begin(), False
        self.counts["erased"] += 1

    def _erased(self) -> bool:
        with contextlib.suppress(OSError):
            self.world.ask(op="erase", sessions=[self.agent.id])
            return True
        return False

    def kill(self) -> None:
        self.world.kill()
        serving(self.world)
        self.counts["killed"] += 1

    def remove_behind_our_back(self) -> None:
        self.world.cli("daemon", "stop")
        with sqlite3.connect(self.world.paths.database) as database:
            seqs = [row[0] for row in database.execute("select seq from facts order by seq")]
            database.execute("delete from facts where seq = ?", (self.chance.choice(seqs[:-1]),))
        database.close()
        assert not self.world.json("verify", code=1)["good"], "a removal did not show"
        self.counts["removed"] += 1
