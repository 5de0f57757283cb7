"""`agent questions`: open questions and approvals of tasks."""

import typer

from cli.commands.tasks.queue_access import JsonOption, with_service
from cli.pages.pages import print_json, print_text
from cli.pages.task_pages import question_page
from tooling.contract.json_codec import encode

app = typer.Typer(no_args_is_help=True)
NONE = "(no questions)"


@app.command("list")
def list_questions(*, as_json: JsonOption = False) -> None:
    """List questions and approvals that wait for an answer, oldest first."""
    found = with_service(lambda service: service.questions())
    if as_json:
        print_json([encode(question) for question in found])
        return
    pages = ["\n".join(question_page(question)) for question in found]
    print_text("\n\n".join(pages or [NONE]) + "\n")
