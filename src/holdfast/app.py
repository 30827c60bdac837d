"""The composition root: builds the App from settings, store, features and agents."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.agents import AGENTS
from holdfast.agents.intake import Intake
from holdfast.analysis.redact import UserRules, redact, use_rules
from holdfast.core import machine
from holdfast.core.agent import Agent, use_agents
from holdfast.core.authority import Authority, Refusal, Surroundings, authorise, check_declared
from holdfast.core.engine import Engine, Ports
from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.feature import Call, CommandResult, Feature
from holdfast.core.git_context import CachedGitContext
from holdfast.core.lazy import lazy_value
from holdfast.core.ports import Reader, Store
from holdfast.core.times import now_ms
from holdfast.features import FEATURES, features_on_trial
from holdfast.paths import Paths
from holdfast.settings import OtherPlacements, Settings, SettingsCache
from holdfast.settings.sections import Redact as RedactSection
from holdfast.stores import sqlite_path
from holdfast.stores.body_cipher import BodyCipher
from holdfast.stores.key_name import prepare_key

Report = Callable[[str, Event, Exception], None]


def _ignore_error(_feature: str, _event: Event, _error: Exception) -> None:
    return None


@dataclass
class ReadOnlyApp:
    """Answers views without a store of its own."""

    paths: Paths
    settings: SettingsCache
    features: tuple[Feature, ...]

    def call(
        self, name: str, args: Mapping[str, Any], reader: Reader, session: str = "", project: str = "", caller: int = 0,
        code: str = "",
    ) -> Call:  # fmt: skip
        sections = self.settings.look_again(project)
        call = Call(
            args=args, reader=reader, settings=sections.get(name.partition(".")[0]), now=now_ms(), session=session,
            project=project, state_dir=self.paths.state, caller=caller, code=code,
        )  # fmt: skip
        observer = next((feature for feature in self.features if feature.surroundings), None)
        if observer is None:
            return call
        return replace(call, surroundings=_once(observer, replace(call, settings=sections.get(observer.name))))

    def view(self, name: str, call: Call) -> Any:
        return _find_handler(self.features, "views", name)(call)

    def command(self, name: str, call: Call) -> CommandResult:
        handler = _find_handler(self.features, "commands", name)
        judged = authorise(_declared_authority(self.features, name), call)
        if isinstance(judged, Refusal):
            return CommandResult((judged.event,), refused=judged.text)
        value: CommandResult = handler(replace(call, judged=judged) if judged else call)
        return value


@dataclass
class App(ReadOnlyApp):
    agents: Mapping[str, Agent]
    store: Store
    engine: Engine
    redact: Callable[[bytes], tuple[bytes, int]]
    cipher: BodyCipher


def _find_handler(features: Sequence[Feature], table: str, name: str) -> Callable[[Call], Any]:
    owner, _, verb = name.partition(".")
    for feature in features:
        if feature.name == owner and verb in getattr(feature, table):
            value: Callable[[Call], Any] = getattr(feature, table)[verb]
            return value
    raise CommandRefused(f"there is no {table[:-1]} {name!r}")


def _declared_authority(features: Sequence[Feature], name: str) -> Authority:
    owner, _, verb = name.partition(".")
    return next(feature for feature in features if feature.name == owner).authority[verb]


def _once(observer: Feature, call: Call) -> Callable[[], Surroundings]:
    assert observer.surroundings is not None
    return lazy_value(partial(observer.surroundings, call))


def open_settings(features: Sequence[Feature] = FEATURES) -> SettingsCache:
    mine = [f for f in features if f.settings]
    elsewhere = {f.name: OtherPlacements(f.settings_names, f.settings_files) for f in mine}
    settings = SettingsCache(Settings({f.name: f.settings for f in mine}, elsewhere=elsewhere))
    # A function, because settings may change while the daemon runs.
    use_rules(lambda: _redaction_rules(settings.for_project("")["redact"]))
    return settings


def _redaction_rules(section: RedactSection) -> UserRules:
    return UserRules(section.names, section.patterns, section.keep, section.enabled)


def database_path(paths: Paths, settings: SettingsCache) -> Path:
    url = settings.for_project("")["store"].url
    return sqlite_path(url) if url else paths.database


def all_features() -> tuple[Feature, ...]:
    return (*FEATURES, *features_on_trial())


def open_read_only(paths: Paths) -> ReadOnlyApp:
    """For doors that run as separate processes and only read."""
    features = all_features()
    use_agents(AGENTS)
    return ReadOnlyApp(paths, open_settings(features), features)


def build_app(
    paths: Paths,
    features: Sequence[Feature] | None = None,
    agents: Mapping[str, Agent] = AGENTS,
    report: Report = _ignore_error,
    cipher: BodyCipher | None = None,
) -> App:
    """`cipher`: the existing one of this process, with its keys."""
    features = all_features() if features is None else features
    check_declared(tuple(features))
    # From here on events carry this machine's id.
    machine.use_state_folder(paths.state)
    use_agents(agents)
    settings = open_settings(features)
    cipher = cipher or BodyCipher(lambda: bool(settings.for_project("")["store"].encrypt_bodies))
    from holdfast.stores.sqlite import SqliteStore  # Here: settings are read without a database.

    store = SqliteStore(database_path(paths, settings), backups=paths.backups, cipher=cipher)
    # Before the first event, which would otherwise be stored unencrypted.
    prepare_key(cipher, store)
    intake = Intake(agents, CachedGitContext(), redact)
    ports = Ports(
        read=intake.read,
        clean=intake.clean,
        write=lambda event, decision: _answering(agents, event).write(event, decision),
        carried=lambda event, decision: _answering(agents, event).carried(event, decision),
        settings=settings.for_project,
        project=intake.project,
        clock=now_ms,
        report=report,
        scrub=intake.scrub,
        scrub_fields=intake.scrub_fields,
    )
    engine = Engine(store, features, ports)
    return App(paths, settings, tuple(features), agents, store, engine, redact, cipher)


def _answering(agents: Mapping[str, Agent], event: Event) -> Agent:
    # "plain" is an agent we know only through a program of its own.
    return agents.get(event.agent) or agents["plain"]
