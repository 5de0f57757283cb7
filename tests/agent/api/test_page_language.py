"""The page in the user's language."""

import re
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import get_args

from jinja2 import Environment, nodes

from agent.api.page.wording import Wording
from agent.service.task import ScheduleMode, TaskState
from agent.vocabulary.status import StepStatus, Subtype
from cli.messages.translate import SHIPPED
from cli.messages.translator import Translator
from tests.agent.api.page_scene import busy_server, write_end
from tests.agent.api.served import WrittenRun, serve
from tests.cli.messages.catalog import TEMPLATES, page_texts
from tooling.contract.result import CallStatus

_READ_ALOUD = ("aria-label", "title", "placeholder", "alt", "data-waiting")
_WORD = re.compile(r"[^\W\d_]{2,}")
_SAME_IN_EVERY_LANGUAGE = {"Windlass", "https"}


class _Texts(HTMLParser):
    """The texts of a page that users read or hear, without those of commands and models."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.language = ""
        self._inside: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        is_foreign = tag in ("code", "pre") or given.get("class") == "prose" or (self.language and "lang" in given)
        self._inside.append("foreign" if is_foreign else tag)
        self.language = self.language or given.get("lang") or ""
        self.found += [text for name, text in attrs if name in _READ_ALOUD and text]
        if tag in ("input", "meta", "link", "img", "path", "rect", "br"):
            self._inside.pop()

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        self._inside.pop()

    def handle_data(self, data: str) -> None:
        if "foreign" not in self._inside and (text := " ".join(data.split())):
            self.found.append(text)


def _russian() -> Translator:
    catalog = tomllib.loads((SHIPPED / "ru.toml").read_text("utf-8"))
    page = catalog.pop("page")
    return Translator(catalog, page)


def test_every_page_is_in_the_language_of_the_user(tmp_path: Path) -> None:
    russian = _russian()
    said = {text for texts in page_texts().values() for text in texts if russian.translate_page(text) != text}
    # A value may be an element of its own, with the rest of the text around it.
    english = {part.strip() for text in said for part in re.split(r"\{\w+\}", text) if _WORD.search(part)}
    with (
        serve(tmp_path / "data", translate=russian.translate_page) as server,
        busy_server(server) as task,
        server.client() as client,
        server.client(token="", Accept="text/html") as stranger,
    ):
        write_end(WrittenRun(server.store, "s-ended", "run-ended"))
        server.ask(task, "q-1", "Which color?", kind="question", options=("red", "blue"))
        places = ("/", f"/tasks/{task.task_id}", "/schedules", "/runs", "/runs/run-ended", "/docs", "/runs/none")
        pages = {place: client.get(place).text for place in places}
        pages["/login"] = stranger.post("/login", data={"token": "wrong"}).text
        statuses = {row["status"] for row in client.get("/api/v1/tasks").json()["data"]}
    for place, page in pages.items():
        texts = _Texts(page)
        assert texts.language == "ru", place
        assert english.intersection(texts.found) <= {task.request.prompt}, place
    assert "нет запуска &#39;none&#39;" in pages["/runs/none"]
    assert "От задачи <a href=" in pages["/"]
    assert "3 мин 13 с" in pages["/runs/run-ended"]
    assert "running" in statuses


def test_a_translation_is_text_and_a_value_cannot_become_html() -> None:
    wording = Wording({"From {task}": '<b> "{task}"', "after {steps}": "{other}"}.get)  # type: ignore[arg-type]
    assert wording.t("From {task}", task="<i>{x}") == "&lt;b&gt; &#34;&lt;i&gt;{x}&#34;"
    # A translation that names something else is not used.
    assert wording.t("after {steps}", steps="a") == "after a"


def test_every_status_has_a_word() -> None:
    wording = Wording(lambda text: f"T{text}")
    statuses = {*get_args(Subtype), *get_args(StepStatus), *get_args(CallStatus), *TaskState, *ScheduleMode}
    assert [status for status in sorted(statuses) if not wording.status_word(status).startswith("T")] == []


def test_every_text_in_the_templates_can_be_translated() -> None:
    for path in TEMPLATES.glob("*.html"):
        tree = Environment().parse(path.read_text("utf-8"))
        outputs = [node for output in tree.find_all(nodes.Output) for node in output.nodes]
        page = "".join(node.data if isinstance(node, nodes.TemplateData) else "" for node in outputs)
        texts = [*_Texts(page).found, *(text for node in outputs for text in _shown(node))]
        assert [text for text in texts if set(_WORD.findall(text)) - _SAME_IN_EVERY_LANGUAGE] == [], path.name


def _shown(node: nodes.Node) -> Iterator[str]:
    """Yield the texts in an expression that may be shown as they are."""
    if isinstance(node, nodes.Const) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, nodes.CondExpr | nodes.Or | nodes.And | nodes.Concat | nodes.Filter):
        skipped = getattr(node, "test", None)
        for inner in node.iter_child_nodes(exclude=("args", "kwargs")):
            if inner is not skipped:
                yield from _shown(inner)
