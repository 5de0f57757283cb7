"""Patterns for dangerous calls in program text, by language."""

import re

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.safety.shell.command import FORK_BOMB_REASON, REVERSE_SHELL_REASON

UNCLEAR_COMMAND_REASON = "its code runs commands that it does not spell out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Danger:
    """A pattern with the rule and reason of a match."""

    pattern: "re.Pattern[str]"
    rule: str
    reason: str
    blocks: bool = False


def _network(pattern: str) -> Danger:
    return Danger(pattern=re.compile(pattern), rule="code-network", reason="its code reaches the network")


def _hidden(pattern: str) -> Danger:
    return Danger(pattern=re.compile(pattern), rule="code-hidden", reason="its code runs code that cannot be inspected")


def _dump(pattern: str) -> Danger:
    return Danger(pattern=re.compile(pattern), rule="environment-dump", reason="its code shows the environment")


def _home(pattern: str) -> Danger:
    return Danger(pattern=re.compile(pattern), rule="leaves-workspace", reason="its code accesses the home folder")


def _root(pattern: str) -> Danger:
    return Danger(pattern=re.compile(pattern), rule="leaves-workspace", reason="its code accesses the root folder")


def _runs(pattern: str) -> Danger:
    return Danger(pattern=re.compile(pattern, re.IGNORECASE), rule="code-runs-commands", reason=UNCLEAR_COMMAND_REASON)


def _bomb(pattern: str) -> Danger:
    return Danger(pattern=re.compile(pattern, re.DOTALL), rule="fork-bomb", reason=FORK_BOMB_REASON, blocks=True)


def _kills(pattern: str) -> Danger:
    return Danger(
        pattern=re.compile(pattern), rule="kill-everything", reason="it would kill every process", blocks=True
    )


def _passed(pattern: str) -> Danger:
    return Danger(
        pattern=re.compile(pattern), rule="code-deletes", reason="its code deletes or runs what it does not name"
    )


def _empties(pattern: str) -> Danger:
    return Danger(pattern=re.compile(pattern), rule="empty-file", reason="its code empties a file")


def _ends(pattern: str) -> Danger:
    return Danger(pattern=re.compile(pattern), rule="code-kills", reason="its code ends other processes")


def _erases(pattern: str) -> Danger:
    return Danger(pattern=re.compile(pattern), rule="database-destroy", reason="its code deletes data in a database")


LOCALHOST = lazy_pattern(r"(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\])(?!.*https?://(?!localhost|127))", re.DOTALL)
REVERSE_SHELL = lazy_pattern(
    r"dup2|pty\.spawn|fileno\(\)|/bin/(?:ba|z|da)?sh\b.*-i|sh -i|open\(STDIN|exec\s*\(?[\"'{]*/bin/"
    r"|spawn\([\"']/?(?:bin/)?(?:ba)?sh|TCPSocket"
)
SOCKET = lazy_pattern(r"socket|fsockopen|net['\"]?\)?\.(?:connect|createConnection|Socket)|/inet/", re.IGNORECASE)
_SECRET = r"(?:KEY|TOKEN|SECRET|PASSW|CREDENTIAL)"

DANGERS: dict[str, tuple[Danger, ...]] = {
    "python": (
        _network(
            r"\bsocket\.(?:socket|create_connection|getaddrinfo|gethostbyname)\b|\burlopen\b|\burlretrieve\b|urllib\.request\b"
            r"|\brequests\.(?:get|post|put|delete|patch|head|request|[Ss]ession)\b|\bhttpx\.(?:get|post|put|Client|AsyncClient|stream)"
            r"|\b(?:http\.server|socketserver|webbrowser|antigravity|imaplib|poplib|nntplib|docker|kubernetes|fabric|scapy|slack_sdk|twilio)\b"
            r"|\bhub\.load\s*\(|trust_remote_code|\bfrom_pretrained\s*\(|\bload_dataset\s*\(|\bsnapshot_download\b|\bhf_hub_download\b"
            r"|\bnltk\.download\b|\bopen_connection\b|\bgdown\b|\bpip\.main\b|\bpip\._internal\b"
            r"|\baiohttp\b|http\.client\b|\bHTTPS?Connection\b|\bftplib\b|\bsmtplib\b|\btelnetlib\b|\bparamiko\b|\bxmlrpc\b|\bboto3\b"
        ),
        _hidden(
            r"(?<![\w.])(?:exec|eval|compile)\s*\(|\bgetattr\s*\(\s*(?:os|__import__|__builtins__|builtins|subprocess|sys)\b"
            r"|__builtins__|\bmarshal\.loads|\bctypes\b|globals\(\)\s*\[|import_module\s*\(\s*[^'\")]|\b__import__\s*\(\s*[^'\")]"
            r"|\b(?:pickle|dill|cloudpickle|joblib|marshal)\.load\b|\bshelve\.open|yaml\.load\s*\((?!.*SafeLoader)|\bcode\.interact|\brunpy\b"
            r"|sys\.path\.(?:insert|append)\([^)]*['\"](?:/tmp|/var|/dev|~|\.\./\.\.)|\bsetu?r?e?s?[ug]id\s*\(|\bos\.(?:chroot|mknod|setns)\s*\("
            r"|pickle\.loads|\bUnsafeLoader\b|\bunsafe_load|import_module\s*\([^)]*\+|__import__\s*\([^)]*\+|\bbuiltins\b|\bcffi\b"
        ),
        _dump(
            r"\bos\.environb?\b(?!\s*(?:\[|\.\s*(?:get|setdefault|pop|update|copy)\b))(?!\s*in\b)(?<!in os\.environ)"
        ),
        _dump(rf"(?:print|write)\s*\(.*\b(?:environ(?:\.get\(|\[)|getenv\()\s*['\"]\w*{_SECRET}"),
        _root(r"(?:walk|listdir|scandir|chdir|Path|glob)\(\s*r?['\"]/['\"]"),
        _home(r"expanduser|\bPath\.home\(|\benviron(?:\.get\(|\[)\s*['\"]HOME"),
        _runs(
            r"(?:^|[\n;])\s*!\s*\w|%(?:system|sx|sc|bash|sh|run)\b|get_ipython\(\)|__import__\(\s*['\"](?:os|subprocess|pty|shutil)\b"
        ),
        _bomb(r"while\b.*\bfork\s*\(|\bfork\s*\(\s*\)\s*for\b|\bfor\b[^\n]*:\s*(?:os\.)?fork\s*\("),
        _kills(r"\bos\.kill(?:pg)?\s*\(\s*(?:-1|1|0)\s*,"),
        _passed(
            r"\b(?:os\.(?:remove|unlink|system|popen|rmdir|removedirs|truncate)|shutil\.(?:rmtree|move))\b(?!\s*\()"
            r"|\b(?:rmtree|unlink|remove|removedirs|move|system|popen)\s+as\b"
        ),
        _empties(
            r"\bopen\([^)]*['\"]w[bt+]*['\"]\s*\)\.close\(|\.truncate\(\s*0?\s*\)|write_(?:text|bytes)\(\s*b?['\"]{2}\s*\)"
        ),
        _ends(r"\bos\.kill(?:pg)?\s*\(|\.(?:terminate|kill)\s*\(\s*\)"),
        _dump(r"\bkeyring\.get|\bgetpass\.getpass|\bnetrc\.netrc"),
        _runs(r"\b(?:crontab|plumbum|pexpect|invoke)\.\w"),
        _erases(
            r"\bobjects\b[^;\n]*\.(?:delete|_raw_delete)\s*\(|\b(?:drop_all|drop_database|delete_many|flushall|flushdb)\s*\("
        ),
    ),
    "perl": (
        _network(r"IO::Socket|\bLWP\b|HTTP::Tiny|\buse Socket|Net::|\bsocket\s*\("),
        _hidden(r"\beval\s*[(\"'$]|\beval\s+\w|\bunpack\b.*\b(?:exec|system|eval)\b|\brequire\s*\$|\bs(\W).*\1\w*ee"),
        _dump(r"%ENV\b|\bkeys\s*\(?\s*%?ENV"),
        _home(r"\$ENV\{['\"]?HOME"),
        _bomb(r"\bfork\b.*\bwhile\b|\bwhile\b.*\bfork\b"),
        _ends(r"(?<![\w$@%>])kill\b\s*\(?\s*[\d'\"A-Z-]"),
    ),
    "ruby": (
        _passed(r"method\(\s*:(?:delete|unlink|rm|rm_rf|rm_r|system|exec|spawn|rename)"),
        _network(r"Net::|open-uri|URI\.open|TCPSocket|TCPServer|\bSocket\.|Faraday|HTTParty|rest-client"),
        _hidden(
            r"(?<![\w.])eval\s*[(\"'$\w]|instance_eval|class_eval|\.send\s*\(\s*:?(?:system|exec|eval|`)|Marshal\.load|Fiddle"
        ),
        _dump(r"\bENV\b(?!\s*\[|\.fetch|\.key)"),
        _home(r"Dir\.home|File\.expand_path\(['\"]~|ENV\[['\"]HOME"),
        _bomb(r"(?:loop|while|until).*\bfork\b|\bfork\b.*(?:while|until)\b"),
    ),
    "javascript": (
        _passed(
            r"\b(?:unlink|rm|rmdir|exec|spawn|execFile)(?:Sync)?\s*[,)](?!\s*=>)|\b(?:unlink|rm|rmdir|exec\w*|spawn\w*?)(?:Sync)?\s*:\s*\w"
        ),
        _network(
            r"(?<![\w.])fetch\s*\(|\bhttps?['\"]?\)?\.(?:get|request)\b|\bnet['\"]?\)?\.(?:connect|createConnection|Socket)\b"
            r"|(?:node:)?(?:https?|net|tls|dgram)['\"]\).*?\.(?:get|request|connect)\s*\("
            r"|createServer\s*\(|\.listen\s*\("
            r"|new WebSocket|\baxios\b|\bdgram\b|\bdns['\"]?\)?\.|Deno\.connect|Bun\.connect|\btls['\"]?\)?\.connect"
        ),
        _hidden(
            r"(?<![\w.])eval\s*\(|(?<![\w.])Function\s*\(|import\(\s*['\"](?:node:)?child_process|\bvm['\"]?\)?\.(?:run|Script)|process\.binding|process\.dlopen"
        ),
        _dump(
            rf"process\.env\b(?!\.\w|\[|\?)|process\.env(?:\.|\[['\"])\w*{_SECRET}|Deno\.env\.toObject|Bun\.env\b(?!\.)"
        ),
        _root(r"(?:readdir(?:Sync)?|chdir)\(\s*['\"]/['\"]"),
        _home(r"homedir\s*\(|process\.env\.HOME\b"),
        _kills(r"\bprocess\.kill\s*\(\s*-?1\b"),
        _ends(r"\bprocess\.kill\s*\("),
        _empties(r"\btruncate(?:Sync)?\s*\(|\bwriteFile(?:Sync)?\([^,]+,\s*(?:''|\"\")\s*[,)]"),
        _bomb(r"(?:while\s*\(\s*(?:1|true)|for\s*\(;;\)).*(?:fork|spawn|exec)\w*\s*\("),
    ),
    "php": (
        _passed(r"['\"](?:unlink|rmdir|system|exec|shell_exec|passthru|popen|proc_open|rename)['\"]"),
        _network(
            r"fsockopen|(?<![\w>:])mail\s*\(|curl_init|stream_socket_client|socket_create|(?:file_get_contents|fopen|copy)\s*\(\s*['\"](?:https?|ftp):"
        ),
        _hidden(
            r"\beval\s*\(|\bassert\s*\(|create_function|base64_decode|gzinflate|str_rot13|\$\w+\s*\(|\bcall_user_func"
        ),
        _dump(r"\$_ENV\b(?!\[)|\$_SERVER\b(?!\[)|\bgetenv\s*\(\s*\)|phpinfo\s*\("),
        _home(r"getenv\(['\"]HOME"),
        _ends(r"\bposix_kill\s*\("),
    ),
    "lua": (_network(r"require\s*\(?['\"]socket"), _hidden(r"\bloadstring\s*\(|(?<![\w.])load\s*\(|package\.loadlib")),
    "r": (
        _network(
            r"download\.file|\burl\s*\(|httr2?::|curl::|install\.packages|\binstall_\w+\s*\(|(?:source|read\w*|fread|readRDS)\s*\(\s*['\"](?:https?|ftp):"
        ),
        _hidden(r"eval\s*\(\s*(?:parse|str2)|\bdyn\.load\s*\(|\.Call\s*\("),
        _home(r"path\.expand\(|Sys\.getenv\(['\"]HOME"),
        _passed(r"\b(?:file\.remove|unlink)\b(?!\s*\()"),
        _ends(r"\bpskill\s*\("),
        _dump(r"Sys\.getenv\s*\(\s*\)"),
    ),
    "julia": (
        _network(r"\bdownload\s*\(|HTTP\."),
        _dump(r"\bENV\b(?!\[)"),
        _hidden(r"\bccall\b|include_string"),
        _passed(r"\brm\s*[,.)]"),
    ),
    "osascript": (_runs(r"."),),
    "tcl": (_runs(r"\b(?:exec|spawn|system|socket|open\s+\"?\|)"), _hidden(r"\beval\b")),
    "groovy": (_runs(r"\.execute\s*\(|ProcessBuilder|Runtime"), _network(r"new URL|https?://")),
    "elixir": (
        _runs(r"System\.(?:cmd|shell)|:os\.cmd|Port\.open"),
        _hidden(r"Code\.eval"),
        _dump(r"System\.get_env\s*\(\s*\)"),
    ),
    "awk": (
        _network(r"/inet[46]?/"),
        Danger(
            pattern=lazy_pattern(r"/inet[46]?/.*\|&.*getline", re.DOTALL),
            rule="reverse-shell",
            reason=REVERSE_SHELL_REASON,
            blocks=True,
        ),
        _home(r"ENVIRON\s*\[\s*\"HOME\""),
        _hidden(r"@load\b"),
        _dump(r"\bENVIRON\b(?!\s*\[\s*\")"),
        _dump(rf"ENVIRON\s*\[\s*\"\w*{_SECRET}"),
        _runs(r"\|&|\|\s*getline\b(?<!\"\s\|\sgetline)|\|\s*(?!\||\")[a-z_]\w*\s*(?:[;}\n]|$)"),
    ),
    "jq": (_dump(r"(?<![.\w\"$])env\b(?!\s*\.\w|\")|\$ENV\b(?!\s*[.\[])"), _dump(rf"(?:\benv|\$ENV)\.\w*{_SECRET}")),
    "editor": (
        _network(
            r"\b(?:Plug|Plugin|Vundle|Coc|Mason|TS|Packer|Paq|Lazy|Dein|MiniDeps|GoInstall|GoUpdate)(?:[A-Z]\w*|!?\s|$)"
        ),
        _runs(
            r"\b(?:sil(?:ent)?|noa\w*|keep\w+|verb\w*)!?\s+[^|]*!|^[:\s]*(?:\d*[%,$.]*\d*)?(?:r|w|read|write)?\s*!|\|\s*!|\n\s*(?:r\s*)?!|\b(?:system(?:list)?|job_start|jobstart"
            r"|termopen|libcall|writefile|delete|os\.execute|io\.popen|os\.remove)\s*\(|(?:^|[|:\n])\s*(?:sh(?:ell)?\b|ter(?:minal)?\b"
            r"|lua\b|luaf|luado|py(?:thon3?|x|3)?(?:file|do)?\s|perl(?:do)?\s|rub\w*\s|tcl\w*\s|mz\w*\s|so(?:urce)?!?\s|redir\b"
            r"|exe(?:cute)?\s|(?:%|(?:1|0)?,\$)\s*d(?:elete)?\b|mak\w*\b|set?\s+(?:shell|makeprg|grepprg|equalprg|keywordprg|formatprg)=|au(?:tocmd)?\s)"
        ),
    ),
    "lisp": (
        _runs(
            r"shell-command|call-process|start-process|make-process|delete-(?:directory|file)|async-shell|url-retrieve"
            r"|\bshell\b|\bterm\b|make-network-process|\bload(?:-file)?\b|write-(?:region|file)|insert-file-contents"
        ),
    ),
    "other": (
        _runs(
            r"\bsystem\b|\bshell\b|\bexec\w*\b|\bspawn\w*\b|\bpopen\b|\bsh(?:ell)?_?\w*\s*\(|run-(?:shell-command|program)"
            r"|\bprocess\*?\b|\bProcess\w*|ProcessBuilder|Runtime\b|\.execute\b|\be?syscmd\b|unsafePerformIO|call(?:Command|Process)"
            r"|read(?:Process|CreateProcess)|\bos[.:]|\bcmd\b|open-pipe|sys\.process|scala\.sys|!!|^:?!|\n:?!|\bsubprocess\b|Sys\.command"
            r"|\bqx\b|[\"'][|<]\s*\w|\brun\s*[(\"'<]|\bshell_exec\b|QX|EVAL|System\.(?:cmd|shell)|Port\.open|:os\.cmd|Code\.eval"
        ),
        _network(r"socket|https?:|ftp:|\bfetch\b|\bcurl\b|download|URL\b|urlopen|Net\.|HTTP\b"),
        Danger(
            pattern=lazy_pattern(
                r"\b(?:unlink|remove\w*|delete\w*|rmdir|rm|rename-file|delete-file|removeDirectoryRecursive|deleteRecursively)\b"
            ),
            rule="code-deletes",
            reason="its code deletes files that it does not name",
        ),
    ),
    "sql": (
        _runs(
            r"\\!|(?:^|\n)\s*\.(?:shell|system|load|archive|import\s+\"?'?\||(?:output|once|excel)\s*\"?'?\||edit)|\bedit\s*\(|\bsystem\s+\w|\bcopy\b.*\bprogram\b|xp_cmdshell|load_extension|\\o\s*\|"
        ),
        Danger(
            pattern=lazy_pattern(
                r"\bdrop\s+[a-z]\w+\b|\brevoke\b|\bcreate\s+(?:user|role|extension|language|server|subscription|publication)\b"
                r"|\blanguage\s+'?(?:c|pl\w+u)\b|\balter\s+(?:system|database)\b|\bkill\s+(?:query\s+|connection\s+)?\d|\bset\s+(?:global|persist)\b"
                r"|\bload\s+(?:data|xml)\b|(?:^|[\n;])\s*(?:source\s|\\i\w*\s)|\bcopy\b.*\b(?:to|from)\s+'/|\blo_(?:import|export)\b|\bdblink\b"
                r"|\bpg_(?:terminate|cancel)_backend\b|\bpg_(?:ls|read|stat)_\w*(?:file|dir)\w*|\bpg_(?:reload_conf|switch_wal|promote)\b"
                r"|\bpragma\s+(?:writable|trusted)_schema\b|\bvacuum\s+into\b|(?:^|\n)\s*\.(?:restore|recover|clone|backup|save|cd|(?:read|import|output|once|open|log)\s+[\"']?[/~])"
                r"|(?:^|[\n;])\s*shutdown\b|\bpurge\s+(?:binary|master)\b|\breset\s+(?:master|slave|replica)\b|\bflush\s+(?:privileges|tables|logs)\b"
                r"|\binstall\s+(?:plugin|component|soname)\b|\bdo\s+\$|\bexecute\s+(?:immediate|'|\"|format)|\bexport\s+data\b|\bunload\s*\("
                r"|\brename\s+(?:table|database)\b|\bdetach\s+delete\b|\balter\s+table\b.*\bdelete\b"
                r"|\bdelete\s+from\b.*\bwhere\s+(?:true|1\s*=\s*1|1)\b|\btruncate\b|\bdelete\s+from\s+[\w.\"`]+\s*(?:;|$)"
                r"|\binto\s+(?:out|dump)file\b|\bpg_read_file\b|\balter\s+(?:user|role)\b|\bgrant\b|\bupdate\s+[\w.]+\s+set\b(?!.*\bwhere\b)",
                re.IGNORECASE | re.DOTALL,
            ),
            rule="database-destroy",
            reason="it destroys data or changes permissions in a database",
        ),
    ),
    "debugger": (
        _runs(
            r"^\s*(?:[!|]|(?:shell|platform|script|python|py|pi|guile|source|pipe|make|dump|restore|save|set\s+logging|compile|jit|plugin"
            r"|command\s+(?:script|source)|process\s+attach|attach|target|gcore|generate-core-file|alias|define)\b)"
            r"|\b(?:system|exec\w*|popen|dlopen|fork)\s*\("
        ),
    ),
    "dc": (_runs(r"!\s*[\w/.]"),),
}

PROCESS_FUNCTIONS = (
    *("run", "call", "check_call", "check_output", "Popen", "getoutput", "getstatusoutput", "system", "popen", "spawn"),
    *("execv", "execl", "execvp", "execlp", "execve", "execle", "spawnv", "spawnl", "posix_spawn"),
)
PROCESS_CALLS: dict[str, tuple["re.Pattern[str]", ...]] = {
    "python": (
        lazy_pattern(
            r"\.(?:system|popen[234]?|getoutput|getstatusoutput|spawn[lv]p?e?|exec[lv]p?e?|posix_spawnp?|startfile)\s*\("
        ),
        lazy_pattern(r"\bsubprocess\.(?:run|call|check_call|check_output|Popen|getoutput|getstatusoutput)\s*\("),
        lazy_pattern(r"(?<![\w.])(?:check_output|check_call|Popen|getoutput|system|popen)\s*\("),
        lazy_pattern(
            r"\bcreate_subprocess_(?:exec|shell)\s*\(|(?<![\w.])spawn\s*\(|\bpty\.spawn\s*\(|\bpexpect\.(?:run|spawn)\s*\("
        ),
    ),
    "perl": (
        lazy_pattern(r"(?<![\w$@%>])(?:system|exec)\b\s*\(?"),
        lazy_pattern(r"\bqx\s*(?=[({/'\"|!])"),
        lazy_pattern(r"(?<=[=(\s;/{,.])`|^`"),
        lazy_pattern(r"\bopen\b[^;]*?(?=['\"][^'\"]*\|)"),
    ),
    "ruby": (
        lazy_pattern(r"(?<![\w.])(?:system|exec|spawn)\b\s*\(?"),
        lazy_pattern(r"(?:Kernel|Process|IO|Open3)\.\w+\s*\(?"),
        lazy_pattern(r"(?<=[=(\s;])`|^`"),
        lazy_pattern(r"%x(?=[{(\[])"),
    ),
    "javascript": (
        lazy_pattern(
            r"(?:child_process['\"]?\)?\.|cp\.|(?<![\w.]))(?:exec|execSync|execFile|execFileSync|spawn|spawnSync|fork)\s*\("
        ),
        lazy_pattern(r"\bBun\.spawn(?:Sync)?\s*\(|Deno\.(?:run|Command)\s*\(|\$(?=`)"),
    ),
    "php": (
        lazy_pattern(r"(?<![\w>:])(?:system|exec|shell_exec|passthru|popen|proc_open|pcntl_exec)\s*\("),
        lazy_pattern(r"(?<=[=(\s;])`|^`"),
    ),
    "lua": (lazy_pattern(r"\bos\.execute\s*\(?|\bio\.popen\s*\(?"),),
    "r": (lazy_pattern(r"(?<![\w.])(?:system2?|shell|pipe)\s*\("),),
    "julia": (lazy_pattern(r"(?<=[=(\s;])`|^`"),),
    "awk": (
        lazy_pattern(r"\bsystem\s*\("),
        lazy_pattern(r"\bprintf?\b[^;{}\n]*\|&?\s*(?=\")"),
        lazy_pattern(r"(?:^|[;{}(]|while)\s*\(?(?=\"[^\"]*\"\s*\|&?\s*getline)"),
    ),
}

_RM_TREE = ("rm", "-r")
_RM = ("rm",)
_MV = ("mv",)
DELETE_CALLS: dict[str, tuple[tuple["re.Pattern[str]", tuple[str, ...]], ...]] = {
    "python": (
        (lazy_pattern(r"\brmtree\s*\(|\bremovedirs\s*\("), _RM_TREE),
        (lazy_pattern(r"\bos\.(?:remove|unlink|truncate)\s*\(|\.unlink\s*\("), _RM),
        (lazy_pattern(r"\bos\.(?:rename|renames|replace)\s*\(|\bshutil\.move\s*\("), _MV),
    ),
    "perl": (
        (lazy_pattern(r"\b(?:rmtree|remove_tree)\b\s*\(?"), _RM_TREE),
        (lazy_pattern(r"(?<![\w$@%>])unlink\b\s*\(?"), _RM),
        (lazy_pattern(r"(?<![\w$@%>])rename\b\s*\(?"), _MV),
    ),
    "ruby": (
        (lazy_pattern(r"\b(?:rm_rf|rm_r|remove_dir|remove_entry\w*|rmtree)\b\s*\(?"), _RM_TREE),
        (lazy_pattern(r"\bFile\.(?:delete|unlink|truncate)\s*\(?|\bFileUtils\.rm\b\s*\(?"), _RM),
    ),
    "javascript": (
        (
            lazy_pattern(
                r"\b(?:rmSync|rmdirSync|removeSync|emptyDirSync|rimraf(?:\.sync)?)\s*\("
                r"|\b(?:fs\w*|promises['\"]?\)?)\.(?:rm|rmdir)\s*\(|Deno\.remove\w*\s*\("
            ),
            _RM_TREE,
        ),
        (lazy_pattern(r"\bunlink(?:Sync)?\s*\("), _RM),
    ),
    "php": ((lazy_pattern(r"\brmdir\s*\("), _RM_TREE), (lazy_pattern(r"(?<![\w>])unlink\s*\("), _RM)),
    "r": (
        (lazy_pattern(r"\b(?:unlink|dir_delete)\s*\("), _RM_TREE),
        (lazy_pattern(r"\b(?:file\.remove|file_delete)\s*\("), _RM),
        (lazy_pattern(r"\bfile\.rename\s*\("), _MV),
    ),
    "lua": ((lazy_pattern(r"\bos\.remove\s*\("), _RM), (lazy_pattern(r"\bos\.rename\s*\("), _MV)),
    "julia": ((lazy_pattern(r"(?<![\w.])rm\s*\("), _RM_TREE),),
    "elixir": (
        (lazy_pattern(r"\bFile\.rm_rf!?\s*\(?"), _RM_TREE),
        (lazy_pattern(r"\bFile\.(?:rm|rmdir)!?\s*\(?"), _RM),
        (lazy_pattern(r"\bFile\.rename!?\s*\(?"), _MV),
    ),
}
