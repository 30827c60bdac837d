"""Allow rules are proposed by what a command runs, and never for what may do harm."""

import pytest

from holdfast.features.attention.suggestions import Question, as_answer, forms_of, propose

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
        ("mise run fmt", ["Bash(mise run fmt)"]),
    ],
)
def test_forms(command: str, rules: list[str]) -> None:
    assert [form.rule for form in forms_of(command) or ()] == rules


def test_what_was_refused_is_not_proposed_and_a_few_times_are_not_always() -> None:
    assert propose([Question("git log", True)] * 2) == frozenset()
    assert propose([Question("git log", True)] * 9 + [Question("git log", False)]) == frozenset()
    assert len(propose([Question("git log", True)] * 9 + [Question("git log && git push", False)])) == 1
