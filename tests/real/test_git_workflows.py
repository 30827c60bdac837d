"""Twenty workflows of git end the same with Holdfast's git hooks as without them, run by an agent's process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit import World, git

from .programs import program

pytestmark = pytest.mark.real
RULES = r"""
requirements:
  protected_branch: {type: guard, guard_type: protected_branch, protected_branches: [release]}
  reviewed: {type: blocking, scope: session, command_pattern: 'git\s+push'}
"""
WHO = {f"GIT_{role}_{what}": "a@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
MOMENT = {**WHO, "GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z"}
EDIT = "git -c sequence.editor=\"sed -i '2s/pick/squash/;3s/pick/reword/'\" -c core.editor=true"
WORKFLOWS = {
    "rebase -i": f"{EDIT} rebase -q -i HEAD~3",
    "rebase of fifty": (
        "for i in $(seq 50); do echo $i > many; git add many; git commit -qm $i; done; "
        "git rebase -q --onto other HEAD~50"
    ),
    "autosquash": (
        "echo fix > f.txt; git add f.txt; git commit -q --fixup HEAD~1; "
        "git -c sequence.editor=true rebase -q -i --autosquash HEAD~4"
    ),
    "a rebase with a conflict": (
        "echo mine > o.txt; git add o.txt; git commit -qm mine; ! git rebase -q other; echo both > o.txt; "
        "git add o.txt; git -c core.editor=true rebase --continue"
    ),
    "a merge with a conflict, aborted and done again": (
        "echo mine > o.txt; git add o.txt; git commit -qm mine; ! git merge -q other; git merge --abort; "
        "! git merge -q other; echo both > o.txt; git add o.txt; git commit -qm merged"
    ),
    "cherry-pick and revert": "git cherry-pick other; git revert --no-edit HEAD HEAD~1",
    "am": "git format-patch -q -2 -o p HEAD; git reset -q --hard HEAD~2; git am -q p/*",
    "bisect": "git bisect start HEAD HEAD~4; git bisect run sh -c 'test $(cat a.txt) -lt 3'; git bisect reset",
    "stash": (
        "echo w > a.txt; git stash -q; git stash list; git stash apply -q; git stash drop -q; git stash -q; "
        "git stash branch st; git commit -qam st"
    ),
    "worktrees": (
        "git worktree add -q ../tree -b tree; cd ../tree; echo t > t; git add t; git commit -qm t; cd -; "
        "git worktree remove ../tree; git branch -D tree"
    ),
    "submodules": (
        "git -c protocol.file.allow=always submodule --quiet add ../remote sub; git commit -qm sub; "
        "git -C sub checkout -q --detach HEAD~1; git -c protocol.file.allow=always submodule --quiet update"
    ),
    "gc and pack-refs": (
        "git branch old HEAD~1; git pack-refs --all --prune; git gc -q --prune=now; git branch -d old; git repack -adq"
    ),
    "clone, fetch and pull": (
        "git clone -q . ../copy; echo n > n; git add n; git commit -qm n; git -C ../copy pull -q; "
        "git -C ../copy fetch -q --prune; git remote add copy ../copy; git fetch -q copy"
    ),
    "a fetch of two hundred branches": (
        "for i in $(seq 200); do git -C ../remote branch -q b$i; done; "
        "git fetch -q ../remote 'refs/heads/*:refs/remotes/r/*'"
    ),
    "branches and tags": (
        "git branch one; git branch -m one two; git branch -c two three; git branch -f three HEAD~1; "
        "git tag -a v1 -m v1; git tag -d v1; git branch -D two three; git notes add -m note; "
        "git checkout -q --orphan fresh; git commit -qm fresh; git checkout -q topic"
    ),
    "resets": (
        "git reset -q --soft HEAD~1; git commit -qm again; git reset -q HEAD~1; git add -A; "
        "git commit -qm more; git reset -q --hard HEAD~1; git switch -q -d HEAD"
    ),
    "many refs at once": (
        "for i in 1 2 3; do echo create refs/heads/u$i HEAD; done | git update-ref --stdin; "
        "git update-ref -d refs/heads/u2"
    ),
    "a sparse, shallow clone": (
        "git clone -q --depth 1 --sparse file://$PWD ../thin; cd ../thin; git sparse-checkout set docs; "
        "echo s > s; git add --sparse s; git commit -qm s"
    ),
    "subtree by hand": (
        "git read-tree --prefix=lib/ -u other; git commit -qm subtree; git checkout -q -B side HEAD~1; "
        "git merge -q --no-ff topic -m joined"
    ),
    "large files": (
        "git lfs install --local 2> ../told || true; git lfs track '*.bin'; echo big > x.bin; git add -A; "
        "git commit -qm lfs; git init -q --bare ../bare; git push -q file://$(realpath ../bare) topic; "
        "find ../bare/lfs/objects -type f | grep -q ."
    ),
    "sha-256": (
        "git init -q --object-format=sha256 ../new; cd ../new; echo x > x; git add x; git commit -qm x; "
        "git branch y; git commit -q --amend -m z"
    ),
}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "held")
    (made.root / "config").mkdir()
    (made.root / "config" / "settings.yaml").write_text(RULES)
    prepare(made.project)
    made.start()
    made.cli("gate", "hooks", "on")
    made.session("s1").start()
    yield made
    made.close()


def prepare(place: Path) -> None:
    """A repository with five commits on a branch of its own, another branch, and a remote beside it."""
    place.mkdir(parents=True, exist_ok=True)
    git(place, "init", "-q", "-b", "main")
    for name, value in (("user.email", "a@example.org"), ("user.name", "A"), ("commit.gpgsign", "false")):
        git(place, "config", name, value)
    script = (
        "echo 0 > a.txt; mkdir docs; echo d > docs/d; git add -A; git commit -qm first; git checkout -q -b other; echo o > o.txt;"
        " git add -A; git commit -qm other; git checkout -q -b topic main;"
        " for i in 1 2 3 4 5; do echo $i > a.txt; echo $i > b.txt; git add -A; git commit -qm step$i; done; git clone -q . ../remote"
    )
    assert work(place, script, dict(os.environ)).returncode == 0


def work(place: Path, script: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-ec", script], cwd=place, env={**env, **MOMENT, "GIT_EDITOR": "true"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def outcome(place: Path) -> str:
    """Every branch, file and change of the repositories beside each other."""
    told = []
    for repo in sorted(one.parent for one in place.parent.glob("*/.git")):
        told.append(repo.name)
        told.append(git(repo, "for-each-ref", "--format=%(refname) %(objectname)"))
        told.append(git(repo, "status", "--porcelain=v2", "--branch"))
        told.append(git(repo, "stash", "list", "--format=%gd %T"))
    return "\n".join(told)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_ends_as_without_our_hooks(world: World, tmp_path: Path, name: str) -> None:
    if name == "large files" and shutil.which("git-lfs") is None:
        pytest.skip("git-lfs is not installed (Debian: git-lfs)")
    free = tmp_path / "free" / "project"
    prepare(free)
    world.cli("gate", "satisfy", "reviewed", "--session", "s1")
    plain = work(free, WORKFLOWS[name], world.env)
    held = work(world.project, WORKFLOWS[name], world.env)
    assert plain.returncode == 0, plain.stderr
    assert (held.returncode, held.stderr) == (0, plain.stderr.replace(str(free.parent), str(world.root)))
    ours = outcome(world.project).replace(str(world.root), "")
    assert ours == outcome(free).replace(str(free.parent), "")
    assert world.events(kinds=("gates.held",)) == []


HELD = "echo 6 > a.txt && git commit -qam x && git push -q ../bare topic"


def test_husky_moves_the_hooks_and_both_are_asked(world: World) -> None:
    binary = program("husky")
    (world.project / "package.json").write_text("{}\n")
    git(world.root, "init", "-q", "--bare", "bare")
    assert (
        work(world.project, f"node {binary}; echo 'echo husky was here' > .husky/pre-commit", world.env).returncode == 0
    )
    assert "git no longer asks Holdfast here" in " ".join(world.cli("gate", "status").split())
    world.cli("gate", "hooks", "on")
    done = work(world.project, HELD, world.env)
    assert done.returncode != 0
    assert "husky was here" in done.stderr + done.stdout
    assert "reviewed" in done.stderr
    # Husky writes its folder again at each installation of the packages.
    assert work(world.project, f"node {binary}", world.env).returncode == 0
    world.cli("gate", "hooks", "on")
    assert "reviewed" in work(world.project, "git push -q ../bare topic", world.env).stderr
    world.cli("gate", "hooks", "off")
    assert work(world.project, "git push -q ../bare topic", world.env).returncode == 0


def test_lefthook_and_ours_are_both_asked(world: World) -> None:
    binary = program("lefthook")
    git(world.root, "init", "-q", "--bare", "bare")
    (world.project / "lefthook.yml").write_text(
        "pre-commit: {commands: {say: {run: echo lefthook was here}}}\npre-push: {commands: {say: {run: echo pushing}}}\n"
    )
    assert work(world.project, f"{binary} install", world.env).returncode == 0
    world.cli("gate", "hooks", "on")
    done = work(world.project, HELD, world.env)
    assert "lefthook was here" in done.stderr + done.stdout
    assert "reviewed" in done.stderr
    world.cli("gate", "hooks", "off")
    free = work(world.project, "git push ../bare topic", world.env)
    assert (free.returncode, "pushing" in free.stderr + free.stdout) == (0, True)


def test_pre_commit_and_ours_are_both_asked(world: World, tmp_path: Path) -> None:
    place = tmp_path / "venv"
    made = subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--target", str(place), "pre-commit"],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("pre-commit cannot be had from PyPI")
    env = {**world.env, "PYTHONPATH": str(place)}
    git(world.root, "init", "-q", "--bare", "bare")
    (world.project / ".pre-commit-config.yaml").write_text(
        "repos:\n- repo: local\n  hooks:\n  - {id: say, name: pre-commit was here, entry: 'true', language: system}\n"
    )
    script = f"git add .pre-commit-config.yaml; {sys.executable} -m pre_commit install -t pre-commit -t pre-push"
    installed = work(world.project, script, env)
    assert installed.returncode == 0, installed
    world.cli("gate", "hooks", "on")
    done = work(world.project, HELD, env)
    assert "pre-commit was here" in done.stderr + done.stdout, done
    assert "reviewed" in done.stderr
    world.cli("gate", "hooks", "off")
    assert work(world.project, "git push -q ../bare topic", env).returncode == 0
