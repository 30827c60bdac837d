"""What git's answers say: the header and the entries of `status`, and nothing that it did not say."""

import pytest

from holdfast.core.git import Change, parse_status

HEAD = "1" * 40


def answer(*entries: str) -> bytes:
    return "".join(f"{entry}\0" for entry in entries).encode()


def test_a_branch_without_an_upstream_is_neither_ahead_nor_behind() -> None:
    status = parse_status(answer(f"# branch.oid {HEAD}", "# branch.head main"))
    assert (status.head, status.branch, status.upstream) == (HEAD, "main", "")
    assert (status.ahead, status.behind, status.stashes, status.changes) == (0, 0, 0, [])
    assert not status.cut


def test_the_header_is_read_field_by_field() -> None:
    status = parse_status(
        answer("# branch.oid (initial)", "# branch.head (detached)", "# branch.ab +3 -2", "# stash 4")
    )
    assert (status.head, status.branch, status.ahead, status.behind, status.stashes) == ("", "", 3, 2, 4)


def test_paths_keep_their_blanks_and_a_rename_its_old_name() -> None:
    modes = "N... 100644 100644 100644"
    changed = parse_status(
        answer(
            f"1 .M {modes} {HEAD} {HEAD} a b.py",
            f"2 R. {modes} {HEAD} {HEAD} R100 new name.py", "old name.py",
            f"u UU N... 100644 100644 100644 100644 {HEAD} {HEAD} {HEAD} both.py",
            "? new file.py",
        )
    ).changes  # fmt: skip
    assert changed == [
        Change("a b.py", ".M"), Change("new name.py", "R.", was="old name.py"), Change("both.py", "UU"), Change("new file.py", "??"),
    ]  # fmt: skip
    assert [change.conflict for change in changed] == [False, False, True, False]


@pytest.mark.parametrize("out", [b"1 .M N... 1 1 1 a b", b"? half a na"])
def test_an_answer_that_was_cut_says_so_and_leaves_the_half_entry_out(out: bytes) -> None:
    status = parse_status(b"? whole\0" + out)
    assert status.cut
    assert [change.path for change in status.changes] == ["whole"]
