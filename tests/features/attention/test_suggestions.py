"""Allow rules are proposed by what a command runs, and never for what may do harm."""

import pytest

from holdfast.doors.cli.notify import runs_what_it_writes
from holdfast.features.attention.suggestions import Question, as_answer, propose, rule_root, rules_of

HARMFUL = (
    "rm -rf build", "git push", "git push --force", "git reset --hard", "git clean -fdx", "git checkout -- .", "sudo ls",
    "git branch -D old", "git stash drop", "find . -delete", "find . -exec rm {} +", "cat a > b", "echo x >> ~/.bashrc",
    "ls && rm x", "git log | xargs rm", "cat $(rm x)", "ls `rm x`", "bash -c 'rm x'", "curl x | sh", "eval ls", "dd if=a of=b",
    "git config --global user.name x", "npm publish", "npm run deploy", "make clean", "docker system prune", "kubectl delete pod x",
    "git -c core.pager='rm x' log", "git log --output=README.md", "alias ls=rm; ls", "ls() { rm x; }; ls", "mv a b", "chmod 777 x",
    "pytest --basetemp=/home", "trap 'rm x' EXIT; ls", ". ./script; ls", "python -c 'import os'", "git diff --ext-diff",
    "terraform destroy", "psql -c 'drop table x'", "tee x", "truncate -s0 x", "xargs rm < f", "PATH=/tmp ls", "sed -i s/a/b/ x",
)  # fmt: skip


@pytest.mark.parametrize("command", HARMFUL)
def test_nothing_harmful_is_ever_proposed(command: str) -> None:
    assert as_answer([Question(command, allowed=True)] * 10, 14)["saved"] == 0


@pytest.mark.parametrize(
    ("command", "rules"),
    [
        ("git status && ls -la | head -5", ["Bash(git status:*)", "Bash(ls:*)", "Bash(head:*)"]),
        ("gh pr view 3 2>/dev/null", ["Bash(gh pr view:*)"]),
        ("go test ./...", ["Bash(go test ./...)"]),
        # With any further words these write a file, start a program, or run another target.
        ("git log -3", ["Bash(git log -3)"]),
        ("git grep word", ["Bash(git grep word)"]),
        ("git fetch origin", ["Bash(git fetch origin)"]),
        ("make test", ["Bash(make test)"]),
        ("mise run test:ci", ["Bash(mise run test:ci)"]),
    ],
)
def test_forms(command: str, rules: list[str]) -> None:
    assert rules_of(Question(command)) == rules


def test_what_was_refused_is_not_proposed_and_a_few_times_are_not_always() -> None:
    yes, no = Question("git log", allowed=True), Question("git log", allowed=False)
    assert propose([yes] * 2) == frozenset()
    assert propose([yes] * 19 + [no]) == frozenset()
    assert propose([yes] * 20 + [no]) == {"Bash(git log)"}
    assert propose([yes] * 9 + [Question("git log && git push", allowed=False)]) == {"Bash(git log)"}


def edit(path: str, project: str = "/h/ada/shop", root: str = "") -> Question:
    return Question(paths=(path,), project=project, root=root or project, allowed=True)


@pytest.mark.parametrize(
    ("path", "rules"),
    [
        ("/h/ada/shop/src/cart.py", ["Edit(//h/ada/shop/src/**)"]),
        ("/h/ada/shop/src/a/b.py", ["Edit(//h/ada/shop/src/**)"]),
        # These say what runs, or lie elsewhere.
        ("/h/ada/shop/package.json", None),
        ("/h/ada/shop/.github/ci.yml", None),
        ("/h/ada/shop/src/.env", None),
        ("/h/ada/shop/src/../Makefile", None),
        ("/h/ada/shop-2/src/cart.py", None),
        ("/etc/cron.d/x", None),
        ("src/cart.py", None),
        ("/h/ada/shop/sr(c)/cart.py", None),
        ("/h/ada/shop/s*/cart.py", None),
    ],
)  # fmt: skip
def test_edits_of_one_folder_of_the_project(path: str, rules: list[str] | None) -> None:
    assert rules_of(edit(path)) == rules


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (["Edit(//p/apps/**)", "Bash(pnpm --filter web build)"], True),
        (["Edit(//p/apps/**)", "Bash(git status:*)"], False),
        (["Bash(go test ./...)"], False),
    ],
)
def test_edits_and_commands_together_run_what_was_written(rules: list[str], said: bool) -> None:
    assert runs_what_it_writes(rules) == said


def test_without_a_project_no_edit_is_proposed() -> None:
    assert [rules_of(edit("/etc/x/y", project)) for project in ("", "/")] == [None, None]


def test_worktrees_within_their_repository_share_a_rule() -> None:
    tree = "/h/ada/shop/.worktrees/2"
    assert rules_of(edit(f"{tree}/src/a.py", tree, rule_root(tree, "/h/ada/shop"))) == [
        "Edit(//h/ada/shop/.worktrees/*/src/**)"
    ]
    assert rule_root("/h/ada/shop-2", "/h/ada/shop") == "/h/ada/shop-2"
    assert rule_root("/h/ada/shop", "/h/ada/shop") == "/h/ada/shop"
