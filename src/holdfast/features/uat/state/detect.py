"""Is somebody asking for a UAT run? A score with reasons: 0-50 the words, 0-30 the tool, 0-20 the scenario (O3-b)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from holdfast.core.kinds.uat_events import Plan, PlannedStep
from holdfast.core.lazy import lazy_pattern
from holdfast.features.uat.state.steps import Called, matches_step

# Orders in other languages than English: enough to begin a run whose scenario the prompt names.

_FOREIGN_VERBS = (
    *("teste", "testen", "prüfe", "prüfen", "überprüfe", "führe", "ausführen", "starte", "starten", "durchspielen"),
    *("führ", "prüf", "überprüf", "testest", "prüfst", "überprüfst", "ausführst", "durchspielst", "durchlaufen"),
    *("tester", "testez", "lance", "lancer", "lancez", "exécute", "exécuter", "exécutez", "vérifie", "vérifiez"),
    *("prueba", "probar", "pruebe", "ejecuta", "ejecutar", "ejecute", "lanza", "verifica", "comprueba"),
    *("pruebes", "ejecutes", "compruebes", "corre", "correr", "corras"),
    *("prova", "provare", "testa", "testare", "esegui", "eseguire", "lancia", "avvia", "verificare"),
    *("testar", "execute", "executa", "executar", "rode", "rodar", "verifique"),
    *("voer", "uitvoeren", "controleer", "draai"),
    *("przetestuj", "uruchom", "sprawdź", "wykonaj", "otestuj", "spusť", "ověř", "proveď"),
    *("протестируй", "протестируйте", "запусти", "запустите", "проверь", "проверьте", "выполни", "выполните"),
    *("протестуй", "перевір", "виконай", "kör", "kjør", "kør", "testaa", "suorita", "çalıştır", "dene"),
)
_UNSPACED = lazy_pattern(
    r"测试|測試|执行|執行|运行|運行|跑一?下|テスト(?:して|し|を?(?:実行|行|お願い))|(?:実行|検証|確認)(?:して|し|を?お願い)|走らせ|"
    r"테스트|실행|\blass(?:e|t)?\b.{1,60}\blaufen\b"
)
"""Also words that only together are an order."""
_NOT_AN_ORDER = lazy_pattern(
    r"\b(?:nicht|kein|keine|ohne|niemals|später|ne|pas|jamais|sans|no|nunca|sin|non|mai|senza|não|nunca|sem|niet|geen|"
    r"nie|nigdy|не|никогда|без|ikke|inte|älä|warum|wieso|wie|pourquoi|comment|cómo|por qué|perché|come|como|hoe|"
    r"waarom|jak|dlaczego|как|почему|nasıl|unit|pytest|jest|server|servidor|serveur|servidores|сервер|"
    r"schreib|schreibe|schreiben|behebe|repariere|erkläre|écris|écrire|corrige|corriger|explique|escribe|escribir|"
    r"arregla|explica|scrivi|correggi|spiega|escreva|corrija|schrijf|repareer|napisz|napraw|напиши|исправь|объясни)\b|"
    r"不要|别|別|不用|怎么|怎麼|如何|为什么|編寫|编写|修复|修復|しないで|書いて|修正|方法|하지 ?마|작성|고쳐|어떻게|サーバ|服务器|서버"
)
_SPEAKER = lazy_pattern(
    r"^(?:ich|wir|je|j'|nous|yo|io|eu|nós|ik|wij|ja|my|я|мы)\b(?!.{0,20}\b(?:dass|que|che|чтобы)\b)"
)
_POLITE_QUESTION = lazy_pattern(
    r"^(?:bitte |s'il te plaît |por favor )?(?:kannst du|könntest du|können sie|peux-tu|pouvez-vous|pourrais-tu|puedes|"
    r"podrías|puoi|potresti|pode|você pode|poderia|kun je|kunt u|możesz|můžeš|можешь|можете)\b"
)
_ENGLISH = lazy_pattern(r"\b(?:the|will|this|that|was|were|with|should|would|our|their|has|have|which)\b")
_FOREIGN_WORD = lazy_pattern(r"[^\W_]+(?:['-][^\W_]+)*")


def is_order(clause: str, *, asks: bool) -> str:
    """The verb of an order to test or run something; empty for anything else. `clause` is in lower case."""
    if _ENGLISH.search(clause) or _NOT_AN_ORDER.search(clause) or _SPEAKER.match(clause):
        return ""
    if asks and not _POLITE_QUESTION.match(clause):
        return ""
    spoken = next((word for word in _FOREIGN_WORD.findall(clause) if word in _FOREIGN_VERBS), "")
    match = _UNSPACED.search(clause)
    return spoken or (match.group() if match else "")


# Does a prompt order a test of something a user does? Words only, 0 to 50 points. Pure, quick on any text.

LONGEST_READ = 3_000
MOST_CLAUSES = 60
MOST = 50
FOREIGN = 30
"""An order in another language: with the scenario's name and a call of one of its steps it begins a run."""
LONGEST_NAME = 4
"""Words a flow's name may have."""

# Ends of sentences, and words such as "and then" between two orders.
_CLAUSE = lazy_pattern(
    r"[.;:!?\n]+(?=\s|$)|,?\s+(?:and then|then|and|after that|afterwards|next)\s+|,\s+", re.IGNORECASE
)
_QUOTED = lazy_pattern(r"```.*?(?:```|$)|`[^`\n]*`|[\"“](?:[^\s\"“”]+\s+){3,40}[^\s\"“”]*[\"”]", re.DOTALL)
"""Code, and quotations longer than a name."""
_ASKS = "\N{INVERTED QUESTION MARK}"
_POLITE = lazy_pattern(
    r"^(?:(?:please|pls|now|ok|okay|hey|hi|claude|just|also|finally|first|next|then|and|again|great|thanks|so|"
    r"can you|could you|would you|will you|i want you to|i need you to|i'd like you to|i would like you to|"
    r"we need to|we should|you should|let's|lets|let us|go ahead and|time to|try to|be so kind and|kindly|"
    r"your task is to|i want to|i'd like to|go and)[\s,]+){0,6}"
)
_RUN = lazy_pattern(
    r"(?:(?:click|play) through|re-?run|run|execute|perform|start|begin|launch|kick off|carry out|conduct|do|redo|"
    r"repeat|play|exercise)\b"
)
_THROUGH = lazy_pattern(r"(?:walk|step|go|work|run) through\b")
_TEST = lazy_pattern(r"(?:re-?test|test|verify|validate|smoke[- ]test|acceptance[- ]test|e2e[- ]test|uat)\b")
_LOOK = lazy_pattern(r"(?:check|try(?: out)?|confirm|make sure|(?:see|test|verify|validate) (?:if|whether|that))\b")
_UAT = lazy_pattern(r"\buats?\b|\buser[- ]acceptance\b|\bacceptance[- ](?:test|scenario|run|check)")
_AROUND_UAT = lazy_pattern(
    r"the|an?|our|this|that|whole|full|uats?|user|user-acceptance|acceptance|tests?|testing|scenarios?|runs?"
)
_NOT_THE_UAT = lazy_pattern(
    r"env|environment|server|db|migrations?|seed|setup|docs?|documentation|plan|planning|reports?|deployment|branch|"
    r"config|configuration|data|scripts?|build|release|checklist|template|package|folder|files?|system|instance|url|team"
)
_PREPOSITION = lazy_pattern(r"of|for|on|about|from|with|in|into|to|at|by")
_GOES_ON = lazy_pattern(
    r"with|in|on|as|like|again|now|please|using|through|via|by|at|works?|still|twice|too|once|end|to|step|is|"
    r"carefully|thoroughly|fully|manually|properly|first|today|uats?|tests?|testing|scenarios?|flows?"
)
"""What may follow the name of a flow that is itself the object."""
_FLOW = lazy_pattern(r"(?:[a-z0-9]+[-_])*(?:flow|scenario|journey|story|stories|path|end-to-end|e2e)s?")
_BROWSER = lazy_pattern(
    r"\bbrowser\b|\bplaywright\b|\bchrom(?:e|ium)\b|\bfirefox\b|\bthrough the ui\b|\b(?:like|as) a (?:real )?user\b|"
    r"\bscreenshots?\b"
)
_CODE_TESTS = lazy_pattern(
    r"\b(?:unit|integration|regression|load|performance|snapshot|property|mutation|component|contract|flaky|a/b)"
    r"[- ]?test|\b(?:pytest|jest|vitest|mocha|rspec|junit|phpunit|tox|cypress|ctest)\b|"
    r"\b(?:go|cargo|npm|pnpm|yarn|make|gradle|mvn|dotnet|swift|bun|deno|mix|rake)(?: run)? test|"
    r"\btest[- ]suite|\btests/|\w_test\b|\btest_\w|\.(?:spec|test)\.|"
    r"\btest (?:file|case|coverage|data|fixture|helper|runner|name|module)|"
    r"(?<!acceptance )(?<!acceptance-)(?<!uat )\btests\b|\b(?:ci|pipeline|workflow|github actions?)\b|"
    r"\.(?:py|ts|tsx|js|jsx|go|rs|rb|java|md|ya?ml|json)\b|"
    r"\b(?:code|codebase|source|review|curl|api|endpoint|handler|function|class|method|module|query|backend|database)s?\b"
)
_NOT_NOW = lazy_pattern(
    r"\b(?:don'?t|do not|never|without|not yet|later|tomorrow|cancel|abort|skip|instead of|no need|if you|when|"
    r"once(?! more| again)|unless|example|e\.g|how to|whether we|could have|should have|would have)\b"
)


class Reading(NamedTuple):
    """What the words alone are worth."""

    score: int
    reasons: tuple[str, ...]
    orders: str
    """The clauses that order something, for the scenario's name to be looked for in."""


NOTHING = Reading(0, (), "")
# "Look" and "through" come before "test" and "run": "run through" would match as "run".
_VERBS = (("look", _LOOK), ("through", _THROUGH), ("test", _TEST), ("run", _RUN))
# Points for the kind of verb, and more where its object is a flow; a run begins from the settings' threshold.
_BASE = {"test": 30, "run": 20, "through": 15, "look": 15}
_WITH_FLOW = {"test": 15, "run": 25, "through": 10, "look": 10}


def read_prompt(prompt: str) -> Reading:
    best, orders = NOTHING, []
    clauses = _split_clauses(prompt)
    seen = any(_BROWSER.search(clause) for clause in clauses)
    for clause in clauses:
        clause_reading = _read_order(clause, seen)
        if clause_reading.score:
            orders.append(clause_reading.orders)
        best = max(best, clause_reading, key=lambda reading: reading.score)
    return best._replace(orders=" / ".join(orders))


def is_uat(text: str) -> bool:
    return bool(_UAT.search(text))


def is_flow(word: str) -> bool:
    return bool(_FLOW.fullmatch(word))


def split_prompt_words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9][a-z0-9'_-]*", text)


def _split_clauses(prompt: str) -> list[str]:
    """Without quoted code and text, whose orders are not ours; a question keeps its mark."""
    text = _QUOTED.sub(" ", prompt[:LONGEST_READ])
    text = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").lower().replace("?", f" {_ASKS}. ")
    # Spanish opens a question with the mark that stands for its end here.
    parts = (part.strip(" \t\"'*->").lstrip(f"{_ASKS}¡ ") for part in _CLAUSE.split(text))
    return [part for part in parts if part][:MOST_CLAUSES]


def _read_order(clause: str, seen: bool) -> Reading:
    """`seen`: somewhere in the prompt there is a browser."""
    polite = _POLITE.match(clause)
    request = clause[polite.end() :] if polite else clause
    # "Can you …?" is an order in the form of a question.
    asks = clause.endswith(_ASKS) and not re.match(r"(?:please|can|could|would|will) ?", clause)
    verb = next(((name, m) for name, pattern in _VERBS if (m := pattern.match(request))), None)
    if verb is None and (foreign := is_order(clause, asks=clause.endswith(_ASKS))):
        return Reading(FOREIGN, (f"+{FOREIGN} “{foreign}”",), clause)
    if verb is None or asks or _NOT_NOW.search(clause) or _CODE_TESTS.search(request):
        return NOTHING
    kind, match = verb
    thing = _object_of_order(match.group(), request[match.end() :])
    return NOTHING if thing == "other" else _score_order(kind, match.group(), request, thing, seen)


def _object_of_order(verb: str, rest: str) -> str:
    """`uat`, `flow`, `browser`, nothing that we know, or `other`: something that only stands beside one of them."""
    rest_words = split_prompt_words(rest)
    flow = next((n for n, word in enumerate(rest_words) if is_flow(word)), None)
    if flow is not None:
        return (
            "other"
            if _is_beside_flow(rest_words[:flow], rest_words[flow + 1 :])
            else "uat"
            if is_uat(f"{verb} {rest}")
            else "flow"
        )
    if is_uat(f"{verb} {rest}"):
        return "other" if any(_NOT_THE_UAT.fullmatch(word) for word in rest_words) else "uat"
    looked = _BROWSER.search(rest)
    before = split_prompt_words(rest[: looked.start()]) if looked else rest_words
    named = [word for word in before if word not in ("in", "with", "the", "a", "using", "by")]
    return "other" if any(_PREPOSITION.fullmatch(word) for word in named) else "browser" if looked else ""


def _is_beside_flow(before: list[str], after: list[str]) -> bool:
    """“The performance of the login flow”, “the login flow logs”: neither is the flow."""
    last = max((n for n, word in enumerate(before) if _PREPOSITION.fullmatch(word)), default=-1)
    head, name = before[: max(last, 0)], before[last + 1 :]
    if last >= 0 and not (is_uat(" ".join(head)) and all(_AROUND_UAT.fullmatch(word) for word in head)):
        return True
    if before and before[0].endswith("ing") and before[0] != "testing":  # “start implementing the login flow”
        return True
    if len(name) > LONGEST_NAME or not after:
        return len(name) > LONGEST_NAME
    if is_uat(" ".join(before)):  # “the UAT scenario checkout”: its name may stand behind
        return bool(_NOT_THE_UAT.fullmatch(after[0]))
    return not (_GOES_ON.fullmatch(after[0]) or is_flow(after[0]))


def _score_order(kind: str, verb: str, request: str, thing: str, seen: bool) -> Reading:
    if thing == "uat" and kind in ("test", "run"):
        return Reading(MOST, (f"+{MOST} it orders UAT (“{verb}”)",), request)
    points, reasons = _BASE[kind], [f"+{_BASE[kind]} “{verb}”"]
    if thing in ("flow", "uat"):
        points += _WITH_FLOW[kind]
        reasons.append(f"+{_WITH_FLOW[kind]} a flow or scenario")
    if thing == "browser" or (thing and seen):
        points += 15
        reasons.append("+15 in a browser")
    # Only the word "test" counts without an object that we know.
    if points == _BASE[kind] and kind != "test":
        return NOTHING
    return Reading(min(points, MOST), tuple(reasons), request)


TOOL, SCENARIO = 30, 20
WORTH_KEEPING = 20
"""A prompt that scores less cannot begin a run with any tool."""

_COMMON = lazy_pattern(
    r"the|an?|our|all|this|that|of|for|in|on|with|and|please|now|again|once|more|full|whole|complete|it|uats?|user|"
    r"acceptance|tests?|testing|scenarios?|flow|run|rerun|re|execute|perform|start|begin|launch|kick|off|carry|out|"
    r"conduct|do|redo|repeat|browser|playwright|chrome|chromium|firefox|screenshots?|take"
)


# Latin words, or a run of letters of another script.
_WORD = lazy_pattern(r"[a-z0-9]+|[^\W_a-z0-9]+")
"""Words; scripts without spaces stand beside Latin names without one."""


class Assessment(NamedTuple):
    score: int
    scenario: str
    reasons: tuple[str, ...]


def assess_prompt(prompt: str, scenarios: Mapping[str, Plan], call: Called | None = None) -> Assessment:
    """The best scenario for a prompt and, if one is about to run, a tool call."""
    reading = read_prompt(prompt)
    if reading.score < WORTH_KEEPING:
        return Assessment(reading.score, "", reading.reasons)
    offers = [_assess_scenario(reading, name, plan, scenarios, call) for name, plan in scenarios.items()]
    return max(offers, key=lambda offer: offer.score, default=_without_scenario(reading, call))


def named_scenarios(prompt: str, scenarios: Iterable[str]) -> list[str]:
    """Scenarios whose whole name is in the prompt's orders."""
    orders = read_prompt(prompt).orders
    return [name for name in scenarios if _correlate_name(orders, name)[0] == SCENARIO]


def _assess_scenario(
    reading: Reading, name: str, plan: Plan, scenarios: Mapping[str, Plan], call: Called | None
) -> Assessment:
    points, reason = _correlate_name(reading.orders, name)
    if not points and len(scenarios) == 1 and is_uat(reading.orders) and _names_nothing(reading.orders):
        points, reason = 10, f"{name} is the only scenario"
    tool, tool_reason = _score_tool_call(plan.steps, plan.base_url, call)
    if not points:
        # Without a scenario the tool's points stay below those of a call that is a step of one.
        return Assessment(reading.score + min(tool, TOOL - 5), "", (*reading.reasons, *tool_reason))
    reasons = (*reading.reasons, f"+{points} {reason}", *tool_reason)
    return Assessment(reading.score + tool + points, name, reasons)


def _without_scenario(reading: Reading, call: Called | None) -> Assessment:
    tool, reason = _score_tool_call((), "", call)
    return Assessment(reading.score + tool, "", (*reading.reasons, *reason))


def _score_tool_call(steps: Sequence[PlannedStep], base_url: str, call: Called | None) -> tuple[int, tuple[str, ...]]:
    if call is None:
        return 0, ()
    if any(matches_step(step, call, base_url) for step in steps):
        return TOOL, (f"+{TOOL} {call.tool} is a step of it",)
    return (TOOL - 5, (f"+{TOOL - 5} {call.tool} drives a browser",)) if call.use.is_known else (0, ())


def _correlate_name(orders: str, name: str) -> tuple[int, str]:
    words = _WORD.findall(name.lower())
    order_words = _WORD.findall(orders)
    if not words or not order_words:
        return 0, ""
    # Names in scripts without spaces are searched for as they are.
    if _contains_sequence(order_words, words) or (not name.isascii() and name.lower() in orders):
        return SCENARIO, f"it names the scenario {name}"
    telling = [word for word in words if not is_flow(word) and word not in ("test", "page", "uat")]
    if telling and all(word in order_words for word in telling):
        return SCENARIO - 5, f"it names what {name} is about"
    return 0, ""


def _names_nothing(orders: str) -> bool:
    """“Run the UAT with screenshots”: there is only one it can mean. “Run the UAT of the payment” means another."""
    return all(_COMMON.fullmatch(word) for word in re.findall(r"[a-z0-9]+", orders))


def _contains_sequence(order_words: list[str], words: list[str]) -> bool:
    return any(order_words[n : n + len(words)] == words for n in range(len(order_words) - len(words) + 1))
