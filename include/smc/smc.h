/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * libsmc: another node's accelerator memory as a range of this process's addresses.
 * Copyright (c) 2026 The SMC authors
 *
 * A region is a file, /smc/NODE/NAME. Any program may map it with open(2) and mmap(2); this library
 * does that with clear errors, a deadline and a name for every operation. Both ways mix freely: the
 * pages are the same, whoever mapped them.
 *
 * What a store means. Loads and stores go to pages of this node, a write-back cache of the memory on
 * the other node. A store is there when a barrier that began after it has returned 0 (earlier if the
 * kernel chose to write back), and a change that the other side made is seen here after an acquire.
 *
 * Conventions
 *   Return:   0 on success, a negative errno on failure, unless said otherwise; smc_strerror() turns
 *             it into a sentence with the remedy. errno itself is not part of the interface.
 *   Ranges:   offset and length are bytes, relative to the first byte that the handle has attached. A
 *             range that ends past smc_size() is -ERANGE (smc_store: -ENOSPC, as write(2) says);
 *             nothing of it is then done. Length 0 is 0 bytes, and fine, unless said otherwise.
 *   Structs:  the caller sets `size` to its sizeof; members that it does not know are 0. A longer
 *             struct than the library's must be 0 past what the library knows (else -E2BIG).
 *   Threads:  every function may be called from several threads at once on one handle, except that
 *             smc_detach() must be the last call on it. The library starts no thread, installs no
 *             signal handler but SIGBUS's while an smc_guard() is active, and takes no lock, but for a
 *             pool's own inside smc_pool_alloc() and _free(), and when a guard begins and ends.
 *   Fork:     the child has the handle, the mapping and the same pages; parent and child each detach
 *             their own. Both count as one user towards the writing right of the node.
 *   Signals:  loads and stores through smc_addr() raise SIGBUS once a region's memory is gone or its
 *             fetch failed; smc_load() and smc_store() return an error instead, and so does smc_guard()
 *             for whatever loads and stores a function of the caller does. No function here is
 *             async-signal-safe, except smc_addr(), smc_size() and smc_strerror().
 */
#ifndef SMC_SMC_H
#define SMC_SMC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SMC_API __attribute__((visibility("default")))

#define SMC_NODE_NAME_MAX	63	/* bytes, without the NUL */
#define SMC_REGION_NAME_MAX	191	/* bytes, without the NUL */
#define SMC_TIMEOUT_MS_DEFAULT	10000
#define SMC_TIMEOUT_MS_MAX	600000

/* An attached region. Opaque; owned by the caller from smc_attach() to smc_detach(). */
typedef struct smc_region smc_region;

/* Only loads: the mapping is PROT_READ, and the region's writing right is not asked for. */
#define SMC_ATTACH_READONLY	0x1u

/**
 * struct smc_attach_opts - how to attach; all 0 but @size is the default
 * @size: sizeof(struct smc_attach_opts) of the caller.
 * @offset: first byte of the region to map, a multiple of the page size.
 * @length: bytes to map; 0: from @offset to the region's end.
 * @flags: SMC_ATTACH_*; an unknown bit is -EINVAL.
 * @timeout_ms: how long the peer may take to grant the region, up to SMC_TIMEOUT_MS_MAX; 0 means
 *	SMC_TIMEOUT_MS_DEFAULT. There is no "for ever".
 */
struct smc_attach_opts {
	size_t   size;
	uint64_t offset;
	uint64_t length;
	uint32_t flags;
	uint32_t timeout_ms;
};

/* State of a region on this node, smc_status_info.state. */
enum smc_state {
	SMC_STATE_UNKNOWN,
	SMC_STATE_BINDING,	/* waiting for the peer's grant */
	SMC_STATE_ACTIVE,
	SMC_STATE_DEGRADED,	/* session lost: dirty pages are kept, accesses wait */
	SMC_STATE_FAILED,	/* given up or revoked: accesses fail */
	SMC_STATE_DETACHING,
};

/* Who may write, smc_status_info.writer_state. Only exclusive regions have a writing right. */
enum smc_writer_state {
	SMC_WRITER_UNKNOWN,
	SMC_WRITER_NONE,	/* nobody on this node asked for it */
	SMC_WRITER_ASKING,
	SMC_WRITER_HELD,	/* this node holds the writing right */
};

/**
 * struct smc_status_info - what the kernel knows of a region
 * @size: in: sizeof of the caller; what the library does not know is set to 0.
 * @state: enum smc_state.
 * @writer_state: enum smc_writer_state.
 * @region_id: names the region on this node; also st_ino of its file.
 * @generation: names the memory; another generation is other memory under the same name.
 * @session_id: the session that carries the region.
 * @region_bytes: size of the whole region.
 * @dirty_bytes: changed here, not yet sent.
 * @writeback_bytes: sent, not yet acknowledged.
 * @cached_bytes: held in pages of this node.
 * @oldest_ms: age of the oldest request in flight, 0: none.
 * @openers: open files of this region on this node.
 * @node: the peer, NUL-terminated.
 * @name: the region's name there, NUL-terminated.
 */
struct smc_status_info {
	size_t   size;
	uint32_t state;
	uint32_t writer_state;
	uint64_t region_id;
	uint64_t generation;
	uint64_t session_id;
	uint64_t region_bytes;
	uint64_t dirty_bytes;
	uint64_t writeback_bytes;
	uint64_t cached_bytes;
	uint32_t oldest_ms;
	uint32_t openers;
	char     node[SMC_NODE_NAME_MAX + 1];
	char     name[SMC_REGION_NAME_MAX + 1];
};

/**
 * smc_attach - open a region and map it shared
 * @name: "NODE:NAME", or a path of a region: "/smc/NODE/NAME", or under another mount of smcfs.
 * @opts: NULL for the defaults: the whole region, readable and writable.
 * @out: receives the handle; untouched on failure.
 *
 * Asks the local daemon to bind the region when it is not bound yet, waiting @opts->timeout_ms for
 * the peer, then opens and maps it. Without SMC_ATTACH_READONLY this takes the writing right of an
 * exclusive region for this node. An open drops clean pages, so the first loads see the peer's memory
 * as it is now.
 *
 * Context: may block. The file descriptor is close-on-exec; the mapping does not survive exec.
 * Return: 0; -EINVAL (name, options or alignment), -ENOENT (no such node or region), -EISDIR (a
 * prefix of region names), -EACCES (mode of the region), -EROFS (a read-only region, without
 * SMC_ATTACH_READONLY), -EBUSY (another session holds the writing right), -ERANGE (offset and length
 * past the region's end), -ENODEV (smcfs is not mounted, or @name is no region), -ENOTCONN (daemon not
 * running), -EHOSTUNREACH, -ETIMEDOUT, -EPROTO, -ENOMEM, -EMFILE, -E2BIG.
 */
SMC_API int smc_attach(const char *name, const struct smc_attach_opts *opts, smc_region **out);

/**
 * smc_addr - the first mapped byte
 * @region: from smc_attach().
 *
 * Return: an address, aligned to a page; valid until smc_detach(). NULL for a NULL handle.
 */
SMC_API void *smc_addr(const smc_region *region);

/**
 * smc_size - how many bytes are mapped, exactly
 * @region: from smc_attach().
 *
 * Loads and stores between this and the end of its last page reach nobody.
 *
 * Return: bytes; 0 for a NULL handle.
 */
SMC_API size_t smc_size(const smc_region *region);

/**
 * smc_barrier - send every change, and wait until it has arrived
 * @region: from smc_attach().
 *
 * When 0 is returned, every change made to the attached range before the call (through any mapping or
 * file of this node: stores, write(2), smc_store()) is in the target's memory and visible to the
 * accelerator. Costs what is dirty, not what is mapped. On failure the changes are kept, and the next
 * barrier sends them again.
 *
 * Context: blocks until the target's adapter has acknowledged, or the request deadline has passed; a
 * fatal signal ends the wait.
 * Return: 0; -EIO (link failed; the data is kept dirty, unless the region is gone), -ESTALE,
 * -EINVAL (NULL handle).
 */
SMC_API int smc_barrier(smc_region *region);

/**
 * smc_barrier_range - smc_barrier() for a part; rounded outward to pages
 * @region: from smc_attach().
 * @offset: first byte.
 * @length: bytes; 0: none, the call does nothing.
 *
 * Return: as smc_barrier(); -ERANGE.
 */
SMC_API int smc_barrier_range(smc_region *region, uint64_t offset, uint64_t length);

/**
 * smc_acquire - see what the other side has changed
 * @region: from smc_attach().
 * @offset: first byte.
 * @length: bytes; 0: to the end of the attached range.
 *
 * Loads that begin after the call see the target's memory as it was at the call or later. Rounded
 * outward to pages; what is dirty there is sent first, nothing is lost. madvise(MADV_DONTNEED) is no
 * substitute: it drops the mapping, not the pages.
 *
 * Return: 0; -ERANGE, -EINVAL (NULL handle), -EIO (dirty pages could not be sent, they are kept),
 * -EBUSY (a page was in use for 2 s, as by O_DIRECT into the mapping).
 */
SMC_API int smc_acquire(smc_region *region, uint64_t offset, uint64_t length);

/**
 * smc_store - store bytes that are sent whether they differ or not
 * @region: from smc_attach().
 * @offset: first byte in the region.
 * @buf: @length bytes to copy; need not be aligned.
 * @length: bytes.
 *
 * Exactly these bytes are owed to the target at the next barrier, even if the pages here hold the
 * same values already. Use it for flags that the other side resets. Not atomic towards
 * concurrent stores to the same bytes. May have stored a part when it fails. In a region of mode eager it
 * waits until they have arrived; -EIO may then mean that they were stored here, and are kept.
 *
 * Return: 0; -ENOSPC (past the end), -EBADF (attached with SMC_ATTACH_READONLY), -EIO, -EFAULT,
 * -EINVAL (NULL handle or buffer).
 */
SMC_API int smc_store(smc_region *region, uint64_t offset, const void *buf, size_t length);

/**
 * smc_load - copy bytes out, with an error where a load would raise SIGBUS
 * @region: from smc_attach().
 * @offset: first byte in the region.
 * @buf: room for @length bytes; its content is undefined on failure.
 * @length: bytes.
 *
 * Sees what a load sees: the pages of this node. Acquire first to see the peer's changes.
 *
 * Return: 0; -ERANGE, -EIO (the fetch failed, or the region is gone), -EFAULT, -EINVAL.
 */
SMC_API int smc_load(smc_region *region, uint64_t offset, void *buf, size_t length);

/**
 * struct smc_fault - the load or store that ended a guarded call
 * @size: in: sizeof of the caller; what the library does not know is set to 0.
 * @address: what it touched, si_addr of the SIGBUS; NULL if there was none.
 * @code: si_code of the SIGBUS, BUS_ADRERR for a region; 0 if there was none.
 * @reserved: 0.
 */
struct smc_fault {
	size_t   size;
	void    *address;
	int32_t  code;
	uint32_t reserved;
};

/**
 * smc_guard - call a function, with an error where its loads and stores raise SIGBUS
 * @body: what is called, on this thread.
 * @argument: for @body; also the way for whatever it has to say beyond an int.
 * @fault: receives what was touched; its code is 0 if @body returned. NULL: not asked for.
 *
 * Of any mapping, not only of regions. At the first load or store of this thread that raises SIGBUS @body is
 * left as if by siglongjmp(3), and the thread's signal mask is as it was at the call. Nothing is undone, and
 * stores that @body made may be missing where the compiler put them off: progress that is to be known after
 * an error belongs into volatile objects. Guards nest: the innermost one of the thread ends. What other threads do,
 * also those that @body starts, is not guarded; system calls that touch such memory return EFAULT, as ever.
 *
 * What @body may do. At every load and store that may fail it must be ready never to come back: it holds no
 * lock, owns no memory, file or other thing that somebody would have to release, and is not within a
 * function that may, as qsort(3) or printf(3). No C++ frame between the guard and such an access has a
 * variable with a destructor that does something, or is in a catch block: that is undefined. @body must not
 * be left but by return: not by longjmp(3) past the guard, an exception, pthread_exit(3) or cancellation, which
 * may end the program. After fork() in @body the child is guarded, too.
 *
 * While a guard is active on any thread the process has a handler for SIGBUS. What is no access of a guarded
 * thread (an access elsewhere, kill(2), raise(3)) goes to the action that the program had, default, ignored or
 * handler, with the siginfo, mask, stack and flags that it was installed with. It is there again when no guard is active
 * any more. An action that the program installs meanwhile stays, and gets the accesses of guarded threads,
 * unless it calls the handler that it replaced. smc_guard(3) has the few differences that remain.
 *
 * Context: any thread; not in a signal handler. A few system calls for a guard, fewer for one within another:
 * guard a piece of work, not an access.
 * Return: what @body returned, or -EIO (SIGBUS, and @fault->code is not 0); -EINVAL (@body is NULL, or
 * @fault->size), -ENOMEM: @body was not called.
 */
SMC_API int smc_guard(int (*body)(void *argument), void *argument, struct smc_fault *fault);

/**
 * smc_publish - send a range, then a flag that says so
 * @region: from smc_attach().
 * @offset: first byte of the range.
 * @length: bytes; 0: none, only the flag is sent.
 * @flag_offset: of the flag, a multiple of @flag_bytes.
 * @value: what the flag becomes.
 * @flag_bytes: 4 or 8.
 *
 * Whoever sees the flag in the target's memory sees the range, too, as it was at the call or later. The flag
 * is written as one, even if it holds @value already, and the pages of this node follow. Do not store to
 * the flag through the mapping, nor, in an exclusive region, let the other side write to the flag's page.
 *
 * -EREMOTEIO says that the link was lost while the flag was on its way: it may be there or not, and will
 * not be sent again by itself. Flags that only grow make that harmless: publish the same or the next.
 *
 * Context: blocks until the target's adapter has acknowledged both, or the request deadline has passed;
 * a fatal signal ends the wait.
 * Return: 0; -EIO (range or flag was not sent; changes are kept dirty), -EREMOTEIO, -ERANGE, -EBADF
 * (attached with SMC_ATTACH_READONLY), -EINVAL (handle, alignment here or in the target's memory, size, or
 * a value too large for it),
 * -EOPNOTSUPP (the module is older than this library), -ENOMEM.
 */
SMC_API int smc_publish(smc_region *region, uint64_t offset, uint64_t length, uint64_t flag_offset,
			uint64_t value, size_t flag_bytes);

/**
 * smc_fetch_add - add to 8 bytes at the target, as one step
 * @region: from smc_attach().
 * @offset: a multiple of 8.
 * @addend: modulo 2^64; (uint64_t)-1 subtracts 1.
 * @old: receives what was there before, unless NULL; untouched on failure.
 *
 * One step towards the atomics of all nodes through the target's adapter, not towards instructions of the
 * target's processors and accelerators. What this node stored to the word before is sent first; stores
 * elsewhere that are still dirty come later: barrier first where the order matters. The pages of this node
 * follow. Storing to the word while an atomic of it is under way has no defined outcome.
 *
 * Context: blocks until the target's adapter has answered, or the request deadline has passed; a fatal
 * signal ends the wait.
 * Return: 0; -EREMOTEIO (the link was lost, and it may have been done; it is not repeated), -EIO (it was
 * not done), -EOPNOTSUPP (an adapter on either side has no atomics), -ERANGE, -EBADF (attached with
 * SMC_ATTACH_READONLY), -EINVAL (also: it is at no multiple of 8 in the target's memory), -ENOMEM.
 */
SMC_API int smc_fetch_add(smc_region *region, uint64_t offset, uint64_t addend, uint64_t *old);

/**
 * smc_compare_swap - replace 8 bytes at the target if they are as expected, as one step
 * @region: from smc_attach().
 * @offset: a multiple of 8.
 * @expected: what has to be there.
 * @desired: what then takes its place.
 * @old: receives what was there before, unless NULL: @expected, if it was replaced.
 *
 * Context: as smc_fetch_add().
 * Return: 0, whether it was replaced or not; else as smc_fetch_add().
 */
SMC_API int smc_compare_swap(smc_region *region, uint64_t offset, uint64_t expected, uint64_t desired,
			     uint64_t *old);

/* Until when smc_wait() waits; both sides masked, unsigned. */
enum smc_wait_until {
	SMC_WAIT_CHANGED,	/* it is not value */
	SMC_WAIT_EQUAL,		/* it is value */
	SMC_WAIT_AT_LEAST,	/* it is value or more */
};

/**
 * struct smc_wait_opts - what to wait for
 * @size: sizeof(struct smc_wait_opts) of the caller.
 * @value: what the word is compared to.
 * @mask: bits that count; 0: all.
 * @until: enum smc_wait_until.
 * @bytes: of the word, 4 or 8; 0: 8.
 * @timeout_ms: up to SMC_TIMEOUT_MS_MAX; 0 means SMC_TIMEOUT_MS_DEFAULT. There is no "for ever".
 * @reserved: 0.
 */
struct smc_wait_opts {
	size_t   size;
	uint64_t value;
	uint64_t mask;
	uint32_t until;
	uint32_t bytes;
	uint32_t timeout_ms;
	uint32_t reserved;
};

/**
 * smc_wait - sleep until a word of the target's memory is as wanted
 * @region: from smc_attach(), also with SMC_ATTACH_READONLY.
 * @offset: of the word, a multiple of its size.
 * @opts: what to wait for.
 * @seen: receives the word as it was last, also with -ETIMEDOUT, unless NULL.
 *
 * Looks at the target's memory itself, past the pages of this node, with pauses between looks that grow
 * to 1 ms at most; neither a processor nor the link is kept busy. The word's page here follows if it is
 * clean. What the flag announces is to be acquired: smc_wait(), smc_acquire(), loads.
 *
 * While the link is down it goes on looking until the time is up.
 *
 * Context: sleeps, for @opts->timeout_ms and one look at most; any signal that is handled ends it.
 * Return: 0; -ETIMEDOUT; -EIO (the link is down still when the time is up, or the region is gone), -EINTR,
 * -ERANGE, -EINVAL (also: @opts->value or @opts->mask has bits that a word of 4 bytes has not), -E2BIG, -EOPNOTSUPP (the module is older than this library), -ENOMEM.
 */
SMC_API int smc_wait(smc_region *region, uint64_t offset, const struct smc_wait_opts *opts,
		     uint64_t *seen);

/* Pieces of one attached region, given out and taken back. Opaque; owned by the caller. */
typedef struct smc_pool smc_pool;

#define SMC_POOL_ALIGN		64		/* the least alignment of pieces, bytes */
#define SMC_POOL_ALIGN_MAX	(1 << 20)

/**
 * smc_pool_create - give out pieces of a part of a region
 * @region: from smc_attach(); must outlive what the pieces are used for.
 * @offset: first byte.
 * @length: bytes; 0: to the end of the attached range.
 * @alignment: of the pieces in the region, which also have whole multiples of it; a power of two from
 *	SMC_POOL_ALIGN to SMC_POOL_ALIGN_MAX bytes; 0: SMC_POOL_ALIGN.
 * @out: receives the pool; untouched on failure.
 *
 * The memory is attached and registered once, for all pieces there ever will be. Who holds what is known to
 * this process alone: neither other programs nor the target look at these books, and a child after fork()
 * has books of its own.
 *
 * Where the other side writes to some pieces while this node writes to others, no two of them may share
 * what is sent as one: give the region's merge_unit (smcctl get) as the alignment, and the page size in a
 * region with exclusive writers.
 *
 * Context: any thread; does not touch the region.
 * Return: 0; -ERANGE, -ENOBUFS (no piece fits), -EINVAL, -ENOMEM.
 */
SMC_API int smc_pool_create(smc_region *region, uint64_t offset, uint64_t length, size_t alignment,
			    smc_pool **out);

/**
 * smc_pool_alloc - take a piece
 * @pool: from smc_pool_create().
 * @bytes: at least 1.
 * @offset: receives its first byte, relative to smc_addr(), aligned as the pool says.
 *
 * Its content is whatever the region holds there.
 *
 * Context: any thread; does not touch the region.
 * Return: 0; -ENOBUFS (no free run is that long), -EINVAL, -ENOMEM.
 */
SMC_API int smc_pool_alloc(smc_pool *pool, size_t bytes, uint64_t *offset);

/**
 * smc_pool_free - give a piece back
 * @pool: from smc_pool_create().
 * @offset: from smc_pool_alloc().
 *
 * Context: any thread; does not touch the region.
 * Return: 0; -EINVAL (no piece that is given out begins there).
 */
SMC_API int smc_pool_free(smc_pool *pool, uint64_t offset);

/**
 * smc_pool_destroy - forget the books; the region stays as it is
 * @pool: from smc_pool_create(), or NULL. Must be the last call on it.
 */
SMC_API void smc_pool_destroy(smc_pool *pool);

/**
 * smc_status - ask the kernel for the region's state
 * @region: from smc_attach().
 * @info: @info->size is set by the caller, the rest is filled in.
 *
 * Speaks to the kernel, not to the daemon: works while the daemon is down.
 *
 * Return: 0; -EINVAL, -ENODEV (module gone), -ESTALE (the region has been detached by force or
 * replaced), -EPROTO, -ETIMEDOUT.
 */
SMC_API int smc_status(const smc_region *region, struct smc_status_info *info);

/**
 * smc_detach - unmap, close, free the handle
 * @region: from smc_attach(), or NULL.
 *
 * Close writes back what is dirty, but only a barrier that returned 0 promises that it has arrived:
 * call smc_barrier() first. The region stays bound for other users.
 *
 * Return: 0, also for NULL; or what close(2) said, as -EIO. The handle is gone in every case.
 */
SMC_API int smc_detach(smc_region *region);

/**
 * smc_strerror - what an error means here, and what to do about it
 * @err: an errno, negative (as returned) or positive.
 *
 * Return: a sentence, never NULL, never to be freed; in English, not translated.
 */
SMC_API const char *smc_strerror(int err);

#ifdef __cplusplus
}
#endif

#endif /* SMC_SMC_H */
