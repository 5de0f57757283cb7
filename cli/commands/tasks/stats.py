"""`agent stats`: figures about the queue and its workers."""

from cli.commands.tasks.queue_access import JsonOption, with_service
from cli.pages.pages import print_json, print_lines
from cli.pages.task_pages import stats_page
from tooling.contract.json_codec import encode


def command(*, as_json: JsonOption = False) -> None:
    """Show how many tasks there are in each state, and which workers run them."""
    stats = with_service(lambda service: service.stats())
    if as_json:
        print_json(encode(stats))
        return
    print_lines(stats_page(stats))
