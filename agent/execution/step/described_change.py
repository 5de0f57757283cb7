"""Detects a reply that only describes a change although the request asked to make it.

Both sides need positive evidence: a false negative costs nothing, a false positive costs a request. Languages other
than English therefore count as negative.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from tooling.contract.lazy_pattern import lazy_pattern

# Sent once, if nothing was changed.
MAKE_THE_CHANGE = (
    "You described a change but did not make it. Make it now with the tools, then reply with what you did. "
    "If no change was asked for, repeat your answer."
)
# Enough to classify them; longer excerpts would only cost time.
_REQUEST_CHARS, _REPLY_CHARS = 4000, 20_000
_FILE = r"(?:\bfiles?\b|\bfolder\b|\bdirectory\b|\b(?:code|repo|repository|project)\b|[\w/-]+\.[a-z]\w{0,5}\b)"
# These verbs ask for a change regardless of their object.
_CHANGE = (
    r"fix|repair|correct|rename|change|modify|edit|update|upgrade|bump|add|insert|append|remove|delete|drop|replace|"
    r"refactor|extract|inline|implement|move|split|migrate|port|patch|apply|revert|undo|enable|disable|install|"
    r"resolve|clean\s+up|set|make\s+(?:the|it|this|sure|all|every)|create|get\s+rid\s+of"
)
# These also ask for text; they mean a change if a file is named.
_WRITE = r"write|rewrite|convert|translate|format|sort|generate|put|save|store|merge|optimi[sz]e|simplify|document"
_POLITE = r"(?:please|kindly|now|then|and|also|ok(?:ay)?|go\s+ahead\s+and|can\s+you|could\s+you|would\s+you|will\s+you|"
_POLITE += r"can\s+we|let's|let\s+us|i\s+(?:want|need|would\s+like|'d\s+like)\s+(?:you\s+)?to|you\s+(?:should|must))"
_START = rf"(?:^|[.!?;:,\n]\s*|\b(?:and|then|to)\s+)(?:{_POLITE}[,\s]+)*"
_ASKS_CHANGE = lazy_pattern(rf"(?i){_START}(?:{_CHANGE})\b")
_ASKS_WRITING = lazy_pattern(rf"(?i){_START}(?:{_WRITE})\b[^\n]*?{_FILE}")
_ASKS_TO_READ = lazy_pattern(
    r"(?i)^\W*(?:please\s+)?(?:how|what|what's|why|where|when|which|who|whose|is|are|was|were|does|do|did|has|have|should"
    r"|would\s+it|may|might|am)\b"
    r"|\b(?:explain|describe|review|critique|assess|evaluate|suggest|propose|recommend|advise|outline|summari[sz]e|"
    r"compare|discuss|brainstorm|show\s+me|tell\s+me|teach\s+me|walk\s+me|give\s+me|write\s+me|"
    r"how\s+(?:do|can|could|should|would|to)|what\s+would|make\s+a\s+plan|plan\s+(?:how|the|for|a)|(?:a|the)\s+plan\s+for)\b"
    r"|\b(?:do\s+not|don't|without|no\s+need\s+to|never)\s+(?:yet\s+)?(?:chang|edit|modif|touch|writ|mak)"
)
_ACTION = (
    r"(?:add|change|rename|replace|remove|delete|import|edit|modify|update|insert|move|use|set|wrap|call|create|define|"
    r"install|correct|fix|put|append|rewrite|convert|declare|initiali[sz]e|return|run|make|implement|refactor|extract)"
)
_DESCRIBES = lazy_pattern(
    rf"(?i)\byou(?:\s+will|'ll|\s+would|\s+just|\s+simply|\s+only)*\s+"
    rf"(?:need\s+to|should|can|could|must|have\s+to|may\s+want\s+to|might\s+want\s+to)\s+(?:\w+ly\s+|just\s+|first\s+)?{_ACTION}\b"
    rf"|\bI(?:\s+would|'d)\s+(?:\w+ly\s+)?{_ACTION}\b"
    rf"|\bto\s+(?:\w+\s+){{1,6}}?(?:\w+)?,\s+(?:you\s+(?:can|should|need\s+to|could)\s+)?(?:simply\s+|just\s+)?{_ACTION}\b"
    rf"|\b(?:the\s+)?(?:fix|solution|correction|change)\s+(?:is|would\s+be)\s+to\s+{_ACTION}\b"
    rf"|(?m:^\W*(?:\d+[.)]\s*)?(?:\*\*)?(?:simply\s+|just\s+)?(?:change|replace|add|rename)\b[^\n]*\b"
    r"(?:line\s+\d+|to|with|at\s+the\s+top)\b)"
    r"|\bfollow\s+these\s+steps\b|\bopen\s+[^\n]{0,60}\bin\s+(?:your|a|any)\s+(?:[\w-]+\s+){0,2}editor\b"
    r"|\bshould\s+be\s+(?:changed|replaced|renamed|removed|added|updated)\b"
)
_SHOWS_CODE = lazy_pattern(
    r"(?i)\bhere(?:'s|\s+is|\s+are)\s+(?:the|a|an|your|my|how)\b[^\n]*?"
    r"\b(?:code|file|function|script|version|implementation|class|method|program|tests?|fix|change|snippet|you\s+can)\b"
    r"|\b(?:corrected|updated|fixed|modified|refactored|revised)\s+(?:code|file|function|script|version|class|method)\b"
)
_DONE = lazy_pattern(
    r"(?i)\bI(?:'ve|\s+have)?\s+(?:now\s+|already\s+|also\s+|just\s+)?(?:added|changed|renamed|replaced|removed|deleted|"
    r"fixed|updated|edited|modified|created|wrote|written|moved|corrected|implemented|inserted|set|made|converted)\b"
    r"|^\W*(?:done|fixed|renamed|changed|added|removed|updated|created|replaced)\b"
    r"|\b(?:has|have)\s+been\s+\w+(?:ed|en|t)\b|\bis\s+already\b|\balready\s+(?:\w+ed|correct|does|has)\b"
)
_CANNOT = lazy_pattern(
    r"(?i)\b(?:I\s+(?:cannot|can't|could\s+not|couldn't|was\s+not\s+able|wasn't\s+able|am\s+(?:not\s+able|unable))|"
    r"(?:was|were|is)\s+(?:denied|blocked|refused|not\s+(?:allowed|approved))|permission\s+denied|"
    r"no\s+changes?\s+(?:is|are|was|were)?\s*(?:needed|necessary|required)|nothing\s+to\s+(?:change|fix|do)|"
    r"does\s+not\s+exist|doesn't\s+exist|there\s+is\s+no)\b"
)
_TOUCHES_FILES = lazy_pattern(r"open|write|Path|to_|import_|\b(?:os|shutil|subprocess|sqlite3|dump|save|exec|eval)\b")


def describes_change(request: str, reply: str) -> bool:
    """Whether the request asked for a change and the reply only describes it."""
    reply = reply.strip()[:_REPLY_CHARS]
    if not asks_for_change(request) or _DONE.search(reply) or _CANNOT.search(reply):
        return False
    if reply.endswith("?"):
        # The reply asks the user, who may answer.
        return False
    if _DESCRIBES.search(_without_code(reply)):
        return True
    return "```" in reply and bool(_SHOWS_CODE.search(_without_code(reply)))


def asks_for_change(request: str) -> bool:
    """Whether a request in English asks to change files, not to explain, review or show something."""
    text = request.strip()[:_REQUEST_CHARS]
    if _ASKS_TO_READ.search(text):
        return False
    return bool(_ASKS_CHANGE.search(text) or _ASKS_WRITING.search(text))


def may_have_changed(tool: str, arguments: Mapping[str, object]) -> bool:
    """Whether a call that may change something can have done so, and did not just look or compute."""
    if tool == "run_python":
        return bool(_TOUCHES_FILES.search(str(arguments.get("code", ""))))
    if tool != "run_command":
        return True
    # The reader of shell texts takes a while to load.
    from tooling.safety.shell.read_only import only_reads

    return not only_reads(str(arguments.get("command", "")), Path("/"))


def _without_code(reply: str) -> str:
    return re.sub(r"(?s)```.*?(?:```|\Z)", "", reply)
