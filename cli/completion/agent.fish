# fish completion for agent and windlass. Install it with `agent --install-completion fish`.
function __windlass_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    set -l lines ($program __complete fish $words[2..-1] "$current" 2>/dev/null </dev/null)
    # Only the part after --flag= or script: is a path.
    set -l before (string match -r -- '^(?:--[a-z-]+=)?(?:script:|[a-z_]+=)?' "$current")[1]
    set -l path (string sub -s (math (string length -- "$before") + 1) -- "$current")
    switch "$lines[1]"
        case words
            printf '%s\n' $lines[2..-1]
        case folders
            printf '%s\n' $before(__fish_complete_directories "$path" '')
        case files
            printf '%s\n' $before(__fish_complete_path "$path" '')
        case plans
            for found in (__fish_complete_path "$path" '')
                string match -rq -- '(/|\.toml|\.json)\t?$' $found; and printf '%s\n' $before$found
            end
    end
end

for name in agent windlass
    complete -c $name -f -k -a '(__windlass_complete)'
end
