"""Completion scripts for shells: each Tab runs `moldau completion candidates` with the words up to the cursor."""

from __future__ import annotations

__all__ = ["FILES_MARK", "SCRIPTS"]

FILES_MARK = ":files"
"""A line of the output that makes the shell complete file names."""

BASH = """\
# Completion of `moldau` for bash. Load it in this shell:  source <(moldau completion bash)
_moldau() {
    local typed line word
    local -a words
    COMPREPLY=()
    # bash takes a colon for the end of a word; here it is a part of host:9092 and topic:orders.
    read -r -a words <<< "${COMP_LINE:0:COMP_POINT}"
    [[ "${COMP_LINE:0:COMP_POINT}" == *[[:space:]] ]] && words+=("")
    typed="${words[${#words[@]}-1]}"
    local kept=""
    [[ "$typed" == *:* && "$COMP_WORDBREAKS" == *:* ]] && kept="${typed%"${typed##*:}"}"
    while IFS= read -r line; do
        if [[ "$line" == ":files" ]]; then
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$typed")
        else
            word="${line%%$'\\t'*}"
            [[ "$word" == "$typed"* ]] && COMPREPLY+=("${word#"$kept"}")
        fi
    done < <(command "${words[0]}" completion candidates -- "${words[@]:1}" 2>/dev/null)
}
complete -F _moldau moldau
"""

ZSH = """\
#compdef moldau
# Completion of `moldau` for zsh. Load it in this shell:  source <(moldau completion zsh)
_moldau() {
    local line
    local -a described
    for line in "${(@f)$(command "${words[1]}" completion candidates -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        if [[ "$line" == ":files" ]]; then
            _files
        elif [[ -n "$line" ]]; then
            described+=("${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}")
        fi
    done
    (( ${#described} )) && _describe -t moldau 'moldau' described
}
if [[ "${funcstack[1]}" == "_moldau" ]]; then
    _moldau "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
    compdef _moldau moldau
fi
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH}
