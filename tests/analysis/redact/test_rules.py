"""Every rule finds its own example and leaves the ordinary one alone."""

import re
import shutil
from pathlib import Path

import pytest

from holdfast.analysis.redact import Redactor, rule_compiler, rule_data
from tests.analysis.redact.examples import Example, name_examples, place_examples, rules, token_examples

REDACTOR = Redactor()
NATIVE = Path(__file__).parents[3] / "native"


def check(positive: Example, negative: Example) -> None:
    cleaned, findings = REDACTOR.redact_text(positive.text)
    assert positive.secret and positive.secret not in cleaned, cleaned
    assert findings
    assert REDACTOR.redact_text(negative.text) == (negative.text, [])


@pytest.mark.parametrize("rule", rules()["tokens"], ids=lambda rule: f"{rule['kind']}:{rule['shape']}")
def test_a_token_by_its_form(rule) -> None:
    check(*token_examples(rule))


@pytest.mark.parametrize("rule", rules()["place"], ids=lambda rule: f"{rule['kind']}:{rule['anchors'][0]!a}")
def test_a_secret_by_its_place(rule) -> None:
    check(*place_examples(rule))


@pytest.mark.parametrize("rule", rules()["name"], ids=lambda rule: f"{rule['kind']}:{rule['stems'][0]!a}")
def test_a_secret_by_its_name(rule) -> None:
    check(*name_examples(rule))


def test_there_are_many_kinds() -> None:
    kinds = {rule["kind"] for key in ("tokens", "place", "name") for rule in rules()[key]}
    assert len(kinds) >= 220


def test_every_pattern_and_list_of_words_is_used() -> None:
    folder = Path(rule_compiler.__file__).parent
    sources = "\n".join(file.read_text() for file in (*folder.glob("*.py"), *NATIVE.glob("*.py")))
    toml = "\n".join(file.read_text() for file in folder.glob("rules/*.toml"))
    compiled = rules()
    assert [name for name in compiled["patterns"] if f"PATTERNS.{name}" not in sources] == []
    used = sources + "".join(re.findall(r"\(\?&word:\w+\)", toml))
    assert [name for name in compiled["words"] if not re.search(rf"""(?:WORDS\.|["':]){name}\b""", used)] == []
    assert [name for name in compiled["fragments"] if f"(?&{name})" not in toml] == []
    named = set(re.findall(r"PATTERNS\.([a-z_0-9]+)", sources))
    assert named <= compiled["patterns"].keys()


def test_changed_rules_count_without_being_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stale document must not hide a rule that was written since."""
    sources = tmp_path / "rules"
    shutil.copytree(rule_compiler.SOURCES, sources)
    rule_compiler.write_rules(tmp_path / "rules.json", sources)
    monkeypatch.setattr(rule_data, "_SOURCES", sources)
    monkeypatch.setattr(rule_data, "_COMPILED", tmp_path / "rules.json")
    monkeypatch.setattr(rule_compiler, "SOURCES", sources)
    assert rule_data.load_rules().fingerprint == rule_compiler.fingerprint(sources)
    (sources / "acme.toml").write_text("tokens = [{ kind = 'acme-token', shape = 'acme-<w20>' }]")
    assert "acme-token" in {rule.kind for rule in rule_data.load_rules().tokens}
    (tmp_path / "rules.json").unlink()
    assert "acme-token" in {rule.kind for rule in rule_data.load_rules().tokens}
    (tmp_path / "rules.json").write_text("{}")
    assert "acme-token" in {rule.kind for rule in rule_data.load_rules().tokens}


def test_a_name_that_two_files_define_is_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.toml").write_text("[patterns]\nhex = 'a'")
    with pytest.raises(ValueError, match=r"two\.toml defines hex a second time"):
        rule_compiler.read_sources(tmp_path)
