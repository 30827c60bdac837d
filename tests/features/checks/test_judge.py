"""Git verbs of a command, and whether they took effect as far as the command tells."""

import pytest

from holdfast.features.checks.judge import judge_command

CASES = [
    ("git commit -m x", 0, "", [("commit", True)]),
    ("git commit -m x", 1, "nothing to commit, working tree clean\n", [("commit", False)]),
    ("git commit -m x || true", 0, "nothing to commit, working tree clean\n", [("commit", False)]),
    ("git commit -m x || true", 0, "[main 1a2b3c4] x\n 1 file changed\n", [("commit", True)]),
    ("git commit -qam x || true", 0, "", [("commit", None)]),
    ("git commit --dry-run", 0, "", [("commit", False)]),
    ("git commit -m --dry-run", 0, "", [("commit", True)]),
    ("git commit -n -m x", 0, "", [("commit", True)]),
    ("git -C sub -c a.b=c commit -m x", 0, "", [("commit", True)]),
    ("false && git commit -m x", 1, "", []),
    ("git push", 0, "Everything up-to-date\n", [("push", False)]),
    ("git push -q", 0, "", [("push", None)]),
    ("git push --dry-run", 0, "", [("push", False)]),
    ("git push", 0, "To /r\n   1a2b3c4..5d6e7f8  main -> main\n", [("push", True)]),
    ("git merge x", 0, "Already up to date.\n", [("merge", False)]),
    ("git merge x", 0, "Updating 1a2b3c4..5d6e7f8\nFast-forward\n", [("merge", True)]),
    ("git cherry-pick -n x", 0, "", [("cherry-pick", False)]),
    ("git stash list", 0, "", [("stash", False)]),
    ("git branch", 0, "* main\n", [("branch", False)]),
    ("git branch topic", 0, "", [("branch", True)]),
    ("git tag -l", 0, "", [("tag", False)]),
    ("git status && git diff", 0, "", [("status", False), ("diff", False)]),
    ("git ci -m x", 0, "", [("commit", None)]),
    ("git -c alias.z=commit z -m x", 0, "", [("commit", True)]),
    ("git -c alias.z='!git commit -m x' z", 0, "", [("commit", True)]),
    ("git config alias.w 'commit -m x' && git w", 0, "", [("config", False), ("commit", True)]),
    ("GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.q GIT_CONFIG_VALUE_0='commit -m x' git q", 0, "", [("commit", True)]),
    ("export GIT_CONFIG_PARAMETERS=\"'alias.q'='commit -m x'\"; git q", 0, "", [("commit", True)]),
    ("Z='commit -m x' git --config-env=alias.z=Z z", 0, "", [("commit", True)]),
    ("git push -o --dry-run", 1, "", [("push", False)]),
    ("git commit -m --help", 0, "", [("commit", True)]),
    ("git worktree move --help", 0, "", [("worktree", False)]),
    ("coproc git commit -m x; wait", 0, "", [("commit", None)]),
    ("cd /nowhere 2>/dev/null && git commit -qm x", 0, "", [("commit", True)]),
    ("echo git commit -m x", 0, "git commit -m x\n", []),
    ("pytest -q && git commit -m x", 1, "1 failed in 0.1s\n", [("commit", False)]),
    ("bash -c 'git commit -m x && git push -q'", 0, "", [("commit", True), ("push", None)]),
]  # fmt: skip


@pytest.mark.parametrize(("command", "code", "out", "acts"), CASES)
def test_git_acts(command: str, code: int, out: str, acts: list[tuple[str, bool | None]]) -> None:
    assert [(act.verb, act.effective) for act in judge_command(command, ".", code, out, "").git] == acts
