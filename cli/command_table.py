"""The table of commands: every command with its help and its module."""

from tooling.contract.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEntry:
    """One command. Its module in `cli.commands`, or in a `folder` of it, defines `command`, or `app` if it is a group.

    `folder` is the subfolder of `cli/commands` with its module, `default` the default subcommand of a group, `preload`
    the module that does the work; help and completion do not import it.
    """

    name: str
    help: str
    is_group: bool = False
    default: str = ""
    preload: str = ""
    folder: str = ""


COMMANDS = (
    CommandEntry(name="run", help="Run a task and print the answer.", preload="cli.run.run_task"),
    CommandEntry(name="resume", help="Resume a run that did not finish.", preload="cli.run.run_task"),
    CommandEntry(name="plan", help="Plan a task without running it.", preload="cli.run.run_task"),
    CommandEntry(name="exec", help="Run one command with the agent's checks and sandbox."),
    CommandEntry(name="check", help="Show whether a command would be allowed."),
    CommandEntry(name="demo", help="Watch an example run; needs no API key or network."),
    CommandEntry(name="sessions", help="Manage sessions and undo their changes.", is_group=True, default="list"),
    CommandEntry(
        name="worktrees", help="Merge or discard what runs did in git worktrees.", is_group=True, default="list"
    ),
    CommandEntry(name="runs", help="Show runs and the evidence for their answers.", is_group=True, default="list"),
    CommandEntry(name="memory", help="Manage what is remembered between runs.", is_group=True, default="show"),
    CommandEntry(name="tools", help="List the agent's tools and call them.", is_group=True, default="list"),
    CommandEntry(
        name="mcp",
        help="Use MCP servers, or be one.",
        is_group=True,
        default="list",
        folder="extensions",
    ),
    CommandEntry(name="rules", help="Manage rules that allow or deny commands.", is_group=True, default="list"),
    CommandEntry(name="approvals", help="Show what was asked for approval and decided.", is_group=True, default="log"),
    CommandEntry(name="hooks", help="List hooks and try them out.", is_group=True, default="list", folder="extensions"),
    CommandEntry(name="trust", help="Review and trust the hooks of a folder.", folder="extensions"),
    CommandEntry(name="acp", help="Serve an editor over the Agent Client Protocol."),
    CommandEntry(name="serve", help="Serve tasks and runs over HTTP, with a page for browsers.", folder="tasks"),
    CommandEntry(name="executor", help="Run tasks that a manager sends over HTTP."),
    CommandEntry(
        name="workspaces", help="List, archive and remove workspaces of executors.", is_group=True, default="list"
    ),
    CommandEntry(name="task", help="Queue and manage tasks.", is_group=True, default="list", folder="tasks"),
    CommandEntry(name="schedules", help="Manage scheduled tasks.", is_group=True, default="list", folder="tasks"),
    CommandEntry(
        name="questions", help="List what queued tasks wait for.", is_group=True, default="list", folder="tasks"
    ),
    CommandEntry(name="worker", help="Run queued tasks.", folder="tasks"),
    CommandEntry(name="stats", help="Show the state of the queue and its workers.", folder="tasks"),
    CommandEntry(name="logs", help="Show the log of your runs."),
    CommandEntry(
        name="plugins", help="List plugins and create new ones.", is_group=True, default="list", folder="extensions"
    ),
    CommandEntry(
        name="skills", help="List, show, check and create skills.", is_group=True, default="list", folder="extensions"
    ),
    CommandEntry(name="config", help="Show and change settings.", is_group=True, default="show"),
    CommandEntry(name="docker", help="Build the image for containers, and list them.", is_group=True, default="list"),
    CommandEntry(name="doctor", help="Check your setup."),
)
