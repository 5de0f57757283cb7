"""Keywords in many languages that decide, without a model, whether a request may contain something to remember."""

import re

from tooling.contract.lazy_pattern import lazy_pattern

# An explicit request to remember: only with one of these may text from the answer be remembered, too.
_EXPLICIT = lazy_pattern(
    r"\b(?:remember|memori[sz]e|keep in mind|take note|note (?:that|down)|for (?:the )?future reference|don'?t forget"
    r"|merk(?:e)? dir|merken|erinnere dich|behalte|vergiss nicht|notiere"
    r"|souviens|rappelle-toi|retiens|mémorise|n'oublie pas|note que"
    r"|recuerda|acuérdate|memoriza|no olvides|ten en cuenta|apunta"
    r"|lembr[ea]|memorize|não esqueça|anote"
    r"|ricorda(?:ti)?|memorizza|tieni a mente|non dimenticare"
    r"|onthoud|vergeet niet|zapamiętaj|pamiętaj|hatırla|unutma|aklında tut"
    r"|запомни|помни|не забудь|имей в виду|запам['’]?ятай|пам['’]ятай)"
    r"|记住|記住|记得|記得|別忘|别忘|覚えて|忘れないで|기억해|잊지 ?마|تذك[ّ]?ر|याद रख",
    re.IGNORECASE,
)
# Habits, choices and agreements.
_LASTING = lazy_pattern(
    r"\b(?:from now on|in (?:the )?future|going forward|henceforth|next time|as a rule"
    r"|i (?:prefer|hate|dislike|like (?:to|my|it when))|my (?:prefer|favou?rite|default|name)|call me"
    r"|prefer(?:s|red|ence)?\b"
    r"|we (?:use|never|always)|let'?s (?:use|agree|settle|go with|stick)|agree(?:d|ment)|(?:we|i)(?:'ve| have)? decided"
    r"|convention|our (?:standard|style|policy)|stop (?:using|doing)"
    r"|ab (?:jetzt|sofort)|von nun an|künftig|in zukunft|nächstes mal|bevorzug|lieber|nenn mich"
    r"|vereinbart|entschieden|abgemacht|wir (?:nutzen|verwenden|nehmen)"
    r"|désormais|dorénavant|à partir de maintenant|à l'avenir|préfèr|préfér|convenu|décidé|appelle-moi"
    r"|a partir de ahora|de ahora en adelante|en el futuro|prefier|acordamos|acordado|decidimos|llámame"
    r"|a partir de agora|daqui em diante|prefir|combinamos|decidido"
    r"|d'ora in poi|in futuro|preferisc|abbiamo deciso|chiamami"
    r"|voortaan|vanaf nu|liever|afgesproken|od teraz|wolę|ustalili|bundan sonra|tercih"
    r"|отныне|впредь|с этого момента|предпочита|договорились|решили|зови меня|надалі|відтепер)"
    r"|以后|以後|今后|今後|从现在|從現在|偏好|喜欢|喜歡|约定|約定|决定|決定|これから|好み|앞으로|선호"
    r"|من الآن|أفضل|अब से|पसंद",
    re.IGNORECASE,
)
# Common words that express a habit in an instruction but not in a question.
_WEAK = lazy_pattern(
    r"\b(?:always|never|immer|nie(?:mals)?|toujours|jamais|siempre|nunca|sempre|jamais|mai|altijd|nooit|zawsze|nigdy"
    r"|her zaman|asla|всегда|никогда|завжди|ніколи)\b"
    r"|总是|總是|永远|永遠|不要再|常に|いつも|必ず|항상|절대|دائم|हमेशा",
    re.IGNORECASE,
)
_SENTENCE_END = lazy_pattern(r"(?<=[.!?;。！？؟])\s*")
_QUESTION = ("?", "？", "؟")


def asks_to_remember(request: str) -> bool:
    """Return whether the user explicitly asks to remember something."""
    return _EXPLICIT.search(request) is not None


def has_memory_trigger(request: str) -> bool:
    """Return whether a request may contain a preference, a decision, a configuration or an agreement."""
    if asks_to_remember(request) or _LASTING.search(request):
        return True
    instructions = (part for part in _SENTENCE_END.split(request) if not part.rstrip().endswith(_QUESTION))
    return any(_WEAK.search(text) for text in instructions)
