/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Makes older kernels look like the newest supported one (6.12); the only place that asks for the
 * kernel's version. One block per change, with the version and the reason.
 * Copyright (c) 2026 The SMC authors
 */
#ifndef SMCFS_COMPAT_H
#define SMCFS_COMPAT_H

#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "smcfs needs Linux 6.1 or newer"
#endif

/* 6.3: inode operations take a mount idmap, took a user namespace. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
#define mnt_idmap user_namespace
#endif

/* 6.6: generic_fillattr() takes the request mask. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define generic_fillattr(idmap, mask, inode, stat) generic_fillattr(idmap, inode, stat)
#endif

/* 6.4: a miss is ERR_PTR(-ENOENT) (-ENOMEM), was NULL: the compiler does not notice. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
static inline struct folio *smcfs_compat_get_folio(struct address_space *mapping, pgoff_t index,
						   int fgp_flags, gfp_t gfp)
{
	struct folio *folio = __filemap_get_folio(mapping, index, fgp_flags, gfp);

	return folio ?: ERR_PTR(fgp_flags & FGP_CREAT ? -ENOMEM : -ENOENT);
}

#define __filemap_get_folio smcfs_compat_get_folio
#define FGP_WRITEBEGIN (FGP_LOCK | FGP_WRITE | FGP_CREAT | FGP_STABLE)
#endif

/* 6.6: inode times by helpers. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
static inline void simple_inode_init_ts(struct inode *inode)
{
	inode->i_atime = current_time(inode);
	inode->i_mtime = inode->i_atime;
	inode->i_ctime = inode->i_atime;
}
#endif

static inline void smcfs_compat_inode_modified(struct inode *inode)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
	inode->i_mtime = current_time(inode);
	inode->i_ctime = inode->i_mtime;
#else
	inode_set_mtime_to_ts(inode, inode_set_ctime_current(inode));
#endif
}

/* 6.5: splice from the page cache has a new name. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#define filemap_splice_read generic_file_splice_read
#endif

/* 6.5: releases a batch of folios, released a vector of pages (of the same layout). */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#define __folio_batch_release(batch) __pagevec_release((struct pagevec *)(batch))
#endif

/* 6.8: memory-failure drops a folio, dropped a page. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
static inline int generic_error_remove_folio(struct address_space *mapping, struct folio *folio)
{
	return generic_error_remove_page(mapping, &folio->page);
}
#endif

/* 6.12: write_begin and write_end pass a folio, passed a page. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#define SMCFS_WRITE_BEGIN_PAGES 1
#endif

/* 6.2: folio_mapcount() is not available to modules. Counts page-table entries of the folio. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
static inline int smcfs_compat_folio_mapcount(struct folio *folio)
{
	long i, nr = folio_nr_pages(folio);
	int entire, count = 0;

	for (i = 0; i < nr; i++)
		count += atomic_read(&folio_page(folio, i)->_mapcount) + 1;
	if (!folio_test_large(folio))
		return count;
	/* A file's PMD mapping is counted once for the whole and once for each page. */
	entire = folio_entire_mapcount(folio);
	return count + entire - entire * (int)nr;
}

#define folio_mapcount smcfs_compat_folio_mapcount
#endif

/*
 * 6.9: caps the order of folios of a mapping. Before, readahead takes what its window allows, or
 * what MADV_HUGEPAGE asks for: see smcfs_readahead() and smcfs_ahead_fault().
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
#define SMCFS_ORDER_UNBOUNDED 1
static inline void mapping_set_folio_order_range(struct address_space *mapping, unsigned int min,
						 unsigned int max)
{
	if (max)
		mapping_set_large_folios(mapping);
}
#endif

/* 6.12: takes a folio, took a page. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#define wbc_account_cgroup_owner(wbc, folio, bytes) \
	wbc_account_cgroup_owner(wbc, &(folio)->page, bytes)
#endif

/* An option of the kernel: what hot pages are found by. */
#define SMCFS_HOT_PAGES	IS_ENABLED(CONFIG_MAPPING_DIRTY_HELPERS)

/* 6.6: the attributes of a dump request are in its struct genl_info. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define smcfs_compat_dump_attrs(cb) (genl_dumpit_info(cb)->attrs)
#else
#define smcfs_compat_dump_attrs(cb) (genl_info_dump(cb)->attrs)
#endif

#endif
