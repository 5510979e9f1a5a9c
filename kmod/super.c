// SPDX-License-Identifier: GPL-2.0
/*
 * The filesystem: one superblock for all mounts, so that all see one cache.
 * Copyright (c) 2026 The SMC authors
 *
 * Contexts: process.
 * Failure: umount is EBUSY while a region holds dirty pages that outlived their last close (they
 *	pin the mount, region.c); umount -f discards them and says how much.
 */
#include <linux/backing-dev.h>
#include <linux/fs_context.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/statfs.h>
#include <linux/writeback.h>

#include "smcfs.h"

static struct kmem_cache *inode_cache;

static struct inode *smcfs_alloc_inode(struct super_block *sb)
{
	struct smcfs_inode *si = alloc_inode_sb(sb, inode_cache, GFP_KERNEL);

	if (!si)
		return NULL;
	si->region = NULL;
	si->peer = NULL;
	si->prefix = NULL;
	return &si->vfs;
}

/* After a grace period: path walks that still look at the inode are over. */
static void smcfs_free_inode(struct inode *inode)
{
	struct smcfs_inode *si = smcfs_i(inode);

	if (si->region)
		smcfs_region_put(si->region);
	if (si->peer)
		smcfs_peer_put(si->peer);
	kfree(si->prefix);
	kmem_cache_free(inode_cache, si);
}

static void smcfs_evict_inode(struct inode *inode)
{
	struct smcfs_region *region = smcfs_i(inode)->region;

	if (region) {
		u64 bytes = smcfs_dirty_bytes(inode->i_mapping, PAGECACHE_TAG_DIRTY);

		if (bytes && !smcfs_region_dead(region)) {
			smcfs_stat_add(&region->stats, SMCFS_STAT_DISCARDED_BYTES, bytes);
			pr_warn("smcfs: %s:%s: discarded %llu bytes with the inode\n",
				region->peer->name, region->name, bytes);
		}
	}
	truncate_inode_pages_final(&inode->i_data);
	clear_inode(inode);
	if (region) {
		spin_lock_bh(&region->lock);
		if (region->inode == inode)
			region->inode = NULL;
		spin_unlock_bh(&region->lock);
	}
}

/* Names that led nowhere leave no inode behind. */
static int smcfs_drop_inode(struct inode *inode)
{
	return generic_drop_inode(inode) || (smcfs_i(inode)->region && !smcfs_inode_is_kept(inode));
}

static int smcfs_statfs(struct dentry *dentry, struct kstatfs *buf)
{
	buf->f_type = SMCFS_SUPER_MAGIC;
	buf->f_bsize = PAGE_SIZE;
	buf->f_namelen = SMCFS_REGION_NAME_MAX;
	return 0;
}

static void smcfs_umount_begin(struct super_block *sb)
{
	smcfs_region_discard_pinned();
}

static const struct super_operations smcfs_sops = {
	.alloc_inode	= smcfs_alloc_inode,
	.free_inode	= smcfs_free_inode,
	.drop_inode	= smcfs_drop_inode,
	.evict_inode	= smcfs_evict_inode,
	.statfs		= smcfs_statfs,
	.sync_fs	= smcfs_sync_fs,
	.umount_begin	= smcfs_umount_begin,
};

static int smcfs_fill_super(struct super_block *sb, struct fs_context *fc)
{
	struct inode *root;
	int err;

	sb->s_magic = SMCFS_SUPER_MAGIC;
	sb->s_op = &smcfs_sops;
	sb->s_d_op = &smcfs_dops;
	sb->s_maxbytes = MAX_LFS_FILESIZE;
	sb->s_blocksize = PAGE_SIZE;
	sb->s_blocksize_bits = PAGE_SHIFT;
	sb->s_time_gran = 1;
	/*
	 * NOEXEC: the core makes folios of any order for files that are mapped executable and not
	 * open for writing, and drops the whole page cache, unsent pages too, at the next
	 * writable open.
	 */
	sb->s_iflags |= SB_I_NODEV | SB_I_NOEXEC | SB_I_CGROUPWB;
	sb->s_flags |= SB_NOSUID;
	err = super_setup_bdi(sb);
	if (err)
		return err;
	root = smcfs_inode_root(sb);
	if (IS_ERR(root))
		return PTR_ERR(root);
	sb->s_root = d_make_root(root);
	return sb->s_root ? 0 : -ENOMEM;
}

static int smcfs_get_tree(struct fs_context *fc)
{
	return get_tree_single(fc, smcfs_fill_super);
}

static const struct fs_context_operations smcfs_context_ops = {
	.get_tree	= smcfs_get_tree,
};

static int smcfs_init_fs_context(struct fs_context *fc)
{
	fc->ops = &smcfs_context_ops;
	return 0;
}

static struct file_system_type smcfs_type = {
	.owner			= THIS_MODULE,
	.name			= SMCFS_FS_TYPE,
	.init_fs_context	= smcfs_init_fs_context,
	.kill_sb		= kill_anon_super,
};

static void inode_init_once_cb(void *obj)
{
	struct smcfs_inode *si = obj;

	inode_init_once(&si->vfs);
}

int smcfs_super_init(void)
{
	int err;

	inode_cache = kmem_cache_create("smcfs_inode", sizeof(struct smcfs_inode), 0,
					SLAB_RECLAIM_ACCOUNT | SLAB_ACCOUNT, inode_init_once_cb);
	if (!inode_cache)
		return -ENOMEM;
	err = register_filesystem(&smcfs_type);
	if (err)
		kmem_cache_destroy(inode_cache);
	return err;
}

void smcfs_super_exit(void)
{
	unregister_filesystem(&smcfs_type);
	rcu_barrier();	/* inodes on their way to smcfs_free_inode() */
	kmem_cache_destroy(inode_cache);
}
