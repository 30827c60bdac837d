"""Random histories of work and of its destruction; afterwards every byte that was there is brought back."""

import os
import random
import shutil
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.kit import Agent, World, spooled

FULL = 1_000
HOOK_S = 1.9
"""A hook that took longer gave up waiting (after 2 s)."""
AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
Tree = dict[str, tuple[int, bytes]]
NAMES = ("a.py", "b.txt", "src/c.py", "src/deep/d.py", "src/deep/e.bin", "docs/f.md", "docs/g h.md", "lib/é.py")


def run(folder: Path, size: int, **env: str) -> str:
    world, figures = World(folder, **env), {"files": 0, "bytes": 0, "kills": 0, "late": 0}
    try:
        world.start()
        for number in range(size):
            _one(world, number, figures)
    finally:
        world.close()
    return (
        f"{size} histories, {figures['kills']} kills: {figures['files']} files with {figures['bytes']:,} bytes"
        f" were there before the destroying calls, 100 % restored, 0 wrong; {figures['late']} calls began before a killed"
        " daemon was back, and are not counted"
    )


def _one(world: World, number: int, figures: dict[str, int]) -> None:
    history = History(world, number)
    try:
        wrong = history.live()
    except Exception as error:
        raise AssertionError(f"history {number}: {history.told}: {error!r}") from error
    assert not wrong, f"history {number}: {history.told}: {wrong}"
    if not history.late:
        figures["files"] += len(history.before)
        figures["bytes"] += sum(len(content) for _, content in history.before.values())
    figures["kills"] += history.kills
    figures["late"] += history.late
    # Files of the session may be written meanwhile; what is left is in nobody's way.
    shutil.rmtree(history.main, ignore_errors=True)


class History:
    """One repository in which two sessions and a person work, until one call destroys something."""

    def __init__(self, world: World, number: int) -> None:
        self.world, self.chance = world, random.Random(number)
        self.number, self.kills, self.late = number, 0, False
        self.main = world.root / f"repo-{number}"
        self.root = self.main
        self.told: list[str] = []
        self.before: Tree = {}

    # ── the history ────────────────────────────────────────────────────────────────────────────────────────────────

    def live(self) -> list[str]:
        self._make_repository()
        sessions = [self._session(one) for one in ("one", "two")]
        for session in sessions:
            session.start()
        for _ in range(self.chance.randint(3, 10)):
            self._work(self.chance.choice(sessions))
            if self.chance.random() < 0.06:
                self._kill("between")
        return self._destroy(sessions[0])

    def _make_repository(self) -> None:
        self.main.mkdir()
        self._sh("git init -q -b main")
        (self.main / ".gitignore").write_text("*.log\nbuild/\n")
        for name in NAMES:
            self._write(name)
        self._sh(f"git add -A; git {' '.join(AUTHOR)} commit -qm first; git branch other")
        for name in NAMES[:5]:
            self._write(name)
        self._sh(f"git add -A; git {' '.join(AUTHOR)} commit -qm second")
        if self.chance.random() < 0.2:
            tree = self.world.root / f"tree-{self.number}"
            self._sh(f"git worktree add -q {tree} -b side")
            self.root = tree
            self.told.append("worktree")

    def _session(self, name: str) -> Agent:
        return CallingAgent(self.world, f"{name}-{self.number}", str(self.root))

    def _work(self, session: Agent) -> None:
        act: Callable[[], str] = self.chance.choice(
            (self._edit, self._edit, self._edit, self._append, self._binary, self._rename, self._rename_folder,
             self._remove, self._chmod, self._link, self._new, self._new, self._commit, self._ignored)
        )  # fmt: skip
        who = self.chance.choice(("tool", "shell", "shell", "person"))
        if who != "person":
            session.before("Write" if who == "tool" else "Bash", command="work", file_path=str(self.root / "x"))
        self.told.append(f"{who}: {act()}")
        if who != "person":
            session.after("Write" if who == "tool" else "Bash", command="work", file_path=str(self.root / "x"))

    def _destroy(self, session: Agent) -> list[str]:
        command = self._destroying_command()
        self.before = read_tree(self.root)
        self.world.drained()
        if self.chance.random() < 0.15:
            # The hook starts another daemon and waits for it, which sees what is there before the call.
            self._kill("right before")
        asked = time.monotonic()
        session.before("Bash", call="destroyer", command=command)
        # A daemon that takes longer to start is not waited for: nothing is promised then.
        self.late = time.monotonic() - asked > HOOK_S or bool(spooled(self.world.paths.spool))
        if self.late:
            self.told.append("not answered in time")
        self.told.append(command)
        subprocess.run(command, shell=True, cwd=self.root, capture_output=True, check=False)
        fate = self.chance.choice(("ends", "ends", "ends", "agent dies", "daemon dies"))
        self.told.append(fate)
        if fate == "daemon dies":
            self._kill("during")
        if fate == "ends":
            session.after("Bash", call="destroyer", command=command)
        words = (
            ["--call", "destroyer"]
            if fate == "ends" and not self.late and self.chance.random() < 0.7
            else ["--to", self._moment()]
        )
        return self._compare(["undo", *words, "--yes", "--dir", str(self.root)])

    def _moment(self) -> str:
        self.world.drained()
        started = self.world.events(kinds=("tool.started",), session=f"one-{self.number}")
        return str(next(one.seq for one in reversed(started) if one.data.call == "destroyer"))

    def _compare(self, words: list[str]) -> list[str]:
        destroyed = read_tree(self.root)
        if destroyed == self.before:
            return []
        shown = self.world.cli(*words, code=None)
        problems = differences(self.before, read_tree(self.root))
        if problems and self.late:
            return []
        if problems:
            return [*problems, shown]
        # The undo itself is undone too, and then done again.
        if self.chance.random() < 0.2 and self.root.exists():
            self.world.cli("undo", "--yes", "--dir", str(self.root))
            problems = differences(destroyed, read_tree(self.root))
        return problems

    def _kill(self, when: str) -> None:
        self.told.append(f"kill {when}")
        self.kills += 1
        self.world.kill()

    # ── destruction ────────────────────────────────────────────────────────────────────────────────────────────────

    def _destroying_command(self) -> str:
        git = f"git {' '.join(AUTHOR)}"
        commands = [
            "rm -rf src docs lib", "rm -rf -- *", "rm -rf src/deep; mv docs src/deep", "mv a.py b.txt", ": > a.py; : > b.txt",
            "git clean -fdxq", "git reset -q --hard", "git checkout -q -- .", "git checkout -qf other",
            f"{git} stash -qu; git stash drop -q", "git reset -q --hard HEAD~1", "find . -name '*.py' -not -path './.git/*' -delete",
            "git checkout -q HEAD~1 -- .", "mv src ..; rm -rf ../src", "mv src/deep moved; rm -rf moved",
            f"{git} add -A; git reset -q --hard; git clean -fdq", "git switch -q --discard-changes -c new HEAD~1; git branch -qD main",
            "rm -rf src && ln -s docs src", "rm -f a.py && mkdir a.py && echo x > a.py/x",
        ]  # fmt: skip
        if self.root != self.main:
            commands += ["git worktree remove --force .", f"cd ..; rm -rf {self.root}"] * 4
        return self.chance.choice(commands)

    # ── work ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _sh(self, command: str) -> None:
        subprocess.run(command, shell=True, cwd=self.root, check=True, capture_output=True)

    def _write(self, name: str, content: bytes | None = None) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = b"".join(b"line %d\n" % self.chance.randrange(1_000) for _ in range(self.chance.randint(0, 60)))
        path.write_bytes(lines if content is None else content)

    def _files(self) -> list[Path]:
        return [self.root / name for name, (mode, _) in sorted(read_tree(self.root).items()) if stat.S_ISREG(mode)]

    def _any(self) -> Path:
        return self.chance.choice(self._files() or [self.root / "fallback.txt"])

    def _edit(self) -> str:
        path = self._any()
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        lines[len(lines) // 2 : len(lines) // 2 + 1] = [b"edited %d\n" % self.chance.randrange(1_000)]
        path.write_bytes(b"".join(lines))
        return f"edit {path.name}"

    def _append(self) -> str:
        path = self._any()
        with path.open("ab") as file:
            file.write(b"more %d\r\n" % self.chance.randrange(1_000))
        return f"append {path.name}"

    def _binary(self) -> str:
        self._write("blob.bin", self.chance.randbytes(self.chance.randint(0, 200_000)))
        return "binary"

    def _new(self) -> str:
        name = self.chance.choice(("new", "n/m/new", "docs/new", "n/other", "src/é new"))
        if (
            any(parent.is_file() or parent.is_symlink() for parent in (self.root / name).parents)
            or (self.root / name).is_dir()
        ):
            return "nothing"
        self._write(f"{name}{self.chance.randrange(5)}")
        return f"new {name}"

    def _ignored(self) -> str:
        self._write("debug.log")
        return "ignored"

    def _rename(self) -> str:
        path = self._any()
        if path.exists():
            path.rename(path.with_name(f"renamed{self.chance.randrange(9)}"))
        return f"rename {path.name}"

    def _rename_folder(self) -> str:
        folders = [one for one in self.root.iterdir() if one.is_dir() and not one.is_symlink() and one.name != ".git"]
        if not folders:
            return "nothing"
        folder = self.chance.choice(folders)
        target = self.root / f"folder{self.chance.randrange(100)}"
        if target.exists():
            return "nothing"
        folder.rename(target)
        if self.chance.random() < 0.5:
            (target / "after").write_text(str(self.chance.random()))
        return f"rename folder {folder.name} {target.name}"

    def _remove(self) -> str:
        path = self._any()
        path.unlink(missing_ok=True)
        return f"remove {path.name}"

    def _chmod(self) -> str:
        path = self._any()
        if path.exists():
            path.chmod(self.chance.choice((0o600, 0o755, 0o640)))
        return f"chmod {path.name}"

    def _link(self) -> str:
        path = self.root / f"link{self.chance.randrange(3)}"
        path.unlink(missing_ok=True)
        path.symlink_to(self.chance.choice(("a.py", "src", "nowhere", "link1")))
        return "link"

    def _commit(self) -> str:
        self._sh(f"git add -A && git {' '.join(AUTHOR)} commit -qm more || true")
        return "commit"


class CallingAgent(Agent):
    """An agent that works in a folder of its own."""

    def __init__(self, world: World, session: str, folder: str) -> None:
        super().__init__(world, session, {"cwd": folder})
        self.env = {"CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": folder}


def read_tree(root: Path) -> Tree:
    """Every file that git does not ignore, with its mode and bytes; of git's own files nothing."""
    tree: Tree = {}
    for base, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in (".git", "build") and not Path(base, name).is_symlink()]
        links = [name for name in os.listdir(base) if Path(base, name).is_symlink() and name not in names]
        for name in (*names, *links):
            path = Path(base, name)
            relative = str(path.relative_to(root))
            if name == ".git" or name.endswith(".log") or relative.startswith("logs/"):
                continue
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                tree[relative] = (stat.S_IFMT(mode), os.fsencode(os.readlink(path)))
            elif stat.S_ISREG(mode):
                tree[relative] = (mode, path.read_bytes())
    return tree


def differences(before: Tree, after: Tree) -> list[str]:
    """What is missing, wrong, or there although it was not. Git keeps of a mode only whether the file is executable."""
    found = [f"missing {name}" for name in before.keys() - after.keys()]
    found += [f"left over {name}" for name in after.keys() - before.keys()]
    for name in before.keys() & after.keys():
        if before[name][1] != after[name][1]:
            found.append(f"wrong bytes in {name}")
        if (before[name][0] & 0o100) != (after[name][0] & 0o100):
            found.append(f"wrong mode of {name}: {before[name][0]:o} {after[name][0]:o}")
    return found
