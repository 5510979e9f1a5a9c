/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Copyright (c) 2026 The SMC authors */
/* smc.h first and alone, in C11; layouts as released; errors that need no kernel. */
#include <smc/smc.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#if defined(__LP64__)
_Static_assert(sizeof(struct smc_attach_opts) == 32, "smc_attach_opts grew: only append");
_Static_assert(offsetof(struct smc_attach_opts, timeout_ms) == 28, "smc_attach_opts moved");
_Static_assert(sizeof(struct smc_status_info) == 336, "smc_status_info grew: only append");
_Static_assert(offsetof(struct smc_status_info, oldest_ms) == 72, "smc_status_info moved");
_Static_assert(offsetof(struct smc_status_info, name) == 144, "smc_status_info moved");
_Static_assert(sizeof(struct smc_wait_opts) == 40, "smc_wait_opts grew: only append");
_Static_assert(offsetof(struct smc_wait_opts, reserved) == 36, "smc_wait_opts moved");
_Static_assert(sizeof(struct smc_fault) == 24, "smc_fault grew: only append");
_Static_assert(offsetof(struct smc_fault, reserved) == 20, "smc_fault moved");
#endif

#define CHECK(condition)                                                              \
	do {                                                                          \
		if (!(condition)) {                                                   \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			return 1;                                                     \
		}                                                                     \
	} while (0)

static int body(void *argument)
{
	return *(const int *)argument;
}

int main(void)
{
	struct smc_attach_opts opts = {.size = sizeof(opts), .flags = SMC_ATTACH_READONLY};
	struct smc_status_info info = {.size = sizeof(info)};
	smc_region *const untouched = (smc_region *)&opts;
	smc_region *region = untouched;
	struct smc_wait_opts wait = {.size = sizeof(wait)};
	smc_pool *pool = NULL;
	struct smc_fault fault = {.size = sizeof(fault)};
	int result = 7;
	char byte = 0;

	CHECK(smc_attach(NULL, NULL, &region) == -EINVAL);
	CHECK(smc_attach("node:region", &opts, NULL) == -EINVAL);
	CHECK(smc_attach("no region", &opts, &region) == -EINVAL);
	opts.flags = ~SMC_ATTACH_READONLY;
	CHECK(smc_attach("node:region", &opts, &region) == -EINVAL);
	CHECK(smc_attach("/dev/null", NULL, &region) == -ENODEV);
	CHECK(region == untouched);

	CHECK(smc_addr(NULL) == NULL && smc_size(NULL) == 0);
	CHECK(smc_barrier(NULL) == -EINVAL && smc_barrier_range(NULL, 0, 1) == -EINVAL);
	CHECK(smc_acquire(NULL, 0, 0) == -EINVAL);
	CHECK(smc_store(NULL, 0, &byte, 1) == -EINVAL && smc_load(NULL, 0, &byte, 1) == -EINVAL);
	CHECK(smc_status(NULL, &info) == -EINVAL);
	CHECK(smc_publish(NULL, 0, 0, 0, 0, 8) == -EINVAL);
	CHECK(smc_fetch_add(NULL, 0, 1, NULL) == -EINVAL);
	CHECK(smc_compare_swap(NULL, 0, 1, 2, NULL) == -EINVAL);
	CHECK(smc_wait(NULL, 0, &wait, NULL) == -EINVAL);
	CHECK(smc_pool_create(NULL, 0, 0, 0, &pool) == -EINVAL && pool == NULL);
	smc_pool_destroy(NULL);
	CHECK(smc_guard(NULL, NULL, NULL) == -EINVAL);
	CHECK(smc_guard(body, &result, &fault) == 7 && fault.code == 0);
	CHECK(smc_detach(NULL) == 0);
	CHECK(strcmp(smc_strerror(-EBUSY), smc_strerror(EBUSY)) == 0);
	return 0;
}
