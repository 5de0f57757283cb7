# zsh completion for agent and windlass. Install it with `agent --install-completion zsh`.
_windlass() {
    local kind line program=${(Q)words[1]/#\~\//$HOME/}
    local -a lines closed open
    # The words before the cursor without their quotes, then the typed part of the current one.
    lines=("${(@f)$("$program" __complete zsh "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null </dev/null)}")
    kind=$lines[1]
    shift lines
    case $kind in
        words)
            for line in $lines; do
                # _describe expects word:description, with the colons of the word escaped.
                line="${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}"
                if [[ $line == (*=|*/|*\\:):* ]]; then open+=("$line"); else closed+=("$line"); fi
            done
            (( $#closed )) && _describe -V -t values value closed
            (( $#open )) && _describe -V -t values value open -S ''
            return 0
            ;;
    esac
    # Only the part after --flag= or script: is a path.
    compset -P '--[a-z-]#='
    compset -P 'script:' || compset -P '[a-z_]#='
    case $kind in
        folders) _files -/ ;;
        files) _files ;;
        plans) _files -g '*.(toml|json)' ;;
    esac
}

(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }
compdef _windlass agent windlass
