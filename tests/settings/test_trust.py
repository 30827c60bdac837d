"""Trust is given to one content at one place."""

import json
import os
import threading

import pytest

from holdfast.settings import trust


@pytest.fixture
def config(tmp_path):
    return tmp_path / "config"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "settings.yaml"
    path.write_bytes(b"a: 1\n")
    return path


def test_nothing_is_trusted_at_first(config, file):
    assert not trust.is_file_trusted(file, b"a: 1\n", config)
    assert not trust.untrust_file(file, config)


def test_exactly_that_content_is_trusted(config, file):
    trust.trust_file(file, config_dir=config)
    assert trust.is_file_trusted(file, b"a: 1\n", config)
    assert not trust.is_file_trusted(file, b"a: 1", config)
    assert not trust.is_file_trusted(file, b"a: 2\n", config)


def test_only_at_that_place(config, file, tmp_path):
    trust.trust_file(file, config_dir=config)
    assert not trust.is_file_trusted(tmp_path / "other.yaml", b"a: 1\n", config)
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    assert trust.is_file_trusted(link / "settings.yaml", b"a: 1\n", config)


def test_what_was_shown_is_what_is_trusted(config, file):
    trust.trust_file(file, b"shown", config)
    assert trust.is_file_trusted(file, b"shown", config)
    assert not trust.is_file_trusted(file, file.read_bytes(), config)


def test_trust_is_taken_back(config, file):
    trust.trust_file(file, config_dir=config)
    assert trust.untrust_file(file, config)
    assert not trust.is_file_trusted(file, b"a: 1\n", config)


def test_the_file_is_private(config, file):
    trust.trust_file(file, config_dir=config)
    assert (config / trust.FILE).stat().st_mode & 0o777 == 0o600
    assert config.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"a": 1}', b"\xff", b"null", b"[" * 100_000])
def test_a_damaged_file_trusts_nothing(config, file, content):
    trust.trust_file(file, config_dir=config)
    (config / trust.FILE).write_bytes(content)
    assert not trust.is_file_trusted(file, b"a: 1\n", config)
    trust.trust_file(file, config_dir=config)
    assert trust.is_file_trusted(file, b"a: 1\n", config)


def test_a_file_that_others_can_write_trusts_nothing(config, file):
    trust.trust_file(file, config_dir=config)
    (config / trust.FILE).chmod(0o666)
    assert not trust.is_file_trusted(file, b"a: 1\n", config)


def test_the_users_own_place_is_used_by_default(file, monkeypatch, tmp_path):
    monkeypatch.setenv("HOLDFAST_CONFIG", str(tmp_path / "mine"))
    trust.trust_file(file)
    assert list(json.loads((tmp_path / "mine" / trust.FILE).read_text())) == [os.path.realpath(file)]
    assert trust.is_file_trusted(file, b"a: 1\n")


def test_many_at_once_lose_nothing(config, tmp_path):
    files = [tmp_path / f"{n}.yaml" for n in range(20)]
    threads = [threading.Thread(target=trust.trust_file, args=(f, b"x", config)) for f in files]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(trust.is_file_trusted(f, b"x", config) for f in files)
