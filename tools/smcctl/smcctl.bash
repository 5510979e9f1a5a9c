# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
#
# bash completion of smcctl: verbs, options, and what the daemon and the kernel know by name.

# The words of one key in the JSON that a verb writes; nothing when it fails. The pattern is enough
# for names, which hold no quotes.
_smcctl_names()
{
    smcctl -j --timeout 1 "$1" 2>/dev/null | sed -n "s/.*\"$2\": \"\\([^\"]*\\)\".*/\\1/p" | sort -u
}

_smcctl_regions()
{
    smcctl -j --timeout 1 regions 2>/dev/null |
        sed -n '/"attached"/,/^  \]/p' |
        sed -n 's/.*"name": "\([^"]*\)".*/\1/p; s/.*"node": "\([^"]*\)".*/\1/p' |
        paste -d' ' - - | while read -r name node; do echo "/smc/$node/$name"; done
}

_smcctl()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb='' word
    local verbs='status export unexport regions attach detach flush acquire get set sessions peers
        ping ps stats top inspect advise events doctor'
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        [[ " ${verbs//$'\n'/ } " == *" $word "* ]] && verb=$word && break
    done
    COMPREPLY=()
    case $prev in
    --file | --socket | --with)
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    --sort)
        mapfile -t COMPREPLY < <(compgen -W 'traffic name fetch flush faults write_faults
            amplification barriers fetch_latency write_latency fault_latency barrier_latency
            dirty' -- "$cur")
        return
        ;;
    --writers)
        mapfile -t COMPREPLY < <(compgen -W 'merge exclusive' -- "$cur")
        return
        ;;
    esac
    local words=''
    case $verb in
    '') words="$verbs --json --socket --timeout --help --version" ;;
    export) words='--host --hugepages --file --offset --length --mode --readonly --writers --merge-unit --sync-mode --flush-after-ms --push-delay-us --max-stale-us --granule' ;;
    unexport) words=$(_smcctl_names regions name) ;;
    attach) words='--wait' && mapfile -t COMPREPLY < <(compgen -f -- "${cur:-/smc/}") ;;
    detach) words="--force --yes $(_smcctl_regions)" ;;
    flush | acquire) words="--offset --length $(_smcctl_regions)" ;;
    get) words="cto flush_after_ms generation gid granule hot max_stale_us merge_unit mode permissions push_delay_us readonly size uid writers $(_smcctl_regions)" ;;
    set) words="cto=on cto=off flush_after_ms= granule= hot=on hot=off max_stale_us= merge_unit= mode=lazy mode=push mode=eager push_delay_us= writers=merge writers=exclusive $(_smcctl_regions)" ;;
    ping) words="--seconds --no-rdma $(_smcctl_names peers node)" ;;
    advise) words="--time --with $(_smcctl_regions)" ;;
    inspect) words=$(_smcctl_regions) ;;
    stats) words="--watch --interval --count $(_smcctl_regions)" ;;
    top) words="--interval --count --sort $(_smcctl_regions)" ;;
    events) words='--follow --count --seconds' ;;
    esac
    [[ -n $verb ]] && words+=' --json --help'
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -F _smcctl smcctl
