"""A statement, taken apart: subject words, values, scope, what it takes back, what it says about itself."""

import re
from functools import lru_cache
from itertools import pairwise

import msgspec

from holdfast.features.memory.state.documents import stem_word
from holdfast.features.memory.validity.tools import GROUP_OF, MULTIWORD, SAME_WORD, tools_in

# One CJK character, a word with its apostrophe part, or a name joined by _ . + / - (`src/app.py`, `c++17`).
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|#?[^\W_]+(?:['’][a-z]+)?(?:[_.+/-]+[^\W_]+)*/?")
_COUNTING = "zero one two three four five six seven eight nine ten eleven twelve"
_OTHER_NUMBERS = "once:1 twice:2 eins:1 zwei:2 drei:3 vier:4 dos:2 tres:3 deux:2 trois:3"
_NUMBER_WORDS = {word: str(number) for number, word in enumerate(_COUNTING.split())} | dict(
    pair.split(":") for pair in _OTHER_NUMBERS.split()
)
_ARTICLES = frozenset("a an ein eine einer un une una um uma".split())
_UNIT_NAMES = {
    "time": "s sec second seconds ms min minute minutes hour hours day days week weeks months years year "
    "sekunden minuten stunden stunde tag tage heure heures hora horas segundos secondes секунд",
    "size": "mb gb kb",
    "count": "rows characters workers",
    "rate": "hz khz mhz ghz fps rps kbit mbit baud",
    "length": "px dp mm cm m km",
    "power": "a ma v w ah mah",
    "share": "percent %",
}
_UNITS = {name: unit for unit, names in _UNIT_NAMES.items() for name in names.split()}
# Besides function words this holds verbs of change and place ("move", "live", "set"):
# they say what happens to a subject, never which subject it is.
_STOP = frozenset(
    """
    a an the this that it its is are was were be been being has have had do does did will would can may must
    should shall to of in on at by for from with and or but as than so we you i they he she us our your their
    there here not no only also always never now then still just too again all any every each anything
    everything everybody anyone new own please let's lets let set go goes going gets get use uses used using
    keep keeps stay stays make makes run runs need needs needed want since because until till while after before
    when if up down out over per most least above below enough fine ok okay yes back more less than like said
    thing things way work works done take takes put puts come comes live lives sit sits happen happens move
    moves moved moving switch switched change changed raise raised last first other else rest whole may's from's
    give gives good that's it's don't doesn't isn't aren't can't i've we've i'm we're allowed required approach instead into
    through between about final size der die das ein eine ist sind und oder jetzt nur im zum zur von mit für auf
    dürfen darf haben nicht noch el la los las un una de del en para con y o es son se por que le les des du et
    est sur dans on nous utilise passe pasamos usamos a à todo toute
    went brought bring write written based please show shows give given everywhere nowhere else's still currently
    today tomorrow yesterday since week weeks month april may june say said call called tell told have's look looks
    find found listen listens lasts lasting period long duration being être tener laufen erst subimos bajamos
    aumentamos got thrown bother meanwhile we'll i'll we'd per raus own voluntary optional
    wir ihr sie ich es sich dem den des einen einem einer als wie bei nach vor bis ab wird werden wurde kann können muss
    müssen soll sollen hat hatte läuft laufen gibt geben alle alles immer nie wieder mehr keine kein künftig bitte dabei dort
    lo al su sus como más muy pero si no ni ya ahora hay fue ser está están puede pueden debe deben lleva llevan va van tiene
    tienen hasta desde siempre nunca nada sin sobre entre cada
    au aux un une ce cette ces il elle ils sont avec pour par pas plus ne ni ou où mais donc car doit doivent peut peuvent
    faut fait toujours jamais désormais maintenant dure durent
    o os as um uma do da dos das no na nos nas em com que não é são foi ser está estão pode podem deve devem ter tem até agora
    mais sempre nunca sem sobre cada vai vão fica
    и в на с не по из для что это мы я он она все всегда никогда только без если то но к у за от теперь надо нужно больше уже
    il lo gli i di che è sono si per con non più sempre mai solo del della
    het de een van naar met voor en niet wordt worden we
    は が を に で の と も へ から まで です ます する した して いる
    的 了 在 是 和 与 都 用 把 被 要 会 到 从 现 在 改 成 为 换
    """
    .split()
)  # fmt: skip
# Where the main clause ends: punctuation, or a conjunction that begins a reason.
_CLAUSE_END = re.compile(r"[,;:(]| (?:because|since|so that|so|to keep|as|weil|porque|parce que)\b", re.IGNORECASE)
# Wording that exempts a part of a rule ("except …", "is fine in …", "may keep …").
_EXCEPTION = re.compile(
    r"\b(?:except|exempt|exception|(?:is|are) (?:ok|okay|fine|allowed) (?:in|for|on|with|without)|"
    r"(?:comments|names|it) are fine|still|noch immer|todavía|encore|ainda|need no|needs no|(?:doesn't|"
    r"don't) (?:need|count)|may (?:keep|return|use|deploy|skip|stay)|can go in without|sauf|außer|"
    r"ausgenommen|excepto|salvo|exceto|кроме|без исключения|at any hour|are open|is open|is public)\b|除了|以外",
    re.IGNORECASE,
)
_AS_WELL = re.compile(
    r"\btoo\b(?=\s*(?:[,;.!]|$|now|since|from))|\b(?:as well|also|auch|también|aussi|também|тоже)\b|也|も",
    re.IGNORECASE,
)
# Wording that says outright that something is different from now on.
_STRONG_CHANGE = re.compile(
    r"\b(?:after all|final|it is again|again|back to|took over|takes over|replaces?|replaced|instead|moving "
    r"(?:from|to|away)|moved|moves? to|move to|switch(?:ed|ing)? (?:to|the)|from (?:today|now|tomorrow|january|"
    r"february|march|april|may|june|july|august|"
    r"september|october|november|december)\b|went (?:back |up |down )?to|thrown out|swapped|took .{1,20} place|"
    r"handed .{1,40} (?:to|over)|is gone|"
    r"are gone|goes away|"
    r"no more|no longer|any ?more|forget|never mind|don't bother|no need to|rewrote|redone|(?:was|were|got) rebuilt|"
    r"reworked|doubled|halved|migramos|migré\w*|subimos|bajamos|aumentamos|on (?:monte|baisse|augmente)|erhöht|"
    r"gesenkt|подняли|снизили|увеличили|converted|redid|nur noch|переехал\w*|перенесли|volver a|drop(?:ped)?|"
    r"we go to|goes (?:up|down)|rewriting|rewritten|raised|"
    r"lowered|we stay with|stays? (?:in|with|on)|is over|are over|is off|left for|belongs to|passe de|pasamos|"
    r"wieder|otra vez|de nuevo|à nouveau|de novo|снова|nicht mehr|statt|umgestiegen|from here on|going forward|"
    r"ported|migrated|ab jetzt|ab sofort|künftig|umgezogen|"
    r"wechseln|a partir de (?:ahora|agora|hoy|hoje)|ya no|en (?:vez|lugar) de|cambiamos|désormais|dorénavant|"
    r"à partir de maintenant|au lieu de|on passe|n[e'].{1,25} plus|não .{1,25} mais|em vez de|trocamos|mudamos|"
    r"больше не|вместо|переходим|перешли|с этого момента|впредь|d'ora in poi|non più|invece di)\b"
    r"|改回|换成|不再|换|迁移?到|切[换到]|移到|调[到成]|[提降](?:高|低)?到|移行|乗り換え|以后|从现在起|改[为成用]|今後|これから|に変更|に切り替え",
    re.IGNORECASE,
)
# Weaker than `_STRONG_CHANGE`: may announce a change, or just say how things are.
_NOW = re.compile(
    r"\b(?:now|jetzt|ahora|maintenant|agora|теперь|these days|since|desde|depuis|seit|minimum is|only takes|is enough|is fine|"
    r"can run|may be up to|can be)\b|现在|今",
    re.IGNORECASE,
)
_UNIVERSAL = re.compile(
    r"\b(?:every|all|always|whole|any|anything|everything|each|nobody|no one|alle|jede\w?|sämtliche\w?|immer|niemand|siempre|tod[oa]s?|"
    r"cada|nadie|toujours|tou[st]|toutes?|chaque|personne|sempre|qualquer|ninguém|все|всё|вся|каждый|каждая|никто)\b|所有|每|全部|すべて|全て",
    re.IGNORECASE,
)
_ONLY = re.compile(
    r"\b(?:only|solely|exclusively|just (?:the|for|on|when|in|those|what)|nothing else|nur|ausschließlich|lediglich|s[oó]lo|solamente|"
    r"únicamente|seul(?:ement|e?s?)|uniquement|só|somente|apenas|только|лишь)\b|只有?|仅|だけ|のみ",
    re.IGNORECASE,
)
_PERMITS = re.compile(
    r"\b(?:may (?!be\b|take\b|have\b|last\b)|(?:is|are) (?:fine|ok|okay) (?:with|without|as)|goes? without|go out without|has to have|"
    r"darf|dürfen|pueden?|peut|peuvent|podem?|может|могут|можно)|可以|てもよい|ても良い",
    re.IGNORECASE,
)
"""Allows what a ban or a rule for all would forbid."""
_GENERAL_SCOPE = re.compile(
    r"\b(?:for (?:everybody(?: else)?|everyone|all)|everywhere|anywhere|the whole|whole (?:repo|monorepo)|for "
    r"the rest)\b",
    re.IGNORECASE,
)
_OTHERS = re.compile(
    r"\bfor (?:everybody|everyone|all|anything|the) (?:else|others?|rest)\b|\beverything else (?:is|stays)\b|"
    r"\bfür alle anderen\b|\bpara los demás\b|\bpour les autres\b",
    re.IGNORECASE,
)
# An event that was put off: it lifts no "until".
_NOT_YET = re.compile(
    r"\b(?:slipped|delayed|postponed|late|later|not yet|moved to (?:summer|autumn|winter|spring|next)|next "
    r"(?:year|month|quarter)|verschoben|aplazado|repoussé)\b",
    re.IGNORECASE,
)
# An event that has happened: auxiliary, up to 25 characters, participle, in several languages.
_DONE = re.compile(
    r"\b(?:went|came|just|finally) (?:out|live|through|in)\b|\b(?:landed|shipped|arrived)\b|"
    r"\b(?:was|were|got|has been|have been) (?:\w+ )?(?!need|delay|postpon|plan|announc|promis|schedul|reject|refus|miss|fail)\w{3,}ed\b|"
    r"\b(?:is|are|was|were|has been|have been|have|has|got|we|now)\b.{0,25}\b(?:out|released|done|live|lifted|"
    r"over|finished|complete[d]?|deleted|gone|shipped|upgraded|merged|closed|ended|supported|supports?|moved|"
    r"migrated|ready|here|off|through|passed|signed off|approved)\b|\b(?:support|upgraded everything)\b"
    r"|\b(?:ist|sind|wurde|est|sont|está|foi) .{0,25}\b(?:durch|fertig|abgeschlossen|beendet|vorbei|erledigt|aufgehoben|"
    r"fini\w*|terminé\w*|gemacht|gelaufen|gefallen|levé\w*|terminad\w+|acabad\w+|concluíd\w+|levantad\w+)\b|\b(?:завершен\w*|закончен\w*|снят\w*|закончил\w*|завершил\w*|прош[её]?л[аи]?)\b"
    r"|\b(?:ha|han|a|ont|è|sono|hat|haben)\b.{0,25}\b(?:terminad[oa]s?|acabad[oa]s?|concluid[oa]s?|été \w+|pris fin|finit[oaie]|"
    r"terminat[oaie]|geendet)\b|\b(?:terminou|acabou|terminó|acabó)\b|\b(?:works?|runs?|running|starts?|started) (?:again|with|now)\b"
    r"|(?:完成|结束|解除|終わ|完了)",
    re.IGNORECASE,
)
# What a rule waits for: up to 80 characters behind the word for "until" or "as long as".
_UNTIL = re.compile(
    r"\b(?:until|till|as long as|while|während|mientras|before|bis|solange|hasta|jusqu'à ce que|até|"
    r"пока)\b(.{3,80})|在(.{2,12})[之以]?前",
    re.IGNORECASE,
)
# Each captures the words of what is withdrawn ("from X to Y", "X instead of Y", "X is over").
_TAKEN_BACK = (
    re.compile(r"\b(?:from|de|von) ([\w.+#/-]+(?: [\w.+#/-]+)?) (?:to|a|à|auf|nach|zu)\b", re.IGNORECASE),
    re.compile(r"\b(?:replac(?:es|ed|ing)|took over from|takes over from|takes the place of|instead of|in place of|"
r"rather than|no longer|no more|forget|dropp?(?:ed|ing|s)?|off|statt) ((?:the )?[\w.+#/-]+(?: "
r"[\w.+#/-]+)?)", re.IGNORECASE),
    re.compile(r"((?:[\w.+#/-]+ ){1,3})(?:thing |stuff |rule )?(?:is|are|was|were|gets?|got|goes?|went) (?:(?:now|finally|"
r"also) )?(?:gone|over|closed|deleted|dropped|off|lifted|away|switched off|removed|dead|cancelled|too \w+|"
r"history|ended|not (?:needed|required)|n't (?:needed|required))\b", re.IGNORECASE),
    re.compile(r"((?:[\w.+#/-]+ ){1,4})(?:aren't|isn't|are not|is not) (?:needed|required|necessary|used)\b", re.IGNORECASE),
    re.compile(r"\b(?:dropped|lifted|cancelled) (?:the )?((?:[\w.+#/-]+ ?){1,2})", re.IGNORECASE),
    re.compile(r"((?:[\w.+#/-]+ ){1,2})(?:broke|clashed|can't be|couldn't|had no|was too|failed)\b", re.IGNORECASE),
    re.compile(r"([\w.+#/-]+) (?:(?:is|are) (?:out|history|retired|done for|no more)\b(?=[,;.]|$| and)|c'est fini|"
r"(?:est|sont) (?:abandonné|supprimé|retiré)\w*|disparaît|(?:wird|werden|ist|sind) (?:abgeschaltet|abgelöst|abgeschafft|ersetzt|"
r"geschichte|raus|weg)|fällt weg|fallen weg|entfällt|se acabó|desaparece|ya no se usa\w*|sale|acabou|sai|больше не|уходит|"
r"отключ\w+|убираем)", re.IGNORECASE),
    re.compile(r"([\w.+#/-]+)(?:'s)? (?:contract |licen[cs]e |subscription |account |trial )?(?:has )?(?:ended|expired|ran out)\b",
               re.IGNORECASE),
    re.compile(r"\b(?:dejamos(?: de usar)?|abandonamos|on (?:abandonne|quitte)|wir verlassen|deixamos(?: de usar)?|уходим с|"
r"отказались от) ([\w.+#/-]+)", re.IGNORECASE),
    re.compile(r"(?:不再用|停用|废弃|不用了?)\s*([\w.+#/-]+)|([\w.+#/-]+)\s*(?:は廃止|をやめ|不再使用|已停用)"),
    re.compile(r"([\w.+#/-]+) (?:goes|is on its way out|wird abgeschafft|fliegt raus|queda descartad\w+)\b(?! (?:to|in|"
r"up|down|through|on|against))", re.IGNORECASE),
)  # fmt: skip
_ENDED = (
    r"(?:gone|dead|history|retired|abandoned|discontinued|decommissioned|obsolete|buried|cancelled|canceled|deleted|closed|dropped|"
    r"removed|scrapped|axed|thrown out|kicked out|ripped out|switched off|turned off|shut down|phased out|on (?:its|the) way out|"
    r"out|no more|replaced|over|left|a thing of the past|abolished|stopped|suspended|repealed|disbanded|dissolved|withdrawn)"
)
_DEAD = (
    re.compile(rf"([\w.+#/-]+)(?:'s)? (?:(?:is|are|was|were|got|gets|has been|have been|has|have|"
               rf"will be) (?:now |finally |all )*{_ENDED}|left|quit|"
               r"retired|resigned|went away|goes away|went(?=[,;.]|$))\b(?! (?:in|on|at|by|under|with|of|from))", re.IGNORECASE),
    re.compile(r"([\w.+#/-]+)(?:'s)? (?:contract|licen[cs]e|subscription|plan|account|trial)? ?(?:has )?(?:ended|expired|ran out|run out|"
               r"been (?:retired|removed|dropped|deleted|replaced|closed|cancelled))\b", re.IGNORECASE),
    re.compile(r"\b(?:dropped|threw out|got rid of|scrapped|abandoned|killed|removed|retired|ditched|swapped(?: out)?|left|quit|took) "
               r"(?:the )?([\w.+#/-]+?)(?:'s place)?(?= |,|;|\.|$)", re.IGNORECASE),
    re.compile(r"([\w.+#/-]+) (?:haben wir |wurde |ist |sind |wird |werden )+(?:abgeschaltet|abgelöst|abgeschafft|"
               r"ersetzt|entfernt|gestrichen|"
               r"geschichte|raus|weg|vom tisch|gekündigt)", re.IGNORECASE),
    re.compile(r"(?:quitté|abandonné|lâché|dejamos|dejado|largamos|abandonamos|trocamos|cambiamos|substituímos|"
               r"sustituimos|remplaçons|on remplace|ersetzen) (?:o |a |el |la |le |los |as |os )?([\w.+#/-]+)"
               r"|([\w.+#/-]+) (?:убрали|отключили|выкинули|выключили|удалили|закрыли|l[oa]s? (?:cerramos|dejamos|"
               r"quitamos|eliminamos)|foi (?:desligad|desativad|abandonad)\w+|fue (?:eliminad|descartad)\w+|"
               r"foi (?:descartad|removid)\w+|a été \w+)", re.IGNORECASE),
)  # fmt: skip
"""Says outright that something has ended: whatever was built on it does not hold any more."""
_PLACED = re.compile(
    r"\b(?:is|are|lives?|sits?|moved|moves|kept|stored|found|goes|go|come|comes|loaded|read|written|documented|defined|sind|ist|"
    r"liegen|liegt|está|están|viven?|vive|sont|est|fica|ficam) (?:now )?(?:in|at|to|from|under|into|on|nach|en|dans|em|à) "
    r"(?:the )?([\w.-]*/[\w./-]*|[\w-]+\.\w{1,4})",
    re.IGNORECASE,
)
"""A path that says where something is, not where a rule holds."""
# Captures the word that a negation stands before: in "not in stdout" it is `stdout`.
_NEGATED = re.compile(
    r"\b(?:not|no|don't|doesn't|never|nicht|keine?|non|pas(?: de)?|не|without) (?:the |in |to |"
    r"via |with )?([\w.-]+)",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:not|no|never|don't|doesn't|isn't|aren't|mustn't|can't|without|nobody|nicht|nie|kein\w*|ne|pas|jamais|nunca|sin|não|не|"
    r"никогда|nessun\w*|non|geen|niet|nie)\b|不|别|ない|ません",
    re.IGNORECASE,
)
_SCOPE_WORDS = frozenset(
    "staging production prod dev test local locally frontend backend unit e2e integration mobile web python "
    "yaml typescript golang sql ios android partners partner kiosk admin admins internal public windows mac "
    "linux".split()
)
_PATH = re.compile(r"[\w.-]*/[\w./-]*|\b[\w-]+\.(?:ya?ml|py|ts|tsx|js|json|md|toml|sql|css)\b")
# "for mobile", "in the billing service": the captured word is the scope.
_FOR_SCOPE = re.compile(
    r"\bfor (?:the |our |tenant )?([a-z][\w-]+)\b|\b(?:in|on|of) (?:the |our |tenant )?([a-z][\w-]+) "
    r"(?:module|package|folder|service|accounts|tenants?|endpoints?|tables?|repo)\b",
    re.IGNORECASE,
)


BOUND_WORDS = frozenset(
    map(
        stem_word,
        "floor ceiling limit cap minimum maximum min max least most fall drop exceed bound threshold quota limite límite "
        "máximo mínimo plafond höchstens mindestens grenze лимит предел maximal minimal large high up size length".split(),
    )
)
"""Words that say a number is a bound, not what it bounds."""


class Parsed(msgspec.Struct, frozen=True):
    text: str
    main: frozenset[str]
    words: frozenset[str]
    subject: tuple[str, ...]
    tokens: tuple[str, ...]
    numbers: frozenset[str]
    units: frozenset[str]
    tools: dict[str, set[str]]
    scopes: frozenset[str]
    taken_back: frozenset[str]
    dead: frozenset[str]
    negated: frozenset[str]
    until: frozenset[str]
    negative: bool
    exception: bool
    permits: bool
    as_well: bool
    strong: bool
    now: bool
    only: bool
    universal: bool
    general: bool
    others: bool
    done: bool
    not_yet: bool


@lru_cache(maxsize=2_000)
def parse_statement(text: str) -> Parsed:
    # A bound for the patterns below; stored statements are shorter (`LONGEST_TEXT`).
    plain = text[:600]
    for spaced, joined in MULTIWORD.items():
        # "github actions" becomes one token, or the group of `github-actions` would not be found.
        plain = re.sub(re.escape(spaced), joined, plain, flags=re.IGNORECASE)
    tokens = [t.lower().replace("’", "'").rstrip(".") for t in _WORD.findall(plain)]
    # From the fifth character on: an opening "So," or "Since …" does not end the main clause.
    end = _CLAUSE_END.search(plain, 4)
    main = content_words(plain[: end.start()] if end and len(plain[: end.start()].split()) > 1 else plain)
    until = _UNTIL.search(plain)
    units = {_UNITS[t] for t in tokens if t in _UNITS} | ({"share"} if "%" in plain else set())
    # `negated` has both forms: it is held against names as written and against stems.
    return Parsed(
        text=plain, main=frozenset(main), words=frozenset(content_words(plain)), subject=tuple(_subject_words(tokens)),
        tokens=tuple(tokens), numbers=frozenset(_number_values(tokens)), units=frozenset(units), tools=tools_in(set(tokens)),
        scopes=frozenset(_scope_words(plain, tokens, end.start() if end else len(plain))), taken_back=frozenset(_taken_back(plain)),
        dead=frozenset(_gone_words(plain)),
        negated=frozenset(form for word in _NEGATED.findall(plain) for form in (word.lower(), normal_word(word))),
        until=frozenset(_awaited_words(until)) if until else frozenset(),
        negative=bool(_NEGATION.search(plain)), exception=bool(_EXCEPTION.search(plain)),
        permits=bool(_PERMITS.search(plain)), as_well=bool(_AS_WELL.search(plain)),
        strong=bool(_STRONG_CHANGE.search(plain)), now=bool(_NOW.search(plain)), only=bool(_ONLY.search(plain)),
        universal=bool(_UNIVERSAL.search(plain)), general=bool(_GENERAL_SCOPE.search(plain)),
        others=bool(_OTHERS.search(plain)), done=bool(_DONE.search(plain)), not_yet=bool(_NOT_YET.search(plain)),
    )  # fmt: skip


def content_words(text: str) -> set[str]:
    return {normal_word(token) for token in _WORD.findall(text) if _is_content(token.lower())} - {""}


_STOP_STEMS = frozenset(stem_word(word) for word in _STOP if word.isascii() and len(word) > 3)
_SHORT_PLURALS = {
    "prs": "pr",
    "mrs": "mr",
    "ids": "id",
    "vms": "vm",
    "dbs": "db",
    "apis": "api",
    "jobs": "job",
    "pods": "pod",
}


@lru_cache(maxsize=20_000)
def normal_word(token: str) -> str:
    word = token.lower().replace("’", "'").removesuffix("'s").rstrip("./")
    if not (word.isascii() and word.isalpha()):
        return _SAME_STEMS.get(word, word)
    bare = _bare_stem(word)
    return _SAME_STEMS.get(bare, bare)


def _bare_stem(word: str) -> str:
    bare = stem_word(_SHORT_PLURALS.get(word, word))
    # A plural hides these endings from `stem_word`, which takes off only one: "buildings" → "build".
    bare = bare[:-3] if bare.endswith("ing") and len(bare) > 6 else bare
    bare = bare[:-2] if bare.endswith(("ungen", "eiten", "ionen")) else bare
    bare = bare[:-3] if bare.endswith("ion") and len(bare) > 6 else bare
    # "linter" and "lint", "scheduler" and "schedules" speak of one thing; "order" and "user" are no doers.
    return bare[:-2] if bare.endswith(("er", "or")) and len(bare) > 5 else bare


_SAME_STEMS = {
    (_bare_stem(name) if name.isascii() and name.isalpha() else name): _bare_stem(first)
    for name, first in SAME_WORD.items()
}


def _is_content(token: str) -> bool:
    word = token.rstrip("./").removesuffix("'s")
    return (
        word not in _STOP
        and not (word.endswith(("ing", "ed")) and stem_word(word) in _STOP_STEMS)
        and word not in _NUMBER_WORDS
        and word not in _UNITS
        and not _NUMBER.fullmatch(word)
        and len(word) > 0
    )


_NUMBER = re.compile(r"(v?\d[\d.]*)([a-zµ%]{0,4})")
"""Also with its unit glued to it: "4k", "256mb", "16ms"."""


def _number_values(tokens: list[str]) -> set[str]:
    written = (match[1] for t in tokens if (match := _NUMBER.fullmatch(t)))
    found = {_NUMBER_WORDS[t] for t in tokens if t in _NUMBER_WORDS} | set(written)
    # "a minute" is the number 1, so that "two minutes" can replace it.
    return found | {"1" for article, unit in pairwise(tokens) if article in _ARTICLES and unit in _UNITS}


def _subject_words(tokens: list[str]) -> list[str]:
    return [normal_word(t) for t in tokens if _is_content(t)][:2]


def _scope_words(text: str, tokens: list[str], main: int) -> set[str]:
    """What stands behind the main clause gives a reason ("too much for the chip"), no scope; a path is one anywhere."""
    named = {normal_word(t) for t in tokens if t in _SCOPE_WORDS}
    placed = {match[1].strip("/.") for match in _PLACED.finditer(text)}
    mentioned = {match.group(0).strip("/.") for match in _PATH.finditer(text)}
    paths = {normal_word(path) for path in mentioned - placed} - {""}
    after = {
        normal_word(m[1] or m[2]) for m in _FOR_SCOPE.finditer(text, 0, main) if _is_content((m[1] or m[2]).lower())
    }
    # A tool's name ("yaml") says what is used, so it must not also narrow where that holds.
    return {scope for scope in named | paths | after if scope not in GROUP_OF}


def _awaited_words(until: re.Match[str]) -> list[str]:
    """What a rule waits for: up to the comma; where the sentence begins with it, its first words."""
    phrase = until[1] or until[2]
    clause = phrase.split(",")[0]
    words = [normal_word(token) for token in _WORD.findall(clause) if _is_content(token.lower())]
    # "Until X is out no commits …" without a comma: only the first two words belong to the condition.
    return words[:2] if until.start() < 3 and clause == phrase else words


def _gone_words(text: str) -> set[str]:
    gone = (part for pattern in _DEAD for match in pattern.finditer(text) for part in match.groups() if part)
    return {normal_word(word) for word in gone if _is_content(word.lower())} - {""}


def _taken_back(text: str) -> set[str]:
    withdrawn: set[str] = set()
    for pattern in _TAKEN_BACK:
        for match in pattern.finditer(text):
            gone = next(part for part in match.groups() if part)
            withdrawn |= content_words(gone)
            # `content_words` drops numbers, yet "no longer 30" takes back just that.
            withdrawn |= {t for t in (w.lower() for w in _WORD.findall(gone)) if re.fullmatch(r"v?\d[\d.]*", t)}
    return withdrawn
