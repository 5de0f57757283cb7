# bash completion for agent and windlass. Install it with `agent --install-completion bash`.
_windlass() {
    local kind word
    COMPREPLY=()
    {
        IFS= read -r kind || return 0
        while IFS= read -r word; do COMPREPLY+=("$word"); done
    } < <("${1/#\~\//$HOME/}" __complete bash "${COMP_LINE:0:COMP_POINT}" "$2" "$COMP_TYPE" "${COLUMNS:-80}" 2>/dev/null </dev/null)
    case $kind in
        words)
            # bash 3 has no compopt: it sorts the words, and adds a space after a single one.
            compopt -o nosort 2>/dev/null
            [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=:/] ]] && compopt -o nospace 2>/dev/null
            ;;
        folders) _windlass_paths -d "$2" ;;
        files) _windlass_paths -f "$2" ;;
        plans) _windlass_paths -f "$2" toml json ;;
    esac
    return 0
}

# Offers the paths that start with a prefix; with extensions, only folders and files with one of them.
_windlass_paths() {
    local path action=$1 prefix=$2 extension
    shift 2
    compopt -o filenames 2>/dev/null
    while IFS= read -r path; do
        if (($# == 0)) || [[ -d ${path/#\~\//$HOME/} ]]; then
            COMPREPLY+=("$path")
        else
            for extension; do [[ $path == *."$extension" ]] && COMPREPLY+=("$path"); done
        fi
    done < <(compgen "$action" -- "$prefix")
}

complete -F _windlass agent windlass
