"""Tables of shells and interpreters, and of their options that take program text."""

SHELLS = frozenset(
    {"sh", "bash", "dash", "zsh", "ksh", "ksh93", "mksh", "ash", "fish", "rbash", "csh", "tcsh", "pwsh"}
    | {"yash", "osh", "elvish", "xonsh", "nu"}
)
# Their program text is only searched for words that run programs, reach the network or delete.
_OTHER_INTERPRETERS = """
    octave octave-cli clisp sbcl ecl ccl abcl guile racket csi gsi mit-scheme chez scheme gnuplot maxima gp sage ghc
    runghc ghci ocaml ocamlfind scala amm kotlin kotlinc jshell clojure clj bb lein raku perl6 erl iex
    mix crystal swift nim dart gimp inkscape freecad blender root cling fennel janet gst gforth swipl prolog m4 godot
    mathematica wolframscript matlab
"""
LANGUAGES = {
    "perl": "perl",
    "ruby": "ruby",
    "irb": "ruby",
    "node": "javascript",
    "nodejs": "javascript",
    "bun": "javascript",
    "deno": "javascript",
    "php": "php",
    "lua": "lua",
    "luajit": "lua",
    "Rscript": "r",
    "julia": "julia",
    "osascript": "osascript",
    "tclsh": "tcl",
    "expect": "tcl",
    "awk": "awk",
    "gawk": "awk",
    "mawk": "awk",
    "nawk": "awk",
    "sed": "sed",
    "gsed": "sed",
    "jq": "jq",
    "groovy": "groovy",
    "elixir": "elixir",
    "ed": "editor",
    "ex": "editor",
    "vi": "editor",
    "vim": "editor",
    "nvim": "editor",
    "view": "editor",
    "emacs": "lisp",
    "psql": "sql",
    "mysql": "sql",
    "mariadb": "sql",
    "sqlite3": "sql",
    "duckdb": "sql",
    "pgcli": "sql",
    "mycli": "sql",
    "litecli": "sql",
    "usql": "sql",
    "gdb": "debugger",
    "lldb": "debugger",
    "dc": "dc",
    "rvim": "editor",
    "gvim": "editor",
    "vimdiff": "editor",
    "nvim-qt": "editor",
    "neovim": "editor",
    "emacsclient": "lisp",
    "goawk": "awk",
    "ssed": "sed",
    "gojq": "jq",
    "jaq": "jq",
    "ipython": "python",
    "ipython3": "python",
    "ptpython": "python",
    "bpython": "python",
    "jython": "python",
    "ipdb": "pdb",
    "pdb": "pdb",
    "pdb3": "pdb",
    "pudb": "pdb",
    "timeit": "timeit",
    "tsx": "javascript",
    "ts-node": "javascript",
    "babel-node": "javascript",
    "electron": "javascript",
    "qjs": "javascript",
    "d8": "javascript",
    "zx": "javascript",
    "php-cgi": "php",
    "lua5.1": "lua",
    "lua5.3": "lua",
    "lua5.4": "lua",
    "texlua": "lua",
    "R": "r",
    "littler": "r",
    "wish": "tcl",
    "jruby": "ruby",
    "truffleruby": "ruby",
    "pry": "ruby",
    "latexmk": "perl",
    **dict.fromkeys(_OTHER_INTERPRETERS.split(), "other"),
}
# Options that take program text, also at the end of a cluster of options.
CODE_OPTIONS = {
    "python": ("-c",),
    "perl": ("-e", "-E"),
    "ruby": ("-e",),
    "javascript": ("-e", "--eval", "-p", "--print", "-pe"),
    "php": ("-r", "-B", "-R", "-E"),
    "lua": ("-e",),
    "r": ("-e",),
    "julia": ("-e", "-E", "--eval", "--print"),
    "osascript": ("-e",),
    "tcl": ("-c",),
    "awk": ("-e", "--source"),
    "sed": ("-e", "--expression"),
    "groovy": ("-e",),
    "elixir": ("-e", "--eval"),
    "editor": ("-c", "--cmd"),
    "lisp": ("--eval", "-eval", "--execute", "-f", "--funcall"),
    "sql": ("-c", "-e", "--command", "--execute", "-cmd"),
    "debugger": ("-ex", "--ex", "-iex", "--eval-command", "-o", "--one-line"),
    "dc": ("-e",),
    "pdb": ("-c", "--command"),
    "timeit": ("-s", "--setup"),
    "other": (
        *("-e", "-E", "--eval", "-eval", "-x", "-b", "-r", "-l", "--load", "--execute", "--expr", "--python-expr"),
        *("--batch-string", "--actions", "-c", "--command", "--evaluate", "-g", "-q", "--print"),
    ),
}
# Languages that are another one in a different place.
SCANNED_AS = {"pdb": "python", "timeit": "python"}
# Languages whose first plain word is program text, unless an option gives it.
CODE_FIRST = frozenset({"awk", "sed", "jq", "timeit"})
# Languages whose plain words are program text even if an option gives some.
CODE_ALSO = frozenset({"sql", "timeit"})
# Other options that take a value.
CODE_VALUES = {
    "awk": ("-F", "-v", "-f", "-i", "-l", "--file", "--assign", "--field-separator"),
    "sed": ("-f", "-l", "--file", "--line-length"),
    "jq": ("-f", "--from-file", "--indent", "-L"),
    "python": ("-W", "-X", "-m"),
    "perl": ("-I", "-M", "-m", "-x"),
    "ruby": ("-r", "-I", "-C"),
    "javascript": ("-r", "--require", "--import", "--loader", "--env-file", "-C", "--conditions"),
}
