"""Linguistic cues of a sentence, as named patterns in several languages: what kind of speech act it looks like."""

import re
from functools import lru_cache

IMPERATIVES = (
    "add|fix|write|rename|make|create|implement|remove|delete|drop|change|update|move|replace|convert|put|"
    "set|use|run|show|give|find|check|look|"
    "explain|translate|generate|merge|revert|undo|extract|build|draft|upgrade|bump|install|refactor|split|"
    "review|clean|document|port|turn|take|"
    "try|open|close|commit|push|pull|tag|deploy|start|stop|restart|go|do|read|list|count|measure|profile|"
    "benchmark|plot|train|tell|answer|reply|"
    "call|pick|choose|send|print|log|test|skip|ignore|leave|keep|let|wait|hold|continue|finish|prepare|seed|"
    "fill|summari[sz]e|redo|rewrite|"
    "rebuild|regenerate|migrate|copy|apply|bring|compare|debug|describe|disable|enable|export|import|format|"
    "handle|hide|increase|reduce|lower|"
    "raise|insert|integrate|load|mock|optimi[sz]e|parse|pin|plan|proofread|provide|publish|rebase|register|"
    "reproduce|reset|resolve|return|rotate|"
    "save|scan|search|sort|speed|squash|store|switch|sync|tidy|trace|validate|verify|wrap|silence|flash|"
    "cancel|carry|centre|center|simplify|"
    "reorder|shorten|style|swap|include|concentrate|focus|act|calculate|compute|evaluate|estimate|say|name|"
    "see|think|avoid|stick|ask"
)
IMPERATIVES_DE = (
    "mach|mache|bau|baue|schreib|schreibe|füge|fix|änder|ändere|lösch|lösche|benenn|zeig|zeige|nimm|prüf|"
    "prüfe|schau|reparier|erstell|erstelle|leg|"
    "setz|setze|führ|starte|stopp|warte|erklär|erkläre|formulier|formuliere|übersetz|verschieb|ersetz|"
    "entfern|entferne|teste|lies|such|finde|gib|lass"
)
IMPERATIVES_ROMANCE = (
    "añade|agrega|cambia|arregla|corrige|escribe|crea|borra|elimina|usa|mira|revisa|haz|quita|pon|muestra|"
    "renombra|busca|explica|ejecuta|espera|"
    "ajoute|change|corrige|écris|crée|supprime|utilise|regarde|fais|enlève|mets|montre|renomme|cherche|"
    "explique|lance|attends|remets|prends|"
    "adiciona|adicione|muda|mude|arruma|conserta|escreve|escreva|cria|crie|apaga|remove|usa|olha|faz|faça|"
    "tira|coloca|mostra|renomeia|procura|roda|"
    "aggiungi|cambia|correggi|scrivi|crea|elimina|rimuovi|guarda|fai|metti|mostra|voeg|maak|verander|schrijf|"
    "dodaj|zmień|napraw|napisz|usuń"
)
IMPERATIVES_RU = (
    "добавь|исправь|поправь|напиши|сделай|удали|убери|переименуй|поменяй|измени|покажи|найди|проверь|"
    "посмотри|запусти|создай|почини|объясни|возьми|подожди"
)
_POLITE = (
    r"(?:(?:please|pls|plz|bitte|por favor|s'il te plaît|пожалуйста|now|then|and|so|also|just|ok|okay|und|y|"
    r"et|e|first|next|then|nun|jetzt|maybe)[,:]?\s+)*"
)

# Matched at the start only: inside a sentence these verbs are mostly no order.
IMPERATIVE_START = re.compile(
    rf"^{_POLITE}(?:{IMPERATIVES}|{IMPERATIVES_DE}|{IMPERATIVES_ROMANCE}|{IMPERATIVES_RU})\b", re.IGNORECASE
)
# A CJK question word is followed by another character, not by the end of a word.
QUESTION_START = re.compile(
    r"^(?:and |so |but |hm+,? |ok,? |now )*(?:what|why|how|when (?:did|do|does|is|was|will)|where|who|which|"
    r"whose|can|could|would|should|shouldn't|wouldn't|is|are|am|do|does|did|don't we|was|were|"
    r"has|have (?:we|you|i)|will|isn't|aren't|any (?:idea|reason|chance)|warum|wieso|wie|was|wer|wo|wann|"
    r"welche\w*|kannst|könntest|könnten|sollten?|ist das|gibt es|"
    r"¿|por qué|qué|cómo|cuándo|dónde|quién|puedes|pourquoi|comment|quand|où|qui|quel\w*|est-ce|peux-tu|por "
    r"que|como|quando|onde|quem|será|"
    r"почему|как|когда|где|кто|что|какой|можно ли|зачем|为什么|怎么|什么|哪|谁|是不是|なぜ|どう|どこ|いつ|誰|何)(?=\W|$|[\u3040-\u9fff])",
    re.IGNORECASE,
)

CUES: dict[str, str] = {
    "question_mark": r"[?？]\s*$",
    "inner_question": r"[?？]",
    "exclaim": r"!",
    "you_subject": r"^(?:you|du|tu|ты|você)\b",
    "i_want": r"\b(?:i(?:'d| would)? (?:want|like|need)|ich (?:will|möchte|hätte gern)|quiero|je (?:veux|voudrais)|"
    r"quero|хочу)\b|我(?:想|希望|要)|たいです|ほしい",
    "i_want_to": r"\bi (?:want|need|would like|'d like) (?:to|a|an|it|the|you to)\b|\bi'd like (?:to|a|an|the)\b",
    "i_prefer": r"\b(?:i prefer|i like|i hate|i don'?t like|i'd rather|ich mag|ich bevorzuge|prefiero|je préfère|prefiro|"
    r"предпочитаю)\b",
    "we_habit": r"\b(?:we|wir|nosotros|on|nous|a gente|мы) (?:use|don'?t|do not|only|always|never|keep|write|run|have|"
    r"support|aim|tag|log|build|ship|poll|name|return|round|nutzen|benutzen|verwenden|ne)\b",
    "we_decide": r"\b(?:we(?:'ve| have)? (?:decided|agreed|settled|chose|picked|dropped|switched|moved)|decision|wir haben "
    r"(?:uns )?entschieden|entschieden|"
    r"decidi(?:mos|ó|do|ram)|hemos decidido|c'est décidé|on a décidé|решили|abbiamo deciso|ficou decidido|it "
    r"is\b(?=[,.]|$)|after all|won the vote|lost the vote)|决定|定了|決ま|决定",
    "we_move": r"\b(?:moving|migrating|switch(?:ing)?|move[sd]?|going) (?:from|to|away|over)\b|\b(?:replaces|replacing|"
    r"takes over|took over|takes the place|goes away|phased out|is dropped|are dropped|is gone|off the table|"
    r"on its way out|going away|is cancelled|being replaced)\b"
    r"|\b(?:steigen|wechseln|umsteigen|pasamos|dejamos|passons|abandonne|trocar|переходим)\b|换到|改回|やめて",
    "always_never": r"\b(?:always|never|ever|immer|nie|niemals|siempre|nunca|jamais|toujours|sempre|всегда|никогда|mai|altijd|"
    r"nooit|zawsze|nigdy)\b|一律|总是|必ず|いつも|绝不|항상",
    "deontic": r"\b(?:must(?:n't| not)?|have to|has to|need(?:s|ed)? (?:to|a|an|the|\w+ing|their|his|her)|may (?:not|"
    r"only|be)|not allowed|aren'?t allowed|isn'?t allowed|are to be|is to be|"
    r"required|forbidden|banned|mandatory|rejected|refused|frozen|belongs? (?:in|to)|is off|are off|dürfen?|"
    r"darf|müssen|muss|verboten|gehör(?:t|en)|braucht|"
    r"deben?|hay que|prohibido|obligatorio|doi(?:t|vent)|interdit|il faut|deve[m]?|proibido|precisa|нельзя|"
    r"должны|должен|надо|нужно|запрещено)\b|必须|禁止|不能|不要|要|べき|必ず|こと|ルール|ないで",
    "should": r"\b(?:should|shall|ought|sollte|soll|debería|devrait|deveria|должна)\b",
    "only_no": r"^(?:no|only|keine?|nur|pas de|nada de|sin|solo|только|никаких)\b|\b(?:only|nur|solo|seulement|só|только|"
    r"nobody|no one|niemand|nadie|personne|ninguém|никто|nothing|nowhere else|nothing else)\b",
    "generic_passive": r"\b(?:are|is|get|gets|werden|wird|se|sont|est|são|é) (?:\w+ly |always |never |only |all |nur |immer |nie "
    r")*(?:stored|written|named|created|kept|run|tested|generated|built|made|done|called|served|processed|"
    r"deployed|"
    r"formatted|signed|pinned|versioned|tagged|rotated|scheduled|released|encrypted|cached|logged|deleted|"
    r"removed|reset|rebuilt|loaded|compiled|mirrored|"
    r"exported|imported|hosted|deprecated|owned|maintained|documented|applied|merged|reviewed|approved|"
    r"\w+iert|ge\w+t)\b",
    "place_fact": r"\b(?:lives?|sits?|is|are|live|runs?|goes?|go|come|comes|land|lands|stays?|happens?|belongs?) (?:in|on|"
    r"at|under|from|through|to|into|next to|against|behind|with|by)\b",
    "owner": r"\b(?:owns?|owned by|is responsible|looks after|maintains|reviews|approves|ask (?:him|her|them)|"
    r"zuständig|se encarga|responsable|cuida|отвечает)\b|负责|担当",
    "means": r"\b(?:means?|is called|are called|stands for|is our word|in the code|in our (?:code|domain|scripts)|"
    r"bedeutet|heißen?|significa|veut dire)\b",
    "because": r"\b(?:because|since|so that|otherwise|or (?:the|it|else)|else|unless|that's why|hence|due to|weil|sonst|"
    r"damit|porque|si no|parce que|sinon|senão|потому что|иначе)\b|所以|因为|不然|ので|ため|から",
    "until": r"\b(?:until|till|as long as|before the|no .* before|bis|solange|hasta|jusqu|até|пока)\b",
    "everywhere": r"\b(?:everywhere|anywhere|all over|in this (?:repo|project|codebase)|project-wide|throughout|every|each|"
    r"all|any|anything|everything|whoever|jede[rsnm]?|alle[ns]?|überall|cada|todos?|todas?|chaque|tous|toutes|"
    r"todo|toda|все|каждый)\b|所有|每|すべて|毎",
    "here_convention": r"\b(?:here|around here|hier|aquí|ici|aqui|тут|здесь)\b",
    "from_now": r"\b(?:from now on|from here on|going forward|in future|for the future|in general|as a rule|as of|ab "
    r"jetzt|künftig|in zukunft|a partir de ahora|désormais|dorénavant|a partir de agora|с этого момента|"
    r"впредь)\b|以后|今後|これから",
    "remember": r"^(?:please |pls )?(?:remember(?: that|:)|keep in mind|note that|note:|fyi|for the record|be aware|for "
    r"future|merk dir|wichtig für|recuerda|ten en cuenta|rappel|note|lembre|запомни)",
    "careful": r"\b(?:careful|beware|watch out|gotcha|caveat|trap|bitten|achtung|vorsicht|ojo|cuidado|attention|"
    r"осторожно|внимание)\b|注意|気をつけ",
    "workaround": r"\b(?:unless you|you(?:'ve got to| have to| need to)|restart|use \S+ instead|look at|pass |set "
    r"[A-Z_]{3,}|silently|without (?:a word|any error|an error)|quote the|won't show|wrong way round|at once|"
    r"by hand)\b|重启|再起動|перезапуст",
    "tradeoff": r"\b(?:trade-?off|in exchange|at the cost|in return|costs? (?:us|cpu|~|a|more)|slower but|but (?:it|no|"
    r"less|lists|reads|scene)|we (?:accept|accepted|took|pay|live with)|on purpose|acceptable|we know (?:they|"
    r"it|that)|nobody minded|dafür|we can live|saved? us|"
    r"less safe|more bandwidth|even if)\b",
    "this_one": r"\b(?:this (?:one|time|run|test|file|function|change|task|pr|ticket|branch|row|line|query|screen|page|"
    r"view|paragraph|answer|comparison|script|case|class|loop|module|method|table|plot|text|call|button|list|"
    r"little|landing|sentence|example|week|morning)|these (?:two|three)|diese[nmrs]?|este|esta|cette|this)\b|"
    r"这个|这次|この|今回",
    "that_here": r"\b(?:there|that (?:one|part|line|file)|those two|it back|do that|like that|the other)\b",
    "now_today": r"\b(?:now|right now|for now|today|tonight|tomorrow|yesterday|this morning|this week|at the moment|for "
    r"the moment|currently|yet|still|just now|in \d+ minutes|for the next|heute|morgen|gestern|jetzt|gerade|"
    r"im moment|hoy|ahora|mañana|todavía|"
    r"aujourd'hui|maintenant|hoje|agora|ainda|amanhã|сейчас|сегодня|завтра|пока)\b|今天|现在|先|今日|いま|ちょっと",
    "bug_word": r"\b(?:bug|crash(?:es|ed)?|broken|breaks?|error|fails?|failing|failed|wrong|hangs?|stuck|leak|doesn'?t "
    r"work|does not work|not working|returns? (?:5|4)\d\d|5\d\d|nan|segfault|duplicate|twice|lost|missing|"
    r"empty|blank|slow|dead|ignored?|bounces?|off by|keeps? (?:getting|growing|crashing)|something is (?:off|odd|wrong)|no idea why|"
    r"kaputt|fehler|bricht|leer|stürzt|falla|error|roto|plante|erreur|vide|quebra|erro|em branco|падает|"
    r"ошибк\w*|пуст\w*)\b|报错|空|失败|真っ白|エラー",
    "bug_again": r"\b(?:since (?:yesterday|today|the (?:last|update|deploy|merge)|this|monday)|after the last|again|"
    r"any(?:more| longer)|suddenly|sometimes|every (?:few|second|time)|for instance|no idea why|find out why|"
    r"look (?:at it|into it)|please check|can you (?:check|look)|on my (?:machine|phone)|"
    r"schau mal|nachsehen|revísalo|regarde|посмотри|seit gestern)\b|帮我看|看一下|调べて|查一下",
    "product_noun": r"\b(?:page|button|dropdown|tooltip|modal|dialog|form|header|footer|menu|spinner|badge|chart|cart|"
    r"checkout|avatar|mail|email|emails|login|screen|popup|banner|label|list|cursor|tab|scroll|click|clicks|"
    r"clicking|customers? (?:in|can't|see)|users? (?:can't|get|never|with))\b",
    "negated_verb": r"\b(?:doesn'?t|don'?t|can'?t|won'?t|isn'?t|aren'?t|didn'?t|not|nicht|kein\w*|no|ne|não|не)\b|不|没|ない|ません",
    "hypothetical": r"\b(?:maybe|perhaps|might|would|could|suppose|imagine|assume|assuming|what if|if we|if i|i wonder|"
    r"wondering|thinking about|considering|not sure|some ?day|at some point|one day|in theory|ideal world|no "
    r"decision|let me check|undecided|"
    r"vielleicht|könnten|irgendwann|quizás?|tal vez|podríamos|peut-être|pourrait|un jour|talvez|e se|может|"
    r"возможно)\b|也许|かもしれ|如果",
    "past": r"\b(?:was|were|had|did|used to|back then|in those days|last (?:year|week|month)|years? ago|once|"
    r"originally|previous(?:ly)?|in the beginning|before the|when i joined|old (?:team|engine|version|days)|"
    r"früher|damals|letztes jahr|antes|el año pasado|avant|l'année dernière|antigamente|"
    r"раньше|в прошлом)\b|去年|以前|昔|でした|ました",
    "past_i": r"\b(?:i (?:tried|ran|remember|spent|noticed|decided|renamed|changed|pushed|merged|added|told|said|meant|"
    r"asked|looked|saw|had|was|used|rebased|'ve|have|finished|fixed)|we (?:had|tried|went|lost|used))\b|"
    r"\bnever (?:used|seen|heard|tried|had|understood|saw)\b",
    "others": r"\b(?:my (?:last|old|other|hobby|colleague|friend|brother|boss|side)|at (?:my|home|university)|other "
    r"team|their|they|folks|people say|google|facebook|netflix|django|rails|fastapi|kubernetes|unreal|the "
    r"(?:blog|docs?|article|spec|ticket|comment|mail|user|customer) (?:says?|writes?|claims|reads)|"
    r"sagt|schreibt|dice|écrit|says?:|writes?:|wrote|said|told me|according to (?:stack|the blog))\b|说：|と言",
    "quote_token": "\ue000",
    "sarcasm": r"^(?:oh |yeah|sure,|wow|great,|great idea|brilliant|perfect,|lovely|right,|of course,|nice,|haha)|"
    r"\b(?:what could go wrong|who needs|why not|works every time|nobody needs|celebrate)\b",
    "complaint": r"\b(?:hate|annoying|horrible|terrible|stupid|mess|ugh|forever|tired of|useless|odio|déteste|odeio|"
    r"ненавижу|hasse)\b|太烂|嫌い",
    "chat": r"^(?:hi|hello|hey|ok|okay|yes|yep|no|nope|thanks?|thx|great|cool|perfect|fine|good|lgtm|looks good|sure|"
    r"continue|go on|next|wait|stop|hold on|never mind|gracias|merci|valeu|danke|super|спасибо)\b",
    "stop_word": r"^(?:wait|stop|hold on|pause|not (?:yet|now|that)|undo|no,|nope|moment|warte|espera|attends|"
    r"подожди|nein|nicht die|pas celui)\b|等一下|待って",
    "momentary": r"\b(?:same as (?:before|last)|do as you like|we'll (?:decide|see|talk)|decide (?:next|later)|"
    r"i'm (?:on|in|at|going|nearly|leaving|still|rebasing)|in the middle of|i'll do|leave it|later|so "
    r"far|for a (?:moment|minute|while)|being (?:restored|patched|moved)|outage|is down|is busy|until (?:i|"
    r"the call|we see|tomorrow|monday|friday)|(?:until|till) (?:then|friday|monday))\b",
    "agent_address": r"\b(?:answers?|answer in|reply|replies|explain|commit messages?|your|diffs?|summary|summaries|ask (?:me|"
    r"before)|tell me|show me|before you|when you|for me|with me|to me|antworte\w*|respuestas?|responde|"
    r"réponses?|réponds|respostas?|отвечай|пиши)\b|回答|回复|答",
    "verb_i_start": r"^(?:i|ich|je|eu|yo|я)\b",
    "names_code": r"`[^`]+`|\w+[_/.]\w+|\b[A-Z]{2,}\b",
    "number": r"\d",
    "instead": r"\b(?:instead of|rather than|in place of|and not|not the|statt|en lugar de|au lieu de|em vez de|"
    r"вместо)\b|不再|而不是|ではなく",
    "task_spec": r"\b(?:as an? (?:user|admin)|the (?:new|wizard|endpoint|report|form|field|button|title|popup|timer|list|"
    r"function|retry|import wizard) (?:should|has|have|must|lists|takes|needs)|step (?:one|two|three)|then "
    r"(?:we|do|run|log)|we need (?:a|an|to)|we should|let's|so that)\b",
    "so_imperative": rf"[,;] (?:so |and |then |please |also )+(?:{IMPERATIVES})\b",
    "end_please": r"\bplease\b|\bpls\b|\bbitte\b|por favor|帮我|してください|пожалуйста",
    "deadline": r"\b(?:by (?:friday|monday|noon|tomorrow|then)|on (?:thursday|monday|friday)|\d ?pm|ready|deadline|meeting|demo)\b",
    "stays": r"\b(?:stays?|remains?|keep|bleib(?:t|en)|queda|reste|fica|остаётся|остаемся)\b",
    "exempt": r"\b(?:except|exempt|is ok|are ok|is fine|are fine|is enough|no longer|any ?more|again|as well|too|sauf|"
    r"außer|excepto|salvo|exceto|кроме)\b",
    "status_done": r"\b(?:is (?:out|over|lifted|off|done|up)|is on \w+ now|now)\b",
    "period": r"\b(?:every (?:night|day|hour|month|sunday|monday|morning)|each (?:night|day|morning|sunday)|nightly|"
    r"weekly|daily|mondays|tuesdays|fridays|jede nacht|cada noche|chaque|toda noite|каждую ночь)\b|每天|每周|毎晩|毎週",
}


FLEETING_CUES = frozenset(
    """
    imperative question_start inner_question this_one bug_word bug_again past_i i_want i_want_to hypothetical sarcasm momentary
    deadline complaint task_spec should stop_word exclaim you_subject verb_i_start
    """.split()
)
"""Cues that mostly go with tasks, faults, wishes and moments."""
OUTRIGHT_CUES = frozenset(("careful", "remember", "from_now"))
"""Say outright that it lasts, whatever else the sentence looks like: a fault becomes a trap, a task a rule."""
FLEETING_TIME = re.compile(
    r"\b(?:right now|for now|today|tonight|tomorrow|yesterday|this (?:morning|week|afternoon|sprint)|at the moment|"
    r"for the (?:moment|next)|heute|gestern|morgen|hoy|ayer|mañana|aujourd'hui|hier|demain|hoje|ontem|сегодня|вчера|завтра)\b"
    r"|^(?:(?:ok|gut|vale|bon|так)[,.]? )?(?:als nächstes|nächster schritt|next(?: up| step)?\b|"
    r"ensuite|luego|a continuación|depois|далее|затем)"
    r"|\b(?:since|seit|depuis|desde|с) (?:(?:the|dem|el|le|last) )?(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|montag|dienstag|mittwoch|"
    r"donnerstag|freitag|samstag|sonntag|lunes|martes|miércoles|jueves|viernes|sábado|domingo|lundi|mardi|mercredi|jeudi|vendredi|"
    r"samedi|dimanche|segunda|terça|quarta|quinta|sexta|понедельника|вторника|среды|четверга|пятницы)\b"
    r"|今天|昨天|今日|昨日|下一步|次は"
)
"""Of these days, or a step of a plan: a fault "since monday", "next, take both formats"."""

SPEAKERS_DAY = re.compile(
    r"\b(?:before i (?:go|leave|head)|while i'?m (?:away|out|in|at)|(?:till|until|when) i'?m back|bevor ich (?:gehe|heimgehe)|"
    r"antes de irme|avant que je parte|antes de eu sair|пока меня нет|"
    r"(?:it'?s|es ist|son las|il est) (?:already |schon |ya |déjà )?\d{1,2}[:.h]\d\d)\b",
    re.IGNORECASE,
)
"""What hangs on when the speaker comes and goes is of that day, however much it sounds like a rule."""
HEDGED = re.compile(
    r"\b(?:i (?:think|guess|believe|suppose)|afaik|probably|if i remember|glaube ich|ich glaube|vermutlich|creo que|je crois|acho que|"
    r"наверное|кажется)\b|たぶん|大概",
    re.IGNORECASE,
)
"""Who says so is not sure himself: a person decides."""
LEANS_BACK = re.compile(
    r"^(?:(?:and|but|so|also|then|und|aber|pero|et|mais|mas|и|но),? )*(?:it|they|this|that|these|those|he|she|its|their|both|"
    r"first|second|third|step \d|es|er|das|dies|eso|esto|ça|cela|ils|elles|isso|eles|это|он|она|они)\b",
    re.IGNORECASE,
)
"""Begins with a word for what the sentence before named, or with its number in a list."""

CASED = frozenset(("names_code",))
"""Looked for in the text as it was written; all others in its lower case, which is twice as fast as ignoring the case."""


@lru_cache(maxsize=1)
def compiled_cues() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(pattern)) for name, pattern in CUES.items())


def find_cues(text: str) -> set[str]:
    lower = text.lower()
    match = {name for name, pattern in compiled_cues() if pattern.search(text if name in CASED else lower)}
    if IMPERATIVE_START.match(lower):
        match.add("imperative")
    if QUESTION_START.match(lower):
        match.add("question_start")
    return match
