# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck shell=bash
#
# The names of the kernel's functions, for a profile.
echo 0 >/proc/sys/kernel/kptr_restrict
grep -i ' [tw] ' /proc/kallsyms >&3
