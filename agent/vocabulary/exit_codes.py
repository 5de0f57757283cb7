"""The exit codes, which are a stable interface for scripts."""

from agent.vocabulary.status import Subtype

OK, FAILED, USAGE = 0, 1, 2
NO_KEY, BAD_INPUT, NO_SANDBOX = 41, 42, 44
BAD_CONFIG, LIMIT, TOOL_FAILED, UNTRUSTED = 52, 53, 54, 55
BUDGET, APPROVAL, UNVERIFIED = 56, 57, 58
RETRY_LATER, TIMED_OUT, INTERRUPTED, TERMINATED = 75, 124, 130, 143

SUBTYPES: dict[int, Subtype] = {
    OK: "success",
    FAILED: "error_task",
    USAGE: "error_input",
    NO_KEY: "error_auth",
    BAD_INPUT: "error_input",
    NO_SANDBOX: "error_sandbox",
    BAD_CONFIG: "error_config",
    LIMIT: "error_limit",
    TOOL_FAILED: "error_tool",
    UNTRUSTED: "error_untrusted",
    BUDGET: "error_budget",
    APPROVAL: "error_approval",
    UNVERIFIED: "error_unverified",
    RETRY_LATER: "error_provider",
    TIMED_OUT: "error_timeout",
    INTERRUPTED: "error_interrupted",
    TERMINATED: "error_interrupted",
}
