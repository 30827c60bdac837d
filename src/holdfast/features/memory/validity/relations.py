"""Whether a newer statement makes an older one void. Same subject and a claim that cannot hold beside it; in doubt, both stay."""

import re
from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import TypeVar

from holdfast.features.memory.validity.pair_model import (
    load_pair_model,
    says_opposite,
    shared_share,
    speak_of_two_things,
)
from holdfast.features.memory.validity.parse import BOUND_WORDS, Parsed, content_words, normal_word, parse_statement
from holdfast.statements.observe import load_classifier, spans_of

# Shares of the older statement's content words that the newer one must repeat to count as the same subject.
COVERED, HALF = 0.33, 0.5
K = TypeVar("K", bound=Hashable)
# Least model probability: where a rule fires as well, where none does, and where the newer one
# only adds, exempts or narrows.
CONFIRMED_FROM, REPLACED_FROM, BESIDE_FROM = 0.3, 0.4, 0.92
LEAST_SHARED = 0.2
"""Chosen by cross-validation (`models/relations/train.py`)."""


def have_common_ground(new: Parsed, old: Parsed) -> bool:
    """Cheap, and false for nearly all pairs: at the end of a turn what was said is held against all that is remembered."""
    if not new.words.isdisjoint(old.words) or not new.tools.keys().isdisjoint(old.tools):
        return True
    return bool(old.until and new.numbers) or not new.negated.isdisjoint(old.words)


def any_rule(new: Parsed, old: Parsed) -> bool:
    """By the rules alone."""
    return fired_rules(new, old)[-1]


def fired_rules(new: Parsed, old: Parsed) -> list[bool]:
    """Each rule by itself, then what holds them back, then the verdict: what the trees weigh."""
    fired = [rule(new, old) for rule in _RULES]
    exempts, elsewhere = _is_exception(new, old), _other_scope(new, old)
    # An exception or another scope blocks every rule but `lifts_end`.
    held_back = elsewhere or (exempts and not _withdraws_exception(new, old))
    verdict = lifts_end(new, old) if held_back else any(fired)
    return [*fired, exempts, elsewhere, _is_of_less(new, old), verdict and have_common_ground(new, old)]


def replacement_strength(new: Parsed, old: Parsed) -> float:
    """0 where the newer one leaves the older in force; above 1 where a rule says so, too."""
    return _strength(new.text, old.text) if have_common_ground(new, old) else 0.0


@lru_cache(maxsize=4_000)
def _strength(newer: str, older: str) -> float:
    """At the end of a turn each pair is asked for twice."""
    if speak_of_two_things(newer, older):
        return 0.0
    new, old = parse_statement(newer), parse_statement(older)
    fired = fired_rules(new, old)
    if not fired[-1] and _both_forbid(new, old):
        return 0.0
    # One word in common among many is no subject in common: nine of ten pairs end here.
    # A tool of the same group counts as common ground even where no other word is shared.
    if not fired[-1] and shared_share(new, old) < LEAST_SHARED and new.tools.keys().isdisjoint(old.tools):
        return 0.0
    chance = load_pair_model().replaced(new, old, fired, lasting_chance(new.text))
    return weigh_replacement(new, old, chance, fired[-1])


def _both_forbid(new: Parsed, old: Parsed) -> bool:
    """Two things that must not be done can both be left undone, unless the newer one says that something changed."""
    changes = new.strong or new.now or new.only or new.taken_back or (new.numbers and old.numbers)
    return new.negative and old.negative and not changes and not new.main <= old.words


def weigh_replacement(new: Parsed, old: Parsed, chance: float, by_rule: bool) -> float:
    """What adds to the older one, exempts a part of it or speaks of less must be all the more certain."""
    beside = new.as_well or _is_exception(new, old) or _other_scope(new, old) or _is_of_less(new, old)
    least = CONFIRMED_FROM if by_rule else BESIDE_FROM if beside else REPLACED_FROM
    if chance < least:
        return 0.0
    # The +1 lets `choose_replaced` tell a rule's verdict from a mere probability.
    return 1 + chance if by_rule else chance


def choose_replaced(strengths: Mapping[K, float]) -> list[K]:
    """Of several older statements: all that a rule names. Where none does, only the likest: who changes one thing seldom changes
    two at once."""
    by_rule = [key for key, strength in strengths.items() if strength >= 1]
    if by_rule:
        return by_rule
    likely = {key: strength for key, strength in strengths.items() if strength > 0}
    return [max(likely, key=lambda key: likely[key])] if likely else []


def replaces_statement(new: Parsed, old: Parsed) -> bool:
    return replacement_strength(new, old) > 0


@lru_cache(maxsize=2_000)
def lasting_chance(text: str) -> float:
    """How likely its words outlast the task: a fault or a wish replaces nothing."""
    return max((load_classifier().probability(span.features) for span in spans_of(text)), default=0.0)


def _is_exception(new: Parsed, old: Parsed) -> bool:
    """An exception names a part; what speaks of nothing but the older one's subject changes it."""
    return new.exception and not new.main <= old.words


def _is_of_less(new: Parsed, old: Parsed) -> bool:
    """ "debug logs …" after "logs …": a word before the common subject makes it narrower."""
    content = [token for token in new.tokens[:6] if normal_word(token) in new.words]
    if len(content) < 2 or normal_word(content[0]) in old.words or normal_word(content[1]) not in old.subject[:1]:
        return False
    at = new.tokens.index(content[0])
    # "we delete logs …" is no narrower than "logs …" either: behind a pronoun stands a verb.
    if at and new.tokens[at - 1] in _PRONOUNS:
        return False
    # "all logs …" is no narrower than "logs …": a quantifier before the subject does not count.
    return new.tokens[at + 1] == content[1] and content[0] not in _QUANTIFIERS


_PRONOUNS = frozenset("we you i they wir ihr ich on nous je".split())
_QUANTIFIERS = frozenset("all every each any new entire whole alle jede todos todas tous toutes todo".split())


def _other_scope(new: Parsed, old: Parsed) -> bool:
    """Both name where they hold, and it is not the same place; or the newer one alone narrows itself."""
    if new.others and old.scopes:
        return True
    if new.general or not (new.scopes and old.scopes):
        return False
    return not (new.scopes & old.words or old.scopes & new.words)


def lifts_end(new: Parsed, old: Parsed) -> bool:
    """ "until X is released", and X is out; a freeze that is over."""
    if new.not_yet:
        return False
    # "until the catalogue is printed", and then just that: "the catalogue is printed".
    # At least half of the awaited words: one word in common does not prove that the event happened.
    if old.until and new.words and new.words <= old.until and not new.negative and len(new.words) * 2 >= len(old.until):
        return not new.until
    if not new.done:
        return False
    shared = old.until & new.words
    # A version number alone is enough: "until 2.0 is out" is lifted by "2.0 is released".
    return (bool(shared) and (len(shared) * 2 >= len(old.until) or bool(old.numbers & new.numbers))) or _until_number(
        new, old
    )


def _is_lifted(new: Parsed, old: Parsed) -> bool:
    """ "the freeze is over": nothing is said but that it ended."""
    return (
        new.done
        and not new.not_yet
        and bool(new.taken_back & old.words)
        and len(new.words) <= 2
        and len(new.words & old.words) >= 1
    )


_AWAITED = re.compile(r"\b(?:until|till|bis|hasta|jusqu'à|até|до|пока)\b.*", re.IGNORECASE)


def _until_number(new: Parsed, old: Parsed) -> bool:
    awaited = _AWAITED.search(old.text)
    return awaited is not None and any(number in awaited[0].split() for number in new.numbers)


def _withdraws_exception(new: Parsed, old: Parsed) -> bool:
    taken_up = new.main <= old.words and old.negative and not new.negative
    return new.as_well and bool(new.words & old.words) and (old.exception or taken_up)


def _built_on_the_dead(new: Parsed, old: Parsed) -> bool:
    """ "poeditor is cancelled": what named it as its means or its person ends with it; what bans it does not."""
    # `old.negated` is taken out: "no poeditor" stays true after poeditor is cancelled.
    return bool(new.dead & old.words - old.negated) and not new.not_yet and not new.until & new.dead


def _denied_value(new: Parsed, old: Parsed) -> bool:
    """ "logs go to a file, not stdout": the value of the older one is denied, and the rest of it is spoken of."""
    denied = new.negated & old.words - old.negated
    # Only if all the rest of the older one is spoken of: else the "not" denies a value of something else.
    rest = old.words - new.negated
    of_less = _is_of_less(new, old) and not new.only
    return bool(denied) and bool(rest) and rest <= new.words and not new.as_well and not of_less


def _is_reversed(new: Parsed, old: Parsed) -> bool:
    """ "comments are welcome", then "no comments": nothing but the older one's subject, once with a "no" and once without."""
    # One word more in the older one is let pass: "comments are welcome" has "welcome" beside its subject.
    return bool(new.main) and new.main <= old.words and new.negative != old.negative and len(old.main - new.words) <= 1


def _is_turned_round(new: Parsed, old: Parsed) -> bool:
    return says_opposite(new, old) and not _is_of_less(new, old)


_DONE_BY = re.compile(r"\bby (?:the )?([\w-]+)", re.IGNORECASE)


def _other_doer(new: Parsed, old: Parsed) -> bool:
    """ "releases are cut by hand", then "the bot cuts the releases"."""
    match = _DONE_BY.search(old.text)
    doer = normal_word(match[1]) if match else ""
    rest = old.main - {doer}
    return (
        doer in old.main and doer not in new.words and len(rest) >= 2 and rest <= new.main and not _is_of_less(new, old)
    )


_PREPOSITIONS = frozenset(
    "in on at with by from to over through via using en dans mit über con avec com на в по auf bei nach per".split()
)
_GENERIC_VERBS = frozenset(
    "is are live lives kept stored sit sits go goes come comes found run runs done handled made now held sind ist liegen está "
    "están sont est vont va são é läuft laufen geht gehen meet".split()
)


_NOWS = frozenset("now jetzt ahora maintenant agora теперь only nur noch".split())


def _placed_anew(new: Parsed, old: Parsed) -> bool:
    """ "meetings are in zoom", then "we meet in jitsi now": one subject, one slot, another filler."""
    if not (new.now or new.strong) or new.as_well or _is_of_less(new, old) or not (new.subject and old.subject):
        return False
    slot, before = _preposition_slot(new), _preposition_slot(old)
    if not slot or not before or slot[1] == before[1] or not _same_topic(new, old, slot[1], before[1]):
        return False
    # "" stands for a verb that says nothing ("is", "lives"): it fits any verb on the other side.
    return slot[0] == before[0] or "" in (slot[0], before[0])


def _same_topic(new: Parsed, old: Parsed, *fillers: str) -> bool:
    """The same first word, or the same two however they are inflected ("guardamos las sesiones", "las sesiones se guardan")."""
    if new.subject[0] == old.subject[0]:
        return True
    # Five letters stand for the stem: "guardamos" and "guardan" agree on them.
    topics = [{word[:5] for word in one.subject if word not in map(normal_word, fillers)} for one in (new, old)]
    return len(topics[0]) > 1 and topics[0] == topics[1]


def _preposition_slot(one: Parsed) -> tuple[str, str] | None:
    """The verb before the first preposition ("" where it says nothing by itself), and the word behind it."""
    at = next((n for n, token in enumerate(one.tokens) if n and token in _PREPOSITIONS), 0)
    if not at or at + 1 >= len(one.tokens):
        return None
    verb = next((token for token in reversed(one.tokens[:at]) if token not in _NOWS), "")
    filler = [t for t in one.tokens[at + 1 :] if t not in ("the", "a", "an", "our", "la", "el", "le")]
    generic = verb in _GENERIC_VERBS or normal_word(verb) in one.subject
    return ("" if generic else normal_word(verb), filler[0]) if filler else None


def _taken_back(new: Parsed, old: Parsed) -> bool:
    # Numbers count, too: "from 30 to 60" takes back the value 30.
    gone = new.taken_back & (old.main | old.numbers)
    if not gone or (new.as_well and not new.strong):
        return False
    # A tool's name or a word such as `flags.yaml` identifies its statement by itself; a common word does not.
    named = any(word in group for word in gone for group in old.tools.values()) or any(
        char in word for word in gone for char in "./_#-+"
    )
    shared = len(old.words & new.words) / max(1, len(old.words))
    return (
        shared >= HALF or (named and (new.strong or new.now or shared >= COVERED)) or (shared >= COVERED and new.strong)
    )


def _new_value(new: Parsed, old: Parsed) -> bool:
    """Another number for the same thing."""
    if not (new.numbers and old.numbers) or new.numbers == old.numbers:
        return False
    if _is_exception(new, old) or (_is_of_less(new, old) and not new.strong and not new.now):
        return False
    # "30 seconds" is no new value for "30 MB".
    if new.units and old.units and not new.units & old.units:
        return False
    if (
        not (set(new.scopes) <= old.words | {""})
        and not new.general
        and not new.strong
        and not (old.scopes & new.words)
    ):
        return False
    shared = new.main & old.main or (new.words & old.main)
    # Words like "limit" or "minimum" only say that a number is a bound, so they do not make two subjects.
    new_only, old_only = new.main - old.words - BOUND_WORDS, old.main - new.words - BOUND_WORDS
    if not shared - BOUND_WORDS:
        return False
    names_old_value = bool(new.numbers & old.numbers) or len(shared) >= 2
    return not old_only or not new_only or ((new.strong or new.now) and names_old_value and len(old_only) <= 1)


def _rival_tool(new: Parsed, old: Parsed) -> bool:
    """Another tool of the same group for the same thing."""
    for group, names in new.tools.items():
        before = old.tools.get(group, set())
        # What is named only to be dropped ("vitest instead of jest") is no candidate for its group.
        remaining = names - new.taken_back - new.negated
        if before and before <= new.negated and remaining and not _words_beside_tools(new, group) - old.words:
            return True
        if not before or before & remaining:
            continue
        if not remaining and not new.strong:
            continue
        # "moving off jenkins" names a tool without saying what takes its place.
        named_off = "off" in new.tokens[-6:] or "off" in new.text.split(",")[0].split()
        if named_off and names:
            continue
        new_only, old_only = _words_beside_tools(new), _words_beside_tools(old)
        same_thing = bool(new_only & old_only) or not new_only or not old_only
        if new.strong or (new.now and (same_thing or new.general)):
            return True
        # Said of the same thing, or of less: "summaries in german" after "write the summaries in english".
        of_new, of_old = _words_beside_tools(new, group), _words_beside_tools(old, group)
        if of_new and of_new <= of_old and not (new.scopes - old.words):
            return True
    return False


def _words_beside_tools(one: Parsed, group: str = "") -> frozenset[str]:
    """What is said besides the names of tools (of this group)."""
    named = {name for tool_group, names in one.tools.items() if not group or tool_group == group for name in names}
    tools = named | {normal_word(name) for name in named}
    # Words for "everywhere" are no subject. Cut forms are stems as `normal_word` makes them.
    return frozenset(word for word in one.main if word not in tools) - {
        "repo",
        "monorepo",
        "workspac",
        "everyth",
        "everything",
        "team",
    }


def _same_frame(new: Parsed, old: Parsed) -> bool:
    """ "PRs go against develop" and "PRs go against main": one place of the sentence differs."""
    one, other = new.tokens, old.tokens
    common = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    # Three equal words at the start, and at most two that differ at the end of the older one.
    if common < 3 or len(other) - common > 2 or not old.subject or one[0] in _BANS:
        return False
    # A trailing "now" alone is not another value.
    tail = [t for t in one[common:] if t not in ("now",)]
    return bool(tail) and other[common - 1] in _LINKS and (old.subject[0] in new.main)


_BANS = frozenset("no never always only don't do not we i you keep use".split())
_LINKS = frozenset("to against in on at by is are with from under through into".split())


_VERBS = frozenset("is are live lives go goes run runs sit sits come comes happen happens get gets stay stays".split())
_PLACING = frozenset("in on at with by through to from over under into".split())


def _same_slot(new: Parsed, old: Parsed) -> bool:
    """ "secrets are in vault since …" after "secrets are kept in …": the same thing, placed anew."""
    one, other = _before_verb(new), _before_verb(old)
    # A place must follow the verb within five words, in both of them.
    placed = all(_PLACING & set(p.tokens[len(one) : len(one) + 5]) for p in (new, old))
    return bool(one) and one == other and placed and (new.strong or new.now) and not new.as_well


def _before_verb(one: Parsed) -> tuple[str, ...]:
    at = next((n for n, token in enumerate(one.tokens) if token in _VERBS), 0)
    return tuple(token for token in one.tokens[:at] if token not in ("the", "our", "all"))


# "Anna owns billing" or "billing belongs to Anna": a capital letter marks the person,
# so this one is not compiled with IGNORECASE.
_OWNER = re.compile(
    r"^(?P<person>[A-Z]\w+)(?: now)? (?:owns|maintains|looks after|runs|is responsible for) (?P<area>.+)$"
    r"|(?P<area2>[\w /-]+?) (?:goes? to|belongs to|is owned by|is maintained by|is (?:done|handled|run|granted|"
    r"approved|checked) by|moves to|"
    r"is with|is now|is) (?P<person2>[A-Z]\w+)(?:'s)?(?: now)?\W*$"
)


def _new_owner(new: Parsed, old: Parsed) -> bool:
    now, before = _area_owner(new.text), _area_owner(old.text)
    if not now or not before or now[0] == before[0] or new.as_well:
        return False
    # "the events pipeline" is another area than "the billing pipeline"; "the pipeline" may be either.
    return bool(now[1] & before[1]) and (now[1] <= before[1] or before[1] <= now[1])


@lru_cache(maxsize=4_000)
def _area_owner(text: str) -> tuple[str, set[str]] | None:
    for clause in text.split(", "):
        if match := _OWNER.search(clause.strip()):
            return match["person"] or match["person2"], content_words(match["area"] or match["area2"])
    return None


def _says_it_changed(new: Parsed, old: Parsed) -> bool:
    """Says of itself that something changed, and speaks of what the older one is about."""
    shared = old.words & new.words
    share = len(shared) / max(1, len(old.words))
    values = bool(new.numbers and old.numbers)
    # Two numbers are left to `_new_value`, which knows about units and bounds.
    if new.as_well or values or not shared or not new.main & old.words or new.not_yet:
        return False
    if new.strong:
        return share >= HALF and (len(shared) >= 2 or len(old.words) <= 2)
    return new.now and share >= HALF and len(shared) >= 2 and not _only_adds(new, old)


def _only_adds(new: Parsed, old: Parsed) -> bool:
    # A number that the older one did not have makes it more exact; it does not contradict it.
    adds = bool(new.numbers) != bool(old.numbers) and not new.only and not new.taken_back and not old.numbers
    return adds and not new.main <= old.words


def _is_narrowed(new: Parsed, old: Parsed) -> bool:
    if not new.only or old.only or not old.universal:
        return False
    shared = old.words & new.words
    return bool(shared) and len(shared) / max(1, len(old.words)) >= COVERED


def _plan_is_off(new: Parsed, old: Parsed) -> bool:
    tools = {name for names in old.tools.values() for name in names}
    mine = {name for names in new.tools.values() for name in names}
    off = any(f" {word}" in f" {new.text.lower()}" for word in ("is off", "cancelled", "called off", "won't happen"))
    back = "after all" in new.text.lower()
    names_it = bool(tools & mine) or len(old.words & new.words) >= 2
    # The plan is called off, or ("after all") an earlier calling-off is itself taken back.
    return (off and names_it and not old.exception) or (
        back and names_it and any(w in old.text.lower() for w in (" is off", "cancel", "called off", "won't"))
    )


# The order is part of the model: `pair_model` numbers its features rule0, rule1, … by it.
_RULES = (
    _same_slot,
    _new_owner,
    lifts_end,
    _built_on_the_dead,
    _denied_value,
    _is_reversed,
    _other_doer,
    _placed_anew,
    _is_lifted,
    _withdraws_exception,
    _taken_back,
    _new_value,
    _rival_tool,
    _same_frame,
    _says_it_changed,
    _is_narrowed,
    _plan_is_off,
    _is_turned_round,
)


# ── contradictions that cannot be decided ────────────────────────────────────────────────────────────────────────────


def may_contradict(new: Parsed, old: Parsed) -> bool:
    """Both cannot well be told together, yet the newer does not say that it replaces the older: a person decides.
    Asked only where `replaces` found nothing."""
    if (
        _is_exception(new, old)
        or new.as_well
        or old.exception
        or _other_scope(new, old)
        or new.text.lower() == old.text.lower()
    ):
        return False
    return _is_opposite(new, old) or _tool_against_tool(new, old)


def _is_opposite(new: Parsed, old: Parsed) -> bool:
    """The same words, once with a "no" and once without. What says more than the older is narrower: an exception."""
    same = bool(new.words) and new.words <= old.words and len(old.words - new.words) <= 1
    return same and new.negative != old.negative


def _tool_against_tool(new: Parsed, old: Parsed) -> bool:
    """Two tools of one kind, each said to be what is used, for the same thing or for no thing in particular."""
    for group, names in new.tools.items():
        before = old.tools.get(group, set())
        if (
            # With several names on one side it is a list of allowed tools, not a choice between two.
            len(names) == len(before) == 1
            and names != before
            and _words_beside_tools(new, group) == _words_beside_tools(old, group)
        ):
            return True
    return False
