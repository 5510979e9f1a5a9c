// SPDX-License-Identifier: GPL-2.0
/*
 * The one place where the tracepoints of trace.h become code.
 * Copyright (c) 2026 The SMC authors
 */
#define CREATE_TRACE_POINTS
#include "trace.h"
