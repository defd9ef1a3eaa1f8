#compdef millrace
# Completion of millrace for zsh: source <(millrace completion zsh)
_millrace() {
    local line
    local -a found
    for line in "${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        [[ -n $line ]] && found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    if (( ${#found} )); then
        _describe millrace found
    else
        _files
    fi
}
compdef _millrace millrace
