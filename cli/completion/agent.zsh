# Completion of agent and windlass for zsh. `agent --install-completion zsh` puts it in place.
_windlass() {
    local kind line program=${(Q)words[1]/#\~\//$HOME/}
    local -a lines whole open
    # Words before the cursor without their quotes, then what is typed of the one at it.
    lines=("${(@f)$("$program" __complete zsh "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null </dev/null)}")
    kind=$lines[1]
    shift lines
    case $kind in
        words)
            for line in $lines; do
                # _describe wants word:meaning, with the colons of the word marked.
                line="${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}"
                if [[ $line == (*=|*/|*\\:):* ]]; then open+=("$line"); else whole+=("$line"); fi
            done
            (( $#whole )) && _describe -V -t values value whole
            (( $#open )) && _describe -V -t values value open -S ''
            return 0
            ;;
    esac
    # Only what stands behind --flag= or script: is a path.
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
