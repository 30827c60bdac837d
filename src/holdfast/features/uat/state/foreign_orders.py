"""Recognises test orders in other languages than English."""

from holdfast.core.lazy import lazy_pattern

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
