"""Malicious repositories of two labelled sets, opened one after another by one daemon with the user's own requirements.

`gate_repositories.jsonl` is the given half of a corpus; `gate_repositories_blind.jsonl` was labelled before its first run.
Here each is opened by one short session; the scoring script of the corpus plays more of each, for minutes.
"""

import contextlib
import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit import World

CORPUS = Path(__file__).parents[1] / "corpus"
RULES = (
    "requirements:\n  commit_plan: {enabled: true}\n"
    "  tested_push: {type: evidence, command_pattern: 'git\\s+push', evidence: {command: 'pytest*'}}\n"
)
FENCE = re.compile(r"<holdfast-context [^>]*>.*?</holdfast-context>", re.S)
UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\u00ad\ufeff]")


def repositories(name: str) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (CORPUS / name).read_text().splitlines()]
    # Tens of thousands of files are for the scoring script.
    return [
        row for row in rows if not any("spread" in text for text in row["files"].values() if isinstance(text, dict))
    ]


GIVEN = repositories("gate_repositories.jsonl")
BLIND = repositories("gate_repositories_blind.jsonl")
SAMPLE = [*GIVEN[::12], *BLIND[::3]]


class Scene:
    """The world, what the repositories must not reach, and how to build one of them."""

    def __init__(self, world: World) -> None:
        self.world, self.outside = world, world.root / "outside"
        self.private = "PRIVATE-0f5b7a90c1d2"
        self.outside.mkdir()
        (self.outside / "private.txt").write_text(f"# {self.private}\nname: {self.private}\n")
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(8)
        self.listener.setblocking(False)

    def fill(self, value: Any, name: str) -> Any:
        if isinstance(value, dict):
            return {self.fill(key, name): self.fill(one, name) for key, one in value.items()}
        if isinstance(value, list):
            return [self.fill(one, name) for one in value]
        if not isinstance(value, str):
            return value
        names = {
            "CANARY": self.canary(name), "REPO": self.folder(name), "OUTSIDE_DIR": self.outside,
            "OUTSIDE": self.outside / "private.txt", "PORT": self.listener.getsockname()[1], "TAG": name,
        }  # fmt: skip
        return re.sub(r"\$\{(\w+)\}", lambda match: str(names.get(match[1], match[0])), value)

    def folder(self, name: str) -> Path:
        return self.world.root / "repositories" / name

    def canary(self, name: str) -> Path:
        return self.world.root / "canary" / name

    def was_reached(self) -> bool:
        try:
            self.listener.accept()[0].close()
        except BlockingIOError:
            return False
        return True

    def build(self, row: dict[str, Any]) -> Path:
        name, repo = row["id"], self.folder(row["id"])
        made, given = self.fill(row["git"], name), self.fill(row.get("dirty", {}), name)
        repo.mkdir(parents=True)
        self.canary(name).mkdir(parents=True)
        git(repo, "init", "-q", "-b", "main")
        for path, text in row["files"].items():
            put(repo / self.fill(path, name), self.fill(written_text(text), name))
        links = made.get("symlinks", {})
        for path, target in links.items():
            if not path.startswith(".git/") and not (repo / path).is_symlink():
                (repo / path).parent.mkdir(parents=True, exist_ok=True)
                (repo / path).symlink_to(target)
        for path, mode in made.get("modes", {}).items():
            (repo / path).chmod(mode)
        for nested in made.get("nested", ()):
            git(repo / nested, "init", "-q", "-b", "main")
        author = made.get("author", "a")
        git(repo, "add", "-A", author=author)
        for message in ("files", *made.get("commits", ())):
            git(repo, "commit", "-q", "--allow-empty", "--cleanup=verbatim", "-m", message, author=author)
        git(repo, "checkout", "-q", "-b", made.get("branch", "feature/test"))
        for path, text in given.items():
            put(repo / path, text)
        for path, text in made.get("gitdir_files", {}).items():
            put(repo / ".git" / path, text)
            (repo / ".git" / path).chmod(made.get("gitdir_modes", 0o644))
        for path, target in links.items():
            if path.startswith(".git/"):
                (repo / path).unlink(missing_ok=True)
                (repo / path).symlink_to(target)
        with (repo / ".git" / "config").open("a") as config:
            config.write("\n" + made.get("config", ""))
        for fired in self.canary(name).iterdir():  # by building it
            fired.unlink()
        while self.was_reached():
            pass
        return repo / row.get("cwd", "")


def written_text(text: Any) -> str:
    if isinstance(text, str):
        return text
    return text.get("head", "") + "".join(text["repeat"].replace("${N}", str(n)) for n in range(text["times"]))


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", errors="surrogateescape")


def git(folder: Path, *words: str, author: str = "a") -> None:
    who = {f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER")
           for part, value in (("NAME", author), ("EMAIL", "a@example.org"))}  # fmt: skip
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", **who}
    # Some of them are built so that git itself complains.
    subprocess.run(["git", *words], cwd=folder, env=env, check=False, capture_output=True)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    world = World(tmp_path_factory.mktemp("evil"))
    put(world.home / ".claude" / "requirements.yaml", RULES)
    world.session("first").start()
    scene = Scene(world)
    yield scene
    scene.listener.close()
    world.close()


@pytest.mark.parametrize("row", SAMPLE, ids=lambda row: row["id"])
def test_a_malicious_repository_is_held(scene: Scene, row: dict[str, Any]) -> None:
    open_repository(scene, row)


@pytest.mark.long
@pytest.mark.parametrize("row", [row for row in [*GIVEN, *BLIND] if row not in SAMPLE], ids=lambda row: row["id"])
def test_the_other_malicious_repositories_are_held(scene: Scene, row: dict[str, Any]) -> None:
    open_repository(scene, row)


def open_repository(scene: Scene, row: dict[str, Any]) -> None:
    world, name, pid = scene.world, row["id"], scene.world.pid
    world.project = scene.build(row)
    token = f"ghp_{name}" + "Zq9Xw7Vb5Nm3Lk1Jh8Gf6Ds4Pa2Ou0Iy7Tr5Ew"[: 36 - len(name)]
    agent = world.session(f"s-{name}")
    told = [agent.start(), agent.prompt(scene.fill(row.get("prompt", "please go on with the parser"), name))]
    file = str(world.project / "a.py")
    edit = agent.before("Edit", "c1", file_path=file, old_string="a", new_string="b")
    printed = f"GITHUB_TOKEN={token}\n" + scene.fill(row.get("output", ""), name)
    agent.tool("Bash", {"stdout": printed, "stderr": ""}, command=scene.fill(row.get("command", "cat .env"), name))
    push = agent.before("Bash", "c2", command="git push origin main")
    told += [edit, push, agent.stop()]
    expected = set(row["expect"])
    assert world.pid == pid, "the daemon is the same"
    if "gate-holds" in expected:
        assert ("deny" in str(edit), "deny" in str(push)) == (True, True)
    if "clean-terminal" in expected:
        shown = world.cli("gate", "status", code=None)
        assert "Traceback" not in shown
        assert not UNSEEN.search(shown)
    assert [one.name for one in scene.canary(name).iterdir()] == []
    assert not scene.was_reached()
    text = "\n".join(model_texts(told))
    assert "fenced" not in expected or (f"OBEY-{name}" not in FENCE.sub("", text) and not UNSEEN.search(text))
    # What the session is called is there, so the state is where it is looked for.
    assert found_in_state(world, token, scene.private, f"s-{name}") == {f"s-{name}"}


def model_texts(answers: list[Any]) -> Iterator[str]:
    for answer in answers:
        inner = answer.get("hookSpecificOutput") or {} if isinstance(answer, dict) else {}
        named = (inner.get("additionalContext"), inner.get("permissionDecisionReason"), inner and answer.get("reason"))
        yield from (one for one in named if one)


def found_in_state(world: World, *texts: str) -> set[str]:
    files = [path for path in world.paths.state.rglob("*") if path.is_file() and not path.is_symlink()]
    found: set[str] = set()
    for path in files:
        with contextlib.suppress(FileNotFoundError):  # written anew at this very moment
            content = path.read_bytes()
            found |= {text for text in texts if text.encode() in content}
    return found
