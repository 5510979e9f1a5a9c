# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
"""The one error that the test-bed programs report and end with."""


class VmError(Exception):
    """A message for the user: what is wrong and what helps."""
