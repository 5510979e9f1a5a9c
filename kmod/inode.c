// SPDX-License-Identifier: GPL-2.0
/*
 * Inodes, names and directories: /smc/<node>/<region>, where a region's name may contain '/'.
 * Copyright (c) 2026 The SMC authors
 *
 * A lookup never waits for the network: it makes the inode of a region that is still being bound,
 * and whoever wants to know more of it (permission, stat, open) waits then, killably and bounded,
 * with no directory locked.
 *
 * Whether a component of a region's name is a directory is not known before a daemon says so. A
 * component in the middle of a path is taken for one at no cost; a last component is taken for a
 * region until the bind fails with EISDIR, whereupon -ESTALE makes the VFS walk again and find a
 * directory.
 *
 * Contexts: process.
 * Lifetime: an inode holds its region, or its peer; the region's pointer back is weak.
 */
#include <linux/namei.h>
#include <linux/slab.h>

#include "smcfs.h"

/* Peers count from 2, regions from 1 << 32, directories of names below a peer from here. */
#define SMCFS_ROOT_INO	1
#define SMCFS_PREFIX_INO	BIT_ULL(62)
#define SMCFS_LIST_MAX	4096	/* entries of one directory listing */

/* Copies what the grant says; idempotent. [region->lock] */
void smcfs_inode_update_locked(struct inode *inode)
{
	struct smcfs_region *region = smcfs_i(inode)->region;
	const struct smcfs_region_desc *desc = &region->desc;

	lockdep_assert_held(&region->lock);
	/* No size: not bound yet. */
	if (!desc->size || i_size_read(inode) == desc->size)
		return;
	spin_lock(&inode->i_lock);
	inode->i_mode = S_IFREG | (desc->mode & 0777);
	inode->i_uid = make_kuid(&init_user_ns, desc->uid);
	inode->i_gid = make_kgid(&init_user_ns, desc->gid);
	inode->i_blocks = (desc->size + 511) >> 9;
	i_size_write(inode, desc->size);
	spin_unlock(&inode->i_lock);
}

void smcfs_inode_update(struct inode *inode)
{
	struct smcfs_region *region = smcfs_i(inode)->region;

	spin_lock_bh(&region->lock);
	smcfs_inode_update_locked(inode);
	spin_unlock_bh(&region->lock);
}

static int inode_test(struct inode *inode, void *region)
{
	return smcfs_i(inode)->region == region;
}

static int inode_set(struct inode *inode, void *data)
{
	struct smcfs_region *region = data;

	smcfs_i(inode)->region = smcfs_region_hold(region);
	inode->i_ino = region->id;
	return 0;
}

/* The inode of a region; the caller keeps its own reference to the region. */
static struct inode *inode_of_region(struct super_block *sb, struct smcfs_region *region)
{
	struct inode *inode = iget5_locked(sb, region->id, inode_test, inode_set, region);

	if (!inode)
		return ERR_PTR(-ENOMEM);
	if (!(inode->i_state & I_NEW))
		return inode;
	inode->i_mode = S_IFREG;
	inode->i_op = &smcfs_file_iops;
	inode->i_fop = &smcfs_file_fops;
	inode->i_mapping->a_ops = &smcfs_aops;
	mapping_set_folio_order_range(inode->i_mapping, 0, SMCFS_FOLIO_ORDER_MAX);
	mapping_set_gfp_mask(inode->i_mapping, GFP_HIGHUSER_MOVABLE);
	simple_inode_init_ts(inode);
	spin_lock_bh(&region->lock);
	region->inode = inode;
	spin_unlock_bh(&region->lock);
	smcfs_inode_update(inode);
	unlock_new_inode(inode);
	return inode;
}

/* A directory of @peer (NULL: the root) for the names that start with @prefix ("" or "job/"). */
static struct inode *inode_of_dir(struct super_block *sb, struct smcfs_peer *peer, u64 ino,
				  const char *prefix)
{
	struct inode *inode = new_inode(sb);

	if (!inode)
		return ERR_PTR(-ENOMEM);
	smcfs_i(inode)->prefix = kstrdup(prefix, GFP_KERNEL);
	if (!smcfs_i(inode)->prefix) {
		iput(inode);
		return ERR_PTR(-ENOMEM);
	}
	if (peer)
		kref_get(&peer->ref);
	smcfs_i(inode)->peer = peer;
	inode->i_ino = ino ?: SMCFS_PREFIX_INO | get_next_ino();
	inode->i_mode = S_IFDIR | 0555;
	set_nlink(inode, 2);
	inode->i_op = &smcfs_dir_iops;
	inode->i_fop = &smcfs_dir_fops;
	simple_inode_init_ts(inode);
	return inode;
}

struct inode *smcfs_inode_root(struct super_block *sb)
{
	return inode_of_dir(sb, NULL, SMCFS_ROOT_INO, "");
}

/* ------------------------------------------------------------------ lookup */

static struct inode *lookup_peer(struct super_block *sb, const struct qstr *name)
{
	struct smcfs_peer *peer = smcfs_peer_get(name->name, name->len);
	struct inode *inode;

	if (!peer)
		return ERR_PTR(smcfs_daemon_present() || smcfs_peer_count() ? -ENOENT : -ENOTCONN);
	inode = inode_of_dir(sb, peer, peer->ino, "");
	smcfs_peer_put(peer);
	return inode;
}

static struct inode *lookup_name(struct super_block *sb, struct smcfs_peer *peer, const char *name,
				 bool is_dir)
{
	struct smcfs_region *region;
	struct inode *inode;
	char *prefix;

	if (is_dir || smcfs_region_is_prefix(peer, name)) {
		prefix = kasprintf(GFP_KERNEL, "%s/", name);
		if (!prefix)
			return ERR_PTR(-ENOMEM);
		inode = inode_of_dir(sb, peer, 0, prefix);
		kfree(prefix);
		return inode;
	}
	region = smcfs_region_lookup(peer, name);
	/* It turned out a directory since we looked: walk again. */
	if (region == ERR_PTR(-EISDIR))
		return ERR_PTR(-ESTALE);
	if (IS_ERR(region))
		return ERR_CAST(region);
	inode = inode_of_region(sb, region);
	smcfs_region_put(region);
	return inode;
}

static struct dentry *smcfs_lookup(struct inode *dir, struct dentry *dentry, unsigned int flags)
{
	struct smcfs_inode *parent = smcfs_i(dir);
	struct inode *inode;
	char *name;

	if (!parent->peer) {
		inode = lookup_peer(dir->i_sb, &dentry->d_name);
	} else {
		if (strlen(parent->prefix) + dentry->d_name.len > SMCFS_REGION_NAME_MAX)
			return ERR_PTR(-ENAMETOOLONG);
		if (READ_ONCE(parent->peer->gone))
			return ERR_PTR(-ESTALE);
		name = kasprintf(GFP_KERNEL, "%s%.*s", parent->prefix, (int)dentry->d_name.len,
				 dentry->d_name.name);
		if (!name)
			return ERR_PTR(-ENOMEM);
		inode = smcfs_name_valid(name, true) ?
			lookup_name(dir->i_sb, parent->peer, name,
				    flags & (LOOKUP_PARENT | LOOKUP_DIRECTORY)) :
			ERR_PTR(-ENOENT);
		kfree(name);
	}
	/* Absent names leave nothing behind: not even a negative dentry outlives its last user. */
	if (inode == ERR_PTR(-ENOENT))
		inode = NULL;
	return d_splice_alias(inode, dentry);
}

/* Is the directory known to hold names? */
static bool is_prefix(const struct smcfs_inode *si)
{
	char name[SMCFS_REGION_NAME_MAX + 1];

	strscpy(name, si->prefix, sizeof(name));
	name[strlen(name) - 1] = 0;	/* the slash */
	return smcfs_region_is_prefix(si->peer, name);
}

static bool dentry_is_stale(struct dentry *dentry, unsigned int flags)
{
	struct inode *inode = d_inode(dentry);
	struct smcfs_inode *si;

	if (!inode)
		return true;
	si = smcfs_i(inode);
	if (si->region) {
		/* Mid-path: a name still being bound might be a directory as well. */
		if (READ_ONCE(si->region->state) == SMCFS_REGION_BINDING)
			return flags & (LOOKUP_PARENT | LOOKUP_DIRECTORY);
		return smcfs_region_dead(si->region);
	}
	if (!si->peer)
		return false;
	if (READ_ONCE(si->peer->gone))
		return true;
	/* A directory that was only assumed; asked for by itself it may turn out a region. */
	return *si->prefix && !(flags & (LOOKUP_PARENT | LOOKUP_DIRECTORY)) && !is_prefix(si);
}

static int smcfs_d_revalidate(struct dentry *dentry, unsigned int flags)
{
	if (flags & LOOKUP_RCU)
		return -ECHILD;
	return !dentry_is_stale(dentry, flags);
}

/* Is the inode of a region worth keeping when nobody uses it? */
bool smcfs_inode_is_kept(const struct inode *inode)
{
	struct smcfs_region *region = smcfs_i(inode)->region;

	return READ_ONCE(region->state) != SMCFS_REGION_BINDING && !smcfs_region_dead(region);
}

/* Nothing is kept for its own sake but what is bound: names are cheap to look up again. */
static int smcfs_d_delete(const struct dentry *dentry)
{
	struct inode *inode = d_inode(dentry);

	if (!inode)
		return 1;
	if (!smcfs_i(inode)->region)
		return *smcfs_i(inode)->prefix != 0;
	return !smcfs_inode_is_kept(inode);
}

const struct dentry_operations smcfs_dops = {
	.d_revalidate	= smcfs_d_revalidate,
	.d_delete	= smcfs_d_delete,
};

/* ------------------------------------------------------------------ attributes of regions */

/* Waits until the region of @inode is bound. -ESTALE: the name is a directory, walk again. */
static int inode_wait_bound(struct inode *inode)
{
	int err = smcfs_region_wait_bound(smcfs_i(inode)->region);

	if (err == -EISDIR)
		return -ESTALE;
	if (!err)
		smcfs_inode_update(inode);
	return err;
}

static int smcfs_permission(struct mnt_idmap *idmap, struct inode *inode, int mask)
{
	struct smcfs_region *region = smcfs_i(inode)->region;
	int err;

	if (mask & MAY_NOT_BLOCK)
		return -ECHILD;
	err = inode_wait_bound(inode);
	if (err)
		return err;
	if ((mask & MAY_WRITE) && (region->desc.flags & SMCFS_RF_READONLY))
		return -EROFS;
	return generic_permission(idmap, inode, mask);
}

static int smcfs_getattr(struct mnt_idmap *idmap, const struct path *path, struct kstat *stat,
			 u32 mask, unsigned int flags)
{
	struct inode *inode = d_inode(path->dentry);
	int err = inode_wait_bound(inode);

	/* A region that was bound once keeps its attributes: fstat() of an open file goes on. */
	if (err && !i_size_read(inode))
		return err;
	generic_fillattr(idmap, mask, inode, stat);
	return 0;
}

/* Size, owner and mode are the exporter's. */
static int smcfs_setattr(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr)
{
	struct inode *inode = d_inode(dentry);
	int err = inode_wait_bound(inode);

	if (!err)
		err = setattr_prepare(idmap, dentry, attr);
	if (err)
		return err;
	/* As on a block device O_TRUNC changes nothing: cp and dd open so. */
	if ((attr->ia_valid & ATTR_SIZE) && !(attr->ia_valid & ATTR_OPEN) &&
	    attr->ia_size != i_size_read(inode))
		return -EPERM;
	if ((attr->ia_valid & ATTR_MODE) && attr->ia_mode != inode->i_mode)
		return -EPERM;
	if ((attr->ia_valid & ATTR_UID) && !uid_eq(attr->ia_uid, inode->i_uid))
		return -EPERM;
	if ((attr->ia_valid & ATTR_GID) && !gid_eq(attr->ia_gid, inode->i_gid))
		return -EPERM;
	attr->ia_valid &= ~(ATTR_SIZE | ATTR_MODE | ATTR_UID | ATTR_GID);
	setattr_copy(idmap, inode, attr);
	return 0;
}

const struct inode_operations smcfs_file_iops = {
	.permission	= smcfs_permission,
	.getattr	= smcfs_getattr,
	.setattr	= smcfs_setattr,
};

const struct inode_operations smcfs_dir_iops = {
	.lookup		= smcfs_lookup,
};

/* ------------------------------------------------------------------ listings */

struct list_entry {
	bool	is_dir;
	char	name[];
};

/* What one open directory shows: asked for once, at open, with nothing locked. */
struct listing {
	const char		*prefix;
	unsigned int		nr;
	struct list_entry	*entries[SMCFS_LIST_MAX];
};

static void listing_free(struct listing *list)
{
	while (list->nr)
		kfree(list->entries[--list->nr]);
	kvfree(list);
}

/* Adds the component of @name that follows the prefix, once. */
static int listing_add(void *ctx, const char *name)
{
	struct listing *list = ctx;
	size_t skip = strlen(list->prefix), length;
	struct list_entry *entry;
	unsigned int i;

	if (strncmp(name, list->prefix, skip))
		return 0;
	name += skip;
	length = strchrnul(name, '/') - name;
	cond_resched();	/* quadratic, but bounded */
	for (i = 0; i < list->nr; i++)
		if (!strncmp(list->entries[i]->name, name, length) &&
		    !list->entries[i]->name[length])
			return 0;
	if (list->nr == SMCFS_LIST_MAX)
		return -E2BIG;
	entry = kzalloc(struct_size(entry, name, length + 1), GFP_KERNEL_ACCOUNT);
	if (!entry)
		return -ENOMEM;
	entry->is_dir = name[length] == '/';
	memcpy(entry->name, name, length);
	list->entries[list->nr++] = entry;
	return 0;
}

static int smcfs_dir_open(struct inode *inode, struct file *file)
{
	struct smcfs_inode *si = smcfs_i(inode);
	struct listing *list;
	int err;

	if (!si->peer)
		return 0;
	list = kvzalloc(sizeof(*list), GFP_KERNEL_ACCOUNT);
	if (!list)
		return -ENOMEM;
	list->prefix = si->prefix;
	err = smcfs_upcall_list(si->peer->name, listing_add, list);
	if (err) {
		listing_free(list);
		return err;
	}
	file->private_data = list;
	return 0;
}

static int smcfs_dir_release(struct inode *inode, struct file *file)
{
	if (file->private_data)
		listing_free(file->private_data);
	return 0;
}

/* The root: positions are inode numbers of peers, 2 and up, as "." and ".." are 0 and 1. */
static int iterate_root(struct dir_context *ctx)
{
	struct smcfs_peer *peer;

	while ((peer = smcfs_peer_next(ctx->pos))) {
		ctx->pos = peer->ino;
		if (!dir_emit(ctx, peer->name, strlen(peer->name), peer->ino, DT_DIR)) {
			smcfs_peer_put(peer);
			break;
		}
		ctx->pos = peer->ino + 1;
		smcfs_peer_put(peer);
	}
	return 0;
}

static int smcfs_iterate(struct file *file, struct dir_context *ctx)
{
	struct listing *list = file->private_data;

	if (!dir_emit_dots(file, ctx))
		return 0;
	if (!list)
		return iterate_root(ctx);
	for (; ctx->pos - 2 < list->nr; ctx->pos++) {
		struct list_entry *entry = list->entries[ctx->pos - 2];

		if (!dir_emit(ctx, entry->name, strlen(entry->name),
			      1 + full_name_hash(list, entry->name, strlen(entry->name)),
			      entry->is_dir ? DT_DIR : DT_REG))
			break;
	}
	return 0;
}

const struct file_operations smcfs_dir_fops = {
	.open		= smcfs_dir_open,
	.release	= smcfs_dir_release,
	.iterate_shared	= smcfs_iterate,
	.read		= generic_read_dir,
	.llseek		= generic_file_llseek,
};
